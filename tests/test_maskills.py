"""The critic of single trajectories: what it is shown and what of its reply counts."""

import json
from typing import Any

import pytest
import toy

from skill_evolution.config import ConfigError
from skill_evolution.critic import question_key
from skill_evolution.feedback import Credit, Feedback, Need
from skill_evolution.methods import METHODS, make_evolution
from skill_evolution.methods.maskills import TrajectoryCritic, TrajectoryReply
from skill_evolution.models.base import Completion, ModelError

GROUP = toy.group(0.0, used={"agent_1": ("find",)})
KEY = question_key(GROUP.question)
LIBRARIES = toy.libraries((toy.skill("find"), toy.skill("look", body="Look.")), (toy.skill("short"),))
CREDIT = {
    "agent": "agent_1",
    "skill": "find",
    "contribution": "harmful",
    "utility_delta": -0.4,
    "evidence": "missed it",
    "suggested_edit": "search again",
    "redundant_with": ["look"],
    "conflict_with": [],
}
RESIDUAL = {"agent": "agent_2", "summary": "wrong", "needs_new_skill": True, "missing_capability": "check the colour"}


async def judge(reply: Any) -> Feedback:
    caller, _ = toy.caller(reply)
    return await TrajectoryCritic(toy.TEAM)(GROUP, LIBRARIES, caller)


async def test_credits_and_needs_are_taken_over_as_they_are():
    feedback = await judge({"credits": [CREDIT], "residuals": [RESIDUAL]})
    assert feedback.credits == (Credit(KEY, "agent_1", "find", -0.4, "harmful", "search again", ("look",)),)
    assert feedback.needs == (Need(KEY, "agent_2", "unspecified", "check the colour"),)
    assert feedback.rejections == ()


@pytest.mark.parametrize(
    "change", [{"needs_new_skill": False}, {"missing_capability": None}, {"needs_new_skill": False, "agent": "agent_1"}]
)
async def test_a_need_is_one_that_asks_for_a_skill_and_names_what_is_missing(change: dict[str, Any]):
    feedback = await judge({"residuals": [{**RESIDUAL, **change}]})
    assert (feedback.needs, feedback.rejections) == ((), ())


@pytest.mark.parametrize(
    ("field", "item", "reason"),
    [
        ("credits", {**CREDIT, "agent": "agent_3"}, "unknown_agent"),
        ("credits", {**CREDIT, "skill": "fly"}, "unknown_skill"),
        ("credits", {**CREDIT, "redundant_with": ["fly"]}, "unknown_skill"),
        # a known fault of MASkills' code, avoided here: a skill that nobody named is credited
        ("credits", {**CREDIT, "skill": "look", "redundant_with": []}, "not_used"),
        ("credits", {**CREDIT, "agent": "agent_2", "skill": "short", "redundant_with": []}, "not_used"),
        ("credits", {**CREDIT, "utility_delta": -1.01}, "schema"),
        ("credits", {**CREDIT, "utility_delta": True}, "schema"),
        ("credits", {**CREDIT, "contribution": "great"}, "schema"),
        ("residuals", {**RESIDUAL, "agent": "agent_0"}, "unknown_agent"),
        ("residuals", {**RESIDUAL, "missing_capability": "    "}, "schema"),
    ],
)
async def test_a_bad_item_is_dropped_with_its_reason(field: str, item: dict[str, Any], reason: str):
    good = {"credits": [CREDIT], "residuals": [RESIDUAL]}
    feedback = await judge({**good, field: [*good[field], item]})
    assert [r.reason for r in feedback.rejections] == [reason]
    assert (len(feedback.credits), len(feedback.needs)) == (1, 1)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Completion("{}", finish_reason="length"), "cut_off"),
        ("credit where it is due", "not_json"),
        (ModelError("gone"), "call_failed"),
        ({"credits": [CREDIT] * 1000}, "too_many_items"),
        ({"diagnoses": []}, "schema"),
    ],
)
async def test_a_reply_that_cannot_be_used_changes_nothing(reply: Any, reason: str):
    feedback = await judge(reply)
    assert ([r.reason for r in feedback.rejections], feedback.accepted) == ([reason], 0)


async def test_it_is_shown_the_reward_and_the_use_but_no_advantage():
    caller, model = toy.caller({})
    await TrajectoryCritic(toy.TEAM)(GROUP, LIBRARIES, caller)
    (request,) = model.requests
    (rollout,) = json.loads(request.messages[1].content)["rollouts"]
    assert request.schema == TrajectoryReply.model_json_schema()
    assert rollout["reward"] == 0.0
    assert rollout["skills_used"] == {"agent_1": ["find"], "agent_2": []}
    assert "advantage" not in rollout


def test_groups_are_refused(tmp_path):
    config = toy.config(tmp_path, method="maskills", group_size=4)
    models: Any = None
    with pytest.raises(ConfigError, match="group_size must be 1, not 4"):
        make_evolution(config, toy.benchmark(), toy.TEAM, models)
    evolution = make_evolution(config.model_copy(update={"group_size": 1}), toy.benchmark(), toy.TEAM, models)
    assert isinstance(evolution.critic, TrajectoryCritic)
    assert set(METHODS) >= {"grse", "maskills", "empty"}
