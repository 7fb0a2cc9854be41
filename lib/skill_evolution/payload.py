"""What a critic is shown: roles and libraries, then one question with its rollouts, as JSON (paper appendix F).

Roles and libraries come first: all critic calls of an iteration share them. A text that repeats stands once under
"texts" and is referred to. What must be cut to fit the model's context is marked and counted.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from skill_evolution.cases import facts, gold_lines
from skill_evolution.rollouts import Group
from skill_evolution.skills import SkillLibrary
from skill_evolution.teams import Libraries, Step, Team

CHARACTERS_A_TOKEN = 3  # a careful estimate for English and JSON: real tokenizers need fewer tokens (our choice)
REPEATED = 80  # characters; a shorter text is not worth a reference
_MARKER = 40  # characters, at most, of the mark that stands for what was cut
_LIMITS = (16_000, 8_000, 4_000, 2_000, 1_000, 500, 250, 120)


@dataclass(frozen=True)
class Payload:
    """The user message of a critic call and how many texts had to be cut for it."""

    text: str
    cuts: int


class PayloadTooLongError(ValueError):
    """The payload doesn't fit the model's context even with every text cut to the shortest."""


def team_payload(team: Team, libraries: Libraries) -> str:
    """Roles and skill libraries of all agents, as JSON."""
    return _team_payload(team, tuple(libraries[agent] for agent in team.agents))


@lru_cache(maxsize=16)  # all groups of an iteration have the same one
def _team_payload(team: Team, libraries: tuple[SkillLibrary, ...]) -> str:
    agents = [
        {
            "agent": role.agent,
            "role": role.instructions,
            "answers": role.answers,
            "skills": [{"name": s.name, "description": s.description, "body": s.body} for s in library],
        }
        for role, library in zip(team.roles, libraries, strict=True)
    ]
    return json.dumps({"agents": agents}, ensure_ascii=False, indent=1)


def group_payload(group: Group, *, room: int, relative: bool = True, show_category: bool = False) -> Payload:
    """One question and its finished rollouts, as JSON.

    Args:
        group: the rollouts; those that did not finish are left out, the others keep their numbers (from 1).
        room: tokens there are for this message.
        relative: show advantages (a critic of single trajectories has none).
        show_category: show the question's category (the label-conditioned ablation).

    Raises:
        PayloadTooLongError: it can't be made to fit.
    """
    text = ""
    for limit in (None, *_LIMITS):
        cuts: list[int] = []
        text = json.dumps(
            _document(group, limit, cuts, relative=relative, show_category=show_category),
            ensure_ascii=False,
        )
        if len(text) <= room * CHARACTERS_A_TOKEN:
            return Payload(text, len(cuts))
    raise PayloadTooLongError(f"question {group.question.id}: {len(text)} characters do not fit {room} tokens")


def _document(
    group: Group, limit: int | None, cuts: list[int], *, relative: bool, show_category: bool
) -> dict[str, Any]:
    question = group.question
    document: dict[str, Any] = {"question": question.text, "gold_answer": question.answer}
    if show_category:
        document["category"] = question.category
    document["gold_evidence"] = [_cut(line, limit, cuts) for line in gold_lines(question)]
    shared = _repeated([s for t in group.finished if t.execution for s in t.execution.steps])
    if shared:
        document["texts"] = {key: _cut(text, limit, cuts) for text, key in shared.items()}
    document["rollouts"] = [
        _rollout(group, index, limit, cuts, shared, relative=relative) for index in range(len(group.trajectories))
    ]
    document["rollouts"] = [rollout for rollout in document["rollouts"] if rollout]
    return document


def _repeated(steps: Sequence[Step]) -> dict[str, str]:
    counts = Counter(step.text for step in steps if len(step.text) >= REPEATED)
    repeated = [text for text, count in counts.items() if count > 1]
    return {text: f"T{number}" for number, text in enumerate(repeated, start=1)}


def _rollout(
    group: Group, index: int, limit: int | None, cuts: list[int], shared: dict[str, str], *, relative: bool
) -> dict[str, Any]:
    trajectory, advantage = group.trajectories[index], group.advantages[index]
    if trajectory.execution is None or trajectory.reward is None or advantage is None:
        return {}
    rollout: dict[str, Any] = {"rollout": index + 1, "reward": round(trajectory.reward, 3)}
    if relative:
        rollout["advantage"] = round(advantage, 3)
    rollout["facts"] = facts(trajectory)
    rollout["steps"] = [_step(step, limit, cuts, shared) for step in trajectory.execution.steps]
    rollout["skills_used"] = {agent: list(names) for agent, names in trajectory.execution.used.items()}
    rollout["final_answer"] = trajectory.execution.answer
    return rollout


def _step(step: Step, limit: int | None, cuts: list[int], shared: dict[str, str]) -> dict[str, Any]:
    entry: dict[str, Any] = {"step": step.number, "agent": step.agent, "kind": step.kind}
    if step.text in shared:
        entry["see"] = shared[step.text]
    else:
        entry["text"] = _cut(step.text, limit, cuts)
    return entry


def _cut(text: str, limit: int | None, cuts: list[int]) -> str:
    if limit is None or len(text) <= limit:
        return text
    half = (limit - _MARKER) // 2
    cuts.append(len(text) - 2 * half)
    return f"{text[:half]} [... {len(text) - 2 * half} characters cut ...] {text[-half:]}"
