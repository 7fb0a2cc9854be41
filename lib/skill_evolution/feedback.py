"""What a critic's accepted reply says: credits, needs and diagnoses, one Feedback a group; and what was rejected."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

FailureType = Literal[
    "retrieval_miss", "evidence_dropped", "reasoning_error", "answer_format", "wrong_abstention", "other"
]
Action = Literal["refine", "prune", "consolidate", "induce", "none"]
Contribution = Literal["helped", "redundant", "harmful", "neutral"]
UNSPECIFIED = "unspecified"  # the failure type of a need where the critic was not asked for one


@dataclass(frozen=True)
class Credit:
    """What one question says about one agent's skill.

    `value` is in [-1, 1], or None where a diagnosis names the skill and no credit was given: it then has a say in the
    direction and none in utility and score. `edit` is a suggested change.
    """

    question: str
    agent: str
    skill: str
    value: float | None
    contribution: Contribution
    edit: str | None = None
    redundant_with: tuple[str, ...] = ()


@dataclass(frozen=True)
class Diagnosis:
    """A checked failure diagnosis. `quotes` stand in the cited steps; `suggestion` says what to change."""

    question: str
    agent: str
    failure_type: FailureType
    skill: str | None
    action: Action
    quotes: tuple[str, ...]
    suggestion: str
    redundant_with: tuple[str, ...] = ()


@dataclass(frozen=True)
class Need:
    """Induction evidence: a capability that an agent was missing in one question."""

    question: str
    agent: str
    failure_type: str
    capability: str


@dataclass(frozen=True)
class Rejection:
    """An item of a reply, or a whole reply, that did not pass a check."""

    reason: str
    item: str


@dataclass(frozen=True)
class Feedback:
    """All that came of one critic call. `question` is the question's key, `category` its label."""

    question: str
    category: str
    credits: tuple[Credit, ...] = ()
    diagnoses: tuple[Diagnosis, ...] = ()
    needs: tuple[Need, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    cuts: int = 0

    @property
    def accepted(self) -> int:
        """Items that passed the checks."""
        return len(self.credits) + max(len(self.diagnoses), len(self.needs))  # a need may stand in a diagnosis


def collapse(credits: Iterable[Credit]) -> list[Credit]:
    """One credit a (question, agent, skill): the mean value; edits and partners joined (paper 3.3).

    The collapsed contribution is the one of the value, unless every item says "redundant".
    """
    grouped: dict[tuple[str, str, str], list[Credit]] = {}
    for credit in credits:
        grouped.setdefault((credit.question, credit.agent, credit.skill), []).append(credit)
    return [_collapsed(items) for items in grouped.values()]


def _collapsed(items: list[Credit]) -> Credit:
    if len(items) == 1:
        return items[0]
    first = items[0]
    value = mean_value(items)
    edits = list(dict.fromkeys(item.edit for item in items if item.edit))
    partners = tuple(dict.fromkeys(name for item in items for name in item.redundant_with))
    redundant = all(item.contribution == "redundant" for item in items)
    contribution: Contribution = "redundant" if redundant else contribution_of(value or 0.0)
    if value is None and any(item.contribution == "harmful" for item in items):
        contribution = "harmful"
    return Credit(first.question, first.agent, first.skill, value, contribution, " ".join(edits) or None, partners)


def mean_value(credits: Iterable[Credit]) -> float | None:
    """The mean of the values that are there, None if there is none; the same in any order."""
    values = [credit.value for credit in credits if credit.value is not None]
    return math.fsum(values) / len(values) if values else None


NEUTRAL = 0.05  # credits within this of zero neither help nor harm (our choice)


def contribution_of(value: float) -> Contribution:
    """MASkills' label for a signed credit."""
    if abs(value) <= NEUTRAL:
        return "neutral"
    return "helped" if value > 0 else "harmful"
