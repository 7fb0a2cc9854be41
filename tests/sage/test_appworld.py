"""The adapter to AppWorld without AppWorld: its pool, its errors and its reading of replies, on a fake server."""

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fake_appworld
import pytest

from skill_evolution.sage.agent.world import Task, World, WorldError
from skill_evolution.sage.appworld import pool, process, session
from skill_evolution.sage.appworld.session import error_of
from skill_evolution.sage.appworld.world import AppWorld

SPECS = {"instruction": "Do it.", "supervisor": {"first_name": "Mina"}, "datetime": "2024-02-29T09:30:00"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A data folder as far as the adapter itself looks: two scenarios, their tasks out of order in the list."""
    data = tmp_path / "root" / "data"
    for name in ("datasets", "base_dbs", "api_docs"):
        (data / name).mkdir(parents=True)
    ids = ["bb2_10", "aa1_3", "aa1_1", "bb2_9", "aa1_2", "bb2_1"]
    for task_id in ids:
        (data / "tasks" / task_id).mkdir(parents=True)
        (data / "tasks" / task_id / "specs.json").write_text(json.dumps(SPECS), encoding="utf-8")
    (data / "datasets" / "test_normal.txt").write_text("\n".join(ids) + "\n", encoding="utf-8")
    return data.parent


@pytest.fixture
def make(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., AppWorld]]:
    """Makes worlds whose servers are fake ones of a mode; ends them all."""
    monkeypatch.setattr(process, "POLL", 0.01)
    worlds: list[AppWorld] = []

    def world(mode: str = "good", *, size: int = 4, seconds: int = 20, grace: float = 10.0, **pools: Any) -> AppWorld:
        monkeypatch.setattr(session, "CALL_SECONDS", seconds)
        monkeypatch.setattr(session, "GRACE_SECONDS", grace)
        for name, value in pools.items():
            monkeypatch.setattr(pool, name.upper(), value)
        python = tmp_path / f"python-{mode}"
        fake = f"'{sys.executable}' -S -E '{fake_appworld.__file__}' {mode} '{tmp_path / 'pids'}'"
        python.write_text(f'#!/bin/sh\nexec {fake} "$@"\n', encoding="utf-8")
        python.chmod(0o755)
        worlds.append(AppWorld(root=root, python=python, servers=size))
        return worlds[-1]

    yield world
    for one in worlds:
        one.close()


@pytest.fixture
def pids(tmp_path: Path) -> Callable[[], list[int]]:
    """The processes of fake servers so far."""
    file = tmp_path / "pids"
    return lambda: [int(pid) for pid in file.read_text(encoding="utf-8").split()] if file.exists() else []


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def first(world: World) -> Task:
    return world.tasks("test")[0]


# --- tasks ---


def test_tasks_come_by_scenario_and_number(make: Callable[..., AppWorld]) -> None:
    world: World = make()  # and the protocol is kept
    assert world.splits == ("test",)
    tasks = world.tasks("test")
    assert [task.task_id for task in tasks] == ["bb2_1", "bb2_9", "bb2_10", "aa1_1", "aa1_2", "aa1_3"]
    assert tasks[3] == Task("aa1_1", "aa1", "test", "Do it.", {"first_name": "Mina"})


def test_a_split_that_is_not_there_is_an_error(make: Callable[..., AppWorld]) -> None:
    with pytest.raises(ValueError, match=r"'train' isn't in .*data; there is test"):
        make().tasks("train")


@pytest.mark.parametrize("content", [None, "{", '{"instruction": 3}'])
def test_specs_that_cannot_be_read_are_an_error(make: Callable[..., AppWorld], root: Path, content: str | None) -> None:
    specs = root / "data/tasks/aa1_2/specs.json"
    specs.unlink() if content is None else specs.write_text(content, encoding="utf-8")
    with pytest.raises(WorldError, match=r"task aa1_2: .*specs\.json"):
        make().tasks("test")


async def test_a_wrong_task_id_is_an_error_and_takes_no_server(make: Callable[..., AppWorld]) -> None:
    world = make(size=1)
    for task_id in ("aa1_4", "../aa1_1", "aa1", "aa1_1/../aa1_2"):
        with pytest.raises(WorldError, match=f"task {task_id}: AppWorld has no such task"):
            await world.open(Task(task_id, "aa1", "test", "", {}))
    await (await world.open(first(world))).close()


def test_the_overview_says_how_to_look_things_up(make: Callable[..., AppWorld]) -> None:
    overview = make().overview
    assert all(name in overview for name in ("show_app_descriptions", "show_api_doc", "complete_task"))


# --- sessions ---


async def test_a_session_from_its_start_to_its_score(make: Callable[..., AppWorld]) -> None:
    world = make()
    session = await world.open(first(world))
    assert await session.score() == 0.5
    ran = [await session.execute(code) for code in ("call 3", "call 2", "say hello\n", "complete now")]
    assert [one.api_calls for one in ran] == [3, 2, 0, 0]
    assert [one.completed for one in ran] == [False, False, False, True]
    assert [one.error for one in ran] == [None] * 4
    assert ran[2].output == "hello"
    await session.execute("set passes=2")
    assert await session.score() == 1.0
    await session.close()
    await session.close()
    with pytest.raises(WorldError, match="task bb2_1: the session is closed"):
        await session.execute("say x")


async def test_a_long_output_is_cut_and_says_so(make: Callable[..., AppWorld]) -> None:
    world = make()
    session = await world.open(first(world))
    output = (await session.execute("flood 20007")).output
    assert output == "x" * 10_000 + "\n[7 characters left out]\n" + "x" * 10_000
    await session.close()


async def test_a_task_without_tests_has_no_score(make: Callable[..., AppWorld]) -> None:
    world = make()
    session = await world.open(first(world))
    await session.execute("set passes=0")
    await session.execute("set tests=0")
    with pytest.raises(WorldError, match="task bb2_1: it has no tests"):
        await session.score()
    await session.close()


async def test_a_lone_surrogate_in_the_code_is_no_trouble(make: Callable[..., AppWorld]) -> None:
    world = make()
    session = await world.open(first(world))
    assert (await session.execute("say \ud800!")).output == "?!"
    await session.close()


async def test_the_server_gets_none_of_our_secrets_and_proxies(
    make: Callable[..., AppWorld], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "https_proxy", "PYTHONPATH"):
        monkeypatch.setenv(name, "x")
    world = make()
    session = await world.open(first(world))
    seen = json.loads((await session.execute("environment")).output)
    assert not {"OPENAI_API_KEY", "https_proxy", "PYTHONPATH"} & set(seen)
    assert seen["HOME"] == seen["APPWORLD_ROOT"] != os.environ.get("HOME")
    await session.close()


@pytest.mark.parametrize(
    ("output", "error"),
    [
        ("Execution successful.", None),
        (
            "Execution failed. Traceback:\nSyntax error in line:\ndef f(:\nMessage: invalid syntax",
            "SyntaxError: invalid syntax",
        ),
        (
            'Execution failed. Traceback:\n  File "<python-input>", line 2, in <module>\n    1/0\n    ~^~\n'
            "ZeroDivisionError: division by zero",
            "ZeroDivisionError: division by zero",
        ),
        (
            'Execution failed. Traceback:\n  File "<python-input>", line 1, in <module>\n    f()\n'
            'Exception: Response status code is 401:\n{"message":"no"}',
            "Exception: Response status code is 401:",
        ),
        (
            'Execution failed. Traceback:\n  File "<python-input>", line 1, in <module>\n    b = x()\nMemoryError',
            "MemoryError",
        ),
        (
            "Execution failed. Traceback:\nUsage of the following module is not allowed: socket.",
            "Usage of the following module is not allowed: socket.",
        ),
        ("Execution failed. Traceback:\n", "Error: AppWorld gives no reason"),
    ],
)  # the shapes of AppWorld 0.1.3.post1's replies, seen by running it
def test_the_error_is_read_out_of_the_output(output: str, error: str | None) -> None:
    assert error_of(output) == error


# --- the pool ---


async def test_no_more_servers_than_places_and_each_is_used_again(
    make: Callable[..., AppWorld], pids: Callable[[], list[int]]
) -> None:
    world = make(size=2)
    tasks = world.tasks("test")
    one, two = await asyncio.gather(world.open(tasks[0]), world.open(tasks[1]))
    waiting = asyncio.create_task(world.open(tasks[2]))
    await one.execute("say x")
    assert not waiting.done()
    await one.close()
    three = await waiting
    await asyncio.gather(two.close(), three.close())
    assert len(pids()) == 2


async def test_waiting_for_a_server_has_an_end(make: Callable[..., AppWorld]) -> None:
    world = make(size=1, wait_seconds=0.05)
    session = await world.open(first(world))
    with pytest.raises(WorldError, match=r"task bb2_1: none of AppWorld's 1 servers became free within 0\.05 s"):
        await world.open(first(world))
    await session.close()
    await (await world.open(first(world))).close()


def test_it_works_in_one_event_loop_after_another(make: Callable[..., AppWorld], pids: Callable[[], list[int]]) -> None:
    world = make(size=1)

    async def two_sessions() -> None:
        async def session() -> None:
            await (await world.open(first(world))).close()

        await asyncio.gather(session(), session())  # the second waits, which ties the place to the loop

    asyncio.run(two_sessions())
    asyncio.run(two_sessions())
    assert len(pids()) == 1


async def test_a_server_is_renewed_after_its_sessions(
    make: Callable[..., AppWorld], pids: Callable[[], list[int]]
) -> None:
    world = make(size=1, sessions_per_server=2)
    for _ in range(3):
        await (await world.open(first(world))).close()
    assert len(pids()) == 2


async def test_a_server_that_fails_costs_its_session_and_is_replaced(
    make: Callable[..., AppWorld], pids: Callable[[], list[int]]
) -> None:
    world = make(size=1)
    failures = {
        "die": r"lost during /execute.*Segmentation fault",
        "fail": r"answered /execute with HTTP 500.*AssertionError: broken inside",
        "nonsense": "reply to /execute isn't JSON",
        "wrong": "reply to /execute isn't as it should be",
        f"flood {process.MAX_REPLY + 1}": "reply to /execute is longer than 16 MiB",
    }
    for code, what in failures.items():
        session = await world.open(first(world))
        with pytest.raises(WorldError, match=f"(?s)^task bb2_1: .*{what}"):
            await session.execute(code)
        with pytest.raises(WorldError, match="task bb2_1: the session is closed, or has lost its server"):
            await session.score()
        await session.close()
    session = await world.open(first(world))
    assert (await session.execute("say again")).output == "again"
    await session.close()
    assert len(pids()) == len(failures) + 1


async def test_a_hung_call_ends_at_its_deadline_with_its_server(
    make: Callable[..., AppWorld], pids: Callable[[], list[int]]
) -> None:
    world = make(size=1, seconds=0, grace=0.2)
    session = await world.open(first(world))
    with pytest.raises(WorldError, match=r"task bb2_1: .*no reply to /execute within 0\.2 s"):
        await session.execute("hang")
    world.close()
    assert not alive(pids()[0])


async def test_a_cancelled_call_ends_the_server(make: Callable[..., AppWorld], pids: Callable[[], list[int]]) -> None:
    world = make(size=1)
    session = await world.open(first(world))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(session.execute("hang"), 0.1)
    await (await world.open(first(world))).close()
    assert len(pids()) == 2


async def test_an_idle_server_that_was_killed_is_replaced(
    make: Callable[..., AppWorld], pids: Callable[[], list[int]]
) -> None:
    world = make(size=1)
    await (await world.open(first(world))).close()
    os.kill(pids()[0], signal.SIGKILL)
    world.pool._servers[0].process.wait()
    await (await world.open(first(world))).close()
    assert len(pids()) == 2


@pytest.mark.parametrize(
    ("mode", "what"),
    [
        ("broken", r"(?s)ended with status 1 before it answered.*ImportError: no pydantic here"),
        ("silent", r"didn't come up within 0\.5 s"),
        ("mute", r"(no reply to /|didn't come up) within 0\.5 s"),  # the latter on a very busy machine
        ("garbled", "what it says of itself can't be read"),
        ("refusing", "answered /initialize with HTTP 500"),
    ],
)
async def test_a_server_that_never_works_is_an_error_and_frees_its_place(
    make: Callable[..., AppWorld], pids: Callable[[], list[int]], mode: str, what: str
) -> None:
    world = make(mode, size=1, start_seconds=20.0 if mode in ("broken", "garbled", "refusing") else 0.5)
    with pytest.raises(WorldError, match=what) as error:
        await world.open(first(world))
    assert str(error.value).startswith("task bb2_1: AppWorld's server: ")
    await asyncio.wait_for(world.pool._loop_slots().acquire(), 1)
    world.close()
    assert not any(alive(pid) for pid in pids())


async def test_nothing_is_left_behind(make: Callable[..., AppWorld], pids: Callable[[], list[int]]) -> None:
    with make(size=2) as world:
        sessions = [await world.open(task) for task in world.tasks("test")[:2]]
        await sessions[0].close()
        folders = [server.folder for server in world.pool._servers]
        assert all(folder.is_dir() for folder in folders)
    assert not any(folder.exists() for folder in folders)
    assert not any(alive(pid) for pid in pids())


async def test_what_a_session_saved_is_removed_after_it(make: Callable[..., AppWorld]) -> None:
    world = make(size=1)
    session = await world.open(first(world))
    await session.execute("call 1")
    folder = world.pool._servers[0].folder
    assert (folder / "experiments").is_dir()
    await session.close()
    assert not (folder / "experiments").exists()
    assert (folder / "data").resolve() == world.data  # still a link: AppWorld's data are never written to


async def test_a_server_that_cannot_be_isolated_is_said_once(
    make: Callable[..., AppWorld], caplog: pytest.LogCaptureFixture
) -> None:
    world = make("open", size=2)
    with caplog.at_level(logging.WARNING, logger=pool.__name__):
        for session in [await world.open(task) for task in world.tasks("test")[:2]]:
            await session.close()
    assert [record.getMessage() for record in caplog.records] == [
        "AppWorld's servers aren't isolated on this system: agent code can reach the network"
    ]
