"""Expected values are computed by hand from FACTS B; each table's comment says how."""

import pytest
from scripted import skill, task

from skill_evolution.sage.agent.chains import Chain
from skill_evolution.sage.agent.code_skills import CodeLibrary
from skill_evolution.sage.agent.episode import Episode
from skill_evolution.sage.agent.rewards import REWARDS, Outcome, group_advantages, outcomes


def done(*used_from: int, used: bool | None = None) -> Outcome:
    """A success that used skills of these tasks."""
    return Outcome(1.0, success=True, used=bool(used_from) if used is None else used, used_from=frozenset(used_from))


def partly(score: float, *used_from: int) -> Outcome:
    return Outcome(score, used=bool(used_from), used_from=frozenset(used_from))


SILENT = Outcome(0.5, no_code=True)
FAILED = Outcome(0.0, failed=True)

TABLE = [
    # tasks                              outcome        chain        skill-integrated
    ([partly(0.25)], [0.25], [0.25], [0.25]),
    ([done()], [1], [2], [1]),
    ([done(used=True)], [1], [2], [2]),  # a skill from the library that the chain began with
    # K = 2: R1 = r1 + [r1 = 1][r2 = 1][skill of task 1 used], R2 = r2 + [r2 = 1][skill used]
    ([done(), done(0)], [1, 1], [2, 2], [2, 2]),
    ([done(), done()], [1, 1], [2, 2], [1, 1]),
    ([done(), done(used=True)], [1, 1], [2, 2], [1, 2]),  # used, but none of task 1
    ([done(), partly(0.5, 0)], [1, 0.5], [1, 0.5], [1, 0.5]),
    ([partly(0.5), done(0)], [0.5, 1], [0.5, 1], [0.5, 2]),
    ([partly(0.0), partly(0.75, 0)], [0, 0.75], [0, 0.75], [0, 0.75]),
    ([done(), SILENT], [1, -1], [1, -1], [1, -1]),
    ([SILENT, done(0)], [-1, 1], [-1, 1], [-1, 2]),
    ([SILENT, SILENT], [-1, -1], [-1, -1], [-1, -1]),
    ([done(), FAILED], [1, None], [1, None], [1, None]),
    ([FAILED, done()], [None, 1], [None, 1], [None, 1]),
    # K = 3: + [success, earlier skill used] + [success, a later success used a skill made here]
    ([done(), done(0), done(0, 1)], [1, 1, 1], [2, 2, 2], [2, 3, 2]),
    ([done(), done(0), done(0)], [1, 1, 1], [2, 2, 2], [2, 2, 2]),  # one bonus, though two later tasks used it
    ([done(), partly(0.5, 0), done(0)], [1, 0.5, 1], [1, 0.5, 1], [2, 0.5, 2]),
    ([done(), done(), partly(0.9, 0, 1)], [1, 1, 0.9], [1, 1, 0.9], [1, 1, 0.9]),
    ([partly(0.5), done(0), done(1)], [0.5, 1, 1], [0.5, 1, 1], [0.5, 3, 2]),
    ([done(), SILENT, done(0)], [1, -1, 1], [1, -1, 1], [2, -1, 2]),
    ([done(), FAILED, done(0)], [1, None, 1], [1, None, 1], [2, None, 2]),
]


@pytest.mark.parametrize("name", ["outcome", "chain", "skill_integrated"])
@pytest.mark.parametrize("row", range(len(TABLE)))
def test_rewards_by_hand(name: str, row: int):
    tasks, *expected = TABLE[row]
    assert REWARDS[name](tasks) == expected[list(REWARDS).index(name)]


def episode(n: int, *defines: str, used: tuple[str, ...] = (), error: str | None = None) -> Episode:
    made = tuple(skill(f"def {name}(): pass", task(n)) for name in defines)
    failed = {"score": 0.0, "ended": "error", "error": error} if error else {}
    values = {"score": 1.0, "completed": True, "ended": "completed", "defined": made, "used": frozenset(used)}
    return Episode(task(n), f"k/{n}", **{**values, **failed})


def test_a_skill_belongs_to_the_last_task_that_defined_it():
    episodes = (
        episode(1, "f", "g"),
        episode(2, "f", used=("g",)),
        episode(3, "g", error="WorldError: x"),  # what a failed row defined isn't in the library
        episode(4, used=("f", "g")),
        episode(5, used=("h",)),  # from the library that the chain began with
    )
    found = outcomes(Chain("a", 0, episodes, CodeLibrary()))
    assert [set(one.used_from) for one in found] == [set(), {0}, set(), {0, 1}, set()]
    assert [one.used for one in found] == [False, True, False, True, True]
    assert [one.failed for one in found] == [False, False, True, False, False]
    # R1: 1 + reused by tasks 2 and 4; R2: 1 + used + reused by task 4; R4, R5: 1 + used
    assert REWARDS["skill_integrated"](found) == [2, 3, None, 2, 2]


def test_what_a_task_defines_itself_is_not_its_own_earlier_skill():
    found = outcomes(Chain("a", 0, (episode(1, "f", used=("f",)), episode(2)), CodeLibrary()))
    assert found[0].used_from == frozenset()


def test_all_tests_pass_but_never_said_done_earns_its_score_and_no_bonus():
    open_end = Episode(task(2), "k", score=1.0, ended="turns", used=frozenset({"f"}))
    found = outcomes(Chain("a", 0, (episode(1, "f"), open_end), CodeLibrary()))
    assert REWARDS["skill_integrated"](found) == [1, 1]


def test_advantages_are_reward_minus_the_groups_mean():
    assert group_advantages([1, 0, 1, 0], ["a"] * 4) == [0.5, -0.5, 0.5, -0.5]


def test_advantages_of_mixed_groups_by_hand():
    groups = [("a", 0), ("b", 0), ("a", 0), ("a", 1), ("b", 0), ("a", 1), ("c", 0), ("d", 0), ("d", 0)]
    rewards = [2.0, 0.5, -1.0, 1.0, 0.5, None, 3.0, None, None]
    # (a, 0): mean .5; (b, 0): equal; (a, 1) and (c, 0): one reward; (d, 0): none
    assert group_advantages(rewards, groups) == [1.5, 0.0, -1.5, 0.0, 0.0, None, 0.0, None, None]


def test_a_failed_row_is_in_no_mean():
    assert group_advantages([1, None, 0, None], ["a"] * 4) == [0.5, None, -0.5, None]


def test_rewards_that_differ_by_rounding_only_are_equal():
    assert group_advantages([0.1 + 0.2, 0.3], ["a", "a"]) == [0.0, 0.0]


def test_every_reward_needs_its_group():
    with pytest.raises(ValueError, match="zip"):
        group_advantages([1.0], [])
