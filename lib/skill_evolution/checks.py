"""Checks on a critic's reply: an item counts only if what it names and quotes is there (paper 3.2).

Each check returns the reason for which an item is dropped, or None. Reasons: unknown_agent, unknown_skill,
unknown_rollout, unknown_step, step_of_other_agent, no_citation, quote_not_found, no_failure (every cited
rollout has the full reward), action_not_allowed, not_used_where_cited.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, StringConstraints

from skill_evolution.feedback import Action, FailureType
from skill_evolution.replies import Reply
from skill_evolution.rollouts import EQUAL, Group, Trajectory
from skill_evolution.teams import Libraries, Step, Team

Name = Annotated[str, Field(max_length=64)]
Number = Annotated[int, Field(strict=True)]  # neither true nor "1" names a step

# Which agents a failure can be laid at, and what may be done about it (our table; FACTS has none). An answer in the
# wrong form is the answering agent's doing; what was not found or not handed on is not. "other" says too little to
# remove a skill or to write one.
_ALL: tuple[Action, ...] = ("refine", "prune", "consolidate", "induce", "none")
_ALLOWED: dict[FailureType, tuple[tuple[bool, ...], tuple[Action, ...]]] = {
    # failure type: (values of Role.answers that may be at fault, actions)
    "retrieval_miss": ((False,), _ALL),
    "evidence_dropped": ((False,), _ALL),
    "reasoning_error": ((False, True), _ALL),
    "answer_format": ((True,), _ALL),
    "wrong_abstention": ((False, True), _ALL),
    "other": ((False, True), ("refine", "none")),
}


def failure_types(*, answers: bool) -> tuple[FailureType, ...]:
    """The failures that an agent which answers, or one which doesn't, can be at fault for and learn from."""
    return tuple(kind for kind, (places, actions) in _ALLOWED.items() if answers in places and "induce" in actions)


class Citation(Reply):
    """A numbered step of a numbered rollout."""

    rollout: Number
    step: Number


class QuotedCitation(Citation):
    """A step with a quotation from it."""

    # stripped first: three blanks stand in every step
    quote: Annotated[str, StringConstraints(strip_whitespace=True, min_length=3, max_length=300)]


@dataclass(frozen=True)
class Checker:
    """The facts that a reply about one group is checked against."""

    team: Team
    libraries: Libraries
    group: Group

    def skill(self, agent: str, skill: str) -> str | None:
        """Whether the agent is in the team and the skill in its library."""
        if agent not in self.team.agents:
            return "unknown_agent"
        return None if self.libraries[agent].get(skill) else "unknown_skill"

    def citations(self, agent: str, citations: Iterable[Citation]) -> str | None:
        """Whether there is a citation, and every cited rollout and step is there and the agent's own."""
        if agent not in self.team.agents:
            return "unknown_agent"
        cited = list(citations)
        if not cited:
            return "no_citation"
        for citation in cited:
            reason = self._citation(agent, citation)
            if reason:
                return reason
        return None

    def _citation(self, agent: str, citation: Citation) -> str | None:
        trajectory = self._trajectory(citation.rollout)
        if trajectory is None:
            return "unknown_rollout"
        step = _step(trajectory, citation.step)
        if step is None:
            return "unknown_step"
        if step.agent != agent:
            return "step_of_other_agent"
        if isinstance(citation, QuotedCitation) and _folded(citation.quote) not in _folded(step.text):
            return "quote_not_found"
        return None

    def action(
        self, agent: str, failure_type: FailureType, action: Action, skill: str | None, cited: Iterable[Citation]
    ) -> str | None:
        """Whether the action is allowed for the failure type, the agent and the cited rollouts."""
        answers = next(role.answers for role in self.team.roles if role.agent == agent)
        places, actions = _ALLOWED[failure_type]
        # In a team of one, all that goes wrong is its doing.
        if (answers not in places and len(self.team.roles) > 1) or action not in actions:
            return "action_not_allowed"
        needs_skill = action in ("refine", "prune", "consolidate")
        if needs_skill != (skill is not None) and action != "none":
            return "action_not_allowed"
        if action == "consolidate" and len(self.libraries[agent]) < 2:
            return "action_not_allowed"
        if action == "prune" and skill and not self._used(agent, skill, cited):
            return "not_used_where_cited"
        return None

    def failure(self, cited: Iterable[Citation]) -> str | None:
        """Whether a cited rollout fell short of the full reward."""
        cited_ones = [t for citation in cited if (t := self._trajectory(citation.rollout))]
        return None if any((t.reward or 0.0) < 1 - EQUAL for t in cited_ones) else "no_failure"

    def _used(self, agent: str, skill: str, cited: Iterable[Citation]) -> bool:
        trajectories = (self._trajectory(citation.rollout) for citation in cited)
        return any(t.execution and skill in t.execution.used[agent] for t in trajectories if t)

    def _trajectory(self, number: int) -> Trajectory | None:
        """The finished rollout of a number, counted from 1 as in the payload."""
        if not 1 <= number <= len(self.group.trajectories):
            return None
        trajectory = self.group.trajectories[number - 1]
        return None if trajectory.execution is None else trajectory


def _step(trajectory: Trajectory, number: int) -> Step | None:
    steps = trajectory.execution.steps if trajectory.execution else ()
    return steps[number - 1] if 1 <= number <= len(steps) else None


def _folded(text: str) -> str:
    return " ".join(text.split())
