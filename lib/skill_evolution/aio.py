"""The synchronous entry points: one coroutine run to its end, also where an event loop already runs."""

import asyncio
import contextvars
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end and return its result, from plain code or from a notebook's cell.

    Jupyter's loop runs in the calling thread and can't be entered again, so there the coroutine gets a loop and
    a thread of its own.
    """
    return _run_in_thread(coroutine) if _loop_runs() else asyncio.run(coroutine)


def _loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run_in_thread(coroutine: Coroutine[Any, Any, T]) -> T:
    result: list[T] = []
    failure: list[BaseException] = []
    context = contextvars.copy_context()

    def target() -> None:
        try:
            result.append(context.run(asyncio.run, coroutine))
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=target, name="skill-evolution")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return result[0]
