"""The validation gate: who is tested against whom, and when a candidate is kept."""

import re
from dataclasses import replace
from typing import Any

import pytest
import toy
from scripted_model import ScriptedModel

from skill_evolution.grse.gate import Gate, GateResult, Score, mean_score
from skill_evolution.grse.rollouts import Trajectory
from skill_evolution.models.base import ModelError, Request, Sampling
from skill_evolution.models.ledger import Ledger, RecordedModel
from skill_evolution.skills import SkillLibrary
from skill_evolution.teams.team import Call, Limits

QUESTIONS = toy.benchmark(validation=4).splits["validation"]
BASE = toy.libraries((toy.skill("one"),), (toy.skill("two"),))
FIRST, SECOND = toy.skill("new-one"), toy.skill("new-two")


def with_candidates(*agents: str) -> dict[str, SkillLibrary]:
    new = {"agent_1": FIRST, "agent_2": SECOND}
    return {a: library.with_skill(new[a]) if a in agents else library for a, library in BASE.items()}


def versions(request: Request) -> str:
    """Which of the two new skills the answerer's request shows signs of ("1", "2", "12" or "")."""
    seen = "\n".join(m.content for m in request.messages)
    return ("1" if "from new-one" in seen else "") + ("2" if "new-two" in seen else "")


def actor(rewards: dict[str, float], fail: Any = lambda request: False) -> ScriptedModel:
    """Answers so many of the validation questions rightly, by the libraries that the team has."""

    def rule(request: Request) -> Any:
        if fail(request):
            return ModelError("out of order")
        system, user = request.messages[0].content, request.messages[-1].content
        if "# Role: finder" in system:
            return f"<handover>from {'new-one' if 'new-one' in system else 'old'}</handover>"
        number = int(re.findall(r"box (\d+)\?", user)[0])
        right = number < round(rewards[versions(request)] * len(QUESTIONS))
        return f"<answer>{toy.COLOURS[number % 5] if right else 'grey'}</answer>"

    return ScriptedModel(rule)


async def gate(
    rewards: dict[str, float], candidates: dict[str, SkillLibrary], *, delta: float = 0.03, **options: Any
) -> GateResult:
    call = Call(actor(rewards, **options), Sampling(temperature=0), "validation/seed0", Limits())
    return await Gate(toy.TEAM, toy.benchmark(), delta).run(BASE, candidates, QUESTIONS, call)


def accepted(result: GateResult) -> list[str]:
    return [agent for agent, outcome in result.outcomes.items() if outcome.accepted]


def row(reward: float | None) -> Trajectory:
    """A validation row with a reward, or one that failed."""
    if reward is None:
        return Trajectory(toy.question(1), 0, error="gone")
    return Trajectory(toy.question(1), 0, toy.execution("x"), reward)


def test_only_rows_that_finished_under_both_are_compared():
    # by the means alone the candidate would be worse (0.5 against 1.0); on the one common row they are equal
    judge = Gate(toy.TEAM, toy.benchmark(), 0.03)
    assert judge._outcome([row(None), row(1.0)], [row(0.0), row(1.0)]).accepted
    assert not judge._outcome([row(None), row(1.0)], [row(1.0), row(None)]).accepted


@pytest.mark.parametrize(
    ("base", "score", "kept"),
    [
        (0.5, 0.47, True),
        (0.5, 0.4699, False),
        (0.5, 0.5, True),
        (0.53, 0.5, True),  # in floats 0.53 - 0.03 is 0.5
        (0.04, 0.01, True),  # in floats 0.04 - 0.03 is more than 0.01
        (0.135, 0.105, True),
        (0.1 + 0.2, 0.27, True),
        (0.0, 0.0, True),
        (None, 1.0, False),
        (0.5, None, False),
        (None, None, False),
    ],
)
def test_a_candidate_is_kept_down_to_delta_below_the_base(base: float | None, score: float | None, kept: bool):
    outcome = Gate(toy.TEAM, toy.benchmark(), 0.03)._outcome([row(base)], [row(score)])
    assert (outcome.changed, outcome.accepted) == (True, kept)


@pytest.mark.parametrize("rows", [40, 100, 200, 308])
def test_every_pair_of_counts_that_is_exactly_delta_apart_is_kept(rows: int):
    judge = Gate(toy.TEAM, toy.benchmark(), 0.25)
    apart = rows // 4
    for right in range(apart, rows + 1):
        base, kept, lost = ([row(float(i < n)) for i in range(rows)] for n in (right, right - apart, right - apart - 1))
        assert judge._outcome(base, kept).accepted
        assert right == apart or not judge._outcome(base, lost).accepted


def test_a_row_that_failed_is_missing_and_not_0():
    rows = [Trajectory(toy.question(1), 0, toy.execution("x"), reward) for reward in (1.0, 0.5)]
    rows += [Trajectory(toy.question(1), 0, error="gone")]
    assert mean_score(rows) == Score(0.75, 1)
    assert mean_score(rows[2:]) == Score(None, 1)
    assert mean_score([]) == Score(None, 0)


async def test_one_agents_candidate_at_a_time_and_the_accepted_ones_assembled():
    # alone both are better than the base, together they are worst: acceptance stays per agent (paper 3.4)
    rewards = {"": 0.5, "1": 0.75, "2": 1.0, "12": 0.25}
    result = await gate(rewards, with_candidates("agent_1", "agent_2"))
    assert accepted(result) == ["agent_1", "agent_2"]
    assert result.scores() == {
        "base": 0.5,
        "candidates": {"agent_1": 0.75, "agent_2": 1.0},
        "assembled": 0.25,
        "failed": 0,
    }
    assert {a: lib.names() for a, lib in result.libraries.items()} == {
        "agent_1": ("one", "new-one"),
        "agent_2": ("two", "new-two"),
    }


async def test_a_rejected_candidate_goes_and_the_other_agents_stays():
    result = await gate({"": 0.5, "1": 0.25, "2": 0.5}, with_candidates("agent_1", "agent_2"))
    assert accepted(result) == ["agent_2"]
    assert (result.assembled.mean, result.libraries["agent_1"]) == (0.5, BASE["agent_1"])
    assert result.libraries["agent_2"].names() == ("two", "new-two")


async def test_nothing_accepted_leaves_the_base_with_its_score():
    result = await gate({"": 0.5, "1": 0.25, "2": 0.25}, with_candidates("agent_1", "agent_2"))
    assert accepted(result) == []
    assert (result.libraries, result.assembled) == (BASE, result.base)


async def test_a_library_without_a_change_of_text_is_no_candidate():
    candidates = {a: SkillLibrary(a, tuple(replace(s, utility=0.9) for s in lib)) for a, lib in BASE.items()}
    result = await gate({"": 0.5}, candidates)
    assert [(o.changed, o.accepted, o.score) for o in result.outcomes.values()] == [(False, False, None)] * 2
    assert result.libraries == BASE


async def test_failed_rows_are_counted_and_left_out():
    def fails(request: Request) -> bool:
        return "validation-0/" in request.sample_id and "new-one" in request.messages[0].content

    result = await gate({"": 0.5, "1": 0.75}, with_candidates("agent_1"), fail=fails)
    # of questions 0 to 3 the candidate gets 0, 1 and 2 right; 0 failed: 2 of 3
    assert result.outcomes["agent_1"].score == Score(pytest.approx(2 / 3), 1)  # type: ignore[arg-type]
    assert result.scores()["failed"] == 2  # the assembled team is the candidate's, and fails in the same row


@pytest.mark.parametrize("marker", ["new-one", "# Role: finder"])
async def test_without_a_finished_row_nothing_is_accepted(marker: str):
    result = await gate(
        {"": 0.0, "1": 1.0}, with_candidates("agent_1"), fail=lambda request: marker in request.messages[0].content
    )
    assert accepted(result) == []
    assert result.libraries == BASE


async def test_what_the_unchanged_agent_does_is_asked_once():
    ledger = Ledger(":memory:")
    model = actor({"": 0.5, "1": 0.5, "2": 0.5, "12": 0.5})
    call = Call(RecordedModel(model, ledger), Sampling(temperature=0), "validation/seed0", Limits())
    await Gate(toy.TEAM, toy.benchmark(), 0.03).run(BASE, with_candidates("agent_2"), QUESTIONS, call)
    # 4 questions: the finder once each for base and candidate together, the answerer once for each of them;
    # the assembled team is the candidate's
    assert len(model.requests) == 4 + 2 * 4
    ledger.close()
