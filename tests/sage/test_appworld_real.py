"""AppWorld itself behind the adapter: real processes on a data folder made by hand (tests/helpers/appworld_data.py)."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import appworld_data
import pytest
from scripted import ScriptedPolicy, block, run_chains

from skill_evolution.sage.agent.metrics import metrics
from skill_evolution.sage.agent.world import Task, WorldError
from skill_evolution.sage.appworld import session
from skill_evolution.sage.appworld.environment import AppWorldError, appworld_python
from skill_evolution.sage.appworld.process import Server
from skill_evolution.sage.appworld.world import AppWorld

pytestmark = pytest.mark.slow

LOOK_UP = """
apps = [app["name"] for app in apis.api_docs.show_app_descriptions()]
names = [api["name"] for api in apis.api_docs.show_api_descriptions(app_name="simple_note")]
doc = apis.api_docs.show_api_doc(app_name="simple_note", api_name="create_note")
print("simple_note" in apps, "create_note" in names, sorted(one["name"] for one in doc["parameters"]))
"""
LOG_IN = """
def log_in():
    passwords = {one["account_name"]: one["password"] for one in apis.supervisor.show_account_passwords()}
    email = apis.supervisor.show_profile()["email"]
    return apis.simple_note.login(username=email, password=passwords["simple_note"])["access_token"]
"""


@pytest.fixture(scope="module")
def python() -> Path:
    try:
        return appworld_python()
    except AppWorldError as error:
        pytest.skip(f"AppWorld's environment can't be made here: {error}")


@pytest.fixture(scope="module")
def root(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("appworld")
    subprocess.run(
        [python, appworld_data.__file__], cwd=root, env={**os.environ, "APPWORLD_ROOT": str(root)}, check=True
    )
    return root


@pytest.fixture(scope="module")
def world(root: Path) -> Iterator[AppWorld]:
    """Four servers for all tests; a call may take five seconds, and is given up five seconds later."""
    with pytest.MonkeyPatch.context() as patch, AppWorld(root=root) as world:
        patch.setattr(session, "CALL_SECONDS", 5)
        patch.setattr(session, "GRACE_SECONDS", 5.0)
        yield world


def solution(task: Task) -> str:
    title, content = task.instruction.split('"')[1::2]
    return (
        f"note = apis.simple_note.create_note(access_token=log_in(), title={title!r}, content={content!r})\n"
        "apis.supervisor.complete_task()\nprint(note['message'])"
    )


WRITE_NOTE = (
    LOG_IN
    + """
def write_note(title, content):
    \"\"\"Write a note.\"\"\"
    return apis.simple_note.create_note(access_token=log_in(), title=title, content=content)
"""
)


def server_process(server: Server) -> int:
    """The process below the guard."""
    guard = server.process.pid
    return int(Path(f"/proc/{guard}/task/{guard}/children").read_text(encoding="utf-8").split()[0])


async def test_four_at_once_are_solved(world: AppWorld) -> None:
    tasks = world.tasks("train")
    assert [task.task_id for task in tasks] == ["notes1_1", "notes1_2", "notes1_3"]
    assert {task.scenario for task in tasks} == {"notes1"}
    assert tasks[0].user == appworld_data.USER
    started = asyncio.Barrier(4)

    async def solve(task: Task) -> None:
        session = await world.open(task)
        await started.wait()  # all four sessions are open now
        looked = await session.execute(LOOK_UP)
        assert looked.error is None, looked.output
        assert looked.output == "True True ['access_token', 'content', 'pinned', 'tags', 'title']"
        assert looked.api_calls == 3
        defined = await session.execute(LOG_IN)
        assert (defined.output, defined.error, defined.api_calls) == ("Execution successful.", None, 0)
        assert not defined.completed
        assert await session.score() == 0.5
        done = await session.execute(solution(task))
        assert (done.output, done.error) == ("Note created.", None)
        assert (done.api_calls, done.completed) == (5, True)  # passwords, profile, login, note, completion
        assert await session.score() == 1.0
        await session.close()

    await asyncio.gather(*(solve(task) for task in [*tasks, tasks[0]]))  # one task twice, side by side


async def test_an_untouched_task_is_not_solved(world: AppWorld) -> None:
    session = await world.open(world.tasks("train")[0])
    assert await session.score() == 0.5  # of the two tests, one asks that nothing else has changed
    given_up = await session.execute("apis.supervisor.complete_task(status='fail')")
    assert given_up.completed
    assert await session.score() == 0.5
    await session.close()


async def test_a_new_session_knows_nothing_of_the_last(world: AppWorld) -> None:
    task = world.tasks("train")[1]
    for _ in range(5):  # one more than there are servers
        session = await world.open(task)
        before = await session.execute("print('log_in' in globals())")
        assert before.output == "False"
        await session.execute(LOG_IN)
        notes = await session.execute("print(apis.simple_note.search_notes(access_token=log_in()))\n" + solution(task))
        assert notes.output.splitlines() == ["[]", "Note created."]
        await session.close()


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("print(1)\n1 / 0", "ZeroDivisionError: division by zero"),
        ("def f(:", "SyntaxError: invalid syntax"),
        ("\0", "SyntaxError: source code string cannot contain null bytes"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt: "),
        ("raise SystemExit(3)", "Exception: 3"),
        ("class E(BaseException): pass\nraise E('x')", "E: x"),
        ("+".join(["1"] * 20_000), "RecursionError: "),
        ("import socket", "Usage of the following module is not allowed: socket."),
        ("apis.simple_note.nothing()", "Exception: No API named 'nothing' found in the simple_note app."),
        ("apis.simple_note.login(username='a', password='b')", "Exception: Response status code is 401:"),
        ("bytes(8 << 30)", "MemoryError"),
        ("while True: pass", "Exception: Execution timed out after 5 seconds."),
    ],
)
async def test_what_agent_code_does_wrong_is_its_own_error(world: AppWorld, code: str, error: str) -> None:
    session = await world.open(world.tasks("train")[0])
    assert (await session.execute("kept = 'here'")).error is None
    failed = await session.execute(code)
    assert failed.error is not None
    assert failed.error.startswith(error)
    assert failed.output.splitlines()[0] == "Execution failed. Traceback:"
    assert (await session.execute("print(kept)")).output == "here"  # and the session goes on
    assert await session.score() == 0.5
    await session.close()


async def test_agent_code_that_gets_around_the_guard_reaches_no_network(world: AppWorld) -> None:
    session = await world.open(world.tasks("train")[0])
    server = next(one for one in world.pool._servers if one.folder == session._folder)
    assert server.ready is not None
    if not server.ready.offline:
        pytest.skip("this system lets no one make a network namespace")
    tried = await session.execute(
        "load = getattr(builtins, '__imp' + 'ort__')\n"
        f"load('socket').create_connection(('127.0.0.1', {server.ready.port}), timeout=1)"
    )
    assert tried.error is not None
    assert "Network is unreachable" in tried.error
    await session.close()


async def test_faulty_tasks_are_errors_and_the_pool_recovers(world: AppWorld) -> None:
    no_tests, no_databases = world.tasks("dev")
    session = await world.open(no_tests)
    with pytest.raises(WorldError, match="task faulty1_1: it has no tests"):
        await session.score()
    await session.close()
    with pytest.raises(WorldError, match=r"(?s)task faulty1_2: .*answered /initialize with HTTP 500\..*Exception: "):
        await world.open(no_databases)
    with pytest.raises(WorldError, match="task notes1_4: AppWorld has no such task"):
        await world.open(Task("notes1_4", "notes1", "train", "", {}))
    await test_an_untouched_task_is_not_solved(world)


async def test_a_killed_server_is_an_error_and_the_pool_recovers(world: AppWorld) -> None:
    session = await world.open(world.tasks("train")[2])
    server = next(one for one in world.pool._servers if one.folder == session._folder)
    os.kill(server_process(server), signal.SIGKILL)
    with pytest.raises(WorldError, match="task notes1_3: AppWorld's server: it was lost during /execute"):
        await session.execute("print(1)")
    await session.close()
    await test_an_untouched_task_is_not_solved(world)


async def test_a_hung_call_is_an_error_and_the_pool_recovers(world: AppWorld) -> None:
    session = await world.open(world.tasks("train")[2])
    server = next(one for one in world.pool._servers if one.folder == session._folder)
    process = server_process(server)
    # AppWorld's own limit acts once, by an exception, which this code takes in.
    code = (
        "n = 0\nwhile True:\n    try:\n        while True:\n            n += 1\n    except BaseException:\n        pass"
    )
    with pytest.raises(WorldError, match="task notes1_3: AppWorld's server: no reply to /execute within 10 s"):
        await session.execute(code)
    await asyncio.to_thread(server.process.wait)
    assert not Path(f"/proc/{process}").exists()
    await test_an_untouched_task_is_not_solved(world)


async def test_agent_chains_and_metrics_run_on_appworld_as_on_any_world(world: AppWorld) -> None:
    tasks = world.tasks("train")

    def script(key: str) -> str:
        index, position, turn = map(int, key.split("/")[-3:])
        if index == 1 and position == 2:
            return block("apis.supervisor.complete_task()")  # this one doesn't do what is asked
        title, content = tasks[position].instruction.split('"')[1::2]
        if position == 0 and turn == 0:
            return block(LOOK_UP + WRITE_NOTE)
        return block(f"write_note({title!r}, {content!r})\napis.supervisor.complete_task()")

    policy = ScriptedPolicy(script)
    chains = await run_chains(policy, world, [tasks], key="test", group=2)
    assert [[episode.error for episode in chain.episodes] for chain in chains] == [[None] * 3] * 2
    assert [[episode.score for episode in chain.episodes] for chain in chains] == [[1.0, 1.0, 1.0], [1.0, 1.0, 0.5]]
    assert [sorted(skill.name for skill in chain.library) for chain in chains] == [["log_in", "write_note"]] * 2
    assert "show_app_descriptions()" in policy.prompt("test/notes1/0/0")
    assert "def write_note(title, content):" in policy.prompt("test/notes1/0/1")
    measured = metrics(chains)
    # 5 of 6 tasks, 1 of 2 scenarios; of the 4 tasks that were offered skills, 3 used them and all of those succeed.
    assert measured["tgc"] == pytest.approx(500 / 6)
    assert measured["sgc"] == 50.0
    assert (measured["skill_usage_rate"], measured["successful_skill_usage_rate"]) == (0.75, 1.0)
    assert measured["failed"] == 0
