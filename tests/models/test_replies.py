"""Structured calls: which replies are JSON objects, which items are valid, and how the rest is named."""

from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field
from scripted_model import ScriptedModel, UnknownRequestError

from skill_evolution.base.aio import run_sync
from skill_evolution.models.base import Completion, ModelError, Sampling
from skill_evolution.models.replies import Caller, Rejection, Reply, checked, json_schema, unknown_fields, valid_items


class Item(Reply):
    """An item of a reply."""

    name: Annotated[str, Field(max_length=5)]
    credit: Annotated[float, Field(ge=-1, le=1)] = 0.0


class Whole(Reply):
    """A reply."""

    items: Annotated[list[Item], Field(max_length=2)] = []


async def ask(reply: Any) -> Any:
    caller = Caller(ScriptedModel(lambda r: reply), Sampling(temperature=0.0), "critic/seed0")
    return await caller.ask(system="s", user="u", schema=Whole, purpose="critic", name="q1")


async def test_a_request_carries_schema_purpose_and_a_sample_id_of_its_own() -> None:
    model = ScriptedModel(lambda r: "{}")
    reply = await Caller(model, Sampling(temperature=0.0), "critic/seed0").ask(
        system="s", user="u", schema=Whole, purpose="critic", name="q1"
    )
    assert reply == {}
    (request,) = model.requests
    assert (request.purpose, request.sample_id, request.sampling) == (
        "critic",
        "critic/seed0/q1",
        Sampling(temperature=0.0),
    )
    assert [(m.role, m.content) for m in request.messages] == [("system", "s"), ("user", "u")]
    assert request.schema == Whole.model_json_schema()
    assert json_schema(Whole) is json_schema(Whole)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('{"items": [{"name": "a"}]}', {"items": [{"name": "a"}]}),
        ('  {"a": 1}\n', {"a": 1}),
        ("", "not_json"),
        ("no", "not_json"),
        ('{"items": [', "not_json"),
        ('{"a": 1} and more', "not_json"),
        ("[]", "not_json"),
        ("null", "not_json"),
        ('"text"', "not_json"),
        ("3", "not_json"),
        ("[" * 100_000, "not_json"),
        ('{"a": ' * 50_000, "not_json"),
        ('{"a": ' + "9" * 10_000 + "}", "not_json"),  # Python refuses to read such a number
        (Completion('{"items": []}', "length"), "cut_off"),
        (Completion('{"items": [', "length"), "cut_off"),
        (ModelError("down"), "call_failed"),
    ],
)
async def test_what_is_no_object_is_a_reason(reply: Any, expected: Any) -> None:
    assert await ask(reply) == expected


async def test_a_bug_is_not_a_reason() -> None:
    with pytest.raises(UnknownRequestError):
        await ask(None)


async def test_a_whole_reply_is_valid_or_a_rejection() -> None:
    async def whole(text: str) -> Any:
        caller = Caller(ScriptedModel(lambda r: text), Sampling(), "s")
        return await caller.ask_whole(system="s", user="u", schema=Whole, purpose="p", name="n")

    assert await whole('{"items": [{"name": "a", "credit": 1}]}') == Whole(items=[Item(name="a", credit=1)])
    assert await whole("no") == Rejection("not_json", "")
    assert await whole('{"more": 1}') == Rejection("schema", "more: Extra inputs are not permitted")
    long = await whole('{"items": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}')
    assert long.reason == "schema"
    assert long.item.startswith("items: ")


@pytest.mark.parametrize(
    ("item", "place"),
    [
        ({"name": "toolong"}, "name"),
        ({"name": None}, "name"),
        ({}, "name"),
        ({"name": "a", "credit": 1.1}, "credit"),
        ({"name": "a", "credit": -2}, "credit"),
        ({"name": "a", "credit": float("nan")}, "credit"),
        ({"name": "a", "credit": float("inf")}, "credit"),
        ({"name": "a", "credit": None}, "credit"),
        ({"name": "a", "other": 1}, "other"),
        ({"name": "\ud800"}, "name"),
        ("a", ""),
        (None, ""),
        ([], ""),
    ],
)
def test_an_item_that_does_not_fit_is_rejected_and_the_others_stay(item: Any, place: str) -> None:
    rejections: list[Rejection] = []
    found = valid_items({"items": [{"name": "a"}, item, {"name": "b"}]}, "items", Item, rejections)
    assert [i.name for i in found] == ["a", "b"]
    assert [r.reason for r in rejections] == ["schema"]
    assert rejections[0].item.startswith(f"items: {place}")


@pytest.mark.parametrize("value", [None, 3, "text", {"name": "a"}])
def test_a_list_that_is_none_is_rejected(value: Any) -> None:
    rejections: list[Rejection] = []
    assert valid_items({"items": value}, "items", Item, rejections) == []
    assert rejections == [Rejection("schema", "items is not a list")]


def test_a_list_that_is_missing_is_empty() -> None:
    rejections: list[Rejection] = []
    assert valid_items({}, "items", Item, rejections) == []
    assert rejections == []


def test_unknown_fields_are_named() -> None:
    assert unknown_fields({"items": [], "x": 1, "y": 2}, Whole) == [
        Rejection("schema", "unknown field x"),
        Rejection("schema", "unknown field y"),
    ]


def test_items_that_fail_a_check_go_with_its_reason() -> None:
    rejections: list[Rejection] = []
    items = [Item(name="a"), Item(name="b", credit=0.5)]
    assert checked(items, lambda i: "unknown_skill" if i.name == "b" else None, rejections) == items[:1]
    assert rejections == [Rejection("unknown_skill", '{"name":"b","credit":0.5}')]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@given(value=JSON)
def test_no_items_raise(value: Any) -> None:
    rejections: list[Rejection] = []
    found = valid_items({"items": value}, "items", Item, rejections)
    assert len(found) + len(rejections) == (len(value) if isinstance(value, list) else 1)


@given(text=st.text(max_size=60))
def test_no_text_raises(text: str) -> None:
    assert isinstance(run_sync(ask(text)), dict | str)
