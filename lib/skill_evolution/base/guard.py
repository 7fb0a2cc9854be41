"""Runs a command in a process group of its own and ends the whole group when its owner ends, however that happens.

    python guard.py COMMAND ...

The owner holds the other end of this program's standard input and never writes to it. When the owner closes it, or dies
(SIGKILL included), the group gets SIGTERM, and SIGKILL if it is still there after a while. Only the standard library is
used, so that it runs as a file.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading

GRACE = 15.0
"""Seconds between SIGTERM and SIGKILL."""


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def main(command: list[str], *, grace: float = GRACE) -> int:
    """Run the command to its end or the owner's; return its exit status, 128 + n after signal n."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    ended = threading.Event()

    def stop_with_the_owner() -> None:
        os.read(sys.stdin.fileno(), 1)  # nothing is ever written: it returns at the end of the input
        _signal_group(process.pid, signal.SIGTERM)
        if not ended.wait(grace):
            _signal_group(process.pid, signal.SIGKILL)

    threading.Thread(target=stop_with_the_owner, daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: _signal_group(process.pid, signal.SIGTERM))
    code = process.wait()
    ended.set()
    _signal_group(process.pid, signal.SIGKILL)  # what the command itself has left behind
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
