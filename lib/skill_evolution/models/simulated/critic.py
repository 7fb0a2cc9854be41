"""The simulated reader as a critic: of groups of rollouts, and of single trajectories.

Of a group it credits a skill by comparing the runs in which it was recorded as used with those in which it had an
occasion and was not, each agent by its own part of the work; by nothing else, so no credit rests on what a skill's text
or name says. Shown a single trajectory it can only credit what was present by the reward. Texts are read for repairs,
by the same rule for both: where a skill asks for the contrary of what was missing, that is suggested as an edit.
All figures are our choice.
"""

import json
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from skill_evolution.models.simulated.chance import Chance
from skill_evolution.models.simulated.directives import recognise
from skill_evolution.models.simulated.documents import (
    AgentText,
    Case,
    Rollout,
    SkillText,
    TeamText,
    read_case,
    read_section,
)
from skill_evolution.models.simulated.judging import LOW, Failure, covered, given, locate, opposed, outcome

DIFFERENCE = 0.05  # a smaller difference between runs with and without a skill is none
DIAGNOSES = 2  # failures that are described a group
CREDITS = 16  # that a reply holds, the strongest ones: what the shorter of the two reply forms has room for
CITATIONS = 4


def compare_rollouts(system: str, user: str, chance: Chance) -> str:
    """The reply to "compare rollouts".

    Raises:
        ModelError: A message is not what the task asks for.
    """
    del chance  # it reads, it does not guess
    team, case = read_section(TeamText, system, "Team"), read_case(user)
    failures = _failures(case, team.answering)
    credits = [credit for agent in team.agents for credit in _contrasts(agent, case, team.answering)]
    credits = _strongest(credits, "credit")
    if '"diagnoses"' not in system.partition("# Team\n")[0]:
        return _reply(credits, feedback=[_plain(f, team.skills(f.agent)) for f in failures])
    known = {(c["agent"], c["skill"]): c["credit"] for c in credits}
    return _reply(
        credits,
        diagnoses=[
            diagnosis
            for f in failures
            if f.quote  # without a quotation nothing is proved
            for diagnosis in _diagnoses(f, team.skills(f.agent), known)
        ],
    )


def _reply(credits: list[dict[str, Any]], **lists: list[dict[str, Any]]) -> str:
    return json.dumps({"credits": credits, **lists}, ensure_ascii=False)


def _strongest(credits: list[dict[str, Any]], value: str) -> list[dict[str, Any]]:
    """As many credits as a reply holds, by the size of the field `value`."""
    return sorted(credits, key=lambda credit: -abs(credit[value]))[:CREDITS]


def _summary(failure: Failure) -> str:
    return f"{failure.failure_type}: {failure.capability}"


def _failures(case: Case, answering: str) -> list[Failure]:
    """The failures of the worst runs, one a kind."""
    found: dict[tuple[str, str], Failure] = {}
    for rollout in sorted(case.rollouts, key=lambda r: r.reward):
        failure = locate(case, rollout, answering)
        if failure is not None:
            found.setdefault((failure.agent, failure.capability), failure)
    return list(found.values())[:DIAGNOSES]


def _contrasts(agent: AgentText, case: Case, answering: str) -> list[dict[str, Any]]:
    """Credits of an agent's skills: its outcome with the skill less its outcome without, like compared with like.

    Only runs count that tell how the agent's own part went (`judging.outcome`), and of those without the skill only
    the ones in which it had an occasion (`_without`).
    """
    outcomes = [(r, o) for r in case.rollouts if (o := outcome(r, agent.agent, case, answering)) is not None]
    credits = []
    for skill in agent.skills:
        used = [(r, o) for r, o in outcomes if skill.name in r.used.get(agent.agent, ())]
        unused = _without(skill.name, agent.agent, outcomes, [r for r, _ in used])
        if used and unused:
            difference = statistics.fmean(o for _, o in used) - statistics.fmean(unused)
            if abs(difference) >= DIFFERENCE:
                credits += _credit(agent.agent, skill.name, difference, [r for r, _ in used])
    return credits


def _without(skill: str, agent: str, outcomes: Sequence[tuple[Rollout, float]], used: Sequence[Rollout]) -> list[float]:
    """The outcomes of the runs without a skill in which it had an occasion.

    A skill that asks how to handle what was found cannot be followed where nothing was found. Such a run is one
    without the skill, and a bad one, but not because the skill was missing. What the occasion is shows in the runs
    with the skill: if the agent was given something to work on in every one of them, it may need that, and runs in
    which the agent was given nothing are left out. If the skill was followed with nothing given, too, it needs none,
    and all runs are compared. This is by what the agent was given and never by what it made of it (an answer that
    was declined, say): that can be the skill's effect. It looks at no text of a skill.

    A skill on what to search for also decides whether anything is found. The record of use doesn't tell it from one
    that waits for a hit, so of such a skill's effect less is seen.
    """
    needed = all(given(rollout, agent) for rollout in used)
    return [
        value
        for rollout, value in outcomes
        if skill not in rollout.used.get(agent, ()) and (given(rollout, agent) or not needed)
    ]


def _credit(agent: str, skill: str, value: float, used: Sequence[Rollout]) -> list[dict[str, Any]]:
    """A credit that cites the agent's last step in the runs with the skill; none where there is no such step."""
    citations = [{"rollout": r.number, "step": own[-1].number} for r in used if (own := r.own(agent))][:CITATIONS]
    value = round(max(-1.0, min(1.0, value)), 3)
    return [{"agent": agent, "skill": skill, "credit": value, "citations": citations}] if citations else []


def _cited(failure: Failure) -> dict[str, Any]:
    return {"rollout": failure.rollout.number, "step": failure.step}


def _plain(failure: Failure, skills: Sequence[SkillText]) -> dict[str, Any]:
    """Feedback where no diagnoses are asked for."""
    missing = None if covered(failure.capability, skills) else failure.capability
    return {"agent": failure.agent, "summary": failure.capability, "missing_capability": missing}


def _diagnoses(
    failure: Failure, skills: Sequence[SkillText], credits: Mapping[tuple[str, str], float]
) -> list[dict[str, Any]]:
    """What to change and what to write; `skills` are the agent's, `credits` what the comparison says of them.

    Of the skills in use one that asks for the contrary of what was missing can be repaired, unless the comparison
    speaks for it; else the one that the comparison speaks against most is to go.
    """
    used = {s.name: s for s in skills if s.name in failure.rollout.used.get(failure.agent, ())}
    credit = {name: credits.get((failure.agent, name), 0.0) for name in used}
    contrary = [name for name in used if opposed(failure.capability, used[name].body) and credit[name] <= 0]
    worst = min(used, key=lambda name: credit[name], default=None)
    uncovered = not covered(failure.capability, skills)
    skill, action = None, "induce" if uncovered else "none"
    if contrary:
        skill, action = contrary[0], "refine"
    elif worst and credit[worst] < 0:
        skill, action = worst, "prune"
    found = {
        "failure_type": failure.failure_type,
        "agent": failure.agent,
        "skill": skill,
        "citations": [{**_cited(failure), "quote": failure.quote}],
        "action": action,
        "suggestion": failure.capability,
        "redundant_with": [],
    }
    return [found, {**found, "skill": None, "action": "induce"}] if uncovered and action != "induce" else [found]


def assess_trajectory(system: str, user: str, chance: Chance) -> str:
    """The reply to "assess one trajectory": every skill that was used is credited by the reward.

    Raises:
        ModelError: A message is not what the task asks for.
    """
    del chance
    team, case = read_section(TeamText, system, "Team"), read_case(user)
    rollout = case.rollouts[0]
    failure = locate(case, rollout, team.answering)
    credits = [
        _presence(agent, skill, rollout.reward, failure)
        for agent in team.agents
        for skill in agent.skills
        if skill.name in rollout.used.get(agent.agent, ())
    ]
    credits = _strongest(credits, "utility_delta")
    return _reply(credits, residuals=[_residual(failure, team.skills(failure.agent))] if failure else [])


def _residual(failure: Failure, skills: Sequence[SkillText]) -> dict[str, Any]:
    missing = not covered(failure.capability, skills)
    return {
        "agent": failure.agent,
        "summary": _summary(failure),
        "needs_new_skill": missing,
        "missing_capability": failure.capability if missing else None,
    }


def _presence(agent: AgentText, skill: SkillText, reward: float, failure: Failure | None) -> dict[str, Any]:
    """Credit for having been there, from -1 at a reward of 0 to 1 at a reward of 1."""
    own = {d.key for d, _ in recognise(skill.body)}
    twins = [
        other.name
        for other in agent.skills
        if other is not skill and own and own == {d.key for d, _ in recognise(other.body)}
    ]
    contrary = failure and failure.agent == agent.agent and opposed(failure.capability, skill.body)
    return {
        "agent": agent.agent,
        "skill": skill.name,
        "contribution": "redundant" if twins else "helped" if reward > LOW else "harmful",
        "utility_delta": round(max(-1.0, min(1.0, 2 * reward - 1)), 3),
        "evidence": f"it was followed in a run with reward {reward:.2f}",
        "suggested_edit": failure.capability if failure and contrary else None,
        "redundant_with": twins[:CITATIONS],
        "conflict_with": [],
    }


TASKS = {"compare rollouts": compare_rollouts, "assess one trajectory": assess_trajectory}
