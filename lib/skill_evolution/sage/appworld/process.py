"""One process of AppWorld's server: started below a guard, asked with deadlines, ended with all it has started."""

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from pydantic import BaseModel, ConfigDict, ValidationError

from skill_evolution.base import guard
from skill_evolution.sage.appworld import server as launcher

POLL = 0.05
"""Seconds between two looks at whether a new server has its port."""
TAIL = 15
"""Lines of a server's log or reply that an error shows."""
MAX_REPLY = 16 << 20
"""Bytes of a reply: agent code decides how much it prints."""


class ServerError(RuntimeError):
    """A server can't be started, was lost, missed a deadline or answered with an error. It's of no more use."""


class Ready(BaseModel):
    """What appworld/server.py says once it has its port."""

    model_config = ConfigDict(extra="forbid", strict=True)
    port: int
    memory_limited: bool
    offline: bool


@dataclass(eq=False)
class Server:
    """One process. `process` is the guard that ends the server with us (base/guard.py)."""

    process: subprocess.Popen[bytes]
    folder: Path
    ready: Ready | None = None
    sessions: int = 0

    async def wait_ready(self, seconds: float) -> None:
        """Wait until the server answers.

        Raises:
            ServerError: It ended, or didn't answer in time; with the end of its log.
        """
        began = time.monotonic()
        while not (file := self.folder / "ready.json").exists():
            if self.process.poll() is not None:
                raise self.failure(f"it ended with status {self.process.returncode} before it answered")
            if time.monotonic() - began > seconds:
                raise self.failure(f"it didn't come up within {seconds:g} s")
            await asyncio.sleep(POLL)
        try:
            self.ready = Ready.model_validate_json(file.read_bytes())
        except ValidationError as error:
            raise self.failure(f"what it says of itself can't be read ({error.errors()[0]['msg']})") from error
        await self.request("GET", "/", seconds=seconds)

    async def request(self, method: str, path: str, *, seconds: float, body: object = None) -> Any:
        """Ask for something and return the reply's JSON.

        Raises:
            ServerError: No reply in time, none at all, one that is too long, or not a good one.
        """
        assert self.ready is not None
        url = f"http://127.0.0.1:{self.ready.port}{path}"
        try:
            async with asyncio.timeout(seconds):
                status, content = await _exchange(method, url, body)
        except TimeoutError:
            raise self.failure(f"no reply to {path} within {seconds:g} s") from None
        except httpx.HTTPError as error:  # the client's own traceback is a hundred lines that tell no more
            raise self.failure(f"it was lost during {path} ({type(error).__name__})") from None
        if status != 200:  # the reply holds the traceback, which gets into the log only afterwards
            raise self.failure(f"it answered {path} with HTTP {status}", said=content)
        if len(content) > MAX_REPLY:
            raise self.failure(f"its reply to {path} is longer than {MAX_REPLY >> 20} MiB")
        try:
            return json.loads(content)
        except ValueError as error:
            raise self.failure(f"its reply to {path} isn't JSON") from error

    def failure(self, what: str, *, said: bytes | None = None) -> ServerError:
        """An error with the end of the server's log, or of what it said instead."""
        if said is None:
            with contextlib.suppress(OSError):
                said = (self.folder / "server.log").read_bytes()
        if lines := (said or b"").decode(errors="replace").strip().splitlines():
            what += ". The end of what it said:\n" + "\n".join(lines[-TAIL:])
        return ServerError(f"AppWorld's server: {what}")

    def end(self) -> None:
        """Have the guard end the process group, without waiting for that."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()


async def _exchange(method: str, url: str, body: object) -> tuple[int, bytes]:
    """Status and body of one reply, the body cut beyond MAX_REPLY.

    Each has a connection of its own: AppWorld stops the server's clock, by which it would drop an idle one. No proxy is
    asked. The body is JSON in ASCII, which also takes the lone surrogates that a model's text can have.
    """
    content = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Connection": "close"}
    client = httpx.AsyncClient(trust_env=False, verify=False, timeout=None)
    async with client, client.stream(method, url, content=content, headers=headers) as response:
        received = bytearray()
        async for chunk in response.aiter_bytes():
            received += chunk
            if len(received) > MAX_REPLY:
                break
        return response.status_code, bytes(received)


def launch(python: Path, data: Path, *, memory: int) -> Server:
    """Start a server, without waiting for it.

    Args:
        python: AppWorld's interpreter.
        data: AppWorld's folder `data`. The server sees it through a link and writes only to a folder of its own.
        memory: Its address space in bytes.
    """
    folder = Path(tempfile.mkdtemp(prefix="skill-evolution-appworld-"))
    (folder / "data").symlink_to(data, target_is_directory=True)
    # -P keeps the launcher's folder off the path: an `appworld.py` lies in it.
    command = [python, "-P", launcher.__file__, folder / "ready.json", memory]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, guard.__file__, *map(str, command)],
            stdin=subprocess.PIPE, stdout=log, stderr=log, env=_environment(folder), cwd=folder,
            start_new_session=True,
        )  # fmt: skip
    server = Server(process, folder)
    weakref.finalize(server, shutil.rmtree, folder, ignore_errors=True)  # at this process's end at the latest
    return server


def _environment(folder: Path) -> dict[str, str]:
    """The server's environment: nothing of ours but the search path and the language, so no proxies and no keys."""
    ours = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TZ") if name in os.environ}
    return {
        **ours,
        **dict.fromkeys(("HOME", "TMPDIR", "IPYTHONDIR", "APPWORLD_ROOT", "APPWORLD_CACHE"), str(folder)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUTF8": "1",
        "OMP_NUM_THREADS": "1",
    }
