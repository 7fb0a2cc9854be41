"""Environments of programs that can't stand beside this library: each is made with pip on first use, and kept."""

import logging
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from filelock import FileLock

from skill_evolution.base import paths

logger = logging.getLogger(__name__)

PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")


class InterpreterError(RuntimeError):
    """An environment can't be had; the text says what to do."""


def interpreter(
    folder: Path, *, variable: str, what: str, steps: Sequence[Sequence[str]], settings: Mapping[str, str] | None = None
) -> Path:
    """The Python of an environment: one's own, which a variable names, else that of `folder`, made if need be.

    Args:
        folder: Where it is made, once: also if two processes ask, and again after what failed.
        variable: Environment variable that names the interpreter of one's own.
        what: What the environment is for; another name makes it anew.
        steps: Arguments of its Python that fill it, one after the other.
        settings: Environment variables of the steps.

    Raises:
        InterpreterError: The variable names no file, or a step failed.
    """
    if given := os.environ.get(variable):
        if not Path(given).is_file():
            raise InterpreterError(f"{variable} is {given!r}, and there is no such file")
        return Path(given)
    done, python = folder / f".installed-{what}", folder / "bin" / "python"
    paths.CACHE.mkdir(parents=True, exist_ok=True)
    with FileLock(paths.CACHE / f"{folder.name.removeprefix('.')}.lock"):
        if not done.exists():
            logger.info("installing %s into %s (minutes) ...", what, folder)
            for command in (
                [sys.executable, "-m", "venv", "--clear", str(folder)],
                *([str(python), *s] for s in steps),
            ):
                try:
                    run(command, cwd=folder.parent, settings=settings or {})
                except InterpreterError as error:
                    hint = f"Or name the interpreter of an environment that has {what} in {variable}"
                    raise InterpreterError(f"{error}\n{hint}") from error
            done.touch()
    return python


def run(command: Sequence[str], *, cwd: Path, settings: Mapping[str, str]) -> None:
    """Run a command that our own modules are not put before; InterpreterError with what it said if it fails."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | dict(settings)
    try:
        result = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
            env=environment, cwd=cwd,
        )  # fmt: skip
    except OSError as error:
        raise InterpreterError(f"{' '.join(command)} can't be run: {error}") from error
    if result.returncode:
        raise InterpreterError(f"{' '.join(command)} failed:\n{result.stdout.strip()[-2000:]}")
