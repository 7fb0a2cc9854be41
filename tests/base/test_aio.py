"""The synchronous entry point, with and without a running event loop."""

import asyncio
import contextvars
import signal
import threading

import pytest

from skill_evolution.base.aio import gather, run_sync

PLACE: contextvars.ContextVar[str] = contextvars.ContextVar("PLACE", default="unset")


class OddError(Exception):
    """An error of a type of its own."""


async def twice(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


async def fail(error: BaseException) -> None:
    await asyncio.sleep(0)
    raise error


async def place() -> str:
    before = PLACE.get()
    PLACE.set("changed within")
    return before


def test_outside_a_loop() -> None:
    assert run_sync(twice(21)) == 42


async def test_inside_a_running_loop() -> None:
    assert run_sync(twice(21)) == 42
    assert await twice(1) == 2  # the outer loop goes on


async def test_many_times_and_nested() -> None:
    async def nested() -> int:
        return run_sync(twice(1)) + run_sync(twice(2))

    assert [run_sync(nested()) for _ in range(3)] == [6, 6, 6]


@pytest.mark.parametrize("error", [OddError("mine"), ValueError("v"), SystemExit(3), KeyboardInterrupt()])
def test_exceptions_pass_outside_a_loop(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        run_sync(fail(error))
    assert caught.value is error


# pytest-asyncio ends its own loop on these two, so only what is an Exception is raised through it.
@pytest.mark.parametrize("error", [OddError("mine"), ValueError("v"), asyncio.CancelledError("c")])
async def test_exceptions_pass_inside_a_loop(error: BaseException) -> None:
    with pytest.raises(type(error)):
        run_sync(fail(error))


def test_context_variables_are_seen_and_not_changed() -> None:
    token = PLACE.set("outer")
    try:
        assert run_sync(place()) == "outer"
        assert PLACE.get() == "outer"
    finally:
        PLACE.reset(token)


async def test_context_variables_are_seen_and_not_changed_inside_a_loop() -> None:
    PLACE.set("outer")
    assert run_sync(place()) == "outer"
    assert PLACE.get() == "outer"


def test_the_stop_button_ends_the_coroutine_too() -> None:
    ended = threading.Event()

    async def endless() -> None:
        await asyncio.sleep(0.2)  # nobody presses the button while the thread is still being started
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 20)  # a lost signal fails the test, it does not hang it
        finally:
            ended.set()

    async def cell() -> None:
        run_sync(endless())

    loop = asyncio.new_event_loop()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job is born with it ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(cell())  # not asyncio.run, which has a handler of its own for the signal
    finally:
        signal.signal(signal.SIGINT, before)
        loop.close()
    assert ended.is_set()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("skill-evolution")]


async def endless(ended: list[bool]) -> None:
    """Waits for ever, and notes that it was ended."""
    try:
        await asyncio.Event().wait()
    finally:
        ended.append(True)


async def test_gather_keeps_the_order() -> None:
    assert await gather(twice(number) for number in range(5)) == [0, 2, 4, 6, 8]
    assert await gather([]) == []


async def test_the_first_failure_ends_the_others_and_comes_through_as_it_is() -> None:
    ended: list[bool] = []
    error = OddError("mine")
    with pytest.raises(OddError) as caught:
        await gather([endless(ended), fail(error), endless(ended)])
    assert caught.value is error
    assert ended == [True, True]


async def test_a_gather_that_is_cancelled_cancels_its_own() -> None:
    ended: list[bool] = []
    task = asyncio.create_task(gather([endless(ended), endless(ended)]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True, True]
