"""MASkills, the baseline: the same loop with one rollout a question and a critic of single trajectories.

Written from its description (FACTS A "MASkills"); none of its code or prompts is used. Two of its known faults are
avoided: with no skill named none is credited, and a bad anchor rejects the edit.
"""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from skill_evolution.checks import Checker, Name
from skill_evolution.critic import Capability, Signed, Text, fitted, question_key, well_formed
from skill_evolution.feedback import UNSPECIFIED, Contribution, Credit, Feedback, Need, Rejection
from skill_evolution.payload import team_payload
from skill_evolution.prompting import render
from skill_evolution.replies import Caller, Reply, checked, valid_items
from skill_evolution.reply_schemas import Names
from skill_evolution.rollouts import Group
from skill_evolution.teams import Libraries, Team


class TrajectoryCredit(Reply):
    """Credit of one skill in one trajectory."""

    agent: Name
    skill: Name
    contribution: Contribution
    utility_delta: Signed
    evidence: Text = ""
    suggested_edit: Text | None = None
    redundant_with: Annotated[list[Name], Field(max_length=4)] = []
    conflict_with: Annotated[list[Name], Field(max_length=4)] = []


class Residual(Reply):
    """What of an agent's part no skill explains."""

    agent: Name
    summary: Text
    needs_new_skill: bool
    missing_capability: Capability | None


class TrajectoryReply(Reply):
    """The critic's reply about one trajectory."""

    residuals: Annotated[list[Residual], Field(min_length=1, max_length=8)]
    credits: Annotated[list[TrajectoryCredit], Field(max_length=16)]


@dataclass(frozen=True)
class TrajectoryCritic:
    """Judges each trajectory on its own, with gold answer, reward and the skills that were followed."""

    team: Team

    async def __call__(self, group: Group, libraries: Libraries, caller: Caller) -> Feedback:
        """The checked feedback of a question's trajectory (G = 1)."""
        system = render("critic/trajectory.md.j2", team=team_payload(self.team, libraries))
        payload = fitted(group, system, caller, relative=False)
        key, category = question_key(group.question), group.question.category
        if isinstance(payload, Rejection):
            return Feedback(key, category, rejections=(payload,))
        reply = await caller.ask(
            system=system, user=payload.text, schema=TrajectoryReply, purpose="critic", name=group.question.id,
            names=self._names(libraries),
        )  # fmt: skip
        if isinstance(reply, str):
            return Feedback(key, category, rejections=(Rejection(reply, ""),), cuts=payload.cuts)
        return _read(reply, Checker(self.team, libraries, group), key, category, payload.cuts)

    def _names(self, libraries: Libraries) -> Names:
        skills = [name for library in libraries.values() for name in library.names()]
        return {"agent": self.team.agents, **dict.fromkeys(("skill", "redundant_with", "conflict_with"), skills)}


def _read(reply: dict[str, Any], checker: Checker, key: str, category: str, cuts: int) -> Feedback:
    rejections: list[Rejection] = []
    reply = well_formed(reply, TrajectoryReply, rejections)
    credits = checked(
        valid_items(reply, "credits", TrajectoryCredit, rejections),
        lambda i: (
            next((r for name in (i.skill, *i.redundant_with) if (r := checker.skill(i.agent, name))), None)
            or (None if _followed(checker.group, i) else "not_used")
        ),
        rejections,
    )
    residuals = checked(
        valid_items(reply, "residuals", Residual, rejections),
        lambda i: None if i.agent in checker.team.agents else "unknown_agent",
        rejections,
    )
    needs = [
        Need(key, i.agent, UNSPECIFIED, i.missing_capability)
        for i in residuals
        if i.needs_new_skill and i.missing_capability
    ]
    return Feedback(
        key,
        category,
        credits=tuple(
            Credit(key, i.agent, i.skill, i.utility_delta, i.contribution, i.suggested_edit, tuple(i.redundant_with))
            for i in credits
        ),
        needs=tuple(needs),
        rejections=tuple(rejections),
        cuts=cuts,
    )


def _followed(group: Group, item: TrajectoryCredit) -> bool:
    return any(t.execution and item.skill in t.execution.used[item.agent] for t in group.finished)
