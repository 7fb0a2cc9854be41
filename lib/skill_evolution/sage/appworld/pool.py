"""A pool of AppWorld's server processes: one world a process, so that rollouts run side by side.

Agent code runs inside such a process, and AppWorld's own guard against it is no boundary. So each server listens on
127.0.0.1 only, has a folder, an environment without secrets and a process group of its own, a limit on its memory, and
a deadline on each request; one that misses it, dies or answers with an error is killed and another takes its place.

Where the system allows it (Linux with user namespaces for everyone, or run by root) the server is in an empty network
namespace: agent code reaches no network, not even this machine's. Elsewhere only the proxies are taken from it, and a
warning says so. What is not kept from agent code, anywhere: the files that the
user can read, AppWorld's gold answers among them, its server's own memory, and local sockets that are files. Where that
matters, run the whole program in a container.
"""

import asyncio
import logging
import shutil
import time
import weakref
from dataclasses import dataclass, field
from pathlib import Path

from skill_evolution.sage.appworld.process import Server, ServerError, launch

logger = logging.getLogger(__name__)


MEMORY = 4 << 30
"""Address space of a server in bytes. Our choice: eight times what AppWorld takes without agent code's data (0.5 GB of
address space, 0.27 GB of memory, with a small data folder)."""
START_SECONDS = 120.0
"""What a server may take until it answers, and again until its first world is there."""
WAIT_SECONDS = 3600.0
"""What a session may wait for a server. Our choice: longer than any chain of an engine that samples each row by itself
should keep one."""
SESSIONS_PER_SERVER = 50
"""A server is renewed after that many, since agent code can change the process it runs in, and each session leaves
1.4 MB in it (measured). Our choice between a start each time, which takes some seconds of a core, and none."""


@dataclass(eq=False)
class ServerPool:
    """Servers that are lent one at a time; at most `size` are out or idle.

    It works in several event loops in turn (each `asyncio.run` of a notebook is one), and servers outlive a loop; the
    limit holds in each loop. All servers end with `stop`, with the pool, or with this process, however it ends.

    Args:
        python: AppWorld's interpreter.
        data: AppWorld's folder `data`. Servers see it through a link and write only to folders of their own.
        size: Servers at once, hence sessions; a further session waits for one. A server takes a core while it works,
            and 260 MB. A policy that waits for all live chains before it samples needs one for each chain, else they
            wait for one another.
    """

    python: Path
    data: Path
    size: int
    _idle: list[Server] = field(default_factory=list, init=False)
    _servers: list[Server] = field(default_factory=list, init=False)  # all, those that are ending among them
    _slots: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = field(
        default_factory=weakref.WeakKeyDictionary, init=False
    )
    _warned: bool = field(default=False, init=False)

    async def acquire(self) -> Server:
        """An idle server or a new one, when one of the pool's places is free.

        Raises:
            ServerError: None became free in time, or a new one doesn't come up.
        """
        slots = self._loop_slots()
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await slots.acquire()
        except TimeoutError:
            raise ServerError(
                f"none of AppWorld's {self.size} servers became free within {WAIT_SECONDS:g} s; "
                "chains that sample in one batch need a server each (world.servers)"
            ) from None
        try:
            self._sweep()
            while self._idle:
                server = self._idle.pop()
                if server.process.poll() is None:
                    return server
            return await self._start()
        except BaseException:
            slots.release()
            raise

    def release(self, server: Server, *, usable: bool = True) -> None:
        """Give a server back; one that isn't usable, or has had its sessions, is ended."""
        server.sessions += 1
        if usable and server.sessions < SESSIONS_PER_SERVER:
            shutil.rmtree(server.folder / "experiments", ignore_errors=True)  # what AppWorld saved of the session
            self._idle.append(server)
        else:
            server.end()
        self._loop_slots().release()

    def stop(self) -> None:
        """End all servers and wait for that. The pool can be used again."""
        self._idle.clear()
        for server in self._servers:
            server.end()
        for server in self._servers:
            server.process.wait()
        self._sweep()

    def _loop_slots(self) -> asyncio.Semaphore:
        return self._slots.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self.size))

    def _sweep(self) -> None:
        """Remove what ended servers have left."""
        for server in [server for server in self._servers if server.process.poll() is not None]:
            server.end()
            self._servers.remove(server)
            shutil.rmtree(server.folder, ignore_errors=True)

    async def _start(self) -> Server:
        began = time.monotonic()
        server = launch(self.python, self.data, memory=MEMORY)
        self._servers.append(server)
        try:
            await server.wait_ready(START_SECONDS)
            self._check(server)
        except BaseException:
            server.end()
            raise
        logger.info("a server of AppWorld is up after %.1f s", time.monotonic() - began)
        return server

    def _check(self, server: Server) -> None:
        assert server.ready is not None
        lacking = [
            *([] if server.ready.offline else ["agent code can reach the network"]),
            *([] if server.ready.memory_limited else ["its memory isn't limited"]),
        ]
        if lacking and not self._warned:
            logger.warning("AppWorld's servers aren't isolated on this system: %s", ", ".join(lacking))
            self._warned = True
