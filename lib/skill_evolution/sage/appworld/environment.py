"""AppWorld's own environment, `.venv-appworld`, and the folder its data lie in.

    python -m skill_evolution.sage.appworld.environment      (or: make appworld)

AppWorld needs pydantic 1 and an old FastAPI, so it can't stand beside this library: it gets an environment made with
pip on first use, and is talked to as another program (appworld/pool.py). Its tasks and databases are a download of
its own, which is left to the user: its licence asks that they aren't passed on in plain text, and its test splits are
for evaluation only.
"""

import logging
import os
import sys
from pathlib import Path

from skill_evolution.base import environment, paths
from skill_evolution.sage.agent.world import WorldError

logger = logging.getLogger(__name__)

FOLDER = paths.ROOT / ".venv-appworld"
PYTHON_VARIABLE = "SKILL_EVOLUTION_APPWORLD_PYTHON"
ROOT_VARIABLE = "SKILL_EVOLUTION_APPWORLD_ROOT"
REQUIREMENT = "appworld==0.1.3.post1"
"""The version that the adapter was written against and is tested with."""


class AppWorldError(WorldError):
    """AppWorld or its data can't be had; the text says what to do."""


def appworld_python() -> Path:
    """The interpreter of AppWorld's environment, which is made if there is none (a minute, 240 MB).

    One's own is taken where the variable SKILL_EVOLUTION_APPWORLD_PYTHON names its interpreter.

    Raises:
        AppWorldError: The variable names no file, or the environment can't be made.
    """
    steps = [[*environment.PIP, "install", REQUIREMENT], ["-m", "appworld.cli", "install"]]  # it unpacks its apps
    cache = {"APPWORLD_CACHE": str(FOLDER / "cache")}  # its default is a folder in the user's home
    try:
        return environment.interpreter(FOLDER, variable=PYTHON_VARIABLE, what=REQUIREMENT, steps=steps, settings=cache)
    except environment.InterpreterError as error:
        raise AppWorldError(str(error)) from error


def data_folder(root: Path | None = None) -> Path:
    """The folder `data` with AppWorld's tasks and databases.

    It lies in `root`; without one, in the folder that the variable SKILL_EVOLUTION_APPWORLD_ROOT names, else in
    data/download/appworld of the repository.

    Raises:
        AppWorldError: It isn't there or isn't AppWorld's; with the command that downloads it.
    """
    given = root or os.environ.get(ROOT_VARIABLE)
    folder = Path(given) if given else paths.DATA / "download" / "appworld"
    data = folder.resolve() / "data"
    if missing := [name for name in ("datasets", "tasks", "base_dbs", "api_docs") if not (data / name).is_dir()]:
        python = os.environ.get(PYTHON_VARIABLE) or FOLDER / "bin" / "python"
        command = f"mkdir -p {folder} && {python} -m appworld.cli download data --root {folder}"
        raise AppWorldError(
            f"AppWorld's data isn't in {data} (no {', '.join(missing)}). Get it with `{command}`, "
            f"or name the folder that holds data/ in {ROOT_VARIABLE}"
        )
    return data


def main() -> int:
    """Make the environment, and say whether the data are there; the exit status is 1 if it can't be made."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        logger.info("AppWorld runs with %s", appworld_python())
    except AppWorldError as error:
        logger.error("%s", error)
        return 1
    try:
        logger.info("its data lie in %s", data_folder())
    except AppWorldError as error:
        logger.warning("%s", error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
