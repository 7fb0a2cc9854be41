"""Run the notebooks in a batch: one after the other through papermill, into ``results/<profile>/``.

    python -m skill_evolution.runs.notebooks --profile demo -p group_size 2 00_quickstart 01_main_results

What papermill leaves open is settled here: an unknown parameter and a missing ``parameters`` cell are errors instead of
warnings, an executed notebook gets its name only once it has run to the end, the kernel is always that of the running
interpreter, and one broken notebook does not stop the others.
"""

import argparse
import ast
import logging
import os
import re
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import nbformat
import yaml

from skill_evolution.base.paths import NOTEBOOKS, PACKAGE, RESULTS, ROOT
from skill_evolution.base.profiles import profile_path
from skill_evolution.base.settings import check_keys
from skill_evolution.models.serve import ServeError, serving
from skill_evolution.runs.config import Config, load_config
from skill_evolution.runs.notebook_file import execute, strip_file
from skill_evolution.sage.config import SageConfig, load_sage_config

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outcome:
    """How the run of one notebook ended.

    `seconds` are of the wall clock, start of the kernel included; `output` is the executed notebook, or what there is
    of it where it failed (``<name>.failed.ipynb``); `error` is what went wrong, if anything.
    """

    name: str
    seconds: float
    output: Path
    error: str | None

    def __str__(self) -> str:
        if self.error is None:
            return f"{self.name} ok {self.seconds:.0f} s -> {self.output}"
        return f"{self.name} FAILED after {self.seconds:.0f} s -> {self.output}\n{self.error}"


def find_notebooks(names: Collection[str] = (), *, folder: Path = NOTEBOOKS) -> list[Path]:
    """Return the notebooks of a folder in the order of their names.

    Args:
        names: Which ones, with or without the suffix ``.ipynb``; none means all.
        folder: Where they lie.

    Raises:
        ValueError: If the folder has no notebooks, or none of such a name.
    """
    known = {path.stem: path.resolve() for path in sorted(folder.glob("[!.]*.ipynb"))}
    if not known:
        raise ValueError(f"no notebooks in {folder}")
    wanted = {name.removesuffix(".ipynb") for name in names} or set(known)
    if unknown := sorted(wanted - set(known)):
        raise ValueError(f"no notebook {', '.join(unknown)} in {folder}; there are: {', '.join(known)}")
    return [known[name] for name in sorted(wanted)]


def declared_parameters(path: Path) -> list[str]:
    """Return the names that a notebook's ``parameters`` cell assigns.

    Raises:
        ValueError: If no cell is tagged ``parameters``, or that cell isn't Python or lacks ``profile`` or
            ``overrides``: without them the notebook could not be told what to run.
    """
    cells = nbformat.read(path, as_version=4).cells
    tagged = [cell for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    if not tagged:
        raise ValueError(f"{path}: no cell is tagged 'parameters'")
    # Not by papermill.inspect_notebook: it fails on a stale kernel name and overlooks `name: str | None = None`.
    try:
        statements = ast.parse(tagged[0].source).body
    except SyntaxError as error:
        raise ValueError(f"{path}: the parameters cell is not Python: {error}") from error
    targets = [t for s in statements for t in getattr(s, "targets", [getattr(s, "target", None)])]
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    if missing := {"profile", "overrides"}.difference(names):
        raise ValueError(f"{path}: the parameters cell assigns {names}, but not {', '.join(sorted(missing))}")
    return names


def is_sage(name: str) -> bool:
    """Whether a notebook's profile and overrides are those of SageConfig: `sage` is a word of its name."""
    return "sage" in name.split("_")


def _load(name: str, profile: str, overrides: Mapping[str, Any]) -> Config | SageConfig:
    """The config that a notebook will make."""
    return load_sage_config(profile, **overrides) if is_sage(name) else load_config(profile, **overrides)


def assign_parameters(
    declared: Mapping[str, Collection[str]], values: Mapping[str, Any], *, profile: str
) -> dict[str, dict[str, Any]]:
    """Decide which parameters each notebook is given.

    A name goes to the notebooks whose ``parameters`` cell has it; to the others, if it is a field of their
    configuration (Config, or SageConfig for SAGE's), it goes as an entry of ``overrides``. So one value may serve
    several notebooks, and need not be known to all of them.

    Args:
        declared: For each notebook's name, the names in its ``parameters`` cell.
        values: The parameters asked for.
        profile: The value of the parameter ``profile``.

    Returns:
        For each notebook's name, what papermill is to inject.

    Raises:
        ValueError: If no notebook and no field of their configuration goes by one of the names (the message has the
            nearest one), or the configuration refuses a value.
    """
    models = {name: SageConfig if is_sage(name) else Config for name in declared}
    fields = {name: set(model.model_fields) - {"profile"} for name, model in models.items()}
    if "profile" in values:
        raise ValueError("the profile is chosen by --profile (PROFILE=... with make), not by a parameter")
    known = set().union(*fields.values(), *declared.values())
    what = " or ".join(dict.fromkeys(model.__name__ for model in models.values()))
    check_keys(values, known, where=f"parameters of {', '.join(declared)} or {what}")
    assigned = {}
    for notebook, names in declared.items():
        own = {name: value for name, value in values.items() if name in names}
        overrides = {name: value for name, value in values.items() if name in fields[notebook].difference(names)}
        if overrides:
            own["overrides"] = {**own.get("overrides", {}), **overrides}
        _load(notebook, profile, own.get("overrides", {}))  # a bad value shows now, not after the notebooks before it
        assigned[notebook] = {**own, "profile": profile}
    return assigned


def run_notebooks(
    names: Collection[str] = (),
    *,
    profile: str = "demo",
    results: Path = RESULTS,
    parameters: Mapping[str, Any] | None = None,
    folder: Path = NOTEBOOKS,
    report: Callable[[str], None] = logger.info,
) -> list[Outcome]:
    """Run notebooks one after the other and keep what they show.

    The executed notebook and an HTML page of it go to ``results/<profile>/``. Kernels work in the notebooks' folder, as
    they do in JupyterLab. Where the profile's model says `serve`, vLLM serves it meanwhile (models/serve.py).

    Args:
        names: Which notebooks; none means all.
        profile: A profile's name, or the path of its YAML file; handed to each notebook.
        results: The folder above the profile's.
        parameters: Further parameters; see `assign_parameters`.
        folder: Where the notebooks lie.
        report: Called with a line when a notebook starts and when it ends.

    Returns:
        One outcome a notebook, in the order run. A notebook that fails does not raise, and the others still run.

    Raises:
        ValueError: Before anything runs, if a notebook, parameter or profile is unknown, a value is not allowed, or a
            notebook cannot be parametrised.
        ServeError: Before anything runs, if a model can't be served.
    """
    sources = find_notebooks(names, folder=folder)
    path = profile_path(profile, kind="sage" if all(is_sage(source.stem) for source in sources) else "")
    profile = profile if profile == path.stem else str(path.resolve())
    declared = {source.stem: declared_parameters(source) for source in sources}
    assigned = assign_parameters(declared, parameters or {}, profile=profile)
    target = results.resolve() / path.stem
    target.mkdir(parents=True, exist_ok=True)
    outcomes = []
    configs = [_load(name, profile, values.get("overrides", {})) for name, values in assigned.items()]
    team_configs = [config for config in configs if isinstance(config, Config)]  # SAGE needs no server
    models = [model for config in team_configs for model in config.models]
    with serving(models), patch.dict(os.environ, _kernels_environment(target.parent)):  # one server for all
        for number, source in enumerate(sources, start=1):
            report(f"[{number}/{len(sources)}] {source.stem} ...")
            outcomes.append(_run(source, target, assigned[source.stem]))
            report(f"[{number}/{len(sources)}] {outcomes[-1]}")
    return outcomes


def _run(source: Path, target: Path, parameters: dict[str, Any]) -> Outcome:
    output, partial = target / source.name, target / f".{source.stem}.partial.ipynb"
    failed = target / f"{source.stem}.failed.ipynb"
    failed.unlink(missing_ok=True)
    started, error = time.monotonic(), None
    try:
        execute(source, output, partial, parameters)
    except Exception as caught:  # whatever it is: there are other notebooks to run
        error = f"{type(caught).__name__}: {caught}"
        if output.exists():
            error += f"\n{output} is of an earlier run."
    finally:  # also on Ctrl-C
        if partial.exists():
            partial.replace(failed)
    left = output if error is None else failed if failed.exists() else source
    return Outcome(source.stem, time.monotonic() - started, left, error)


def _kernels_environment(results: Path) -> dict[str, str]:
    """What kernels have to know: this very package, and no progress bars."""
    return {
        "PYTHONPATH": os.pathsep.join([str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "SKILL_EVOLUTION_HOME": str(ROOT),
        "SKILL_EVOLUTION_RESULTS": str(results),
        # tqdm's bar for notebooks overlooks TQDM_DISABLE. In Spyder, known by any variable of that name, tqdm.auto
        # takes the plain bar, and that one heeds it.
        "SPYDER_TQDM": "1",
        "TQDM_DISABLE": "1",
    }


def parse_value(text: str) -> Any:
    """Read a parameter's value from the command line: a YAML scalar, list or mapping.

    Three things differ from PyYAML: 1e-3 is a number, a date stays text, and an existing file (or a path with a slash)
    becomes absolute, because kernels work in another folder than the shell.

    Raises:
        ValueError: If it isn't YAML.
    """
    if re.fullmatch(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+", text):
        return float(text)
    if re.match(r"\d{4}-\d", text):
        return text
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"value {text!r} is not YAML; text with special characters needs quotes: {error}") from error
    if isinstance(value, str) and (Path(value).is_file() or ("/" in value and Path(value).exists())):
        return str(Path(value).resolve())
    return value


def main(argv: Sequence[str] | None = None) -> int:
    """Run or clean notebooks from the command line; return the exit status: 1 if a notebook failed, 2 on bad usage."""
    parser = argparse.ArgumentParser(
        "python -m skill_evolution.runs.notebooks", description="Run notebooks in a batch."
    )
    add = parser.add_argument
    add("names", nargs="*", metavar="NOTEBOOK", help="which notebooks, e.g. 01_main_results (all)")
    add("--profile", default="demo", help="profile to run with (%(default)s)")
    add("--results", type=Path, default=RESULTS, help="folder above the profile's (%(default)s)")
    add("--notebooks", type=Path, default=NOTEBOOKS, help="folder of the notebooks (%(default)s)")
    add("--strip", action="store_true", help="run nothing: clean the committed notebooks' metadata")
    what = "a notebook's parameter or a field of its configuration, and its value in YAML; may be repeated"
    add("-p", dest="parameters", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"), help=what)
    args = parser.parse_args(argv)
    try:
        if args.strip:
            for path in find_notebooks(args.names, folder=args.notebooks):
                print(f"{path.name}: {'cleaned' if strip_file(path) else 'clean'}")
            return 0
        outcomes = run_notebooks(
            args.names,
            profile=args.profile,
            results=args.results,
            parameters={name: parse_value(value) for name, value in args.parameters},
            folder=args.notebooks,
            report=lambda line: print(line, flush=True),
        )
    except (ValueError, ServeError) as error:
        parser.error(str(error))
    failed = [outcome.name for outcome in outcomes if outcome.error is not None]
    print(f"Results: {args.results.resolve() / Path(args.profile).stem}")
    if failed:
        print(f"{len(failed)} of {len(outcomes)} notebooks failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
