"""Across questions: credits to one verdict a skill, needs to patterns with support (paper 3.3, FACTS A "MASkills").

Repeated rollouts and repeated questions count once: support is the number of distinct questions.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import Field

from skill_evolution.aio import gather
from skill_evolution.checks import Name
from skill_evolution.feedback import Credit, Feedback, Need, Rejection, collapse, mean_value
from skill_evolution.prompting import render
from skill_evolution.replies import Caller, Reply
from skill_evolution.skills import Skill, SkillLibrary
from skill_evolution.teams import Libraries

VerdictName = Literal["keep", "refine", "redundant", "low_utility"]
SUGGESTIONS = 6  # that a pattern keeps (as MASkills' hard cases)
_SHOWN = 24  # credits that a merge call shows


@dataclass(frozen=True)
class Verdict:
    """The direction for one skill. `support` counts distinct questions, `mean` and `score` are in [-1, 1].

    `score` is the sum over questions divided by (support + 1): one question alone decides little (our choice).
    """

    agent: str
    skill: str
    verdict: VerdictName
    support: int
    mean: float
    score: float
    summary: str = ""
    edit: str | None = None
    redundant_with: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pattern:
    """A failure of an agent in several questions. `category` is set if conditioned on labels."""

    agent: str
    failure_type: str
    suggestions: tuple[str, ...]
    questions: tuple[str, ...]
    category: str | None = None

    @property
    def support(self) -> int:
        """Distinct questions."""
        return len(self.questions)


@dataclass(frozen=True)
class Aggregate:
    """What an iteration's feedback says: a verdict a credited skill, patterns by falling support, rejected merges."""

    verdicts: tuple[Verdict, ...]
    patterns: tuple[Pattern, ...]
    rejections: tuple[Rejection, ...] = ()


class MergeReply(Reply):
    """The merge call's reply: one verdict from several credits of a skill."""

    verdict: VerdictName
    summary: Annotated[str, Field(max_length=600)] = ""
    suggested_edit: Annotated[str, Field(max_length=600)] | None = None
    redundant_with: Annotated[list[Name], Field(max_length=4)] = []


async def aggregate(
    feedbacks: Sequence[Feedback],
    libraries: Libraries,
    caller: Caller,
    *,
    group_patterns: bool = True,
    label_conditioned: bool = False,
) -> Aggregate:
    """Verdicts and patterns of an iteration.

    Args:
        feedbacks: one a group.
        libraries: the libraries that the groups ran under.
        caller: for the merge calls (purpose "optimizer/aggregate").
        group_patterns: needs are grouped into patterns; else each is passed on alone, as they come (MASkills).
        label_conditioned: credits of a skill are aggregated a category, and the category with the most support
            speaks for the skill; patterns don't reach across categories (ablation; our reading of paper D).
    """
    categories = {f.question: f.category for f in feedbacks}
    credits = collapse(credit for feedback in feedbacks for credit in feedback.credits)
    by_skill: dict[tuple[str, str], list[Credit]] = {}
    for credit in credits:
        by_skill.setdefault((credit.agent, credit.skill), []).append(credit)
    if label_conditioned:
        by_skill = {place: _largest_category(items, categories) for place, items in by_skill.items()}
    outcomes = await gather(
        _verdict(libraries[agent], skill, items, caller) for (agent, skill), items in sorted(by_skill.items())
    )
    needs = [need for feedback in feedbacks for need in feedback.needs]
    if group_patterns:
        patterns = group_needs(needs, categories=categories if label_conditioned else None)
    else:
        patterns = [Pattern(n.agent, n.failure_type, (n.capability,), (n.question,)) for n in needs]
    rejections = tuple(rejection for _, rejection in outcomes if rejection)
    return Aggregate(tuple(verdict for verdict, _ in outcomes), tuple(patterns), rejections)


def _largest_category(credits: list[Credit], categories: dict[str, str]) -> list[Credit]:
    counts = Counter(categories[credit.question] for credit in credits)
    largest = max(sorted(counts), key=lambda category: counts[category])
    return [credit for credit in credits if categories[credit.question] == largest]


async def _verdict(
    library: SkillLibrary, name: str, credits: list[Credit], caller: Caller
) -> tuple[Verdict, Rejection | None]:
    base = rule_verdict(credits)
    if len(credits) == 1:
        return base, None
    skill = library.get(name)
    assert skill is not None  # the checks let no other name through
    reply = await _merge(skill, library, credits, caller)
    if isinstance(reply, Rejection):
        return base, reply
    partners = tuple(p for p in dict.fromkeys(reply.redundant_with) if p != name and library.get(p))
    merged = replace(
        base, verdict=reply.verdict, summary=reply.summary, edit=reply.suggested_edit or base.edit,
        redundant_with=partners or base.redundant_with,
    )  # fmt: skip
    return merged, None


def rule_verdict(credits: Sequence[Credit]) -> Verdict:
    """The verdict without a merge call. One credit maps by MASkills' rule; several by their mean.

    helped and neutral: refine if an edit is suggested, else keep; redundant: redundant; harmful: low_utility.
    """
    first = credits[0]
    values = [credit.value for credit in credits if credit.value is not None]
    mean, score = mean_value(credits), math.fsum(values) / (len(values) + 1)
    edit = next((credit.edit for credit in credits if credit.edit), None)
    partners = tuple(dict.fromkeys(name for credit in credits for name in credit.redundant_with))
    votes = Counter(credit.contribution for credit in credits)
    verdict: VerdictName = "refine" if edit else "keep"
    if votes["redundant"] * 2 > len(credits):
        verdict = "redundant"
    elif votes["harmful"] * 2 >= len(credits) and (mean is None or mean < 0 or len(credits) == 1):
        verdict = "low_utility"
    questions = tuple(credit.question for credit in credits)
    return Verdict(
        first.agent, first.skill, verdict, len(credits), mean or 0.0, score, edit=edit, redundant_with=partners,
        questions=questions,
    )  # fmt: skip


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


async def _merge(skill: Skill, library: SkillLibrary, credits: list[Credit], caller: Caller) -> MergeReply | Rejection:
    shown = [
        {"credit": _rounded(c.value), "contribution": c.contribution, "suggested_edit": c.edit,
         "redundant_with": list(c.redundant_with)}
        for c in credits[:_SHOWN]
    ]  # fmt: skip
    user = json.dumps(
        {
            "skill": {"name": skill.name, "description": skill.description, "body": skill.body},
            "other_skills": [s.name for s in library if s.name != skill.name],
            "questions": len(credits),
            "mean_credit": _rounded(mean_value(credits)),
            "credits": shown,
        },
        ensure_ascii=False,
        indent=1,
    )
    return await caller.ask_whole(
        system=render("optimizer/merge.md.j2"), user=user, schema=MergeReply, purpose="optimizer/aggregate",
        name=f"{library.agent}/aggregate/{skill.name}",
        names={"redundant_with": [s.name for s in library if s.name != skill.name]},
    )  # fmt: skip


def group_needs(needs: Iterable[Need], *, categories: dict[str, str] | None = None) -> list[Pattern]:
    """Needs to patterns, by falling support: one an agent and failure type (and category, if conditioned on it).

    What critics suggest differs in its wording more than the failures do; so what a pattern's questions have in common
    is left to the optimizer, which is shown their cases. A suggestion counts as a pattern does: by being made more than
    once; of those made once, which tend to be about their question, only one is kept, and only where there is no other.
    """
    places: dict[tuple[str, str, str | None], list[Need]] = {}
    for need in sorted(needs, key=lambda need: need.question):
        places.setdefault((need.agent, need.failure_type, categories and categories[need.question]), []).append(need)
    patterns = []
    for (agent, failure_type, category), found in places.items():
        named = Counter(text for _, text in sorted({(need.question, need.capability) for need in found}))
        suggestions = [text for text, count in named.most_common(SUGGESTIONS) if count > 1] or [
            named.most_common(1)[0][0]
        ]
        questions = tuple(dict.fromkeys(need.question for need in found))
        patterns.append(Pattern(agent, failure_type, tuple(suggestions), questions, category))
    return sorted(patterns, key=lambda p: (-p.support, p.agent, p.failure_type))
