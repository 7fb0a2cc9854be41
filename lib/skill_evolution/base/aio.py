"""The synchronous entry points: one coroutine run to its end, also where an event loop already runs."""

import asyncio
import contextlib
import contextvars
from collections.abc import Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


async def gather(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of coroutines run side by side, in order.

    Unlike asyncio.gather, the first exception cancels the others and is raised once they have ended: none of them
    goes on using a ledger that is about to be closed.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


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
    running: list[asyncio.Task[Any]] = []

    async def main() -> T:
        running.extend(task for task in [asyncio.current_task()] if task)
        return await coroutine

    with ThreadPoolExecutor(1, thread_name_prefix="skill-evolution") as pool:
        future = pool.submit(contextvars.copy_context().run, asyncio.run, main())
        try:
            return future.result()
        except BaseException:
            # A notebook's stop button ends the waiting only. The coroutine must not go on unseen, its run locked.
            for task in [] if future.done() else running:
                with contextlib.suppress(RuntimeError):  # the loop has closed just now
                    task.get_loop().call_soon_threadsafe(task.cancel)
            raise
