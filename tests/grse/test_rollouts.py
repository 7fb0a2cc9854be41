"""Groups of rollouts and their advantages, by hand."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_model import ScriptedModel

from skill_evolution.benchmarks.base import Question, QuestionSet
from skill_evolution.grse.rollouts import Group, Trajectory, advantages, run_all, run_group
from skill_evolution.models.base import ModelError, Request, Sampling
from skill_evolution.teams.team import Call, Role, Team

TEAM = Team("solo", (Role("agent_1", "Answer.", answers=True),))
QUESTIONS = [Question(f"q{n}", f"Question {n}?", "yes", "any") for n in range(3)]
BENCHMARK = QuestionSet(
    "toy",
    {"train": QUESTIONS, "validation": [], "test": []},
    score=lambda question, answer: {"yes": 1.0, "half": 0.5}.get(answer, 0.0),
)


def test_advantages_by_hand() -> None:
    assert advantages([1.0, 0.0, 0.0, 0.0]) == (0.75, -0.25, -0.25, -0.25)
    assert advantages([1.0, 0.5, 0.0]) == (0.5, 0.0, -0.5)
    assert advantages([0.25]) == (0.0,)
    assert advantages([]) == ()


def test_rewards_that_differ_by_rounding_only_are_equal() -> None:
    rewards = [0.1 + 0.2, 0.3, 0.3, 0.3]
    assert len(set(rewards)) == 2
    for std in (False, True):
        assert advantages(rewards, divide_by_std=std) == (0.0, 0.0, 0.0, 0.0)


def test_a_missing_reward_is_not_a_reward_of_zero() -> None:
    assert advantages([1.0, None, 0.0]) == (0.5, None, -0.5)
    assert advantages([0.4, None, 0.4]) == (0.0, None, 0.0)
    assert advantages([None, None]) == (None, None)


def test_division_by_the_standard_deviation_by_hand() -> None:
    # rewards 1, 0, 0, 0: mean 1/4, population variance 3/16
    scale = math.sqrt(3 / 16) + 1e-4
    expected = (0.75 / scale, -0.25 / scale, -0.25 / scale, -0.25 / scale)
    assert advantages([1.0, 0.0, 0.0, 0.0], divide_by_std=True) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("gap", [1e-12, 9e-10, 2e-9, 1e-7, 1e-5])
def test_near_equal_rewards_do_not_explode(gap: float) -> None:
    # The unguarded quotient is sqrt(3) for any gap; the guard keeps it at the order of gap / 1e-4.
    values = advantages([0.5 + gap, 0.5, 0.5, 0.5], divide_by_std=True)
    assert max(abs(v) for v in values if v is not None) <= gap / 1e-4


REWARDS = st.lists(st.none() | st.floats(0, 1), min_size=1, max_size=8)


@given(rewards=REWARDS, std=st.booleans())
def test_advantages_sum_to_zero_keep_the_order_and_leave_none_alone(rewards: list[float | None], std: bool) -> None:
    values = advantages(rewards, divide_by_std=std)
    assert [v is None for v in values] == [r is None for r in rewards]
    pairs = [(r, v) for r, v in zip(rewards, values, strict=True) if r is not None and v is not None]
    assert abs(sum(v for _, v in pairs)) < 1e-9
    assert all(abs(v) <= math.sqrt(len(pairs)) for _, v in pairs)
    ordered = sorted(pairs)
    assert all(low[1] <= high[1] for low, high in itertools.pairwise(ordered))


@given(rewards=st.lists(st.floats(0, 1), min_size=2, max_size=6))
def test_a_rollout_that_failed_changes_no_other_advantage(rewards: list[float]) -> None:
    assert advantages([*rewards, None])[:-1] == advantages(rewards)


def model(*replies: str | Exception) -> ScriptedModel:
    """A model whose reply goes by the rollout's number, the part of the sample_id before agent and turn."""
    return ScriptedModel(lambda r: replies[int(r.sample_id.split("/")[-3])])


def call(scripted: ScriptedModel) -> Call:
    return Call(scripted, Sampling(), "train/seed0/iteration1")


async def group(*replies: str | Exception, size: int = 4, std: bool = False) -> tuple[Group, list[Request]]:
    scripted = model(*replies)
    libraries = TEAM.empty_libraries()
    done = await run_group(TEAM, BENCHMARK, QUESTIONS[0], libraries, call(scripted), group_size=size, divide_by_std=std)
    return done, scripted.requests


async def test_a_group_has_g_rollouts_with_sample_ids_of_their_own() -> None:
    done, requests = await group("<answer>yes</answer>", "<answer>half</answer>", "<answer>no</answer>", "NO_ANSWER")
    assert [t.reward for t in done.trajectories] == [1.0, 0.5, 0.0, 0.0]
    assert done.advantages == (0.625, 0.125, -0.375, -0.375)
    assert done.mean_reward == 0.375
    assert not done.equal
    assert [r.sample_id for r in requests] == [f"train/seed0/iteration1/q0/{g}/agent_1/0" for g in range(4)]
    assert len({r.messages for r in requests}) == 1
    assert done.trajectories[3].execution is not None
    assert done.trajectories[3].execution.answer is None


async def test_a_failed_rollout_leaves_a_group_of_one_less() -> None:
    done, _ = await group("<answer>yes</answer>", ModelError("timed out"), "<answer>no</answer>", "<answer>no</answer>")
    assert [t.reward for t in done.trajectories] == [1.0, None, 0.0, 0.0]
    assert done.trajectories[1].error == "timed out"
    assert done.trajectories[1].execution is None
    assert [t.rollout for t in done.finished] == [0, 2, 3]
    assert done.mean_reward == pytest.approx(1 / 3)
    assert done.advantages == pytest.approx((2 / 3, None, -1 / 3, -1 / 3))


async def test_a_group_in_which_all_failed_has_no_mean() -> None:
    done, _ = await group(*[ModelError("down")] * 4)
    assert done.finished == ()
    assert done.mean_reward is None
    assert done.advantages == (None,) * 4


async def test_equal_groups_are_told_apart() -> None:
    done, _ = await group(*["<answer>half</answer>"] * 4)
    assert done.equal
    assert done.advantages == (0.0,) * 4
    one, _ = await group("<answer>half</answer>", size=1)
    assert one.equal
    assert one.advantages == (0.0,)


async def test_the_standard_deviation_is_an_option() -> None:
    done, _ = await group(*["<answer>yes</answer>", "<answer>no</answer>"] * 2, std=True)
    assert done.advantages == pytest.approx([0.5 / 0.5001, -0.5 / 0.5001] * 2)


async def test_another_exception_than_a_failed_call_stops_the_run() -> None:
    with pytest.raises(AssertionError, match="no rule"):
        await run_group(
            TEAM, BENCHMARK, QUESTIONS[0], TEAM.empty_libraries(), call(ScriptedModel()), group_size=2
        )  # fmt: skip


async def test_all_questions_once_in_their_order() -> None:
    scripted = ScriptedModel(lambda r: ModelError("down") if "/q1/" in r.sample_id else "<answer>yes</answer>")
    done = await run_all(TEAM, BENCHMARK, QUESTIONS, TEAM.empty_libraries(), call(scripted))
    assert [(t.question.id, t.reward) for t in done] == [("q0", 1.0), ("q1", None), ("q2", 1.0)]
    assert isinstance(done[1], Trajectory)
