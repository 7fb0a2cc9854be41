"""The simulated reader as a critic: of groups of rollouts, and of single trajectories.

Of a group it credits a skill by comparing the runs in which it was recorded as used with those in which it was not,
each agent by its own part of the work. Shown a single trajectory it can only credit what was present by the reward.
It never looks a skill's name up anywhere: only texts and outcomes count.
"""

import json
import statistics
from typing import Any

from skill_evolution.models.simulated.chance import Chance
from skill_evolution.models.simulated.directives import recognise
from skill_evolution.models.simulated.judging import (
    LOW,
    Failure,
    Rollout,
    covered,
    local_outcome,
    locate,
    opposed,
    read_rollouts,
    restricting,
)

DIFFERENCE = 0.05  # a smaller difference between runs with and without a skill is none
BLAME = -0.5  # credit of a used skill that narrows what failed, where no run without it is there to compare with
DIAGNOSES = 2  # failures that are described a group


def _team(system: str) -> list[dict[str, Any]]:
    return json.loads(system.split("# Team\n", 1)[1])["agents"]


def _answering(agents: list[dict[str, Any]]) -> str:
    return next(agent["agent"] for agent in agents if agent["answers"])


def compare_rollouts(system: str, user: str, chance: Chance) -> str:
    """The reply to "compare rollouts"."""
    del chance  # it reads, it does not guess
    agents, payload = _team(system), json.loads(user)
    rollouts, answering = read_rollouts(payload), _answering(agents)
    best = max(rollouts, key=lambda r: r.reward)
    failures = _failures(payload, rollouts, best, answering)
    credits = [c for agent in agents for c in _contrasts(agent, rollouts, answering, payload["gold_answer"], best)]
    structured = "diagnoses" in system
    by_agent = {agent["agent"]: agent["skills"] for agent in agents}
    credits += _blames(by_agent, failures, credits)
    reply: dict[str, Any] = {"credits": credits}
    if structured:
        reply |= {
            "feedback": [{"agent": f.agent, "summary": f"{f.failure_type}: {f.capability}"} for _, f in failures],
            "induction": [_induction(r, f) for r, f in failures if not covered(f.capability, by_agent[f.agent])],
            "diagnoses": [_diagnosis(r, f, by_agent[f.agent]) for r, f in failures],
        }
    else:
        reply["feedback"] = [_plain(f, by_agent[f.agent]) for _, f in failures]
    return json.dumps(reply, ensure_ascii=False)


def _failures(
    payload: dict[str, Any], rollouts: list[Rollout], best: Rollout, answering: str
) -> list[tuple[Rollout, Failure]]:
    """The failures of the worst runs, one a kind."""
    found: dict[tuple[str, str], tuple[Rollout, Failure]] = {}
    for rollout in sorted(rollouts, key=lambda r: r.reward):
        failure = locate(payload, rollout, best if best is not rollout else None, answering)
        if failure is not None:
            found.setdefault((failure.agent, failure.capability), (rollout, failure))
    return list(found.values())[:DIAGNOSES]


def _contrasts(
    agent: dict[str, Any], rollouts: list[Rollout], answering: str, gold: str, best: Rollout
) -> list[dict[str, Any]]:
    name = agent["agent"]
    outcomes = {r.number: local_outcome(r, name, answering, gold, best) for r in rollouts}
    judged = [r for r in rollouts if outcomes[r.number] is not None]
    credits = []
    for skill in agent["skills"]:
        used = [r for r in judged if skill["name"] in r.used.get(name, ())]
        unused = [r for r in judged if r not in used]
        if not used or not unused:
            continue
        difference = statistics.fmean(outcomes[r.number] or 0.0 for r in used) - statistics.fmean(
            outcomes[r.number] or 0.0 for r in unused
        )
        if abs(difference) >= DIFFERENCE:
            credits.append(_credit(name, skill["name"], difference, used))
    return credits


def _credit(agent: str, skill: str, value: float, used: list[Rollout]) -> dict[str, Any]:
    citations = [{"rollout": r.number, "step": r.own(agent)[-1].number} for r in used[:4]]
    return {"agent": agent, "skill": skill, "credit": round(max(-1.0, min(1.0, value)), 3), "citations": citations}


def _blames(
    skills: dict[str, list[dict[str, Any]]], failures: list[tuple[Rollout, Failure]], credits: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Credits for used skills that narrow what failed and about which the runs give no contrast."""
    known = {(c["agent"], c["skill"]) for c in credits}
    blamed: dict[tuple[str, str], dict[str, Any]] = {}
    for rollout, failure in failures:
        for skill in restricting(skills[failure.agent], rollout.used.get(failure.agent, ())):
            place = (failure.agent, skill["name"])
            if place not in known:
                blamed.setdefault(place, _credit(*place, BLAME, [rollout]))
    return list(blamed.values())


def _induction(rollout: Rollout, failure: Failure) -> dict[str, Any]:
    return {
        "agent": failure.agent,
        "failure_type": failure.failure_type,
        "missing_capability": failure.capability,
        "citations": [{"rollout": rollout.number, "step": failure.step}],
    }


def _plain(failure: Failure, skills: list[dict[str, Any]]) -> dict[str, Any]:
    missing = None if covered(failure.capability, skills) else failure.capability
    return {"agent": failure.agent, "summary": failure.capability, "missing_capability": missing}


def _diagnosis(rollout: Rollout, failure: Failure, skills: list[dict[str, Any]]) -> dict[str, Any]:
    used = rollout.used.get(failure.agent, ())
    skill, action = None, "none" if covered(failure.capability, skills) else "induce"
    # A skill that asks for the contrary of what was missing can be repaired; another one that only narrows can't.
    contrary = [s for s in skills if s["name"] in used and opposed(failure.capability, s["body"])]
    if contrary or restricting(skills, used):
        skill, action = (contrary or restricting(skills, used))[0]["name"], "refine" if contrary else "prune"
    return {
        "failure_type": failure.failure_type,
        "agent": failure.agent,
        "skill": skill,
        "citations": [{"rollout": rollout.number, "step": failure.step, "quote": failure.quote}],
        "action": action,
        "suggestion": failure.capability,
        "redundant_with": [],
    }


def assess_trajectory(system: str, user: str, chance: Chance) -> str:
    """The reply to "assess one trajectory": every skill that was used is credited by the reward."""
    del chance
    agents, payload = _team(system), json.loads(user)
    rollout, answering = read_rollouts(payload)[0], _answering(agents)
    failure = locate(payload, rollout, None, answering)
    credits = []
    for agent in agents:
        for name in rollout.used.get(agent["agent"], ()):
            fault = failure if failure is not None and failure.agent == agent["agent"] else None
            credits.append(_presence(agent, name, rollout.reward, fault))
    residuals = []
    if failure is not None:
        skills = next(a["skills"] for a in agents if a["agent"] == failure.agent)
        missing = not covered(failure.capability, skills)
        residuals.append(
            {
                "agent": failure.agent,
                "summary": f"{failure.failure_type}: {failure.capability}",
                "needs_new_skill": missing,
                "missing_capability": failure.capability if missing else None,
            }
        )
    return json.dumps({"credits": credits, "residuals": residuals}, ensure_ascii=False)


def _presence(agent: dict[str, Any], name: str, reward: float, fault: Failure | None) -> dict[str, Any]:
    value = round(2 * reward - 1, 3)
    body = next(skill["body"] for skill in agent["skills"] if skill["name"] == name)
    own = {d.key for d, _ in recognise(body)}
    twins = [
        s["name"]
        for s in agent["skills"]
        if s["name"] != name and own and own == {d.key for d, _ in recognise(s["body"])}
    ]
    contribution = "redundant" if twins else "helped" if reward > LOW else "harmful"
    return {
        "agent": agent["agent"],
        "skill": name,
        "contribution": contribution,
        "utility_delta": value,
        "evidence": f"it was followed in a run with reward {reward:.2f}",
        "suggested_edit": fault.capability if fault and opposed(fault.capability, body) else None,
        "redundant_with": twins[:4],
        "conflict_with": [],
    }


TASKS = {"compare rollouts": compare_rollouts, "assess one trajectory": assess_trajectory}
