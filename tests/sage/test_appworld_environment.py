"""AppWorld's environment and data folder, and the limits that its servers start under."""

import asyncio
import logging
import sys
from pathlib import Path

import pytest

from skill_evolution.base import paths
from skill_evolution.sage.appworld import environment, server
from skill_evolution.sage.appworld.environment import AppWorldError

# --- the launcher's limits ---


@pytest.mark.skipif(sys.platform != "linux", reason="namespaces and address-space limits are Linux's")
async def test_the_limits_hold_where_the_launcher_says_so() -> None:
    code = """
import socket, sys, threading
sys.path.insert(0, sys.argv[1])
import appworld_server
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], server.limit_memory(1 << 30), server.leave_the_network(), flush=True)
try:
    bytearray(2 << 30)
except MemoryError:
    print("refused", flush=True)
try:
    socket.create_connection(listener.getsockname(), timeout=5)
except OSError:
    print("unreachable", flush=True)
listener.accept()[0].sendall(b"here")
"""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, str(Path(server.__file__).parent), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    port, memory, offline = (await process.stdout.readline()).split()
    assert memory == b"True"
    assert await process.stdout.readline() == b"refused\n"
    if offline == b"False":
        process.kill()
        await process.wait()
        pytest.skip("this system lets no one make a network namespace")
    assert await process.stdout.readline() == b"unreachable\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", int(port))  # yet it is reached from here
    assert await reader.read() == b"here"
    writer.close()
    await process.wait()


# --- environment and data ---


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Commands that would have been run for an environment in a temporary folder."""
    ran: list[list[str]] = []
    monkeypatch.delenv(environment.PYTHON_VARIABLE, raising=False)
    monkeypatch.setattr(environment, "FOLDER", tmp_path / ".venv-appworld")
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(
        environment,
        "_run",
        lambda command: (tmp_path / ".venv-appworld").mkdir(exist_ok=True) or ran.append(command),
    )
    return ran


def test_appworld_is_installed_once_and_apart(commands: list[list[str]], tmp_path: Path) -> None:
    python = tmp_path / ".venv-appworld" / "bin" / "python"
    assert environment.appworld_python() == environment.appworld_python() == python
    assert [" ".join(command) for command in commands] == [
        f"{sys.executable} -m venv --clear {tmp_path / '.venv-appworld'}",
        f"{python} -m pip --disable-pip-version-check --quiet install appworld==0.1.3.post1",
        f"{python} -m appworld.cli install",
    ]


def test_an_installation_that_fails_is_tried_again(commands: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    worked = environment._run

    def failing(command: list[str]) -> None:
        raise AppWorldError("no network")

    monkeypatch.setattr(environment, "_run", failing)
    with pytest.raises(AppWorldError, match="no network"):
        environment.appworld_python()
    monkeypatch.setattr(environment, "_run", worked)
    environment.appworld_python()
    assert len(commands) == 3


def test_a_failing_command_shows_what_it_said() -> None:
    with pytest.raises(AppWorldError, match=r"(?s)failed:\nno such package.*SKILL_EVOLUTION_APPWORLD_PYTHON"):
        environment._run([sys.executable, "-c", "raise SystemExit('no such package')"])
    with pytest.raises(AppWorldError, match="can't be run"):
        environment._run(["/nowhere/python"])


def test_ones_own_interpreter_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(environment.PYTHON_VARIABLE, "/nowhere/python")
    with pytest.raises(AppWorldError, match="/nowhere/python"):
        environment.appworld_python()
    monkeypatch.setenv(environment.PYTHON_VARIABLE, sys.executable)
    assert environment.appworld_python() == Path(sys.executable)


def test_the_data_are_found_or_the_command_that_gets_them_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "root" / "data"
    for name in ("datasets", "tasks", "base_dbs", "api_docs"):
        (data / name).mkdir(parents=True)
    root = data.parent
    assert environment.data_folder(root) == root / "data"
    monkeypatch.setenv(environment.ROOT_VARIABLE, str(root))
    assert environment.data_folder() == root / "data"
    monkeypatch.setenv(environment.ROOT_VARIABLE, str(tmp_path / "empty"))
    with pytest.raises(
        AppWorldError, match=r"no datasets, tasks, base_dbs, api_docs.*appworld\.cli download data --root"
    ):
        environment.data_folder()


def test_the_command_line_tells_what_is_missing(
    commands: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setenv(environment.ROOT_VARIABLE, str(tmp_path / "nowhere"))
    assert environment.main() == 0
    assert "AppWorld's data isn't in" in caplog.text
    monkeypatch.setenv(environment.PYTHON_VARIABLE, "/nowhere/python")
    assert environment.main() == 1
