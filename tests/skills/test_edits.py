"""Anchored edits: expected bodies are worked out by hand."""

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from skill_evolution.skills import Edit, EditError, apply_edits

BODY = "Search each hop apart.\nQuote the line.\nAnswer in a few words."

# Two letters and a line break, so that anchors meet the body, twice and overlapping too.
texts = st.text("ab\n", max_size=6)
edits = st.builds(
    Edit, op=st.sampled_from(["replace", "insert_after", "insert_before", "delete"]), anchor=texts, text=texts
)


@pytest.mark.parametrize(
    ("op", "text", "expected"),
    [
        ("replace", "Cite it.", "Search each hop apart.\nCite it.\nAnswer in a few words."),
        ("replace", "", "Search each hop apart.\n\nAnswer in a few words."),
        ("insert_after", " Twice.", "Search each hop apart.\nQuote the line. Twice.\nAnswer in a few words."),
        ("insert_before", "Then: ", "Search each hop apart.\nThen: Quote the line.\nAnswer in a few words."),
        ("delete", "", "Search each hop apart.\n\nAnswer in a few words."),
    ],
)
def test_one_edit_changes_the_text_at_its_anchor_only(op, text, expected):
    assert apply_edits(BODY, [Edit(op=op, anchor="Quote the line.", text=text)]) == expected


def test_an_edit_sees_what_the_ones_before_it_left():
    first = Edit(op="insert_after", anchor="Quote the line.", text=" Give its id.")
    second = Edit(op="replace", anchor="Give its id", text="Name its speaker")
    assert "Quote the line. Name its speaker." in apply_edits(BODY, [first, second])
    with pytest.raises(EditError, match=r"edit 1 of 2 .*'Give its id' stands 0 times"):
        apply_edits(BODY, [second, first])


def test_no_edits_leave_the_body_as_it_is():
    assert apply_edits(BODY, []) == BODY


@pytest.mark.parametrize(
    ("body", "anchor", "count"),
    [("a b c", "d", 0), ("a b a", "a", 2), ("xaaay", "aa", 2), ("abcabcab", "abcab", 2), ("Abc", "abc", 0)],
)
def test_an_anchor_that_does_not_stand_exactly_once_rejects_the_edit(body, anchor, count):
    with pytest.raises(EditError, match=f"'{anchor}' stands {count} times"):
        apply_edits(body, [Edit(op="delete", anchor=anchor)])


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (Edit(op="replace", anchor="", text="x"), "anchor is empty"),
        (Edit(op="insert_after", anchor="Quote"), "no text to insert at the anchor 'Quote'"),
        (Edit(op="delete", anchor="Quote", text="x"), "a deletion takes no text"),
        (Edit(op="delete", anchor=BODY), "empty body"),
        (Edit(op="replace", anchor=BODY, text=" \n"), "empty body"),
    ],
)
def test_a_faulty_edit_says_what_is_wrong(edit, message):
    with pytest.raises(EditError, match=message):
        apply_edits(BODY, [edit])


def test_an_edit_from_a_reply_takes_no_unknown_field_or_operation():
    with pytest.raises(ValidationError, match="reason"):
        Edit.model_validate({"op": "delete", "anchor": "x", "reason": "unused"})
    with pytest.raises(ValidationError, match="op"):
        Edit.model_validate({"op": "append", "anchor": "x", "text": "y"})


def test_replacements_are_literal():
    assert apply_edits("a.c", [Edit(op="replace", anchor=".", text=r"\1\g<0>")]) == r"a\1\g<0>c"


def windows(body: str, anchor: str) -> int:
    """Occurrences counted over all substrings of the anchor's length, apart from the code under test."""
    return [body[i : i + len(anchor)] for i in range(len(body) - len(anchor) + 1)].count(anchor)


def edited(body: str, edit: Edit) -> str | None:
    """The body after one edit by slicing, or None where the edit has to be rejected; it may become empty."""
    if not edit.anchor or windows(body, edit.anchor) != 1:
        return None
    if bool(edit.text) == (edit.op == "delete") and edit.op != "replace":
        return None
    start, end = body.index(edit.anchor), body.index(edit.anchor) + len(edit.anchor)
    cut = {"replace": (start, end), "delete": (start, end), "insert_after": (end, end), "insert_before": (start, start)}
    return body[: cut[edit.op][0]] + edit.text + body[cut[edit.op][1] :]


@given(body=st.text("ab\n", max_size=12), many=st.lists(edits, max_size=4))
@example(body="aaab", many=[Edit(op="delete", anchor="aa")])
@example(body="ab", many=[Edit(op="delete", anchor="ab")])
def test_all_edits_are_applied_in_turn_or_none_is(body, many):
    expected: str | None = body
    for edit in many:
        expected = expected if expected is None else edited(expected, edit)
    if expected is not None and expected.strip():
        assert apply_edits(body, many) == expected
    else:
        with pytest.raises(EditError):
            apply_edits(body, many)


@given(before=st.text(), after=st.text(), anchor=st.text(min_size=1), text=st.text(min_size=1))
def test_replacing_and_replacing_back_gives_the_original(before, after, anchor, text):
    body = before + anchor + after
    there, back = Edit(op="replace", anchor=anchor, text=text), Edit(op="replace", anchor=text, text=anchor)
    assume(body.strip() and windows(body, anchor) == 1 and windows(before + text + after, text) == 1)
    assert apply_edits(body, [there, back]) == body
