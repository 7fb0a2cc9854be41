"""Checks of a critic's items: what they name and quote must be there."""

from dataclasses import replace

import pytest
import toy
from pydantic import ValidationError

from skill_evolution.grse.checks import Checker, Citation, QuotedCitation
from skill_evolution.grse.feedback import Action, FailureType
from skill_evolution.skills import SkillLibrary
from skill_evolution.teams.team import Team


def checker(*, skills: int = 2, used: dict[str, tuple[str, ...]] | None = None) -> Checker:
    names = ("search-twice", "read-on")[:skills]
    own = tuple(toy.skill(name, body=f"Do {name}.") for name in names)
    return Checker(toy.TEAM, toy.libraries(own, (toy.skill("be-short"),)), toy.group(1.0, None, 0.0, used=used))


def quoted(step: int, quote: str, rollout: int = 1) -> QuotedCitation:
    return QuotedCitation(rollout=rollout, step=step, quote=quote)


@pytest.mark.parametrize(
    ("agent", "skill", "reason"),
    [
        ("agent_1", "search-twice", None),
        ("agent_3", "search-twice", "unknown_agent"),
        ("agent_1", "be-short", "unknown_skill"),  # it is the other agent's
        ("agent_1", "Search-Twice", "unknown_skill"),
        ("agent_1", "", "unknown_skill"),
    ],
)
def test_skill(agent: str, skill: str, reason: str | None):
    assert checker().skill(agent, skill) == reason


@pytest.mark.parametrize(
    ("rollout", "step", "reason"),
    [
        (1, 1, None),
        (1, 2, None),
        (3, 2, None),
        (1, 3, "step_of_other_agent"),
        (2, 1, "unknown_rollout"),  # it did not finish
        (0, 1, "unknown_rollout"),
        (-1, 1, "unknown_rollout"),
        (4, 1, "unknown_rollout"),
        (1, 0, "unknown_step"),
        (1, -1, "unknown_step"),
        (1, 4, "unknown_step"),
        (10**30, 1, "unknown_rollout"),
    ],
)
def test_citation(rollout: int, step: int, reason: str | None):
    assert checker().citations("agent_1", [Citation(rollout=rollout, step=step)]) == reason


def test_one_bad_citation_among_good_ones_is_enough_and_none_at_all_is_not():
    good, bad = Citation(rollout=1, step=1), Citation(rollout=1, step=9)
    assert checker().citations("agent_1", [good, bad]) == "unknown_step"
    assert checker().citations("agent_1", []) == "no_citation"
    assert checker().citations("nobody", [good]) == "unknown_agent"


@pytest.mark.parametrize(
    ("quote", "reason"),
    [
        ("Box 1 is blue", None),  # the step has a line break there
        ("Box 1\n\n is\tblue.", None),
        ("box 1 is blue", "quote_not_found"),  # copied means copied
        ("Box 1 is green", "quote_not_found"),
        ("<grep>", "quote_not_found"),  # stands in another step
    ],
)
def test_quotation(quote: str, reason: str | None):
    assert checker().citations("agent_1", [quoted(2, quote)]) == reason


@pytest.mark.parametrize("quote", ["   ", "\n\t ", " a ", "", "x" * 301])
def test_a_quotation_says_something(quote: str):
    with pytest.raises(ValidationError):
        quoted(2, quote)


@pytest.mark.parametrize("number", [True, 1.5, "1", None, [1]])
def test_a_number_is_a_number(number: object):
    with pytest.raises(ValidationError):
        Citation.model_validate({"rollout": number, "step": 1})


ANSWERING, OTHERS = "agent_2", "agent_1"
PLACES: dict[FailureType, tuple[str, ...]] = {
    "retrieval_miss": (OTHERS,),
    "evidence_dropped": (OTHERS,),
    "reasoning_error": (OTHERS, ANSWERING),
    "answer_format": (ANSWERING,),
    "wrong_abstention": (OTHERS, ANSWERING),
    "other": (OTHERS, ANSWERING),
}


@pytest.mark.parametrize("failure_type", PLACES)
@pytest.mark.parametrize("agent", [OTHERS, ANSWERING])
def test_a_failure_is_laid_only_at_an_agent_that_can_have_made_it(failure_type: FailureType, agent: str):
    found = checker().action(agent, failure_type, "none", None, [])
    assert found == (None if agent in PLACES[failure_type] else "action_not_allowed")


def test_a_team_of_one_can_miss_and_drop_what_it_searches_itself():
    team = Team("alone", (replace(toy.TEAM.roles[1], agent="agent_1"),))
    alone = Checker(team, {"agent_1": SkillLibrary("agent_1")}, toy.group(0.0))
    assert alone.action("agent_1", "retrieval_miss", "induce", None, []) is None


@pytest.mark.parametrize(
    ("action", "skill", "reason"),
    [
        ("refine", "search-twice", None),
        ("refine", None, "action_not_allowed"),
        ("prune", None, "action_not_allowed"),
        ("consolidate", None, "action_not_allowed"),
        ("consolidate", "search-twice", None),
        ("induce", "search-twice", "action_not_allowed"),
        ("induce", None, None),
        ("none", "search-twice", None),
        ("none", None, None),
    ],
)
def test_an_action_has_a_skill_or_none(action: Action, skill: str | None, reason: str | None):
    assert checker().action("agent_1", "retrieval_miss", action, skill, []) == reason


@pytest.mark.parametrize("action", ["prune", "consolidate", "induce"])
def test_other_failures_only_refine(action: Action):
    skill = None if action == "induce" else "search-twice"
    used = {"agent_1": ("search-twice",)}
    found = checker(used=used).action("agent_1", "other", action, skill, [Citation(rollout=1, step=1)])
    assert found == "action_not_allowed"


def test_one_skill_alone_is_not_consolidated():
    assert checker(skills=1).action("agent_1", "other", "consolidate", "search-twice", []) == "action_not_allowed"
    found = checker(skills=1).action("agent_1", "retrieval_miss", "consolidate", "search-twice", [])
    assert found == "action_not_allowed"


def test_pruning_needs_a_cited_rollout_in_which_the_skill_was_used():
    cited = [Citation(rollout=1, step=1)]
    for used, reason in [
        ({}, "not_used_where_cited"),
        ({"agent_1": ("read-on",)}, "not_used_where_cited"),
        ({"agent_2": ("search-twice",)}, "not_used_where_cited"),
        ({"agent_1": ("read-on", "search-twice")}, None),
    ]:
        assert checker(used=used).action("agent_1", "retrieval_miss", "prune", "search-twice", cited) == reason
    used = {"agent_1": ("search-twice",)}
    assert checker(used=used).action("agent_1", "retrieval_miss", "prune", "search-twice", []) == "not_used_where_cited"
