import json
import typing

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skill_evolution.aggregation import MergeReply
from skill_evolution.critic import GroupReply, PlainReply
from skill_evolution.methods.maskills import TrajectoryReply
from skill_evolution.models.base import Sampling
from skill_evolution.models.scripted import ScriptedModel
from skill_evolution.operators import RefineReply, SkillReply
from skill_evolution.replies import Caller, json_schema
from skill_evolution.reply_schemas import fitted_schema, longest

SCHEMAS = (GroupReply, PlainReply, TrajectoryReply, MergeReply, RefineReply, SkillReply)
NAMES = {
    "agent": ["agent_1", "agent_2"],
    "skill": ["short-answer"],
    "redundant_with": ["short-answer"],
    "conflict_with": ["short-answer"],
    "rollout": range(1, 5),
    "step": range(1, 7),
}


def replies(node: dict[str, typing.Any], *, full: bool = False) -> st.SearchStrategy[typing.Any]:
    """Replies that a schema without references allows; `full`: the longest."""
    if "anyOf" in node:
        return st.one_of([replies(part, full=full) for part in node["anyOf"]])
    if "enum" in node or "const" in node:
        return st.sampled_from(node.get("enum", [node.get("const")]))
    match node["type"]:
        case "string":
            size = node["maxLength"]
            letters = st.characters(codec="ascii", exclude_categories=["C"], exclude_characters='"\\ ')
            return st.text(letters, min_size=size if full else node.get("minLength", 0), max_size=size)
        case "array":
            least, most = node.get("minItems", 0), node["maxItems"]
            return st.lists(replies(node["items"], full=full), min_size=most if full else least, max_size=most)
        case "object":
            return st.fixed_dictionaries({key: replies(part, full=full) for key, part in node["properties"].items()})
        case "number":
            return st.sampled_from([-0.5, 0.25, 1])
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
    raise AssertionError(node)


@pytest.mark.parametrize("schema", SCHEMAS)
@given(data=st.data())
@settings(max_examples=25)
def test_what_a_fitted_schema_allows_the_full_one_allows_too(schema, data):
    fitted = fitted_schema(json_schema(schema), tokens=640, names=NAMES)
    reply = data.draw(replies(fitted))
    jsonschema.validate(reply, fitted)
    jsonschema.validate(reply, json_schema(schema))


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("tokens", [512, 640, 4096])
@given(data=st.data())
@settings(max_examples=10)
def test_the_longest_reply_fits(schema, tokens, data):
    fitted = fitted_schema(json_schema(schema), tokens=tokens, names=NAMES)
    text = json.dumps(data.draw(replies(fitted, full=True)), separators=(",", ":"))
    free = sum(len(value) for value in strings(json.loads(text)))
    # A free character is at most one token; of the rest, one token has two characters or more.
    assert free + (len(text) - free) / 2 <= longest(fitted) + 1
    assert longest(fitted) <= tokens


def strings(value: typing.Any) -> list[str]:
    if isinstance(value, dict):
        return [text for part in value.values() for text in strings(part)]
    if isinstance(value, list):
        return [text for part in value for text in strings(part)]
    listed = {name for names in NAMES.values() for name in names} | FIXED
    return [value] if isinstance(value, str) and value not in listed else []


FIXED = {
    "retrieval_miss", "evidence_dropped", "reasoning_error", "answer_format", "wrong_abstention", "other",
    "refine", "prune", "consolidate", "induce", "none", "keep", "redundant", "low_utility", "helped", "harmful",
    "neutral", "replace", "insert_after", "insert_before", "delete",
}  # fmt: skip


def test_only_what_is_there_can_be_named():
    fitted = fitted_schema(json_schema(GroupReply), tokens=640, names=NAMES)
    diagnosis = fitted["properties"]["diagnoses"]["items"]["properties"]
    assert diagnosis["agent"] == {"enum": ["agent_1", "agent_2"]}
    assert diagnosis["skill"] == {"enum": ["short-answer", None]}
    assert diagnosis["citations"]["items"]["properties"]["rollout"] == {"enum": [1, 2, 3, 4]}
    assert fitted["properties"]["credits"]["items"]["properties"]["skill"] == {"enum": ["short-answer"]}


DIAGNOSED = {
    "citations": [{"rollout": 1, "step": 1, "quote": "all"}],
    "agent": "agent_1",
    "failure_type": "evidence_dropped",
    "suggestion": "hand over all",
    "action": "induce",
}


def test_without_skills_none_can_be_credited():
    names = {**NAMES, "skill": [], "redundant_with": []}
    fitted = fitted_schema(json_schema(GroupReply), tokens=640, names=names)
    credit = {"agent": "agent_1", "skill": "any", "credit": 1, "citations": []}
    reply = {"credits": [], "diagnoses": [DIAGNOSED]}
    jsonschema.validate(reply, fitted)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**reply, "credits": [credit]}, fitted)
    assert fitted["properties"]["diagnoses"]["items"]["properties"]["skill"] == {"enum": [None]}


def test_longest_by_hand():
    # {"a": "xxxxx", "b": [1, 2]}: braces 2; a: 0.5 for the key, 3 around it, 5 + 2 for the string; b: 0.5 + 3 + 2
    # numbers of 10 with a comma each + 2 brackets.
    node = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "maxLength": 5},
            "b": {"type": "array", "maxItems": 2, "items": {"type": "integer"}},
        },
    }
    assert longest(node) == 2 + (0.5 + 3 + 7) + (0.5 + 3 + 24)


def test_a_limit_that_no_reply_fits_is_an_error():
    with pytest.raises(ValueError, match=r"max_tokens is 64; a reply of the form 'GroupReply' can take \d+"):
        fitted_schema(json_schema(GroupReply), tokens=64)


async def test_a_caller_that_fits_sends_the_narrowed_schema():
    model = ScriptedModel(lambda r: "{}")
    for fit in (True, False):
        caller = Caller(model, Sampling(0, None, 640), "critic", fit=fit)
        await caller.ask(system="", user="", schema=GroupReply, purpose="critic", name="q", names=NAMES)
    assert model.requests[0].schema == fitted_schema(json_schema(GroupReply), tokens=640, names=NAMES)
    assert model.requests[1].schema == json_schema(GroupReply)
