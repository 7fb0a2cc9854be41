"""Environments made on first use, with commands that would have been run."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from skill_evolution.base import environment, paths
from skill_evolution.base.environment import InterpreterError, interpreter

VARIABLE = "SKILL_EVOLUTION_TEST_PYTHON"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path / ".venv-it"


@pytest.fixture
def ran(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    commands: list[str] = []

    def run(command: Sequence[str], **_: Any) -> None:
        folder.mkdir(exist_ok=True)
        commands.append(" ".join(command))
        if command[-1] == "fail" and len(commands) < 3:
            raise InterpreterError("no network")

    monkeypatch.setattr(environment, "run", run)
    return commands


def made(folder: Path, *steps: Sequence[str]) -> Path:
    return interpreter(folder, variable=VARIABLE, what="it==1", steps=steps)


def test_it_is_made_once_and_apart(folder: Path, ran: list[str]) -> None:
    python = folder / "bin" / "python"
    assert made(folder, ["-m", "pip"], ["-m", "it"]) == made(folder, ["-m", "pip"]) == python
    assert ran == [f"{sys.executable} -m venv --clear {folder}", f"{python} -m pip", f"{python} -m it"]


def test_what_failed_is_tried_again(folder: Path, ran: list[str]) -> None:
    with pytest.raises(InterpreterError, match=rf"no network\nOr name the interpreter .* has it==1 in {VARIABLE}"):
        made(folder, ["fail"])
    made(folder, ["fail"])
    assert len(ran) == 4


def test_a_failing_command_shows_what_it_said(tmp_path: Path) -> None:
    with pytest.raises(InterpreterError, match=r"(?s)failed:\nno such package"):
        environment.run([sys.executable, "-c", "raise SystemExit('no such package')"], cwd=tmp_path, settings={})
    with pytest.raises(InterpreterError, match="can't be run"):
        environment.run(["/nowhere/python"], cwd=tmp_path, settings={})


def test_its_modules_are_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/ours")
    code = 'import os; raise SystemExit(f\'{os.environ.get("PYTHONPATH")} {os.environ["HERE"]}\')'
    with pytest.raises(InterpreterError, match="failed:\nNone x"):
        environment.run([sys.executable, "-c", code], cwd=tmp_path, settings={"HERE": "x"})


def test_ones_own_interpreter_must_be_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/nowhere/python")
    with pytest.raises(InterpreterError, match="/nowhere/python"):
        made(folder)
    monkeypatch.setenv(VARIABLE, sys.executable)
    assert made(folder) == Path(sys.executable)
