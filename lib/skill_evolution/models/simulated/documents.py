"""The JSON documents in a critic's and an optimizer's messages, as the simulated reader needs them.

Fields that it has no use for are passed over; one that it needs and that is missing or of another type is a ModelError
that names the place.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from skill_evolution.models.base import ModelError

_TAG = re.compile(r"</?(?:grep|handover|answer)>", re.IGNORECASE)


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


D = TypeVar("D", bound=_Document)


class SkillText(_Document):
    """A skill as it is shown; nothing but its texts."""

    name: str
    description: str = ""
    body: str


class AgentText(_Document):
    """An agent: its name, whether it gives the team's answer, its skills."""

    agent: str
    answers: bool = False
    skills: list[SkillText] = []


class TeamText(_Document):
    """The team in a critic's system message."""

    agents: list[AgentText]

    @model_validator(mode="after")
    def _one_answers(self) -> "TeamText":
        if sum(agent.answers for agent in self.agents) != 1:
            raise ValueError("exactly one agent must have answers true")
        return self

    @property
    def answering(self) -> str:
        """The name of the agent that gives the answer."""
        return next(agent.agent for agent in self.agents if agent.answers)

    def skills(self, agent: str) -> list[SkillText]:
        """The skills of an agent; none for a name that is not in the team."""
        return next((a.skills for a in self.agents if a.agent == agent), [])


class _StepText(_Document):
    step: int
    agent: str
    kind: str
    text: str | None = None
    see: str | None = None


class _RolloutText(_Document):
    rollout: int
    reward: float
    steps: list[_StepText]
    skills_used: dict[str, list[str]] = {}
    final_answer: str | None = None


class _CaseText(_Document):
    question: str
    gold_answer: str
    gold_evidence: list[str] = []
    texts: dict[str, str] = {}
    rollouts: Annotated[list[_RolloutText], Field(min_length=1)]


class CreditText(_Document):
    """A credit in a merge call; None where a skill was diagnosed and not credited."""

    credit: float | None = None
    contribution: str = "neutral"
    suggested_edit: str | None = None
    redundant_with: list[str] = []


class MergeTask(_Document):
    """The document of a merge call."""

    questions: int
    mean_credit: float | None
    credits: Annotated[list[CreditText], Field(min_length=1)]


class RefineTask(_Document):
    """The document of a refine call."""

    skill: SkillText
    suggested_edit: str | None = None


class ConsolidateTask(_Document):
    """The document of a consolidate call."""

    skills: Annotated[list[SkillText], Field(min_length=1)]


class PatternText(_Document):
    """A pattern of failure with the number of questions behind it."""

    failure_type: str
    suggestions: Annotated[list[str], Field(min_length=1)]
    questions: Annotated[int, Field(ge=1)] = 1


class WriteTask(_Document):
    """The document of a call that asks for a new skill."""

    patterns: Annotated[list[PatternText], Field(min_length=1)]


class LibraryText(_Document):
    """The library in an optimizer's system message."""

    skills: list[SkillText]


@dataclass(frozen=True)
class Step:
    """A step as the message shows it, its reference to a shared text resolved."""

    number: int
    agent: str
    kind: str
    text: str


@dataclass(frozen=True)
class Rollout:
    """A rollout as the message shows it; `used` maps agents to the skills that they say they followed."""

    number: int
    reward: float
    steps: tuple[Step, ...]
    used: Mapping[str, Sequence[str]]
    answer: str | None

    def own(self, agent: str) -> list[Step]:
        """The steps of an agent."""
        return [step for step in self.steps if step.agent == agent]

    def texts(self, kind: str, agent: str | None = None) -> list[str]:
        """The texts of one kind of step (of one agent), without tags and without the word for "nothing"."""
        return [
            _TAG.sub("", step.text).replace("NO_EVIDENCE", "").strip()
            for step in self.steps
            if step.kind == kind and agent in (None, step.agent)
        ]

    def handed_over(self, agent: str | None = None) -> str:
        """What agents (or one) handed over; the answering agent sees all of it."""
        return "\n".join(self.texts("handover", agent)).strip()

    def seen(self) -> str:
        """All that tools returned."""
        return "\n".join(self.texts("result"))


@dataclass(frozen=True)
class Case:
    """One question with its rollouts; `context` are the lines of the gold evidence."""

    question: str
    gold: str
    context: str
    rollouts: tuple[Rollout, ...]

    @property
    def best(self) -> Rollout:
        """The rollout with the highest reward, the first of equals."""
        return max(self.rollouts, key=lambda r: r.reward)


def read(document: type[D], text: str, where: str) -> D:
    """A document in a message.

    Raises:
        ModelError: The text is not JSON, or a field is missing or of another type.
    """
    try:
        return document.model_validate_json(text)
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(str(part) for part in fault["loc"])
        raise ModelError(f"simulated reader: {where}{place and f', field {place}'}: {fault['msg']}") from error


def read_section(document: type[D], system: str, title: str) -> D:
    """The document under the last heading `title` of a system message; ModelError as in `read`."""
    _, heading, text = system.rpartition(f"# {title}\n")
    if not heading:
        raise ModelError(f"simulated reader: the system message has no section '# {title}'")
    return read(document, text, f"section '# {title}'")


def read_case(user: str) -> Case:
    """The question and rollouts in a critic's user message.

    Raises:
        ModelError: As in `read`, or a step refers to a text that isn't there.
    """
    case = read(_CaseText, user, "the critic's document")
    rollouts = (
        Rollout(r.rollout, r.reward, tuple(_step(s, case.texts) for s in r.steps), r.skills_used, r.final_answer)
        for r in case.rollouts
    )
    return Case(case.question, case.gold_answer, "\n".join(case.gold_evidence), tuple(rollouts))


def _step(step: _StepText, texts: Mapping[str, str]) -> Step:
    text = step.text if step.text is not None else texts.get(step.see or "")
    if text is None:
        raise ModelError(f"simulated reader: step {step.step} has no text, and none stands under {step.see!r}")
    return Step(step.step, step.agent, step.kind, text)
