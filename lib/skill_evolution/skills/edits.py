"""Anchored edits: changes to a skill's body, each tied to a piece of text that stands in it exactly once."""

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict


class EditError(ValueError):
    """An edit that can't be applied; the text names the edit, its anchor and what is wrong with it."""


class Edit(BaseModel):
    """One change, as an optimizer's reply states it.

    `anchor` is copied from the body, character by character. `text` goes in as it is: no line break or space is
    added around it (our choice: what comes out is then exactly what the reply says).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    op: Literal["replace", "insert_after", "insert_before", "delete"]
    anchor: str
    text: str = ""


def _occurrences(body: str, anchor: str) -> int:
    """How often `anchor` starts in `body`; str.count would see overlapping occurrences ("aa" in "aaa") as one."""
    return sum(body.startswith(anchor, start) for start in range(len(body)))


def _fault(body: str, edit: Edit) -> str | None:
    """What keeps `edit` from being applied to `body`, or None."""
    if not edit.anchor:
        return "the anchor is empty; it must be copied from the body"
    count = _occurrences(body, edit.anchor)
    if count != 1:
        return f"the anchor {edit.anchor!r} stands {count} times in the body; it must stand there exactly once"
    if edit.op.startswith("insert") and not edit.text:
        return f"there is no text to insert at the anchor {edit.anchor!r}"
    if edit.op == "delete" and edit.text:
        return f"a deletion takes no text (at the anchor {edit.anchor!r}); use replace to put text in its place"
    return None


def _apply(body: str, edit: Edit) -> str:
    """`body` after one edit whose anchor is known to stand in it once."""
    before, _, after = body.partition(edit.anchor)
    match edit.op:
        case "replace":
            return before + edit.text + after
        case "insert_after":
            return before + edit.anchor + edit.text + after
        case "insert_before":
            return before + edit.text + edit.anchor + after
        case "delete":
            return before + after


def apply_edits(body: str, edits: Sequence[Edit]) -> str:
    """The body after all edits in turn; each sees the text that the ones before it left.

    All or nothing: MASkills skips an edit whose anchor is missing or doubled (FACTS A, "known faults"), which leaves
    a body that nobody asked for, so here one bad edit rejects them all.

    Raises:
        EditError: An anchor is empty or doesn't stand exactly once (overlapping occurrences count) in the text at
            that point, an insertion has no text, a deletion has one, or nothing but white space would be left.
    """
    for number, edit in enumerate(edits, 1):
        if fault := _fault(body, edit):
            raise EditError(f"edit {number} of {len(edits)} ({edit.op}): {fault}")
        body = _apply(body, edit)
    if not body.strip():
        raise EditError(f"the {len(edits)} edits leave an empty body; prune the skill instead")
    return body
