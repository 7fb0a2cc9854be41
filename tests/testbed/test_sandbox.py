"""Hostile code is stopped within its limits, says nothing that differs between two runs, and its session goes on."""

import gc
import os
import weakref

import pytest
from pydantic_monty import Monty

from skill_evolution.sage.agent.world import WorldError
from skill_evolution.testbed.world import MiniSession, MiniWorld, SandboxLimits, sandbox

WORLD = MiniWorld(train=1, dev=0, test=0, challenge=0)
IMPATIENT = MiniWorld(train=1, dev=0, test=0, challenge=0, limits=SandboxLimits(seconds=0.4))

ENDLESS = {
    "loop in try": "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        1",
    "bare except": "while True:\n    try:\n        1 / 0\n    except:\n        continue",
    "finally": "while True:\n    try:\n        1 / 0\n    except Exception:\n        1\n    finally:\n        continue",
    "retrying recursion": (
        "def f(n):\n    try:\n        return f(n + 1)\n    except BaseException:\n        return f(n + 1)\nf(0)"
    ),
    "one long call": "sum(range(10 ** 12))",
}
BIG = {
    "list": "x = []\nwhile True:\n    try:\n        x.append('a' * 100000)\n    except BaseException:\n        pass",
    "doubling": "x = [0]\nwhile True:\n    x = x + x",
    "power": "10 ** 10 ** 8",
    "string": "'a' * 10 ** 10",
    "padding": "'a'.zfill(10 ** 10)",
    "format": "f'{1:>1000000000}'",
    "allocation that ends the worker": "x = ('a ' * 10 ** 6).split() * 1000",
    "names too big to keep": "x = 'a' * 10_000_000",
    "nested names": "x = []\nfor i in range(100_000):\n    x = [x]",
}
LOUD = {
    "one print": "print('x' * 10_000_000)",
    "many prints": "for i in range(20_000):\n    print('xxxxxxxxxx')",
}
ESCAPES = {
    "open": "print(open('/etc/passwd').read())",
    "pathlib": "from pathlib import Path\nprint(Path('/etc/passwd').read_text())",
    "listdir": "import os\nprint(os.listdir('/'))",
    "environ": "import os\nprint(os.environ)",
    "system": "import os\nos.system('echo out')",
    "socket": "import socket\nprint(socket.gethostname())",
    "urllib": "import urllib.request",
    "http": "import http.client",
    "subprocess": "import subprocess",
    "ctypes": "import ctypes",
    "modules": "import sys\nprint(sys.modules)",
    "mro": "print(().__class__.__mro__[1].__subclasses__())",
    "globals of own": "def f():\n    pass\nprint(f.__globals__)",
    "globals of an API": "print(apis.contacts.find.__globals__)",
    "self of an API": "print(apis.contacts.find.__self__)",
    "closure of an API": "print(complete_task.__closure__)",
    "module dict": "print(apis.__dict__)",
    "format string": "print('{0.__class__.__init__.__globals__}'.format(apis))",
    "builtins": "print(__builtins__)",
    "import function": "__import__('os').system('echo out')",
    "getattr": "print(getattr(apis, '__loader__'))",
}
ERRORS = {
    "recursion": ("def f(n):\n    return f(n + 1)\nf(0)", "RecursionError"),
    "syntax": ("def f(:", "SyntaxError"),
    "nested source": ("x = " + "[" * 100_000, "SyntaxError"),
    "exit": ("raise SystemExit(1)", "RuntimeError"),
    "interrupt": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "backtracking": ("import re\nprint(re.match(r'(a+)+\\1$', 'a' * 40 + 'b'))", "re.PatternError"),
}


async def _opened(world: MiniWorld) -> MiniSession:
    opened = await world.open(world.tasks("train")[0])
    await opened.execute("kept = 41")
    return opened


@pytest.fixture
async def session() -> MiniSession:
    return await _opened(WORLD)


async def _goes_on(session: MiniSession) -> bool:
    after = await session.execute("print(kept + 1)\nprint(len(apis.contacts.show()))")
    return (after.output, after.error, await session.score()) == ("42\n5\n", None, 0.0)


@pytest.mark.parametrize("code", ENDLESS.values(), ids=ENDLESS)
async def test_endless_code_runs_into_the_time_limit(code: str):
    session = await _opened(IMPATIENT)
    done = await session.execute(code)
    assert done.error == "TimeoutError: the code ran longer than 0.4 seconds"
    assert done.output == f"{done.error}\n"
    assert await _goes_on(session)


@pytest.mark.parametrize("code", BIG.values(), ids=BIG)
async def test_memory_bombs_run_into_the_memory_limit(session: MiniSession, code: str):
    done = await session.execute(code)
    assert done.error is not None
    assert done.error.startswith("MemoryError: ")
    assert await _goes_on(session)


@pytest.mark.parametrize("code", LOUD.values(), ids=LOUD)
async def test_output_is_cut_and_endless_output_stopped(session: MiniSession, code: str):
    done = await session.execute(code)
    assert done.error == "MemoryError: the code printed more than 65536 bytes"
    assert len(done.output) == 4000 + len("\n[output cut]\n") + len(done.error) + 1
    assert await _goes_on(session)


@pytest.mark.parametrize("code", [*BIG.values(), *LOUD.values(), *ESCAPES.values()])
async def test_stopped_code_says_the_same_each_time(code: str):
    first, second = [await (await _opened(WORLD)).execute(code) for _ in range(2)]
    assert first == second


async def test_output_within_the_cap_is_cut_without_an_error(session: MiniSession):
    done = await session.execute("print('ab' * 3000)")
    assert (done.output, done.error) == ("ab" * 2000 + "\n[output cut]\n", None)


@pytest.mark.parametrize("code", ESCAPES.values(), ids=ESCAPES)
async def test_nothing_of_the_host_is_reached(session: MiniSession, code: str):
    done = await session.execute(code)
    assert done.error is not None
    assert done.output == f"{done.error}\n"  # not a line of anything else
    assert await _goes_on(session)


@pytest.mark.parametrize(("code", "kind"), ERRORS.values(), ids=ERRORS)
async def test_errors_come_back_as_observations(session: MiniSession, code: str, kind: str):
    done = await session.execute(code)
    assert done.error is not None
    assert done.error.startswith(kind)
    assert "\n" not in done.error
    assert await _goes_on(session)


@pytest.mark.parametrize("guard", ["", "try:\n        "], ids=["bare", "caught"])
async def test_ten_thousand_calls_end_at_the_limit(session: MiniSession, guard: str):
    tail = "\n    except BaseException:\n        pass" if guard else ""
    done = await session.execute(f"for i in range(10_000):\n    {guard}apis.contacts.show(){tail}")
    assert (done.error, done.api_calls) == ("RuntimeError: the code made more than 200 API calls", 200)
    assert await _goes_on(session)


@pytest.mark.parametrize("value", ["'a' * 10_000_000", "10 ** 100_000", "[[[]]] * 100_000", "kept"])
async def test_hostile_arguments_are_refused(session: MiniSession, value: str):
    done = await session.execute(f"apis.contacts.find({value})")
    assert done.error is not None
    assert "contacts.find: parameter 'name'" in done.error
    assert len(done.error) < 400
    assert await _goes_on(session)


async def test_clock_randomness_and_sleep_are_fixed():
    code = "import random, time\ntime.sleep(1000)\nprint(time.time(), random.random())"
    outputs = [(await (await WORLD.open(task)).execute(code)).output for task in WORLD.tasks("train")[:2]]
    assert outputs[0] == outputs[1] == "1767225600.0 0.8444218515250481\n"  # random.seed(0) in CPython


async def test_names_stay_after_an_error_and_apis_work_in_kept_functions(session: MiniSession):
    failed = await session.execute(
        "import json\ndef count():\n    return len(apis.notes.show())\nfind = apis.contacts.find\n1 / 0"
    )
    assert failed.error == "ZeroDivisionError: division by zero"
    done = await session.execute("print(count(), json.dumps([find(apis.contacts.show()[0]['name'])]))")
    first = WORLD.case(WORLD.tasks("train")[0]).state["people"][0]
    assert (done.output, done.api_calls) == (f'5 ["{first["id"]}"]\n', 3)


async def test_a_worker_killed_from_outside_costs_one_execution(session: MiniSession):
    with sandbox._pool().checkout() as doomed:
        assert doomed.worker_pid is not None
        os.kill(doomed.worker_pid, 9)
    assert await _goes_on(session)


async def test_a_finished_session_is_freed():
    short_lived = await WORLD.open(WORLD.tasks("train")[0])
    await short_lived.execute("print(apis.contacts.show())\ncomplete_task()")
    still_there = weakref.ref(short_lived)
    del short_lived
    gc.collect()
    assert still_there() is None


async def test_a_missing_interpreter_is_the_worlds_failure(session: MiniSession, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sandbox, "_pool", lambda: Monty(binary_path="no-such-file").__enter__())
    with pytest.raises(WorldError, match="no-such-file"):
        await session.execute("1")


def test_limits_that_the_capture_cannot_hold_are_refused():
    with pytest.raises(ValueError, match="output_chars"):
        SandboxLimits(output_chars=60_000)
