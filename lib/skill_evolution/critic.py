"""The group-relative critic: one call a group, its reply checked item by item (paper 3.2).

`structured_diagnosis=False` (ablation) asks for credits and agent feedback only; a missing capability then comes
with the feedback and without a failure type.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Any, get_args

from annotated_types import MaxLen
from pydantic import Field, StringConstraints

from skill_evolution.benchmarks.base import Question
from skill_evolution.cases import evidence_handed_over, unnamed
from skill_evolution.checks import Checker, Citation, Name, QuotedCitation, failure_types
from skill_evolution.feedback import (
    UNSPECIFIED,
    Action,
    Credit,
    Diagnosis,
    FailureType,
    Feedback,
    Need,
    Rejection,
    contribution_of,
)
from skill_evolution.payload import CHARACTERS_A_TOKEN, Payload, PayloadTooLongError, group_payload, team_payload
from skill_evolution.prompting import render
from skill_evolution.replies import Caller, Reply, checked, unknown_fields, valid_items
from skill_evolution.reply_schemas import Names
from skill_evolution.rollouts import EQUAL, Group
from skill_evolution.teams import Libraries, Team

Text = Annotated[str, Field(max_length=400)]
Lesson = Annotated[str, StringConstraints(strip_whitespace=True, min_length=3, max_length=400)]
Capability = Annotated[str, StringConstraints(strip_whitespace=True, min_length=3, max_length=120)]
Signed = Annotated[float, Field(strict=True, ge=-1, le=1)]  # strict: true is no credit of 1
Citations = Annotated[list[Citation], Field(max_length=8)]

QUOTABLE, QUOTE = 24, 120  # lines, and characters of one, that a small model may choose a quotation from (our choice)


class CreditItem(Reply):
    """Credit of an agent's skill in this group, in [-1, 1], with the steps that show it."""

    agent: Name
    skill: Name
    credit: Signed
    citations: Citations


class CapabilityItem(Reply):
    """Agent feedback of the ablation without diagnoses: may name a capability that no skill covers."""

    agent: Name
    summary: Text
    missing_capability: Capability | None = None


class DiagnosisItem(Reply):
    """One diagnosed failure; `skill` is null where none is involved. With action induce it is induction evidence.

    The order is the order in which it is written: first what happened, then whose and which failure it is, then the
    lesson.
    """

    citations: Annotated[list[QuotedCitation], Field(min_length=1, max_length=8)]
    agent: Name
    failure_type: FailureType
    suggestion: Lesson
    skill: Name | None = None
    action: Action
    redundant_with: Annotated[list[Name], Field(max_length=4)] = []


class SolvedReply(Reply):
    """The critic's reply about a group without a failure, in which nothing has to be diagnosed."""

    contrast: Text = ""
    diagnoses: Annotated[list[DiagnosisItem], Field(max_length=12)]
    credits: Annotated[list[CreditItem], Field(max_length=24)]


class GroupReply(SolvedReply):
    """The critic's reply about a group: an empty one is no answer."""

    diagnoses: Annotated[list[DiagnosisItem], Field(min_length=1, max_length=12)]


class PlainReply(Reply):
    """The reply without structured diagnosis (ablation)."""

    feedback: Annotated[list[CapabilityItem], Field(min_length=1, max_length=8)]
    credits: Annotated[list[CreditItem], Field(max_length=24)]


def question_key(question: Question) -> str:
    """What makes two questions the same: repeated questions count once in aggregation (paper 3.3)."""
    return f"{question.group}|{' '.join(question.text.lower().split())}"


@dataclass(frozen=True)
class GroupCritic:
    """Compares the rollouts of one question and says which agent's skill made the difference."""

    team: Team
    structured_diagnosis: bool = True
    label_conditioned: bool = False

    async def __call__(self, group: Group, libraries: Libraries, caller: Caller) -> Feedback:
        """The checked feedback of a group; a reply that can't be used gives rejections and nothing else."""
        structured = self.structured_diagnosis
        schema = PlainReply if not structured else GroupReply if failed(group) else SolvedReply
        system = render("critic/group.md.j2", team=team_payload(self.team, libraries), structured=structured)
        payload = fitted(group, system, caller, show_category=self.label_conditioned)
        if isinstance(payload, Rejection):
            return _empty(group, payload)
        reply = await caller.ask(
            system=system, user=payload.text, schema=schema, purpose="critic", name=group.question.id,
            names=nameable(group, libraries, self.team),
        )  # fmt: skip
        if isinstance(reply, str):
            return _empty(group, Rejection(reply, ""), cuts=payload.cuts)
        return read_reply(reply, Checker(self.team, libraries, group), structured=structured, cuts=payload.cuts)


def failed(group: Group) -> bool:
    """Whether a rollout of the group fell short of the full reward."""
    return any(t.reward is not None and t.reward < 1 - EQUAL for t in group.finished)


def fitted(group: Group, system: str, caller: Caller, **options: Any) -> Payload | Rejection:
    """The payload that fits beside the system message and the longest reply, or the rejection."""
    room = caller.model.context_length - caller.sampling.max_tokens - len(system) // CHARACTERS_A_TOKEN
    try:
        return group_payload(group, room=room, **options)
    except PayloadTooLongError as error:
        return Rejection("payload_too_long", str(error))


def nameable(group: Group, libraries: Libraries, team: Team) -> Names:
    """What a reply about a group can name: agents, failure types, skills, rollouts and steps that fit the facts.

    An answer can't be better than its evidence. So where most failed rollouts had handed it over the fault is the
    answering agent's, and where most had not it is another's. A small model quotes one rollout as another's; so it may
    cite the worst of those runs. Which failure it is, where it shows and what to do is the critic's to say.
    """
    bad = [t for t in group.finished if (t.reward or 0.0) < 1 - EQUAL]
    handed = [evidence_handed_over(t) for t in bad]
    answers = sum(handed) * 2 >= len(bad) or len(team.roles) == 1
    agents = [role.agent for role in team.roles if role.answers == answers or not bad]
    shown = [t for t, had in zip(bad, handed, strict=True) if had == answers] or bad or list(group.finished)
    worst = min(shown, key=lambda t: t.reward or 0.0)
    steps = [s for s in (worst.execution.steps if worst.execution else ()) if s.agent in agents]
    skills = [name for agent in agents for name in libraries[agent].names()]
    kinds = [kind for kind in failure_types(answers=answers) if kind != "wrong_abstention"]
    if answers and worst.execution and worst.execution.answer is None:
        kinds = ["wrong_abstention"]  # declined although the evidence was there: by its definition
    return {
        "agent": agents,
        "failure_type": kinds if bad else get_args(FailureType),
        # "none" is an easy way out of a failure that was just described.
        "action": [a for a in get_args(Action) if a != "none"] if skills else ["induce"],
        **dict.fromkeys(("skill", "redundant_with", "conflict_with"), skills),
        "rollout": [group.trajectories.index(worst) + 1],
        "step": [step.number for step in steps],
        "quote": list(dict.fromkeys(line for step in steps for line in quotable(step.text)))[:QUOTABLE],
    }


def quotable(text: str) -> list[str]:
    """The lines of a step that a quotation may be, as they stand."""
    return [line.strip()[:QUOTE] for line in text.splitlines() if len(re.sub(r"</?\w+>", "", line).strip()) > 2]


def _empty(group: Group, rejection: Rejection, *, cuts: int = 0) -> Feedback:
    question = group.question
    return Feedback(question_key(question), question.category, rejections=(rejection,), cuts=cuts)


def read_reply(reply: dict[str, Any], checker: Checker, *, structured: bool, cuts: int = 0) -> Feedback:
    """What of a reply passes the checks, as feedback; the rest stands in its rejections."""
    question = checker.group.question
    key = question_key(question)
    rejections: list[Rejection] = []
    reply = well_formed(reply, GroupReply if structured else PlainReply, rejections)
    credits = checked(
        valid_items(reply, "credits", CreditItem, rejections),
        lambda i: checker.skill(i.agent, i.skill) or checker.citations(i.agent, i.citations),
        rejections,
    )
    diagnoses = _diagnoses(reply, checker, rejections) if structured else []
    needs = [Need(key, d.agent, d.failure_type, d.suggestion) for d in diagnoses if d.action == "induce"]
    if not structured:
        needs = _capabilities(key, reply, checker, rejections)
    return Feedback(
        key,
        question.category,
        credits=tuple(_credits(key, credits, diagnoses)),
        diagnoses=tuple(_diagnosis(key, item) for item in diagnoses),
        needs=tuple(needs),
        rejections=tuple(rejections),
        cuts=cuts,
    )


def well_formed(reply: dict[str, Any], schema: type[Reply], rejections: list[Rejection]) -> dict[str, Any]:
    """The fields of a reply that its schema has, less lists beyond their bound.

    Such a list is rejected as a whole: it comes from a model that repeats itself, and its first items are no better.
    """
    rejections += unknown_fields(reply, schema)
    kept = {}
    for name, field in schema.model_fields.items():
        if name not in reply:
            continue
        bound = next(m.max_length for m in field.metadata if isinstance(m, MaxLen))
        if isinstance(reply[name], list) and len(reply[name]) > bound:
            rejections.append(Rejection("too_many_items", f"{name}: {len(reply[name])}, at most {bound}"))
        else:
            kept[name] = reply[name]
    return kept


def _diagnoses(reply: dict[str, Any], checker: Checker, rejections: list[Rejection]) -> list[DiagnosisItem]:
    def check(item: DiagnosisItem) -> str | None:
        return (
            checker.citations(item.agent, item.citations)
            or (checker.skill(item.agent, item.skill) if item.skill is not None else None)
            or next((reason for name in item.redundant_with if (reason := checker.skill(item.agent, name))), None)
            or checker.action(item.agent, item.failure_type, item.action, item.skill, item.citations)
            or ("no_partner" if item.action == "consolidate" and not set(item.redundant_with) - {item.skill} else None)
            or (checker.failure(item.citations) if item.action != "none" else None)
        )

    items = valid_items(reply, "diagnoses", DiagnosisItem, rejections)
    return checked([_coherent(item, checker.group.question) for item in items], check, rejections)


def _coherent(item: DiagnosisItem, question: Question) -> DiagnosisItem:
    """With no skill to blame there is none to change: what was suggested is then evidence for a new one.

    The suggestion goes on without the question's names and answer, whatever the critic was asked for.
    """
    new = item.skill is None and item.action not in ("none", "induce") and item.failure_type != "other"
    action = "induce" if new else item.action
    return item.model_copy(update={"action": action, "suggestion": unnamed(item.suggestion, question)})


def _capabilities(key: str, reply: dict[str, Any], checker: Checker, rejections: list[Rejection]) -> list[Need]:
    items = checked(
        valid_items(reply, "feedback", CapabilityItem, rejections),
        lambda i: None if i.agent in checker.team.agents else "unknown_agent",
        rejections,
    )
    return [Need(key, i.agent, UNSPECIFIED, i.missing_capability) for i in items if i.missing_capability]


def _credits(key: str, items: list[CreditItem], diagnoses: list[DiagnosisItem]) -> list[Credit]:
    """Credits with what the diagnoses suggest about the same skill.

    A skill that is diagnosed but not credited gets a credit without value that carries the suggestion.
    """
    about: dict[tuple[str, str], list[DiagnosisItem]] = {}
    for item in diagnoses:
        if item.skill is not None and item.action != "none":
            about.setdefault((item.agent, item.skill), []).append(item)
    credits = [_credit(key, i.agent, i.skill, i.credit, about.get((i.agent, i.skill), [])) for i in items]
    credited = {(i.agent, i.skill) for i in items}
    return credits + [_credit(key, *place, None, found) for place, found in about.items() if place not in credited]


def _credit(key: str, agent: str, skill: str, value: float | None, diagnoses: list[DiagnosisItem]) -> Credit:
    edits = list(dict.fromkeys(d.suggestion for d in diagnoses if d.action == "refine" and d.suggestion))
    partners = [name for d in diagnoses if d.action == "consolidate" for name in d.redundant_with if name != skill]
    contribution = contribution_of(value or 0.0)
    if (value or 0.0) <= 0 and any(d.action == "prune" for d in diagnoses):
        contribution = "harmful"  # beside a credit above 0 it would be a contradiction; the comparison prevails
    elif partners:
        contribution = "redundant"
    return Credit(key, agent, skill, value, contribution, " ".join(edits) or None, tuple(dict.fromkeys(partners)))


def _diagnosis(key: str, item: DiagnosisItem) -> Diagnosis:
    return Diagnosis(
        key,
        item.agent,
        item.failure_type,
        item.skill,
        item.action,
        tuple(citation.quote for citation in item.citations),
        item.suggestion,
        tuple(item.redundant_with),
    )
