"""Across questions: credits to one verdict a skill, needs to patterns with support (paper 3.3, FACTS A "MASkills").

Repeated rollouts and repeated questions count once: support is the number of distinct questions.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import Field

from skill_evolution.aio import gather
from skill_evolution.benchmarks.scoring import stem
from skill_evolution.checks import Name
from skill_evolution.feedback import Credit, Diagnosis, Feedback, Need, Rejection, collapse, mean_value
from skill_evolution.prompting import render
from skill_evolution.replies import Caller, Reply
from skill_evolution.skills import Skill, SkillLibrary
from skill_evolution.teams import Libraries

VerdictName = Literal["keep", "refine", "redundant", "low_utility"]
SIMILAR = 0.5  # Jaccard similarity of word stems from which two capabilities are one (our choice)
EXAMPLES = 6  # diagnoses that a pattern keeps (as MASkills' hard cases)
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
    """A capability that an agent was missing in several questions. `category` is set if conditioned on labels."""

    agent: str
    failure_type: str
    capability: str
    questions: tuple[str, ...]
    examples: tuple[str, ...] = ()
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
        diagnoses = [diagnosis for feedback in feedbacks for diagnosis in feedback.diagnoses]
        patterns = group_needs(needs, diagnoses, categories=categories if label_conditioned else None)
    else:
        patterns = [Pattern(n.agent, n.failure_type, n.capability, (n.question,)) for n in needs]
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


def group_needs(
    needs: Iterable[Need], diagnoses: Sequence[Diagnosis] = (), *, categories: dict[str, str] | None = None
) -> list[Pattern]:
    """Needs to patterns, by falling support.

    Needs of one agent and failure type whose capabilities share half their word stems are one pattern; those that find
    no partner are another, all together: wordings differ more than failures do, and the optimizer, which is shown the
    cases, says what they have in common. A pattern carries the capability that is named most often. Diagnoses of its
    questions, agent and failure type are examples.
    """
    clusters: dict[tuple[str, str, str | None], list[list[Need]]] = {}
    # The most frequent wordings lead: what a pattern holds depends on the needs and not on their order.
    needs = list(needs)
    named = Counter(need.capability for need in needs)
    for need in sorted(needs, key=lambda n: (-named[n.capability], n.capability, n.question)):
        place = (need.agent, need.failure_type, categories[need.question] if categories else None)
        _join(clusters.setdefault(place, []), need)
    patterns = [
        _pattern(place, cluster, diagnoses) for place, groups in clusters.items() for cluster in _paired(groups)
    ]  # fmt: skip
    return sorted(patterns, key=lambda p: (-p.support, p.agent, p.failure_type, p.capability))


def _paired(clusters: list[list[Need]]) -> list[list[Need]]:
    """The clusters of several questions, and one of all that is left."""
    several = [cluster for cluster in clusters if len({need.question for need in cluster}) > 1]
    rest = [need for cluster in clusters if cluster not in several for need in cluster]
    return [*several, rest] if rest else several


def _join(clusters: list[list[Need]], need: Need) -> None:
    stems = _stems(need.capability)
    for cluster in clusters:
        if _similarity(stems, _stems(cluster[0].capability)) >= SIMILAR:
            cluster.append(need)
            return
    clusters.append([need])


def _pattern(
    place: tuple[str, str, str | None], cluster: list[Need], diagnoses: Sequence[Diagnosis]
) -> Pattern:  # fmt: skip
    agent, failure_type, category = place
    named = Counter(need.capability for need in cluster)
    capability = max(sorted(named), key=lambda text: named[text])
    questions = tuple(dict.fromkeys(need.question for need in cluster))
    examples = [
        d.suggestion or d.quotes[0]
        for d in diagnoses
        if d.question in questions and d.agent == agent and d.failure_type == failure_type
    ]
    return Pattern(agent, failure_type, capability, questions, tuple(dict.fromkeys(examples))[:EXAMPLES], category)


@lru_cache(maxsize=4096)
def _stems(text: str) -> frozenset[str]:
    words = "".join(c if c.isalnum() else " " for c in text.lower()).split()
    return frozenset(stem(word) for word in words)


def _similarity(a: frozenset[str], b: frozenset[str]) -> float:
    union = a | b
    return len(a & b) / len(union) if union else 0.0
