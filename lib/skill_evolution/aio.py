"""The synchronous entry points: one coroutine run to its end, also where an event loop already runs."""

import asyncio
import contextlib
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
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []
    context = contextvars.copy_context()

    async def main() -> T:
        task = asyncio.current_task()
        assert task is not None
        running.append((task.get_loop(), task))
        return await coroutine

    def target() -> None:
        try:
            result.append(context.run(asyncio.run, main()))
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=target, name="skill-evolution")
    try:
        thread.start()
        thread.join()
    except BaseException:  # a notebook's stop button: the coroutine must not go on unseen, nor keep its run locked
        for loop, task in running:
            with contextlib.suppress(RuntimeError):  # it has ended just now
                loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise
    if failure:
        raise failure[0]
    return result[0]
