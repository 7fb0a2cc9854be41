"""The ledger: what is replayed and what is asked, calls that are shared, sums by hand, and a killed writer."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scripted_model import ScriptedModel

from skill_evolution.models.base import Completion, Message, ModelError, Request, Sampling
from skill_evolution.models.ledger import Ledger, RecordedModel, call_key

REQUEST = Request(
    (Message("system", "s"), Message("user", "u")), Sampling(temperature=0.0), "actor/agent_1", "train/seed0/q1/0"
)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    opened = Ledger(tmp_path / "calls.sqlite")
    yield opened
    opened.close()


class Gated:
    """A model whose calls end when told: `gate` is set to a completion or an exception."""

    name = "gated"
    context_length = 1000

    def __init__(self) -> None:
        self.gates: list[asyncio.Future[Completion]] = []

    async def connect(self) -> None: ...

    async def close(self) -> None: ...

    async def generate(self, request: Request) -> Completion:
        self.gates.append(asyncio.get_running_loop().create_future())
        return await self.gates[-1]


async def turns(count: int = 5) -> None:
    """Let everything run that can."""
    for _ in range(count):
        await asyncio.sleep(0)


# What is a call of its own


async def test_the_same_request_is_replayed_also_by_another_process_later(tmp_path: Path) -> None:
    first = Ledger(tmp_path / "calls.sqlite")
    given_ = Completion("text", "length", 7, 3, None, "thought", 0.5)
    model = ScriptedModel(lambda r: given_)
    assert await RecordedModel(model, first).generate(REQUEST) == given_
    first.close()
    again = Ledger(tmp_path / "calls.sqlite")
    empty = ScriptedModel()  # knows no request
    assert await RecordedModel(empty, again).generate(REQUEST) == given_
    assert len(model.requests) == again.count() == 1
    again.close()


@pytest.mark.parametrize(
    ("change", "calls"),
    [
        ({"sample_id": "train/seed0/q1/1"}, 2),
        ({"sampling": Sampling(temperature=0.7)}, 2),
        ({"sampling": Sampling(temperature=None)}, 2),  # "unset" is not 0
        ({"sampling": Sampling(temperature=0.0, top_p=0.9)}, 2),
        ({"sampling": Sampling(temperature=0.0, max_tokens=5)}, 2),
        ({"schema": {"type": "object"}}, 2),
        ({"schema": {}}, 2),
        ({"messages": (Message("system", "s"), Message("user", "U"))}, 2),
        ({"messages": (Message("user", "s"), Message("user", "u"))}, 2),
        ({"messages": (Message("system", "su"), Message("user", ""))}, 2),
        ({"messages": REQUEST.messages[:1]}, 2),
        ({"messages": REQUEST.messages[::-1]}, 2),
        ({"purpose": "critic"}, 1),  # accounting only
        ({"sampling": Sampling(temperature=0)}, 1),
        ({"sampling": Sampling(temperature=0.0, max_tokens=1024)}, 1),
        ({}, 1),
    ],
)
async def test_what_makes_another_call(ledger: Ledger, change: dict[str, Any], calls: int) -> None:
    model = ScriptedModel(lambda r: "reply")
    recorded = RecordedModel(model, ledger)
    await recorded.generate(REQUEST)
    await recorded.generate(replace(REQUEST, **change))
    assert len(model.requests) == ledger.count() == calls


async def test_another_model_is_another_call_and_the_order_of_a_schema_is_not(ledger: Ledger) -> None:
    for name in ("a", "b", "a"):
        await RecordedModel(ScriptedModel(lambda r, name=name: name, name=name), ledger).generate(REQUEST)
    assert ledger.count() == 2
    one, two = ({"x": 1, "y": {"a": 1, "b": 2}}, {"y": {"b": 2, "a": 1}, "x": 1})
    assert call_key("m", replace(REQUEST, schema=one)).key == call_key("m", replace(REQUEST, schema=two)).key


async def test_a_failure_is_noted_and_not_replayed(ledger: Ledger) -> None:
    replies: list[Any] = [ModelError("down"), ModelError("down again"), "up"]
    recorded = RecordedModel(ScriptedModel(lambda r: replies.pop(0)), ledger)
    for text in ("down", "down again"):
        with pytest.raises(ModelError, match=text):
            await recorded.generate(REQUEST)
    assert (await recorded.generate(REQUEST)).text == "up"
    assert (await recorded.generate(REQUEST)).text == "up"
    assert (ledger.count(), ledger.count("failures"), ledger.count("failures", distinct=True)) == (1, 2, 1)


async def test_another_exception_passes_and_leaves_no_trace(ledger: Ledger) -> None:
    recorded = RecordedModel(ScriptedModel(), ledger)
    with pytest.raises(AssertionError, match="no rule"):
        await recorded.generate(REQUEST)
    assert (ledger.count(), ledger.count("failures")) == (0, 0)


def test_an_unknown_table_is_refused(ledger: Ledger) -> None:
    with pytest.raises(ValueError, match="calls or failures"):
        ledger.count("texts")


# Calls at the same time


async def test_identical_requests_at_one_time_share_a_call(ledger: Ledger) -> None:
    model = Gated()
    recorded = RecordedModel(model, ledger)
    tasks = [asyncio.create_task(recorded.generate(REQUEST)) for _ in range(5)]
    await turns()
    assert len(model.gates) == 1
    model.gates[0].set_result(Completion("one"))
    assert [c.text for c in await asyncio.gather(*tasks)] == ["one"] * 5
    assert ledger.count() == 1


async def test_all_who_share_a_call_get_its_failure_and_it_is_counted_once(ledger: Ledger) -> None:
    model = Gated()
    recorded = RecordedModel(model, ledger)
    tasks = [asyncio.create_task(recorded.generate(REQUEST)) for _ in range(3)]
    await turns()
    model.gates[0].set_exception(ModelError("down"))
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [str(r) for r in results if isinstance(r, ModelError)] == ["down"] * 3
    assert ledger.count("failures") == 1
    later = asyncio.create_task(recorded.generate(REQUEST))  # nothing of the failed call is left
    await turns()
    model.gates[1].set_result(Completion("up"))
    assert (await later).text == "up"


async def test_where_the_asker_is_cancelled_a_waiter_asks_itself(ledger: Ledger) -> None:
    model = Gated()
    recorded = RecordedModel(model, ledger)
    tasks = [asyncio.create_task(recorded.generate(REQUEST)) for _ in range(3)]
    await turns()
    tasks[0].cancel()
    await turns()
    assert tasks[0].cancelled()
    assert len(model.gates) == 2  # one of the two others asked, once
    model.gates[1].set_result(Completion("second"))
    assert [c.text for c in await asyncio.wait_for(asyncio.gather(*tasks[1:]), 5)] == ["second"] * 2
    assert (ledger.count(), ledger.count("failures")) == (1, 0)


async def test_a_waiter_that_is_cancelled_leaves_the_others_alone(ledger: Ledger) -> None:
    model = Gated()
    recorded = RecordedModel(model, ledger)
    tasks = [asyncio.create_task(recorded.generate(REQUEST)) for _ in range(3)]
    await turns()
    tasks[1].cancel()
    await turns()
    assert [task.cancelled() for task in tasks] == [False, True, False]
    model.gates[0].set_result(Completion("one"))
    assert (await tasks[0]).text == (await tasks[2]).text == "one"
    assert len(model.gates) == 1


async def test_where_all_are_cancelled_nothing_is_left_behind(ledger: Ledger) -> None:
    model = Gated()
    recorded = RecordedModel(model, ledger)
    tasks = [asyncio.create_task(recorded.generate(REQUEST)) for _ in range(3)]
    await turns()
    for task in tasks:
        task.cancel()
    await turns()
    assert all(task.cancelled() for task in tasks)
    later = asyncio.create_task(recorded.generate(REQUEST))
    await turns()
    model.gates[-1].set_result(Completion("fresh"))
    assert (await later).text == "fresh"


@pytest.mark.parametrize("fault", [ModelError("down"), AssertionError("bug"), None])
async def test_a_call_that_ends_badly_leaves_nobody_waiting(ledger: Ledger, fault: Exception | None) -> None:
    model = Gated()
    recorded = RecordedModel(model, ledger)
    tasks = [asyncio.create_task(recorded.generate(REQUEST)) for _ in range(2)]
    await turns()
    if fault is None:  # the completion can't be recorded: the column takes no NULL
        model.gates[0].set_result(Completion("text", prompt_tokens=None))  # type: ignore[arg-type]
        expected: type[Exception] = sqlite3.IntegrityError
    else:
        model.gates[0].set_exception(fault)
        expected = type(fault)
    results = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)
    assert [type(result) for result in results] == [expected] * 2


async def test_a_row_that_is_refused_does_not_block_the_next(ledger: Ledger) -> None:
    replies = [Completion("bad", completion_tokens=None), Completion("good")]  # type: ignore[arg-type]
    recorded = RecordedModel(ScriptedModel(lambda r: replies.pop(0)), ledger)
    with pytest.raises(sqlite3.IntegrityError):
        await recorded.generate(REQUEST)
    assert (await recorded.generate(REQUEST)).text == "good"
    assert ledger.count() == 1


# Texts


@pytest.mark.parametrize("text", ["", "\x00", "a\x00b", "é\u2028\n\r\n", "😀", "x" * 100_000])
async def test_any_reply_is_replayed_as_it_was(ledger: Ledger, text: str) -> None:
    model = ScriptedModel(lambda r: Completion(text, reasoning=text))
    recorded = RecordedModel(model, ledger)
    first = await recorded.generate(REQUEST)
    again = await recorded.generate(REQUEST)
    assert first == again == Completion(text, reasoning=text)
    assert len(model.requests) == 1
    # The reply goes into the next request: that one has a key and can be looked up too.
    following = replace(REQUEST, messages=(*REQUEST.messages, Message("assistant", text)), sample_id="test/next")
    await recorded.generate(following)
    await recorded.generate(following)
    assert len(model.requests) == 2
    assert ledger.messages("test/next") == list(following.messages)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(), min_size=2, max_size=2, unique=True))
def test_different_messages_have_different_keys(texts: list[str]) -> None:
    keys = {call_key("m", replace(REQUEST, messages=(Message("user", text),))).key for text in texts}
    assert len(keys) == 2


def test_texts_are_stored_once(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "calls.sqlite")
    for number in range(3):
        request = replace(REQUEST, sample_id=f"s/{number}")
        ledger.record(call_key("m", request), "m", request, Completion("x"), 0.0)
    ledger.close()
    with sqlite3.connect(tmp_path / "calls.sqlite") as database:
        assert database.execute("SELECT count(*) FROM texts").fetchone() == (2,)


def test_messages_of_an_unknown_call_name_it(ledger: Ledger) -> None:
    with pytest.raises(KeyError, match="'nowhere'"):
        ledger.messages("nowhere")


# Sums


def test_usage_adds_up(ledger: Ledger) -> None:
    def call(sample_id: str, purpose: str, *counts: Any, model: str = "m", finish: Any = "stop") -> None:
        prompt, completion, cached, latency = counts
        request = replace(REQUEST, sample_id=sample_id, purpose=purpose)
        done = Completion("x", finish, prompt, completion, cached, latency=latency)
        ledger.record(call_key(model, request), model, request, done, 0.0)

    def failure(sample_id: str, purpose: str) -> None:
        request = replace(REQUEST, sample_id=sample_id, purpose=purpose)
        ledger.record_failure("k", "m", request, ModelError("x"), 0.0, 9.0)

    call("train/a", "actor/agent_1", 10, 1, None, 0.5)
    call("train/b", "actor/agent_1", 20, 2, 8, 0.25, finish="length")
    call("train/c", "actor/agent_1", 30, 3, 0, 0.25)
    call("train/a", "actor/agent_1", 5, 1, None, 1.0, model="n")
    call("critic/a", "critic", 100, 50, None, 2.0)
    call("alone", "critic", 1, 1, 1, 1.0)
    failure("train/d", "actor/agent_1")
    failure("train/d", "actor/agent_1")
    failure("test/a", "actor/agent_2")
    expected = [
        ("alone", "critic", "m", 1, 1, 1, 1, 1.0, 0, 0),
        ("critic", "critic", "m", 1, 100, None, 50, 2.0, 0, 0),
        ("test", "actor/agent_2", "m", 0, 0, None, 0, 0.0, 0, 1),
        ("train", "actor/agent_1", "m", 3, 60, 8, 6, 1.0, 1, 2),
        ("train", "actor/agent_1", "n", 1, 5, None, 1, 1.0, 0, 0),
    ]
    tokens = ("prompt_tokens", "cached_tokens", "completion_tokens")
    names = ("stage", "purpose", "model", "calls", *tokens, "latency", "cut", "failures")
    assert ledger.usage() == [dict(zip(names, row, strict=True)) for row in expected]


def test_usage_of_an_empty_ledger_is_empty(ledger: Ledger) -> None:
    assert ledger.usage() == []


# A killed writer

WRITER = """
import asyncio, sys
from skill_evolution.models.base import Completion, Message, Request, Sampling
from skill_evolution.models.ledger import Ledger, RecordedModel
from scripted_model import ScriptedModel

async def main():
    model = RecordedModel(ScriptedModel(lambda r: Completion("reply to " + r.sample_id)), Ledger(sys.argv[1]))
    number = 0
    while True:
        await model.generate(Request((Message("user", "u" * number),), Sampling(), "p", f"train/{number}"))
        print(number, flush=True)
        number += 1

asyncio.run(main())
"""


def _killed_after(lines: int, path: Path) -> list[int]:
    """Run the writer, kill it once it has said so many lines, and return all the numbers that it said."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", WRITER, str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    said = [int(process.stdout.readline()) for _ in range(lines)]
    os.kill(process.pid, signal.SIGKILL)
    said += [int(line) for line in process.stdout.read().splitlines() if line]
    process.stdout.close()
    assert process.wait() == -signal.SIGKILL
    return said


@pytest.mark.parametrize("lines", [1, 40])
async def test_every_call_that_was_reported_is_there_after_a_kill(tmp_path: Path, lines: int) -> None:
    path = tmp_path / "calls.sqlite"
    said = _killed_after(lines, path)
    ledger = Ledger(path)
    replayed = RecordedModel(ScriptedModel(), ledger)
    for number in said:
        request = Request((Message("user", "u" * number),), Sampling(), "p", f"train/{number}")
        assert (await replayed.generate(request)).text == f"reply to train/{number}"
    assert len(said) <= ledger.count() <= len(said) + 1  # the last may be recorded and not yet reported
    ledger.close()
