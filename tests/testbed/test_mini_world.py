"""The mini world: generation, splits, tests of the final state, the expert, and errors as observations."""

import asyncio
from collections import Counter

import pytest

from skill_evolution.base import aio
from skill_evolution.sage.agent.world import Task, World
from skill_evolution.testbed.world import STYLES, VALUES, MiniWorld, checks, expert_turns, skill_source
from skill_evolution.testbed.world.primitives import ACTIONS, ANSWERS, CHALLENGE_ACTIONS, CHALLENGE_ANSWERS
from skill_evolution.testbed.world.values import KINDS

WORLD = MiniWorld()
PROTOCOL: World = WORLD  # what the type checker holds it to
ALL = [task for split in WORLD.splits for task in WORLD.tasks(split)]


def _task(scenario: str) -> Task:
    """A task with a given part, wherever the seed put it."""
    return next(task for task in ALL if scenario in task.scenario.split("_"))


async def _solve(task: Task, style: str) -> tuple[float, list[str | None]]:
    session = await WORLD.open(task)
    case = WORLD.case(task)
    if style == "reuse":
        await session.execute(skill_source(case))
    done = [await session.execute(code) for code in expert_turns(case, style=style)]
    assert done[-1].completed
    return await session.score(), [execution.error for execution in done if execution.error]


async def _solve_all(pairs: list[tuple[Task, str]]) -> list[tuple[Task, str]]:
    """Those that the expert doesn't solve, or not without an error."""
    results = await aio.gather(_solve(task, style) for task, style in pairs)
    return [pair for pair, result in zip(pairs, results, strict=True) if result != (1.0, [])]


def test_sizes_order_and_identifiers():
    assert {split: len(WORLD.tasks(split)) for split in WORLD.splits} == {
        "train": 480, "dev": 48, "test": 96, "challenge": 48,
    }  # fmt: skip
    for split in WORLD.splits:
        tasks = WORLD.tasks(split)
        assert {task.split for task in tasks} == {split}
        assert [task.task_id for task in tasks] == [
            f"{tasks[i - i % 3].scenario}_{i % 3 + 1}" for i in range(len(tasks))
        ]


def test_the_same_seed_gives_the_same_world_and_another_seed_another():
    again = MiniWorld()
    assert all(again.case(task) == WORLD.case(task) for task in ALL)
    other = MiniWorld(seed=1)
    assert {task.instruction for task in other.tasks("train")} != {task.instruction for task in WORLD.tasks("train")}


def test_no_two_splits_share_a_composition():
    pairs = Counter(frozenset(scenario.split("_")) for scenario in {task.scenario for task in ALL})
    assert len(pairs) == 224
    assert set(pairs.values()) == {1}


def test_held_out_scenarios_are_made_of_primitives_seen_in_training():
    trained = {name for task in WORLD.tasks("train") for name in task.scenario.split("_")}
    assert trained == {primitive.name for primitive in (*ACTIONS, *ANSWERS)}
    new = {primitive.name for primitive in (*CHALLENGE_ACTIONS, *CHALLENGE_ANSWERS)}
    for task in WORLD.tasks("challenge"):
        first, second = task.scenario.split("_")
        assert (first in new) != (second in new)


async def test_the_challenge_app_is_in_no_other_split():
    for split in WORLD.splits:
        session = await WORLD.open(WORLD.tasks(split)[0])
        shown = await session.execute("print([a['name'] for a in apis.api_docs.show_app_descriptions()])")
        used = await session.execute("apis.shop.show()")
        assert ("'shop'" in shown.output) == (used.error is None) == (split == "challenge")
        for task in WORLD.tasks(split):
            code = "\n".join(expert_turns(WORLD.case(task), style="skill"))
            assert ("apis.shop." in code) == ("items" in WORLD.case(task).state) == (split == "challenge")


def test_tasks_of_a_scenario_differ_in_user_values_and_identifiers():
    for start in range(0, len(ALL), 3):
        three = [WORLD.case(task) for task in ALL[start : start + 3]]
        assert len({case.task.user["name"] for case in three}) == 3
        spoken = [{value for part in case.parts for value in part.values.values()} for case in three]
        assert sum(len(values) for values in spoken) == len(set().union(*spoken))
        assert len({str(case.state["people"]) for case in three}) == 3


def test_instructions_name_each_value_once_and_are_short():
    for task in ALL:
        words = task.instruction.replace(",", " ").split()
        assert 8 <= len(words) <= 22
        for part in WORLD.case(task).parts:
            assert all(words.count(value) == 1 for value in part.values.values())


def test_values_are_distinct_lower_case_words():
    assert len(set(VALUES)) == len(VALUES) == sum(len(kind.pool) for kind in KINDS.values()) + 8 + 28
    assert all(value.isalpha() and value.islower() for value in VALUES)


async def test_the_expert_solves_every_task():
    assert await _solve_all([(task, STYLES[i % 3]) for i, task in enumerate(ALL)]) == []


@pytest.mark.slow
async def test_the_expert_solves_every_task_in_every_style():
    assert await _solve_all([(task, style) for task in ALL for style in STYLES]) == []


def test_direct_style_takes_turns_of_at_most_two_calls_that_read_what_was_printed():
    for task in ALL:
        case = WORLD.case(task)
        turns = expert_turns(case, style="direct")
        assert 2 <= len(turns) <= 6
        assert all(turn.count("apis.") <= 2 for turn in turns)
        assert len(expert_turns(case, style="skill")) == len(expert_turns(case, style="reuse")) == 1


def test_all_tasks_of_a_scenario_share_one_function_that_compiles_under_its_name():
    for start in range(0, len(ALL), 3):
        (source,) = {skill_source(WORLD.case(task)) for task in ALL[start : start + 3]}
        assert source.startswith(f"def {ALL[start].scenario}(")
        compile(source, "skill", "exec")


def test_no_task_passes_anything_on_an_untouched_world():
    for task in ALL:
        case = WORLD.case(task)
        goals = checks.goals(case)
        for completed, answer in ((False, None), (True, None), (True, "")):
            tests = checks.run_tests(goals, before=case.state, after=case.state, completed=completed, answer=answer)
            assert len(tests) == 4
            assert not any(tests.values())


@pytest.mark.parametrize("extra", ["wallet.pay('{}', 'two')", "contacts.star('{}')", "messages.block('{}')"])
async def test_scores_count_each_part_and_collateral_changes_fail(extra: str):
    task = next(t for t in ALL if "pay" in t.scenario.split("_") and len(checks.goals(WORLD.case(t)).parts) == 2)
    session = await WORLD.open(task)
    turn = expert_turns(WORLD.case(task), style="skill")[0]
    await session.execute(turn.replace("\ncomplete_task()", ""))
    assert session.run_tests() == {"change_1": True, "change_2": True, "nothing_else": True, "completed": False}
    asked = {value for part in WORLD.case(task).parts for value in part.values.values()}
    other = next(row["id"] for row in WORLD.case(task).state["people"] if row["name"] not in asked)
    await session.execute(f"apis.{extra.format(other)}\ncomplete_task()")
    assert session.run_tests() == {"change_1": True, "change_2": True, "nothing_else": False, "completed": True}
    assert await session.score() == 0.75


async def test_doing_a_thing_twice_is_a_collateral_change():
    session = await WORLD.open(_task("pay"))
    case = WORLD.case(_task("pay"))
    source = skill_source(case)
    call = expert_turns(case, style="reuse")[0]
    await session.execute(f"{source}\n{call.replace('complete_task()', '')}\n{call}")
    assert session.run_tests()["nothing_else"] is False


async def test_changes_that_miss_the_goal_are_worth_nothing():
    session = await WORLD.open(_task("pay"))
    case = WORLD.case(_task("pay"))
    asked = {value for part in case.parts for value in part.values.values()}
    free = next(row for row in case.state["people"] if row["name"] not in asked)
    done = await session.execute(f"apis.contacts.relocate('{free['id']}', 'elsewhere')\ncomplete_task()")
    assert (done.error, done.completed, await session.score()) == (None, True, 0.0)


async def test_an_answer_must_be_right_and_only_the_first_counts():
    task = _task("where")
    case = WORLD.case(task)
    right = checks.goals(case).answer
    assert right is not None
    for answer, passes in ((right, True), (f" {right} ", True), ("atlantis", False)):
        session = await WORLD.open(task)
        await session.execute(f"complete_task('{answer}')")
        assert session.run_tests()["answer"] is passes
        assert await session.score() == (0.5 if passes else 0.0)  # answer and completed; nothing was changed
    second = await session.execute(f"complete_task('{right}')")
    assert second.error == "RuntimeError: complete_task: the task has been completed already"
    assert await session.score() == 0.0


async def test_sessions_of_one_task_do_not_see_each_other():
    task = _task("star")
    first, second = await asyncio.gather(WORLD.open(task), WORLD.open(task))
    await first.execute("mine = 1\nfor p in apis.contacts.show():\n    apis.contacts.star(p['id'])")
    shown = await second.execute("print([p['starred'] for p in apis.contacts.show()])\nprint(mine)")
    assert shown.output == "['no', 'no', 'no', 'no', 'no']\nNameError: name 'mine' is not defined\n"
    assert all(row["starred"] == "no" for row in WORLD.case(task).state["people"])


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("apis.wallet.pay(5, 'two')", "TypeError: wallet.pay: parameter 'person' must be a string, not int"),
        ("apis.wallet.save(amount=None)", "TypeError: wallet.save: parameter 'amount' must be a string, not NoneType"),
        (
            "apis.wallet.pay('x')",
            "TypeError: wallet.pay: missing a required argument: 'amount'; "
            "call it as wallet.pay(person: str, amount: str) -> None",
        ),
        ("apis.contacts.find('nobody')", "LookupError: contacts.find: there is no person with name 'nobody'"),
        ("apis.contacts.fetch('x')", "AttributeError: module 'apis.contacts' has no attribute 'fetch'"),
        ("complete_task(3)", "TypeError: complete_task: parameter 'answer' must be a string, not int"),
        (
            "apis.calendar.book(apis.contacts.show()[0]['id'], 'today')",
            "LookupError: calendar.book: day must be one of monday, tuesday, wednesday, thursday, friday, saturday, "
            "sunday, not 'today'",
        ),
    ],
)
async def test_wrong_calls_come_back_with_the_api_and_the_parameter(code: str, error: str):
    session = await WORLD.open(ALL[0])
    done = await session.execute(f"print('before')\n{code}")
    assert (done.error, done.output) == (error, f"before\n{error}\n")
    assert await session.score() == 0.0


async def test_documentation_can_be_looked_up_from_code():
    session = await WORLD.open(ALL[0])
    doc = await session.execute("print(apis.api_docs.show_api_doc('wallet', 'pay'))")
    assert doc.output == (
        "{'call': 'apis.wallet.pay(person: str, amount: str) -> None', "
        "'description': 'Pay coins to the person with this id.'}\n"
    )
    everything = await session.execute(
        "for app in apis.api_docs.show_app_descriptions():\n"
        "    for api in apis.api_docs.show_api_descriptions(app['name']):\n"
        "        assert app['description'] and api['description']\n"
        "        assert apis.api_docs.show_api_doc(app['name'], api['name'])['call']"
    )
    assert everything.error is None
    assert "api_docs.show_api_doc" in WORLD.overview


def test_more_scenarios_than_compositions_and_unknown_names_are_refused():
    with pytest.raises(ValueError, match=r"train \+ dev \+ test: 1048 scenarios asked for, 315 compositions exist"):
        MiniWorld(train=1000)
    with pytest.raises(ValueError, match="'training' is none of train, dev, test, challenge"):
        WORLD.tasks("training")
    with pytest.raises(ValueError, match="not of this world"):
        WORLD.case(MiniWorld(seed=5).tasks("train")[0])
