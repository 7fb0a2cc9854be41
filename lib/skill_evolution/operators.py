"""What changes a library: refine, consolidate, prune, induce; each on a copy, each with a record (paper 3.4).

An edit that can't be applied, leaks training text or is not a well-formed skill is rejected with its reason.
"""

import hashlib
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any

from pydantic import Field

from skill_evolution.aggregation import Pattern, Verdict
from skill_evolution.aio import gather
from skill_evolution.cases import Case
from skill_evolution.feedback import Rejection
from skill_evolution.leaks import LeakCheck
from skill_evolution.prompting import render
from skill_evolution.replies import Caller, Reply
from skill_evolution.reply_schemas import Names
from skill_evolution.skills import Edit, EditError, EditRecord, Skill, SkillLibrary, apply_edits, slug
from skill_evolution.teams import Role

CASES = 6  # shown to an induction call (as MASkills' hard cases)
EXAMPLES = 3  # of these that a skill may show
PATTERNS = 5  # shown to an induction call (as MASkills' residuals)
BODY = 4000  # characters a body may have once a model wrote or refined it (our choice)


class BoundedEdit(Edit):
    """An anchored edit within the length bounds of a reply."""

    anchor: Annotated[str, Field(max_length=1000)]
    text: Annotated[str, Field(max_length=2000)] = ""


class RefineReply(Reply):
    """Anchored edits to a skill's body."""

    edits: Annotated[list[BoundedEdit], Field(min_length=1, max_length=6)]


class SkillReply(Reply):
    """A whole skill, as induction and consolidation write it."""

    name: Annotated[str, Field(min_length=1, max_length=64)]
    description: Annotated[str, Field(min_length=1, max_length=1024)]
    body: Annotated[str, Field(min_length=1, max_length=BODY)]


class InducedReply(Reply):
    """A new skill and the numbers of the cases that it shows as examples. What the cases have in common comes first."""

    common: Annotated[str, Field(max_length=400)]
    body: Annotated[str, Field(min_length=1, max_length=BODY)]
    examples: Annotated[list[Annotated[int, Field(strict=True)]], Field(max_length=EXAMPLES)]
    description: Annotated[str, Field(min_length=1, max_length=1024)]
    name: Annotated[str, Field(min_length=1, max_length=64)]


Screen = Callable[[SkillLibrary], Awaitable[float]]


@dataclass(frozen=True)
class Change:
    """One applied change: the operator, the skills it touched and the record of it."""

    agent: str
    operator: str
    skill: str
    record: EditRecord


@dataclass
class Workshop:
    """One agent's library while the operators of an iteration work on it.

    `changes` and `rejections` tell what was done and what was refused. Of several `proposals` for a new skill the one
    goes on whose library scores best on the `screen`: a weak proposer helped by selection (ours; 1 is off).
    """

    role: Role
    library: SkillLibrary
    caller: Caller
    iteration: int
    leaks: LeakCheck
    proposals: int = 1
    screen: Screen | None = None
    changes: list[Change] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)

    @property
    def agent(self) -> str:
        """The agent whose library this is."""
        return self.role.agent

    async def refine(self, verdicts: Sequence[Verdict]) -> None:
        """Anchored edits for every skill whose verdict is "refine"."""
        for verdict in verdicts:
            skill = self.library.get(verdict.skill)
            if verdict.verdict == "refine" and skill is not None:
                await self._refine(skill, verdict)

    async def _refine(self, skill: Skill, verdict: Verdict) -> None:
        user = _json(skill=_shown(skill), summary=verdict.summary, suggested_edit=verdict.edit)
        reply = await self._ask("refine", RefineReply, user, skill.name)
        if isinstance(reply, Rejection):
            return self._reject("refine", reply)
        try:
            body = apply_edits(skill.body, reply.edits)
            edited = replace(skill, body=body, provenance="refined")
        except EditError as error:
            return self._reject("refine", Rejection("anchor", str(error)))
        except ValueError as error:
            return self._reject("refine", Rejection("not_a_skill", str(error)))
        if edited.text == skill.text:
            return self._reject("refine", Rejection("no_change", skill.name))
        if len(edited.body) > max(BODY, len(skill.body)):
            return self._reject("refine", Rejection("too_long", f"{skill.name}: {len(edited.body)} characters"))
        leak = self.leaks.found(edited.body, before=skill.body)
        if leak:
            return self._reject("refine", Rejection("leak", leak))
        self._apply("refine", skill, edited, verdict.questions)

    async def consolidate(self, verdicts: Sequence[Verdict]) -> None:
        """One skill from each group of skills that are redundant with one another."""
        for names in redundant_groups(verdicts, self.library):
            skills = [skill for skill in self.library if skill.name in names]
            reply = await self._ask("consolidate", SkillReply, _json(skills=[_shown(s) for s in skills]), names[0])
            skill = reply if isinstance(reply, Rejection) else self._written(reply, "consolidated", names)
            if isinstance(skill, Rejection):
                self._reject("consolidate", skill)
                continue
            merged = replace(
                skill,
                utility=sum(s.utility for s in skills) / len(skills),
                invocations=sum(s.invocations for s in skills),
                history=tuple(record for s in skills for record in s.history),
            )
            before = "\n\n".join(s.text for s in skills)
            for old in skills:
                self.library = self.library.without(old.name)
            self._add("consolidate", merged, tuple(names), before=before)

    def prune(self, verdicts: Sequence[Verdict], *, threshold: float) -> None:
        """Remove skills of verdict "low_utility" or a score at or below the threshold; never the last one."""
        for verdict in sorted(verdicts, key=lambda v: v.score):
            skill = self.library.get(verdict.skill)
            low = verdict.verdict == "low_utility" or verdict.score <= threshold
            if skill is None or not low or skill.name in self._merged():
                continue
            if len(self.library) == 1:
                self._reject("prune", Rejection("last_skill", skill.name))
                continue
            self.library = self.library.without(skill.name)
            record = EditRecord("prune", self.iteration, verdict.questions, skill.text, "")
            self.changes.append(Change(self.agent, "prune", skill.name, record))

    def _merged(self) -> set[str]:
        """Skills consolidated in this iteration: one that took over a name is not what the name's verdict is about."""
        return {change.skill for change in self.changes if change.operator == "consolidate"}

    async def induce(self, patterns: Sequence[Pattern], cases: Sequence[Case], *, cap: int) -> None:
        """At most one new skill, from the pattern with the most support, while there is room below the cap."""
        if not patterns:
            return
        if len(self.library) >= cap:
            return self._reject("induce", Rejection("library_full", patterns[0].failure_type))
        cases = [case for case in cases if not self.leaks.answer(case.example())][:CASES]
        user = _json(
            cases=[{"case": number, **asdict(case)} for number, case in enumerate(cases, 1)],
            patterns=[_pattern(pattern) for pattern in patterns[:PATTERNS]],
        )
        drafts = await gather(self._draft(user, cases, number) for number in range(self.proposals))
        skills = {skill.body: skill for skill in drafts if isinstance(skill, Skill)}
        for draft in drafts:
            if isinstance(draft, Rejection):
                self._reject("induce", draft)
        if skills:
            self._add("induce", await self._best(list(skills.values())), patterns[0].questions, before="")

    async def _draft(self, user: str, cases: Sequence[Case], number: int) -> Skill | Rejection:
        names = {"examples": range(1, len(cases) + 1)}
        reply = await self._ask("induce", InducedReply, user, f"new/{number}", names)
        if isinstance(reply, Rejection):
            return reply
        skill = self._written(reply, "induced", ())
        shown = [cases[n - 1].example() for n in dict.fromkeys(reply.examples) if 1 <= n <= len(cases)]
        if isinstance(skill, Rejection) or not shown:
            return skill
        # Names and answers are letters here; what the model wrote was checked by itself.
        return replace(skill, body="\n\n".join([skill.body, *(f"Example.\n{text}" for text in shown)]))

    async def _best(self, skills: Sequence[Skill]) -> Skill:
        if len(skills) == 1 or self.screen is None:
            return skills[0]
        scores = await gather(self.screen(self.library.with_skill(skill)) for skill in skills)
        return skills[scores.index(max(scores))]

    async def _ask(self, operator: str, schema: Any, user: str, name: str, names: Names | None = None) -> Any:
        library = [_shown(skill) for skill in self.library]
        system = render(f"optimizer/{operator}.md.j2", role=self.role, library=_json(skills=library))
        return await self.caller.ask_whole(
            system=system, user=user, schema=schema, purpose=f"optimizer/{operator}",
            name=f"{self.agent}/{operator}/{name}", names=names,
        )  # fmt: skip

    def _written(self, reply: SkillReply | InducedReply, provenance: Any, replaced: Sequence[str]) -> Skill | Rejection:
        """A skill from a model's reply: its name made valid and free, its text checked."""
        taken = [skill.name for skill in self.library if skill.name not in replaced]
        digest = hashlib.sha256(f"{self.agent}/{self.iteration}/{reply.name}/{reply.body}".encode("utf-8", "replace"))
        try:
            skill = Skill(
                name=slug(reply.name, taken), description=reply.description, body=reply.body,
                id=digest.hexdigest()[:12], provenance=provenance,
            )  # fmt: skip
        except ValueError as error:
            return Rejection("not_a_skill", str(error))
        if any(skill.body == other.body for other in self.library if other.name not in replaced):
            return Rejection("duplicate", skill.name)
        before = "\n".join(f"{s.name}\n{s.text}" for s in self.library)
        leak = self.leaks.found(f"{reply.name}\n{skill.text}", before=before)
        return Rejection("leak", leak) if leak else skill

    def _apply(self, operator: str, skill: Skill, edited: Skill, evidence: tuple[str, ...]) -> None:
        record = EditRecord(operator, self.iteration, evidence, skill.text, edited.text)
        self.library = self.library.with_skill(replace(edited, history=(*skill.history, record)))
        self.changes.append(Change(self.agent, operator, skill.name, record))

    def _add(self, operator: str, skill: Skill, evidence: tuple[str, ...], *, before: str) -> None:
        record = EditRecord(operator, self.iteration, evidence, before, skill.text)
        self.library = self.library.with_skill(replace(skill, history=(*skill.history, record)))
        self.changes.append(Change(self.agent, operator, skill.name, record))

    def _reject(self, operator: str, rejection: Rejection) -> None:
        self.rejections.append(Rejection(f"{operator}:{rejection.reason}", rejection.item))


def redundant_groups(verdicts: Sequence[Verdict], library: SkillLibrary) -> list[list[str]]:
    """Skills joined by redundant_with, as groups of at least two names in the library's order (union-find)."""
    parent = {name: name for name in library.names()}

    def root(name: str) -> str:
        while parent[name] != name:
            name = parent[name]
        return name

    for verdict in verdicts:
        for partner in verdict.redundant_with:
            if verdict.verdict == "redundant" and verdict.skill in parent and partner in parent:
                parent[root(verdict.skill)] = root(partner)
    groups: dict[str, list[str]] = {}
    for name in library.names():
        groups.setdefault(root(name), []).append(name)
    return [names for names in groups.values() if len(names) > 1]


def _shown(skill: Skill) -> dict[str, Any]:
    return {"name": skill.name, "description": skill.description, "body": skill.body}


def _pattern(pattern: Pattern) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "failure_type": pattern.failure_type,
        "questions": pattern.support,
        "suggestions": list(pattern.suggestions),
    }
    return shown if pattern.category is None else {"category": pattern.category, **shown}


def _json(**values: Any) -> str:
    return json.dumps(values, ensure_ascii=False, indent=1)
