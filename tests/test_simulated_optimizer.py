"""The simulated reader as an optimizer, over the real prompts, operators and checks."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skill_evolution.aggregation import MergeReply, Pattern, Verdict, aggregate
from skill_evolution.config import Config
from skill_evolution.feedback import Credit, Feedback, contribution_of
from skill_evolution.leaks import LeakCheck
from skill_evolution.models.base import Message, ModelError, Request, Sampling
from skill_evolution.models.simulated import SimulatedReader
from skill_evolution.models.simulated.directives import DIRECTIVES, recognise
from skill_evolution.models.simulated.judging import CAPABILITIES
from skill_evolution.models.simulated.optimizer import OVERSHOOTS, overshoot_risk
from skill_evolution.operators import InducedReply, Workshop
from skill_evolution.replies import Caller
from skill_evolution.skills import Skill, SkillLibrary
from skill_evolution.teams import locomo_team

ROLE = locomo_team().roles[0]


def skill(name, body, description="A habit."):
    return Skill(name, description, body, f"id-{name}")


def library(*skills):
    return SkillLibrary(ROLE.agent, skills)


def caller(sample_id="optimizer", **sampling):
    return Caller(SimulatedReader(), Config().optimizer_sampling.model_copy(update=sampling).sampling(), sample_id)


def workshop(*skills, **options):
    return Workshop(ROLE, library(*skills), caller(**options), 1, LeakCheck([]))


def verdict(name, **fields):
    return Verdict(ROLE.agent, name, **{"verdict": "refine", "support": 2, "mean": 0.0, "score": 0.0, **fields})


def task(title, document, system=""):
    messages = (Message("system", f"# Task: {title}\n{system}"), Message("user", json.dumps(document)))
    return json.loads(asyncio.run(SimulatedReader().generate(Request(messages, Sampling(), "p", "s"))).text)


# --- merging ---


def merged(*credits: Any):
    """The verdict on a skill from (value, suggested edit) pairs, a question each."""
    made = [
        Credit(f"q{i}", ROLE.agent, "a", value, "harmful" if value is None else contribution_of(value), edit)
        for i, (value, edit) in enumerate(credits)
    ]
    feedbacks = [Feedback(c.question, "any", credits=(c,)) for c in made]
    shelves = {ROLE.agent: library(skill("a", "Be kind."), skill("b", "Be brief."))}
    result = asyncio.run(aggregate(feedbacks, shelves, caller()))
    assert result.rejections == ()
    return result.verdicts[0]


@pytest.mark.parametrize(
    ("credits", "name"),
    [
        ([(0.5, None), (0.3, None)], "keep"),
        ([(0.5, "list all"), (0.3, None)], "refine"),
        ([(-0.05, None), (0.0, None)], "keep"),
        ([(-0.5, None), (0.1, None)], "low_utility"),
        ([(-0.5, "list all"), (-0.1, "list all")], "refine"),
        ([(-0.5, "list all"), (-0.1, None), (-0.9, None)], "low_utility"),
        ([(None, None), (None, None)], "low_utility"),  # to be pruned by two diagnoses, and no credits
        ([(None, "list all"), (None, "list all")], "refine"),
    ],
)
def test_verdicts(credits, name):
    assert merged(*credits).verdict == name


def test_the_most_frequent_edit_is_passed_on():
    assert merged((0.2, "x1"), (0.2, "list all"), (0.2, "list all")).edit == "list all"


def test_redundancy_needs_a_majority():
    def credit(name, *partners):
        return {"credit": 0.5, "contribution": name, "suggested_edit": None, "redundant_with": list(partners)}

    document = {"questions": 3, "mean_credit": 0.5, "credits": [credit("redundant", "b"), credit("helped")]}
    assert task("merge credits", document)["verdict"] == "keep"
    document["credits"].append(credit("redundant", "b"))
    reply = task("merge credits", document)
    assert (reply["verdict"], reply["redundant_with"]) == ("redundant", ["b"])


# --- refining ---


def refined(body, edit):
    shop = workshop(skill("a", body))
    asyncio.run(shop.refine([verdict("a", edit=edit)]))
    return shop.library.skills[0].body, [rejection.reason for rejection in shop.rejections]


def test_what_stands_against_the_suggestion_is_replaced_with_its_reasons():
    full, short = DIRECTIVES["full_sentence"].text, DIRECTIVES["shortest_span"].text
    assert refined(f"Be kind.\n{full} It looks better.", CAPABILITIES["shortest_span"]) == (f"Be kind.\n{short}", [])


def test_what_else_a_line_asks_for_stays():
    body = "Decline unless it is said verbatim. List every item, separated by commas."
    new, rejections = refined(body, CAPABILITIES["commit_likely"])
    assert rejections == []
    assert {d.key for d, _ in recognise(new)} == {"commit_likely", "list_all"}


def test_a_suggestion_without_an_opponent_is_added_at_the_end():
    assert (
        refined("Be kind.\nBe kind.", CAPABILITIES["list_all"])[0]
        == f"Be kind.\nBe kind.\n{DIRECTIVES['list_all'].text}"
    )
    assert refined("Be kind.", "Mind the colour.")[0] == "Be kind.\nMind the colour."
    assert refined("Be kind.", None)[0].startswith("Be kind.\nRead the question twice")


def test_a_suggestion_that_is_followed_already_changes_nothing():
    body = "Be kind.\nMind the colour."
    assert refined(body, "Mind the colour.") == (body, ["refine:no_change"])


@settings(max_examples=40)
@given(
    st.text(min_size=1, max_size=80),
    st.text(max_size=40),
    st.sampled_from([*DIRECTIVES]),
    st.sampled_from([*DIRECTIVES]),
)
def test_every_edit_can_be_applied(text, edit, there, wanted):
    for body in (text, f"{text}\n{text}", f"{DIRECTIVES[there].text}\n{text}", f"{text} {DIRECTIVES[there].text}"):
        try:
            skill("a", body)
        except ValueError:
            continue  # no skill has such a body
        for suggestion in (edit, DIRECTIVES[wanted].text):
            assert set(refined(body, suggestion)[1]) <= {"refine:no_change", "refine:not_a_skill"}


# --- consolidating ---


def consolidated(*bodies):
    names = [chr(ord("a") + i) for i in range(len(bodies))]
    shop = workshop(*(skill(name, body, f"About {name}.") for name, body in zip(names, bodies, strict=True)))
    partners = tuple(names[1:])
    asyncio.run(shop.consolidate([verdict(names[0], verdict="redundant", redundant_with=partners)]))
    assert shop.rejections == []
    (merged,) = shop.library.skills
    return merged


def test_every_line_stands_once_and_the_first_skill_prevails():
    short, full = DIRECTIVES["shortest_span"].text, DIRECTIVES["full_sentence"].text
    merged = consolidated(f"{short}\nBe kind.", f"Be kind.\n{full}\nBe quick.")
    assert merged.body == f"{short}\nBe kind.\nBe quick."
    assert (merged.name, merged.description) == ("a", "About a. About b.")


def test_long_skills_fit_the_reply():
    long = ["\n".join(f"{name} {n} be kind to everyone who asks." for n in range(90)) for name in "abc"]
    assert len(consolidated(*long).body) <= 4000


# --- writing ---


def written(patterns, *skills, **options):
    shop = workshop(*skills, **options)
    asyncio.run(shop.induce(patterns, [], cap=8))
    return shop.library.skills[len(skills) :], [rejection.reason for rejection in shop.rejections]


def pattern(key: str, support=4, failure_type="retrieval_miss"):
    return Pattern(ROLE.agent, failure_type, (CAPABILITIES.get(key, key),), tuple(f"q{i}" for i in range(support)))


def test_the_first_pattern_that_no_skill_covers_is_written_for():
    there = skill("a", DIRECTIVES["each_hop"].text)
    ((new,), _) = written([pattern("each_hop"), pattern("quote_all"), pattern("stem_search")], there, temperature=0)
    assert new.body == DIRECTIVES["quote_all"].text
    assert "retrieval miss" in new.description
    assert recognise(new.description) == ()


@pytest.mark.parametrize("support", [1, 3, 9])
def test_how_often_a_writer_overshoots_falls_with_the_questions_behind_it(support):
    bodies = [written([pattern("quote_all", support)], sample_id=f"s{i}")[0][0].body for i in range(300)]
    overshot = bodies.count(DIRECTIVES["latest_session_only"].text)
    assert overshot + bodies.count(DIRECTIVES["quote_all"].text) == 300
    assert overshot / 300 == pytest.approx(overshoot_risk(support), abs=0.08)  # 3 standard deviations at most


def test_nothing_to_write_gives_a_general_rule_and_that_once():
    ((new,), rejections) = written([pattern("conclude")])
    assert (new.name, rejections) == ("careful-work", [])
    assert written([pattern("conclude")], new) == ((), ["induce:duplicate"])


def test_a_capability_that_narrows_is_written_as_asked():
    ((new,), _) = written([pattern("answer in a full sentence")])
    assert new.body == DIRECTIVES["full_sentence"].text


def test_an_overshoot_narrows_what_the_same_kind_of_agent_does():
    assert set(OVERSHOOTS) == {key for key, d in DIRECTIVES.items() if d.spontaneous > 0}
    for key, other in OVERSHOOTS.items():
        assert DIRECTIVES[key].kind == DIRECTIVES[other].kind
        assert DIRECTIVES[other].spontaneous == 0
    assert [overshoot_risk(n) for n in (1, 2, 4)] == [1 / 2, 1 / 3, 1 / 5]


# --- what can go wrong ---


@pytest.mark.parametrize(
    ("title", "document", "message"),
    [
        ("merge credits", {"questions": 2, "mean_credit": 0.1, "credits": []}, "field credits"),
        ("merge credits", {"questions": 2, "credits": [{}]}, "field mean_credit"),
        ("refine a skill", {"skill": {"name": "a"}}, "field skill.body"),
        ("consolidate skills", {"skills": []}, "field skills"),
        ("write a skill", {"patterns": []}, "field patterns"),
        ("write a skill", {"patterns": [{"failure_type": "x", "suggestions": ["y"]}]}, "no section '# Library'"),
        ("write a skill", [], "document"),
    ],
)
def test_an_invalid_request_is_an_error_that_names_the_place(title, document, message):
    with pytest.raises(ModelError, match=message):
        task(title, document)


def test_the_library_is_what_stands_last():
    """A role may speak of a library too."""
    document = {"patterns": [{"failure_type": "x", "suggestions": [CAPABILITIES["quote_all"]], "questions": 9}]}
    reply = task("write a skill", document, '<role>\n# Library\nBe kind.\n</role>\n# Library\n{"skills": []}')
    InducedReply.model_validate(reply)
    with pytest.raises(ModelError, match="section '# Library'"):
        task("write a skill", document, "# Library\nnone")


def test_a_merge_of_long_edits_fits_the_reply():
    credits = [
        {"credit": -0.5, "contribution": "harmful", "suggested_edit": "x" * 900, "redundant_with": list("abcdef")}
    ]
    MergeReply.model_validate(task("merge credits", {"questions": 1, "mean_credit": -0.5, "credits": credits}))
