"""Operators: what they change, in which case they refuse, and the record of it."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
import toy
from hypothesis import given
from hypothesis import strategies as st

from skill_evolution.aggregation import Pattern, Verdict
from skill_evolution.cases import Case
from skill_evolution.leaks import LeakCheck
from skill_evolution.models.base import Completion, ModelError
from skill_evolution.models.scripted import ScriptedModel
from skill_evolution.operators import BODY, Change, Workshop, redundant_groups
from skill_evolution.skills import Skill, SkillLibrary, load_library, save_library

TRAIN = (toy.question(1), toy.question(2))
BODY_TEXT = "Search once. Then stop. Then write."
WRITTEN = {
    "common": "It searches once.", "name": "Search Twice", "description": "When searching.",
    "body": "Search a second time.", "examples": [],
}  # fmt: skip


def workshop(*replies: Any, skills: tuple[Skill, ...] = (), iteration: int = 3) -> tuple[Workshop, ScriptedModel]:
    caller, model = toy.caller(*replies)
    library = SkillLibrary("agent_1", skills)
    return Workshop(toy.TEAM.roles[0], library, caller, iteration, LeakCheck(TRAIN)), model


def verdict(skill: str, direction: Any = "refine", *, score: float = 0.0, **fields: Any) -> Verdict:
    return Verdict("agent_1", skill, direction, 2, score, score, **{"questions": ("q1", "q2"), **fields})


def pattern(capability: str = "search twice", *questions: str) -> Pattern:
    return Pattern("agent_1", "retrieval_miss", (capability,), questions or ("q1", "q2"))


def refused(shop: Workshop) -> list[str]:
    return [rejection.reason for rejection in shop.rejections]


def edit(op: str, anchor: str, text: str = "") -> dict[str, Any]:
    return {"edits": [{"op": op, "anchor": anchor, "text": text}]}


# Refine


async def test_refine_applies_anchored_edits_and_leaves_a_record():
    old = toy.skill("find", BODY_TEXT, utility=0.3, invocations=4)
    shop, model = workshop(edit("replace", "Search once.", "Search each name."), skills=(old,))
    await shop.refine([verdict("find", edit="search names", summary="misses names")])
    new = shop.library.get("find")
    assert new is not None
    assert new.body == "Search each name. Then stop. Then write."
    assert (new.id, new.provenance, new.utility, new.invocations) == ("id-find", "refined", 0.3, 4)
    (record,) = new.history
    assert (record.operator, record.iteration, record.evidence) == ("refine", 3, ("q1", "q2"))
    assert (record.before, record.after) == (old.text, new.text)
    assert shop.changes == [Change("agent_1", "refine", "find", record)]
    (request,) = model.requests
    assert (request.purpose, request.sample_id) == ("optimizer/refine", "place/agent_1/refine/find")
    assert '"suggested_edit": "search names"' in request.messages[1].content


@pytest.mark.parametrize("direction", ["keep", "redundant", "low_utility"])
async def test_only_the_verdict_refine_refines(direction: str):
    shop, model = workshop(skills=(toy.skill("find"),))
    await shop.refine([verdict("find", direction), verdict("gone", "refine")])
    assert (model.requests, shop.changes) == ([], [])


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (edit("replace", "Search thrice.", "x"), "anchor"),
        (edit("replace", "Then", "x"), "anchor"),  # stands twice
        (edit("delete", BODY_TEXT), "anchor"),  # nothing would be left
        ({"edits": [*edit("delete", "Then stop.")["edits"], *edit("delete", "Then stop.")["edits"]]}, "anchor"),
        (edit("replace", "Search once.", "Search once."), "no_change"),
        (edit("insert_after", "Then stop.", " It is </skill> here."), "not_a_skill"),
        (edit("insert_after", "Then stop.", " For instance Which colour has train box 1? Say so."), None),
        (edit("insert_after", "Then stop.", " train box 1 0 Box 1 is blue, so say it."), "leak"),
        ({"edits": []}, "schema"),
        ({"edits": edit("delete", "Then stop.")["edits"] * 7}, "schema"),
        (edit("append", "Then stop.", "x"), "schema"),
        ({"body": "all new"}, "schema"),
        (Completion('{"edits": []', finish_reason="length"), "cut_off"),
        ("I'd rather not", "not_json"),
        ("[]", "not_json"),
        (ModelError("gone"), "call_failed"),
    ],
)
async def test_an_edit_that_cannot_be_taken_changes_nothing_and_is_counted(reply: Any, reason: str | None):
    shop, _ = workshop(reply, skills=(toy.skill("find", BODY_TEXT),))
    before = shop.library
    await shop.refine([verdict("find")])
    assert refused(shop) == ([f"refine:{reason}"] if reason else [])
    assert (shop.library == before, shop.changes == []) == (reason is not None, reason is not None)


async def test_a_refined_body_does_not_grow_without_end():
    long = edit("insert_after", "Then stop.", "y" * 2000)
    shop, _ = workshop(
        {"edits": long["edits"] * 2}, edit("delete", "Then stop."), skills=(toy.skill("find", BODY_TEXT),)
    )
    await shop.refine([verdict("find")])
    assert refused(shop) == ["refine:too_long"]
    huge, _ = workshop(edit("delete", "Then stop."), skills=(toy.skill("find", BODY_TEXT + "z" * BODY),))
    await huge.refine([verdict("find")])
    assert len(huge.changes) == 1  # a longer one that a person wrote may shrink


async def test_one_refused_edit_does_not_keep_the_next_skill_from_its_own():
    skills = (toy.skill("find", BODY_TEXT), toy.skill("look", "Look here."))
    shop, _ = workshop(edit("delete", "nowhere"), edit("replace", "here", "there"), skills=skills)
    await shop.refine([verdict("find"), verdict("look")])
    assert refused(shop) == ["refine:anchor"]
    assert [s.body for s in shop.library] == [BODY_TEXT, "Look there."]


# Consolidate


def test_redundant_skills_are_joined_over_several_steps():
    library = SkillLibrary("agent_1", tuple(toy.skill(name, body=name) for name in "abcdef"))
    verdicts = [
        verdict("a", "redundant", redundant_with=("c",)),
        verdict("e", "redundant", redundant_with=("c", "gone")),
        verdict("b", "redundant", redundant_with=("d",)),
        verdict("f", "keep", redundant_with=("a",)),  # says nothing: its verdict is another one
        verdict("gone", "redundant", redundant_with=("f",)),
        verdict("f", "redundant", redundant_with=("f",)),
    ]
    assert redundant_groups(verdicts, library) == [["a", "c", "e"], ["b", "d"]]
    assert redundant_groups(list(reversed(verdicts)), library) == [["a", "c", "e"], ["b", "d"]]


SKILLS = (
    toy.skill("a", "Say A.", utility=0.6, invocations=3),
    toy.skill("b", "Say B.", utility=-0.2, invocations=4),
    toy.skill("c", "Say C.", utility=0.9, invocations=1),
)
TWINS = [verdict("a", "redundant", redundant_with=("b",))]


async def test_consolidating_makes_one_skill_of_mean_utility_and_summed_invocations():
    shop, _ = workshop({"name": "A and B", "description": "Both.", "body": "Say A and B."}, skills=SKILLS)
    await shop.consolidate(TWINS)
    assert shop.library.names() == ("c", "a-and-b")
    merged = shop.library.get("a-and-b")
    assert merged is not None
    assert (merged.utility, merged.invocations, merged.provenance) == (pytest.approx(0.2), 7, "consolidated")
    (record,) = merged.history
    assert (record.operator, record.evidence) == ("consolidate", ("a", "b"))
    assert record.before == f"{SKILLS[0].text}\n\n{SKILLS[1].text}"
    assert record.after == merged.text


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (ModelError("gone"), "call_failed"),
        ({"name": "a", "description": "Both."}, "schema"),
        ({"name": "ab", "description": "Both.", "body": "Say C."}, "duplicate"),
        ({"name": "ab", "description": "Both.", "body": " \n "}, "not_a_skill"),
        ({"name": "ab", "description": "See train box 1:0: box 1 is blue.", "body": "x"}, "leak"),
    ],
)
async def test_a_refused_consolidation_leaves_both_skills(reply: Any, reason: str):
    shop, _ = workshop(reply, skills=SKILLS)
    await shop.consolidate(TWINS)
    assert (refused(shop), shop.library.names()) == ([f"consolidate:{reason}"], ("a", "b", "c"))


async def test_a_consolidated_skill_may_keep_a_name_and_is_not_pruned_for_what_the_old_one_did():
    shop, _ = workshop({"name": "a", "description": "Both.", "body": "Say A and B."}, skills=SKILLS)
    verdicts = [verdict("a", "redundant", score=-0.5, redundant_with=("b",)), verdict("c", "low_utility")]
    await shop.consolidate(verdicts)
    shop.prune(verdicts, threshold=-0.3)
    assert [s.body for s in shop.library] == ["Say A and B."]
    assert [(c.operator, c.skill) for c in shop.changes] == [("consolidate", "a"), ("prune", "c")]


# Prune


@pytest.mark.parametrize(
    ("direction", "score", "pruned"),
    [
        ("low_utility", 0.5, True),
        ("keep", -0.3, True),  # at the threshold
        ("keep", -0.299, False),
        ("refine", -0.5, True),
        ("redundant", 0.0, False),
    ],
)
def test_pruning_follows_the_verdict_or_the_score(direction: str, score: float, pruned: bool):
    shop, _ = workshop(skills=SKILLS)
    shop.prune([verdict("b", direction, score=score)], threshold=-0.3)
    assert shop.library.names() == (("a", "c") if pruned else ("a", "b", "c"))
    if pruned:
        (change,) = shop.changes
        assert (change.record.operator, change.record.before, change.record.after) == ("prune", SKILLS[1].text, "")


def test_the_last_skill_stays_and_it_is_the_best_of_the_bad():
    shop, _ = workshop(skills=SKILLS)
    shop.prune([verdict(n, "low_utility", score=s) for n, s in (("a", -0.1), ("b", -0.9), ("c", -0.5))], threshold=-0.3)
    assert (shop.library.names(), refused(shop)) == (("a",), ["prune:last_skill"])


# Induce


async def test_induction_writes_one_skill_from_the_pattern_with_most_support():
    shop, model = workshop(WRITTEN)
    patterns = [pattern("search twice", "q1", "q2", "q3"), *(pattern(f"p{i}") for i in range(9))]
    await shop.induce(patterns, [Case(f"hard {i}", "", "nothing", "all") for i in range(9)], cap=8)
    (new,) = shop.library
    assert (new.name, new.provenance, new.utility, new.invocations) == ("search-twice", "induced", 0.0, 0)
    (record,) = new.history
    assert (record.operator, record.iteration, record.before, record.after) == ("induce", 3, "", new.text)
    assert record.evidence == ("q1", "q2", "q3")
    (request,) = model.requests
    shown = request.messages[1].content
    assert (shown.count('"failure_type"'), shown.count('"question"')) == (5, 6)
    assert shown.index("search twice") < shown.index("p0")


async def test_of_several_proposals_the_best_on_the_screen_goes_on_and_bad_ones_are_counted():
    shop, model = workshop(*({**WRITTEN, "name": name, "body": f"Say {name}."} for name in "abc"), "no JSON")
    shop.proposals = 4

    async def screen(library: SkillLibrary) -> float:
        return {"a": 0.1, "b": 0.9, "c": 0.2}[library.skills[-1].name]

    shop.screen = screen
    await shop.induce([pattern()], [], cap=8)
    assert (shop.library.names(), refused(shop)) == (("b",), ["induce:not_json"])
    assert len({request.sample_id for request in model.requests}) == 4


async def test_a_skill_shows_the_cases_that_were_chosen_with_what_is_right_and_none_that_holds_an_answer():
    cases = [Case(f"question {i}?", "", "a fault", f"<handover>\nline {i}\n</handover>") for i in range(3)]
    leaking = Case("where is the Blue Mill?", "", "", "")
    shop, model = workshop({**WRITTEN, "examples": [3, 1, 3]})
    shop.leaks = LeakCheck([type(TRAIN[0])("q", "Where?", "Blue Mill", "any")])
    await shop.induce([pattern()], [leaking, *cases], cap=8)
    assert "Blue Mill" not in model.requests[0].messages[1].content
    (new,) = shop.library
    assert new.body == (
        "Search a second time.\n\nExample.\nQuestion: question 2?\n<handover>\nline 2\n</handover>\n\n"
        "Example.\nQuestion: question 0?\n<handover>\nline 0\n</handover>"
    )


async def test_induction_needs_a_pattern_and_room():
    shop, model = workshop(skills=SKILLS)
    await shop.induce([], [Case("hard", "", "nothing", "all")], cap=8)
    assert (model.requests, shop.rejections) == ([], [])
    await shop.induce([pattern()], [], cap=3)
    assert (model.requests, refused(shop)) == ([], ["induce:library_full"])


async def test_pruning_makes_room_for_induction():
    shop, _ = workshop(WRITTEN, skills=SKILLS)
    shop.prune([verdict("b", "low_utility")], threshold=-0.3)
    await shop.induce([pattern()], [], cap=3)
    assert shop.library.names() == ("a", "c", "search-twice")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"body": "Here, box 1:0, Box 1 is blue."}, None),  # seven words of the context in a row
        ({"body": "See train box 1:0: box 1 is blue."}, "leak"),  # eight
        ({"description": "See train box 1:0: box 1 is blue."}, "leak"),
        ({"body": "Say C."}, "duplicate"),
        ({"body": "<skill name='x'>"}, "not_a_skill"),
        ({"body": "x" * (BODY + 1)}, "schema"),
        ({"body": 7}, "schema"),
        ({"extra": 1}, "schema"),
        ({"name": "x" * 65}, "schema"),
    ],
)
async def test_a_skill_that_cannot_be_taken_is_refused_and_counted(change: dict[str, Any], reason: str | None):
    shop, _ = workshop({**WRITTEN, **change}, skills=SKILLS)
    await shop.induce([pattern()], [], cap=8)
    assert refused(shop) == ([f"induce:{reason}"] if reason else [])
    assert len(shop.library) == (3 if reason else 4)


async def test_a_name_that_holds_an_answer_leaks_too():
    shop, _ = workshop({**WRITTEN, "name": "ask-marie-curie"})
    shop.leaks = LeakCheck([type(TRAIN[0])("q", "Who?", "Marie Curie", "any")])
    await shop.induce([pattern()], [], cap=8)
    assert refused(shop) == ["induce:leak"]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("../../etc/passwd", "etc-passwd"),
        ("..", "skill"),
        ("C:\\temp\\x", "c-temp-x"),
        ("a\x00b/c\n", "a-b-c"),
        ("none", "none-2"),
        ("a", "a-2"),  # taken
        ("Ünïcode Ångström", "unicode-angstrom"),
    ],
)
async def test_a_name_from_a_model_is_made_valid(given: str, name: str):
    shop, _ = workshop({**WRITTEN, "name": given}, skills=SKILLS)
    await shop.induce([pattern()], [], cap=8)
    assert shop.library.names()[-1] == name


async def test_the_same_reply_for_two_agents_makes_two_ids():
    one, _ = workshop(WRITTEN)
    other, _ = workshop(WRITTEN, iteration=4)
    await one.induce([pattern()], [], cap=8)
    await other.induce([pattern()], [], cap=8)
    assert one.library.skills[0].id != other.library.skills[0].id


ODD = ["---", "a: b", "'", "# x", "\x00", "\x85\u2028", "\ud800", " \n\t", "null", "1"]
TEXT = st.text(max_size=40) | st.sampled_from(ODD)


@given(name=TEXT, description=TEXT, body=TEXT, text=TEXT)
def test_whatever_a_model_writes_is_refused_or_can_be_saved_and_loaded(
    name: str, description: str, body: str, text: str
):
    written = {"name": name, "description": description, "body": body}
    edits = edit("insert_after", "Say A.", text)
    shop, _ = workshop(edits, written, skills=SKILLS)
    asyncio.run(shop.refine([verdict("a")]))
    asyncio.run(shop.induce([pattern()], [], cap=8))
    assert len(shop.changes) + len(shop.rejections) == 2
    with tempfile.TemporaryDirectory() as folder:
        save_library(shop.library, Path(folder) / "agent_1")
        assert load_library(Path(folder) / "agent_1", "agent_1") == shop.library
