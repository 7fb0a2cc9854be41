"""The group-relative critic: what of a reply counts, and why the rest does not."""

import json
from typing import Any

import pytest
import toy
from hypothesis import given
from hypothesis import strategies as st

from skill_evolution.checks import Checker
from skill_evolution.critic import GroupCritic, GroupReply, PlainReply, question_key, read_reply
from skill_evolution.feedback import Credit, Feedback, Need
from skill_evolution.models.base import Completion, ModelError
from skill_evolution.models.scripted import ScriptedModel

USED = {"agent_1": ("find",), "agent_2": ("short",)}
GROUP = toy.group(1.0, None, 0.0, used=USED)
KEY = question_key(GROUP.question)
LIBRARIES = toy.libraries((toy.skill("find"), toy.skill("look", body="Look.")), (toy.skill("short"),))
CITED = [{"rollout": 3, "step": 2}]
QUOTED = [{"rollout": 3, "step": 2, "quote": "Box 1 is blue"}]
CREDIT = {"agent": "agent_1", "skill": "find", "credit": -0.5, "citations": CITED}
DIAGNOSIS = {
    "failure_type": "evidence_dropped",
    "agent": "agent_1",
    "skill": "find",
    "citations": QUOTED,
    "action": "refine",
    "suggestion": "hand over all",
    "redundant_with": [],
}
NEED = {**DIAGNOSIS, "failure_type": "retrieval_miss", "skill": None, "action": "induce", "suggestion": "search again"}


async def judge(reply: Any, *, libraries: Any = LIBRARIES, group: Any = GROUP, **options: Any) -> Feedback:
    caller, _ = toy.caller(reply)
    return await GroupCritic(toy.TEAM, **options)(group, libraries, caller)


def reasons(feedback: Feedback) -> list[str]:
    return [rejection.reason for rejection in feedback.rejections]


WHOLE = json.dumps({"credits": [CREDIT], "diagnoses": [DIAGNOSIS, NEED]})


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Completion(WHOLE, finish_reason="length"), "cut_off"),
        (Completion(WHOLE[:-40], finish_reason="length"), "cut_off"),
        (WHOLE[:-40], "not_json"),
        ("", "not_json"),
        ("Here you are: " + WHOLE, "not_json"),
        (f"[{WHOLE}]", "not_json"),
        ("null", "not_json"),
        ("[" * 200_000, "not_json"),
        ('{"credits":' * 200_000, "not_json"),
        ('{"credits": [' + "1" * 5000 + "]}", "not_json"),  # Python refuses integers of so many digits
        (ModelError("no route"), "call_failed"),
    ],
)
async def test_a_reply_that_cannot_be_read_is_one_rejection_and_nothing_else(reply: Any, reason: str):
    feedback = await judge(reply)
    assert (reasons(feedback), feedback.accepted) == ([reason], 0)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


BAD_ITEMS = [
    ("credits", {**CREDIT, "agent": "agent_7"}, "unknown_agent"),
    ("credits", {**CREDIT, "skill": "fly"}, "unknown_skill"),
    ("credits", {**CREDIT, "skill": "short"}, "unknown_skill"),
    ("credits", {**CREDIT, "citations": [{"rollout": 2, "step": 1}]}, "unknown_rollout"),
    ("credits", {**CREDIT, "citations": [{"rollout": 1, "step": 8}]}, "unknown_step"),
    ("credits", {**CREDIT, "citations": [{"rollout": 1, "step": 3}]}, "step_of_other_agent"),
    ("credits", {**CREDIT, "citations": []}, "no_citation"),
    ("credits", {**CREDIT, "citations": CITED * 9}, "schema"),
    ("credits", {**CREDIT, "credit": 1.5}, "schema"),
    ("credits", {**CREDIT, "credit": float("nan")}, "schema"),
    ("credits", {**CREDIT, "credit": float("inf")}, "schema"),
    ("credits", {**CREDIT, "credit": True}, "schema"),
    ("credits", {**CREDIT, "credit": "0.5"}, "schema"),
    ("credits", {**CREDIT, "why": "because"}, "schema"),
    ("credits", {**CREDIT, "skill": "x" * 65}, "schema"),
    ("credits", {**CREDIT, "skill": "find\ud800"}, "schema"),
    ("credits", {**CREDIT, "citations": nested(300)}, "schema"),
    ("credits", "find was good", "schema"),
    ("credits", None, "schema"),
    ("diagnoses", {**NEED, "agent": "agent_9"}, "unknown_agent"),
    ("diagnoses", {**NEED, "failure_type": "bad_luck"}, "schema"),
    ("diagnoses", {**NEED, "failure_type": "answer_format"}, "action_not_allowed"),
    ("diagnoses", {**NEED, "failure_type": "other"}, "action_not_allowed"),
    ("diagnoses", {**NEED, "suggestion": "     "}, "schema"),
    ("diagnoses", {**DIAGNOSIS, "citations": [{**QUOTED[0], "quote": "Box 1 is red"}]}, "quote_not_found"),
    ("diagnoses", {**DIAGNOSIS, "citations": [{**QUOTED[0], "quote": "    "}]}, "schema"),
    ("diagnoses", {**DIAGNOSIS, "citations": CITED}, "schema"),  # no quotation
    ("diagnoses", {**DIAGNOSIS, "citations": []}, "schema"),
    ("diagnoses", {**DIAGNOSIS, "failure_type": "answer_format"}, "action_not_allowed"),
    ("diagnoses", {**DIAGNOSIS, "action": "induce"}, "action_not_allowed"),
    ("diagnoses", {**DIAGNOSIS, "skill": "look", "action": "prune"}, "not_used_where_cited"),
    ("diagnoses", {**DIAGNOSIS, "action": "delete"}, "schema"),
    ("diagnoses", {**DIAGNOSIS, "skill": "fly"}, "unknown_skill"),
    ("diagnoses", {**DIAGNOSIS, "action": "consolidate", "redundant_with": ["fly"]}, "unknown_skill"),
    ("diagnoses", {**DIAGNOSIS, "action": "consolidate", "redundant_with": []}, "no_partner"),
    ("diagnoses", {**DIAGNOSIS, "action": "consolidate", "redundant_with": ["find"]}, "no_partner"),
]


@pytest.mark.parametrize(("field", "item", "reason"), BAD_ITEMS)
async def test_a_bad_item_is_dropped_with_its_reason_and_the_good_ones_beside_it_stay(
    field: str, item: Any, reason: str
):
    good = {"credits": [CREDIT], "diagnoses": [DIAGNOSIS, NEED]}
    alone = await judge({field: [item]})
    assert (reasons(alone), alone.accepted) == ([reason], 0)
    beside = await judge({**good, field: [*good[field], item]})
    assert (reasons(beside), beside.accepted) == ([reason], 3)


async def test_without_a_skill_to_change_a_suggestion_is_evidence_for_a_new_one():
    feedback = await judge({"diagnoses": [{**DIAGNOSIS, "skill": None}]})
    assert feedback.needs == (Need(KEY, "agent_1", "evidence_dropped", "hand over all"),)


async def test_a_rollout_with_the_full_reward_shows_no_failure():
    assert reasons(await judge({"diagnoses": [{**NEED, "citations": [{**QUOTED[0], "rollout": 1}]}]})) == ["no_failure"]


async def test_consolidating_in_a_library_of_one_skill_is_not_allowed():
    item = {**DIAGNOSIS, "failure_type": "reasoning_error", "agent": "agent_2", "skill": "short"}
    item |= {"action": "consolidate", "citations": [{"rollout": 3, "step": 3, "quote": "grey"}]}
    assert reasons(await judge({"diagnoses": [item]})) == ["action_not_allowed"]


async def test_fields_that_the_schema_has_not_and_lists_that_are_none_are_counted():
    feedback = await judge({"verdict": "good", "credits": {"find": 1}, "diagnoses": [DIAGNOSIS]})
    assert reasons(feedback) == ["schema"] * 2
    assert len(feedback.diagnoses) == 1


async def test_a_list_beyond_its_bound_is_rejected_as_a_whole_and_the_other_lists_stay():
    feedback = await judge({"credits": [CREDIT] * 1000, "diagnoses": [NEED]})
    assert reasons(feedback) == ["too_many_items"]
    assert (len(feedback.credits), len(feedback.needs)) == (0, 1)
    at_bound = await judge({"credits": [CREDIT] * 24})
    assert (len(at_bound.credits), reasons(at_bound)) == (24, [])


async def test_what_passes_becomes_feedback():
    feedback = await judge({"credits": [CREDIT], "diagnoses": [DIAGNOSIS, NEED]})
    assert feedback.credits == (Credit(KEY, "agent_1", "find", -0.5, "harmful", edit="hand over all"),)
    assert feedback.needs == (Need(KEY, "agent_1", "retrieval_miss", "search again"),)
    assert feedback.diagnoses[0].quotes == ("Box 1 is blue",)
    assert (feedback.question, feedback.category) == (KEY, "odd")


@pytest.mark.parametrize(
    ("credit", "action", "contribution"),
    [
        (-0.5, "prune", "harmful"),
        (0.0, "prune", "harmful"),
        (None, "prune", "harmful"),  # diagnosed but not credited: a credit without value carries the diagnosis
        (None, "refine", "neutral"),
        (0.5, "prune", "helped"),  # the comparison of rollouts says otherwise
        (0.0, "refine", "neutral"),
        (0.5, "consolidate", "redundant"),
        (0.5, "none", "helped"),
    ],
)
async def test_a_diagnosis_tells_what_to_do_with_a_credited_skill(credit: float | None, action: str, contribution: str):
    item = {**DIAGNOSIS, "action": action, "redundant_with": ["look"] if action == "consolidate" else []}
    credits = [] if credit is None else [{**CREDIT, "credit": credit}]
    (found,) = (await judge({"credits": credits, "diagnoses": [item]})).credits
    assert (found.value, found.contribution) == (credit, contribution)
    assert found.edit == ("hand over all" if action == "refine" else None)
    assert found.redundant_with == (("look",) if action == "consolidate" else ())


async def test_a_diagnosis_without_action_says_nothing_about_its_skill():
    assert (await judge({"diagnoses": [{**DIAGNOSIS, "action": "none"}]})).credits == ()


async def test_the_request_shows_gold_answer_rewards_advantages_and_use_but_no_category():
    caller, model = toy.caller({})
    await GroupCritic(toy.TEAM)(GROUP, LIBRARIES, caller)
    (request,) = model.requests
    shown = json.loads(request.messages[1].content)
    assert request.schema == GroupReply.model_json_schema()
    assert "category" not in shown
    assert shown["gold_answer"] == "blue"
    # mean of 1 and 0 is 0.5; the rollout that did not finish is left out and keeps its number
    assert [(r["rollout"], r["reward"], r["advantage"]) for r in shown["rollouts"]] == [(1, 1.0, 0.5), (3, 0.0, -0.5)]
    assert shown["rollouts"][0]["skills_used"] == {"agent_1": ["find"], "agent_2": ["short"]}
    assert "Look." in request.messages[0].content
    assert request.sample_id == "place/train-1"


async def test_label_conditioning_shows_the_category_and_nothing_else_changes():
    plain, conditioned = toy.caller({}), toy.caller({})
    await GroupCritic(toy.TEAM)(GROUP, LIBRARIES, plain[0])
    await GroupCritic(toy.TEAM, label_conditioned=True)(GROUP, LIBRARIES, conditioned[0])
    (one,), (other,) = plain[1].requests, conditioned[1].requests
    assert json.loads(other.messages[1].content) == {**json.loads(one.messages[1].content), "category": "odd"}
    assert (one.messages[0], one.schema, one.sample_id) == (other.messages[0], other.schema, other.sample_id)


async def test_without_structured_diagnosis_only_credits_and_feedback_are_asked_for_and_read():
    caller, model = toy.caller(
        {
            "credits": [CREDIT],
            "feedback": [
                {"agent": "agent_1", "summary": "missed it", "missing_capability": "search again"},
                {"agent": "agent_2", "summary": "fine", "missing_capability": None},
            ],
            "diagnoses": [DIAGNOSIS],
        }
    )
    feedback = await GroupCritic(toy.TEAM, structured_diagnosis=False)(GROUP, LIBRARIES, caller)
    (request,) = model.requests
    assert request.schema == PlainReply.model_json_schema()
    assert set((request.schema or {})["properties"]) == {"credits", "feedback"}
    system = request.messages[0].content.split("# Team")[0]
    assert not any(word in system for word in ("diagnos", "Failure types", "Actions:", "quote"))
    assert feedback.needs == (Need(KEY, "agent_1", "unspecified", "search again"),)
    assert feedback.credits == (Credit(KEY, "agent_1", "find", -0.5, "harmful"),)
    assert (feedback.diagnoses, reasons(feedback)) == ((), ["schema"])


async def test_a_payload_that_cannot_fit_is_a_rejection_and_no_call():
    model = ScriptedModel(context_length=5_000)
    caller, _ = toy.caller()
    tight = type(caller)(model, caller.sampling, caller.sample_id)
    feedback = await GroupCritic(toy.TEAM)(GROUP, LIBRARIES, tight)
    assert (reasons(feedback), model.requests) == (["payload_too_long"], [])


async def test_every_failure_type_and_action_of_the_schema_is_explained_in_the_prompt():
    caller, model = toy.caller({})
    await GroupCritic(toy.TEAM)(GROUP, LIBRARIES, caller)
    system = model.requests[0].messages[0].content
    schema = json.dumps(GroupReply.model_json_schema())
    for name in ("retrieval_miss", "evidence_dropped", "reasoning_error", "answer_format", "wrong_abstention", "other"):
        assert name in system
        assert f'"{name}"' in schema
    for name in ("refine", "prune", "consolidate", "induce", "none"):
        assert name in system.split("Actions:")[1]


def test_the_same_question_has_one_key_and_another_conversation_another():
    first = toy.question(1)
    again = type(first)("other-id", "which  colour HAS train box 1?", "blue", "odd", group="train")
    elsewhere = type(first)("other-id", first.text, "blue", "odd", group="conv-2")
    assert question_key(first) == question_key(again) != question_key(elsewhere)


NAMES = st.sampled_from(["agent_1", "agent_2", "find", "look", "short", "refine", "prune", "induce", "none", "other"])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | NAMES
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES | st.text(), inner))
GOOD = {"credits": CREDIT, "feedback": {"agent": "agent_1", "summary": "s"}, "diagnoses": DIAGNOSIS}


@given(st.data())
def test_no_reply_raises_and_only_what_is_there_is_credited(data: st.DataObject):
    """Good items with fields exchanged for anything that JSON can hold, and anything beside them."""
    reply: dict[str, Any] = data.draw(st.dictionaries(st.sampled_from([*GOOD, "x"]), JSON, max_size=2))
    for field in data.draw(st.sets(st.sampled_from(sorted(GOOD)))):
        changed = data.draw(st.sampled_from(sorted(GOOD[field])))
        reply[field] = [{**GOOD[field], changed: data.draw(JSON)}, GOOD[field]]
    feedback = read_reply(reply, Checker(toy.TEAM, LIBRARIES, GROUP), structured=data.draw(st.booleans()))
    for item in feedback.credits:
        assert LIBRARIES[item.agent].get(item.skill)
        assert item.value is None or -1 <= item.value <= 1
    assert all(need.agent in LIBRARIES for need in feedback.needs)
    assert all(quote for item in feedback.diagnoses for quote in item.quotes)
