"""Agent code runs here: in pydantic-monty, an interpreter without host access, inside worker processes, under limits.

No worker is held between two executions. Each one checks a worker out of the pool, loads the session's dumped names,
feeds the code and dumps again (together about half a millisecond), so that any number of sessions can be open at
once, a session costs a few kilobytes, and code that breaks its worker loses only what it was just doing.
"""

import atexit
import datetime
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from pydantic_monty import (
    CollectString,
    ExternalModule,
    Monty,
    MontyCrashedError,
    MontyError,
    MontyRuntimeError,
    MontySession,
    MontySyntaxError,
    OSPolicy,
    ResourceLimits,
)

from skill_evolution.sage.agent.world import WorldError

# Nothing that code can read differs between two runs: clock and random state are fixed, sleeping takes no time.
_POLICY: OSPolicy = {"datetime": datetime.datetime(2026, 1, 1), "sleep": "zero", "random_start": {"seed": 0}}
# Output arrives in pieces of up to 8 KB, so which piece meets this cap may vary; output_chars lies well below it.
_CAPTURED_BYTES = 65_536
_ERROR_CHARS = 300
# Of a session's names between two executions. A dump near the memory limit couldn't be loaded again.
_KEPT_BYTES = 1_000_000
_TOO_LONG = "TimeoutError: the code ran longer than {0.seconds} seconds"
_TOO_MUCH = "MemoryError: the code used more than {0.memory_bytes} bytes of memory"
_TOO_BIG = f"MemoryError: the names that the code defined take more than {_KEPT_BYTES} bytes and are lost"
_LOST = "MemoryError: the names that earlier code defined took too much memory and are lost"
_TOO_LOUD = f"MemoryError: the code printed more than {_CAPTURED_BYTES} bytes"
_TOO_MANY = "RuntimeError: the code made more than {0.api_calls} API calls"

# Seconds after the time limit until a worker that doesn't answer is killed.
_GRACE_S = 0.5
# What an answer may take beyond the code itself: loading and dumping of at most memory_bytes.
_REQUEST_S = 10.0


@dataclass(frozen=True)
class SandboxLimits:
    """Limits of one execution (our choice: a hundred times what the expert's longest code needs).

    Attributes:
        seconds: Time that the interpreter runs, waiting for APIs excluded.
        memory_bytes: Heap of the session, names kept from earlier executions included.
        recursion: Depth of the call stack.
        api_calls: Calls out of the sandbox; the one beyond ends the code and can't be caught.
        output_chars: Longer output is cut to this; code that prints over 64 KB is stopped.
    """

    seconds: float = 2.0
    memory_bytes: int = 16_000_000
    recursion: int = 200
    api_calls: int = 200
    output_chars: int = 4_000

    def __post_init__(self) -> None:
        if self.output_chars > _CAPTURED_BYTES // 2:
            raise ValueError(f"output_chars: {self.output_chars} is above {_CAPTURED_BYTES // 2}")


@dataclass(frozen=True)
class SandboxRun:
    """What one execution left: output cut to the limit, the error's one line, and the names to go on with."""

    output: str
    error: str | None
    names: bytes | None


def run(
    code: str,
    *,
    names: bytes | None,
    prelude: str,
    modules: Mapping[str, ExternalModule],
    limits: SandboxLimits,
) -> SandboxRun:
    """Run agent code; never raises for what the code does.

    Names that the code defined before an ordinary error are kept. Code stopped by a limit, or whose names take more
    than a megabyte, leaves the names as they were: Monty gives no guarantee about a heap that a limit interrupted.
    What code printed before it ran out of time is dropped, because how far it came depends on the machine.

    Args:
        code: What the agent wrote.
        names: The session's names from its last run; None for a fresh session.
        prelude: Trusted code that a fresh session runs first.
        modules: Host modules that the session may import.
        limits: The limits of this execution.

    Raises:
        WorldError: No worker could be started.
    """
    try:
        with _pool().checkout(limits=_resources(limits), os_policy=_POLICY, external_modules=modules) as session:
            if not _load(session, names, prelude):
                return SandboxRun(f"{_LOST}\n", _LOST, None)
            printed = CollectString(max_bytes=_CAPTURED_BYTES)
            error = _feed(session, code, printed, limits)
            kept = None if _limited(error) else _dump(session)
            error = error if kept or error else _TOO_BIG
            output = "" if error == _TOO_LONG.format(limits) else printed.output
            return SandboxRun(_cut(output, error, limits), error, kept or names)
    except (MontyError, RuntimeError, OSError) as failure:
        raise WorldError(f"the sandbox failed: {failure}") from failure


def _load(session: MontySession, names: bytes | None, prelude: str) -> bool:
    """Whether the session could be given its names: loading takes more memory than the code needed for them."""
    if names is None:
        session.feed_run(prelude)
        return True
    try:
        session.load_session(names)
    except MontyError:
        return False
    return True


def _feed(session: MontySession, code: str, printed: CollectString, limits: SandboxLimits) -> str | None:
    try:
        # Without a trailing None, the value of the last expression (of any size) would cross to the host.
        session.feed_run(f"{code}\nNone", print_callback=printed)
    except MontyCrashedError as crash:
        return _TOO_LONG.format(limits) if crash.timed_out else _TOO_MUCH.format(limits)
    except (MontyRuntimeError, MontySyntaxError) as raised:
        return _one_line(raised.display("type-msg"), limits)
    except MontyError as raised:
        return _one_line(f"RuntimeError: {raised}", limits)
    return None


def _one_line(error: str, limits: SandboxLimits) -> str:
    """The error without the figures that differ from run to run (elapsed time, allocated bytes)."""
    if "time limit exceeded" in error:
        return _TOO_LONG.format(limits)
    if "memory limit" in error:
        return _TOO_LOUD if f"> {_CAPTURED_BYTES} bytes" in error else _TOO_MUCH.format(limits)
    if error.startswith("RuntimeError: suspension limit"):
        return _TOO_MANY.format(limits)
    return " ".join(error.split())[:_ERROR_CHARS]


def _limited(error: str | None) -> bool:
    return error is not None and error.startswith(("TimeoutError", "MemoryError"))


def _dump(session: MontySession) -> bytes | None:
    """The session's names; None where its worker is gone or they are too big."""
    try:
        names = session.dump()
    except (MontyError, RuntimeError):
        return None
    return names if len(names) <= _KEPT_BYTES else None


def _cut(output: str, error: str | None, limits: SandboxLimits) -> str:
    if len(output) > limits.output_chars:
        output = output[: limits.output_chars] + "\n[output cut]\n"
    return output if error is None else f"{output}{error}\n"


def _resources(limits: SandboxLimits) -> ResourceLimits:
    return {
        "max_feed_duration_secs": limits.seconds,
        "max_memory": limits.memory_bytes,
        "max_recursion_depth": limits.recursion,
        "max_suspensions": limits.api_calls,
        "max_total_sleep_secs": 0.0,
    }


def _pool() -> Monty:
    return _pool_of(os.getpid())  # a forked child must not speak over its parent's pipes


@cache
def _pool_of(pid: int) -> Monty:
    """The process's workers, started at the first use and stopped when the process ends."""
    pool = Monty(feed_duration_limit_grace=_GRACE_S, request_timeout=_REQUEST_S)
    pool.__enter__()
    atexit.register(lambda: pool.__exit__(None, None, None) if os.getpid() == pid else None)
    return pool
