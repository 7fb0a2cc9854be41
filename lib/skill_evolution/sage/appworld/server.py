"""Runs AppWorld's HTTP server with AppWorld's interpreter: a free port of 127.0.0.1, limits, and no network.

    python server.py READY_FILE MEMORY_BYTES

Started by appworld/pool.py in a folder of the server's own. It runs as a file, where this library isn't installed:
only the standard library and what AppWorld brings. AppWorld's own command can't be used, as it listens on all
interfaces. READY_FILE gets one line of JSON: the port, and which of the limits hold on this system.

The socket is bound before the process leaves the machine's network: it stays reachable, and whatever is opened later is
in an empty network namespace.
"""

import asyncio
import contextlib
import ctypes
import json
import os
import resource
import socket
import sys
from pathlib import Path
from typing import Any

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000  # linux/sched.h; os.unshare is new in Python 3.12


def leave_the_network() -> bool:
    """Move this process, which must have one thread, into an empty network namespace.

    Returns:
        Whether it worked. It needs Linux with user namespaces for everyone, or the right to make a network namespace.
    """
    if sys.platform != "linux":
        return False
    user, group = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0:
        return libc.unshare(CLONE_NEWNET) == 0
    with contextlib.suppress(OSError):  # without a map the ids only look odd: files are reached as before
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    return True


def limit_memory(size: int) -> bool:
    """Limit the address space and the size of a file to `size` bytes, without core dumps; whether that worked."""
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
    except (OSError, ValueError):
        return False
    return True


def survive_agent_code() -> None:
    """Make everything that agent code raises an error of that code, with AppWorld's guard off again afterwards.

    AppWorld takes in only an Exception of code that it could parse and walk. KeyboardInterrupt would end the server,
    and a null byte or a deep expression would leave it answering 500 with its guard on, against its own files.
    """
    from appworld.environment import AppWorld  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]

    execute = AppWorld.execute

    def survive(self: Any, code: str) -> str:
        try:
            return execute(self, code)
        except BaseException as error:
            self.safety_guard.disable()
            self._save_state(self.output_db_home_path_on_disk)  # as after every call
            self.save_logs()
            self.requester.reset_request_count()
            return f"Execution failed. Traceback:\n{type(error).__name__}: {error}"

    AppWorld.execute = survive


def serve(listener: socket.socket) -> None:
    """Serve AppWorld on a socket until a signal ends the process."""
    import uvicorn  # pyright: ignore[reportMissingImports]
    from appworld.serve.environment import app  # pyright: ignore[reportMissingImports]

    class Server(uvicorn.Server):
        # uvicorn would end only between two requests, and never while AppWorld has the clock stopped.
        def install_signal_handlers(self) -> None:
            pass

        def capture_signals(self) -> contextlib.AbstractContextManager[None]:
            return contextlib.nullcontext()

    survive_agent_code()
    app.debug = True  # an error's traceback is in the reply
    config = uvicorn.Config(app, access_log=False, log_level="warning")
    asyncio.run(Server(config).serve(sockets=[listener]))


def main(ready: str, memory: str) -> None:
    """Bind, limit, say so, serve."""
    listener = socket.create_server(("127.0.0.1", 0))
    state = {
        "port": listener.getsockname()[1],
        "memory_limited": limit_memory(int(memory)),
        "offline": leave_the_network(),
    }
    partial = Path(ready).with_suffix(".partial")
    partial.write_text(json.dumps(state), encoding="utf-8")
    partial.replace(ready)
    serve(listener)


if __name__ == "__main__":
    main(*sys.argv[1:])
