"""AppWorld's environment and data folder, and the limits that its servers start under."""

import asyncio
import logging
import sys
from pathlib import Path

import pytest

from skill_evolution.base import environment as base_environment
from skill_evolution.base import paths
from skill_evolution.sage.appworld import environment, server
from skill_evolution.sage.appworld.environment import AppWorldError

# --- the launcher's limits ---


@pytest.mark.skipif(sys.platform != "linux", reason="namespaces and address-space limits are Linux's")
async def test_the_limits_hold_where_the_launcher_says_so() -> None:
    code = """
import socket, sys, threading
sys.path.insert(0, sys.argv[1])
import server
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
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Commands that would have been run for an environment in a temporary folder."""
    ran: list[str] = []
    folder = tmp_path / ".venv-appworld"
    monkeypatch.delenv(environment.PYTHON_VARIABLE, raising=False)
    monkeypatch.setattr(environment, "FOLDER", folder)
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(
        base_environment, "run", lambda command, **_: folder.mkdir(exist_ok=True) or ran.append(" ".join(command))
    )
    return ran


def test_appworld_is_installed_apart(commands: list[str], tmp_path: Path) -> None:
    python = tmp_path / ".venv-appworld" / "bin" / "python"
    assert environment.appworld_python() == python
    assert commands[1:] == [
        f"{python} -m pip --disable-pip-version-check --quiet install appworld==0.1.3.post1",
        f"{python} -m appworld.cli install",
    ]


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
    commands: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setenv(environment.ROOT_VARIABLE, str(tmp_path / "nowhere"))
    assert environment.main() == 0
    assert "AppWorld's data isn't in" in caplog.text
    monkeypatch.setenv(environment.PYTHON_VARIABLE, "/nowhere/python")
    assert environment.main() == 1
