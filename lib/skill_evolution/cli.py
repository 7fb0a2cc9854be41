"""The command line: `skill-evolution train | data | serve | notebooks`; each has --help.

skill-evolution train --benchmark locomo --category temporal --method grse --seed 1
skill-evolution data hotpotqa locomo
skill-evolution serve --profile cpu
skill-evolution notebooks --profile demo 01_main_results
"""

import argparse
import contextlib
import json
import logging
import sys
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel

from skill_evolution.base import paths
from skill_evolution.base.settings import ConfigError, check_keys
from skill_evolution.runs.config import Config, load_config

COMMANDS = {
    "train": "run one method on one benchmark and print its summary",
    "data": "fetch the benchmark files, or say how to get them by hand",
    "serve": "start a profile's models with vLLM, until Ctrl-C",
    "notebooks": "run notebooks in a batch",
}


def config_flags(arguments: list[str]) -> dict[str, Any]:
    """The config fields on a command line, as given; flags and their help come from `Config` itself.

    Raises:
        ConfigError: a flag that is no field, naming the nearest one.
        SystemExit: after --help, or for a flag without its value.
    """
    from pydantic_settings import BaseSettings, CliSettingsSource, SettingsConfigDict

    # argparse alone would not name the nearest flag
    given = [argument.split("=", 1)[0] for argument in arguments if argument.startswith("--")]
    check_keys(given, ["--help", *_flags(Config, "--")], where="skill-evolution train")

    class Flags(Config, BaseSettings):
        """Run one method on one benchmark and print its summary.

        A flag wins over the profile's value; null unsets one. A run that was stopped goes on where it was.
        """

        model_config = SettingsConfigDict(extra="forbid")

    how: dict[str, Any] = {"cli_kebab_case": True, "cli_parse_none_str": "null", "cli_avoid_json": True}
    return CliSettingsSource(Flags, cli_prog_name="skill-evolution train", cli_parse_args=arguments, **how)()


def _flags(model: type[BaseModel], prefix: str) -> Iterator[str]:
    """A flag for each field of a model; a field that is a model itself (or null) has one for each of its fields."""
    for name, field in model.model_fields.items():
        flag = prefix + name.replace("_", "-")
        kinds = (field.annotation, *get_args(field.annotation))
        nested = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
        yield from _flags(nested[0], f"{flag}.") if nested else [flag]


def train_command(arguments: list[str]) -> int:
    """`skill-evolution train`: the summary goes to standard output as JSON, progress to the log."""
    from skill_evolution.runs.experiments import train
    from skill_evolution.runs.folder import run_folder

    values = config_flags(arguments)
    config = load_config(values.pop("profile", "demo"), **values)
    summary = train(config)
    json.dump(summary, sys.stdout, indent=1)
    sys.stdout.write("\n")
    logging.getLogger(__name__).info("results in %s", run_folder(config))
    return 1 if summary["failures"]["total"] else 0


def data_command(arguments: list[str]) -> int:
    """`skill-evolution data`: fetches what is named into `data/download/`."""
    from skill_evolution.benchmarks.download import SOURCES, DownloadError, fetch

    parser = argparse.ArgumentParser("skill-evolution data", description=COMMANDS["data"])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SOURCES)}; all of them by default")
    options = parser.parse_args(arguments)
    check_keys(options.names, SOURCES, where="data")
    status = 0
    for name in SOURCES if not options.names else options.names:
        try:
            sys.stdout.write(f"{name}: {fetch(name, paths.DATA / 'download')}\n")
        except DownloadError as error:
            sys.stderr.write(f"{name}: {error}\n")
            status = 1
    return status


def serve_command(arguments: list[str]) -> int:
    """`skill-evolution serve`: a profile's models until Ctrl-C; the exit status is 1 if a server ends by itself."""
    from skill_evolution.models.serve import serving, to_serve

    parser = argparse.ArgumentParser("skill-evolution serve", description=COMMANDS["serve"])
    parser.add_argument("--profile", default="cpu", help="profile whose models are served (%(default)s)")
    options = parser.parse_args(arguments)
    models = to_serve(load_config(options.profile).models)
    if not models:
        raise ConfigError(f"profile {options.profile}: no model of it says `serve`")
    with contextlib.suppress(KeyboardInterrupt), serving(models) as servers:
        for server in servers:
            logging.info("%s is at %s; Ctrl-C ends it", server.model, server.url)
        for server in servers:
            status = server.process.wait()
            raise server.failure(f"it ended with status {status}")
    return 0


def main(argv: list[str] | None = None) -> int:
    """The console script; returns the exit status. Errors about input are one message, not a traceback."""
    arguments = sys.argv[1:] if argv is None else argv
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.stdout.write(f"{__doc__}\n" + "".join(f"  {name:10} {text}\n" for name, text in COMMANDS.items()))
        return 0
    from skill_evolution.benchmarks.base import DataError
    from skill_evolution.models.vllm_environment import ServeError
    from skill_evolution.runs.folder import RunError
    from skill_evolution.skills import LibraryError

    try:
        check_keys(arguments[:1], COMMANDS, where="skill-evolution")
        match arguments[0]:
            case "train":
                return train_command(arguments[1:])
            case "data":
                return data_command(arguments[1:])
            case "serve":
                return serve_command(arguments[1:])
        from skill_evolution.runs.notebooks import main as run_batch

        return run_batch(arguments[1:])
    except (ConfigError, DataError, RunError, LibraryError, ServeError) as error:
        sys.stderr.write(f"{error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
