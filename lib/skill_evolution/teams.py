"""Teams of agents with fixed roles and evolving skills: runs one question (paper 4.1 and appendix F).

Agents work in sequence. Each sees its role, its own skill library and the question, the passages if its role says so,
and what the agents before it handed over. The last one answers. Replies are free text with tags: a small model answers
better so than under a JSON schema.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from skill_evolution import paths
from skill_evolution.benchmarks.base import Question
from skill_evolution.models.base import ChatModel, Message, Request, Sampling
from skill_evolution.prompting import render
from skill_evolution.skills import SkillLibrary
from skill_evolution.skills.library import RESERVED
from skill_evolution.tools import grep

Libraries = Mapping[str, SkillLibrary]
StepKind = Literal["call", "result", "handover", "answer", "feedback"]

NO_EVIDENCE = "NO_EVIDENCE"
NO_ANSWER = "NO_ANSWER"
_TAGS = ("grep", "handover", "answer", "skills_used")
_MARK = re.compile(rf"</?(?:{'|'.join(_TAGS)})>", re.IGNORECASE)
_CLOSED = {name: re.compile(rf"<{name}>((?:(?!<{name}>).)*?)</{name}>", re.DOTALL | re.IGNORECASE) for name in _TAGS}
# A tag that isn't closed ends where the next one begins.
_OPEN = {name: re.compile(rf"<{name}>(.*?)(?=<(?:{'|'.join(_TAGS)})>|\Z)", re.DOTALL | re.IGNORECASE) for name in _TAGS}
_CITATION = re.compile(r"\[([^\[\]\n]+:\d+)\]")


@dataclass(frozen=True)
class Role:
    """A fixed role. `agent` names its place ("agent_1"); exactly the last role of a team has `answers`."""

    agent: str
    instructions: str
    sees_context: bool = False
    tools: tuple[Literal["grep"], ...] = ()
    answers: bool = False


@dataclass(frozen=True)
class Limits:
    """Bounds of one agent's turn. Defaults: LoCoMo's in FACTS A (3 searches, 20 lines, 6 excerpts)."""

    grep_calls: int = 3
    grep_lines: int = 20
    handover_items: int = 6


@dataclass(frozen=True)
class Step:
    """One numbered step of a trajectory. `cut` marks a reply that ended at its token limit."""

    number: int
    agent: str
    kind: StepKind
    text: str
    cut: bool = False


@dataclass(frozen=True)
class Execution:
    """What a team did with one question. `answer` is None where it declined.

    `used` maps each agent to the skills of its library that it named; `unknown_used` are names it doesn't have.
    `evidence` are the ids that the answering agent was handed. `problems` says what was off about the replies' form,
    one entry a fault: cut_off, broken_tags, ambiguous_reply (several results), untagged_handover, untagged_answer,
    search_refused (none was left, or the agent has no grep), empty_handover, empty_answer, handover_shortened; and of
    single-model baselines context_cut and empty_feedback. `lines_cut` counts the lines of a conversation that did not
    fit into a baseline's message.
    """

    answer: str | None
    steps: tuple[Step, ...]
    used: Mapping[str, tuple[str, ...]]
    unknown_used: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    lines_cut: int = 0


@lru_cache(maxsize=1024)
def system_prompt(role: Role, library: SkillLibrary, limits: Limits) -> str:
    """What all questions and rollouts under one library share; it comes first, so a server can cache it."""
    return render("agent_system.md.j2", role=role, skills=library.skills, limits=limits)


def tagged(name: str, text: str) -> list[str]:
    """What stands in a tag, in order: where it is closed, else where it is opened; without marks of other tags."""
    found = _CLOSED[name].findall(text) or _OPEN[name].findall(text)
    return [_MARK.sub("", part if name == "skills_used" else _without("skills_used", part)).strip() for part in found]


def _without(name: str, text: str) -> str:
    return _OPEN[name].sub("", _CLOSED[name].sub("", text)).strip()


def declined(text: str) -> bool:
    """Whether a hand-over or answer is NO_EVIDENCE or NO_ANSWER, in any case and with marks around it."""
    return re.sub(r"[\W_]+", "_", text).strip("_").upper() in (NO_ANSWER, NO_EVIDENCE)


def _form_faults(text: str) -> Iterator[str]:
    """What is wrong with the tags of a reply: each must be closed before the next, and only one give a result."""
    marks = [mark.lower() for mark in _MARK.findall(text)]
    if len(marks) % 2 or any(end != f"</{start[1:]}" for start, end in zip(marks[::2], marks[1::2], strict=False)):
        yield "broken_tags"
    if sum(not mark.startswith(("</", "<skills_used")) for mark in marks) > 1:
        yield "ambiguous_reply"


@dataclass
class Transcript:
    """The steps of an execution while it runs, and what was off about the replies so far."""

    steps: list[Step] = field(default_factory=list)
    named: dict[str, list[str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def add(self, agent: str, kind: StepKind, text: str, *, cut: bool = False) -> None:
        """A numbered step; one that ended at its token limit is a problem."""
        self.steps.append(Step(len(self.steps) + 1, agent, kind, text, cut))
        if cut:
            self.problems.append("cut_off")

    def add_reply(self, agent: str, kind: StepKind, text: str, *, cut: bool) -> None:
        """A step from a model's reply; the names of used skills are taken out of it and kept apart."""
        names = re.split(r"[,;\n]", "\n".join(tagged("skills_used", text)))
        # Models decorate names and write them with spaces.
        self.named.setdefault(agent, []).extend(
            name for part in names if (name := re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-"))
        )
        self.problems.extend(_form_faults(text))
        self.add(agent, kind, _without("skills_used", text), cut=cut)

    def result(self, name: Literal["handover", "answer"], text: str) -> str:
        """What a reply tags so: the last that isn't empty. Without any tag it is all that is no search, and noted."""
        parts = tagged(name, text)
        if not parts:
            self.problems.append(f"untagged_{name}")
            if tagged("grep", text):
                self.problems.append("search_refused")
            parts = [_MARK.sub("", _without("grep", _without("skills_used", text))).strip()]
        found = next((part for part in reversed(parts) if part), "")
        if not found:
            self.problems.append(f"empty_{name}")
        return found


@dataclass(frozen=True)
class Call:
    """How an execution calls its model. `sample_id` is extended by agent and turn."""

    model: ChatModel
    sampling: Sampling
    sample_id: str
    limits: Limits = Limits()


@dataclass(frozen=True)
class Team:
    """Agents in sequence. ValueError if names repeat, not exactly the last role answers, or that one has tools."""

    name: str
    roles: tuple[Role, ...]

    def __post_init__(self) -> None:
        names = [role.agent for role in self.roles]
        if len(set(names)) != len(names):
            raise ValueError(f"team {self.name!r}: agent names repeat: {names}")
        if [role.answers for role in self.roles] != [False] * (len(names) - 1) + [True]:
            raise ValueError(f"team {self.name!r}: exactly the last role must have answers=True")
        if self.roles[-1].tools:
            raise ValueError(f"team {self.name!r}: {names[-1]} answers in one reply and can't have tools")

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents' names, in the order they work."""
        return tuple(role.agent for role in self.roles)

    def empty_libraries(self) -> dict[str, SkillLibrary]:
        """A library without skills for every agent."""
        return {agent: SkillLibrary(agent=agent) for agent in self.agents}

    async def execute(self, question: Question, libraries: Libraries, call: Call) -> Execution:
        """Run the team on one question; ModelError if a call fails."""
        transcript = Transcript()
        handovers: list[tuple[str, str]] = []
        for role in self.roles[:-1]:
            handovers.append((role.agent, await _hand_over(role, question, libraries, handovers, transcript, call)))
        answer = await _answer(self.roles[-1], question, libraries, handovers, transcript, call)
        return _execution(answer, handovers, transcript, libraries)


async def _ask(role: Role, messages: Sequence[Message], call: Call, turn: int) -> tuple[str, bool]:
    sample_id = f"{call.sample_id}/{role.agent}/{turn}"
    request = Request(tuple(messages), call.sampling, f"actor/{role.agent}", sample_id)
    completion = await call.model.generate(request)
    return completion.text, completion.finish_reason == "length"


def _opening(
    role: Role, question: Question, libraries: Libraries, handovers: Sequence[tuple[str, str]], limits: Limits
) -> list[Message]:
    user = render(
        "agent_user.md.j2",
        context=question.context if role.sees_context else "",
        question=question.text,
        handovers=[{"agent": agent, "text": text} for agent, text in handovers],
    )
    return [Message("system", system_prompt(role, libraries[role.agent], limits)), Message("user", user)]


async def _hand_over(
    role: Role,
    question: Question,
    libraries: Libraries,
    handovers: Sequence[tuple[str, str]],
    transcript: Transcript,
    call: Call,
) -> str:
    messages = _opening(role, question, libraries, handovers, call.limits)
    left, turn = call.limits.grep_calls if "grep" in role.tools else 0, 0
    text, cut = await _ask(role, messages, call, turn)
    while left and (pattern := _search(text)) is not None:
        left, turn = left - 1, turn + 1
        transcript.add_reply(role.agent, "call", text, cut=cut)
        found = grep(pattern, question.document, limit=call.limits.grep_lines)
        result = render("grep_result.md.j2", **vars(found), left=left)
        transcript.add(role.agent, "result", result)
        messages += [Message("assistant", text), Message("user", result)]
        text, cut = await _ask(role, messages, call, turn)
    transcript.add_reply(role.agent, "handover", text, cut=cut)
    return _handed_over(transcript.result("handover", text), transcript, call.limits)


def _search(text: str) -> str | None:
    """The last pattern of a reply that searches; a reply with a whole hand-over is done, whatever else is in it."""
    whole = _CLOSED["grep"].search(text) and not _CLOSED["handover"].search(text)
    patterns = tagged("grep", text) if whole or not tagged("handover", text) else []
    return patterns[-1] if patterns else None


def _handed_over(text: str, transcript: Transcript, limits: Limits) -> str:
    """What the next agent sees of a hand-over: at most `handover_items` lines."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > limits.handover_items:
        transcript.problems.append("handover_shortened")
    return NO_EVIDENCE if declined(text) else "\n".join(lines[: limits.handover_items]) or NO_EVIDENCE


async def _answer(
    role: Role,
    question: Question,
    libraries: Libraries,
    handovers: Sequence[tuple[str, str]],
    transcript: Transcript,
    call: Call,
) -> str | None:
    text, cut = await _ask(role, _opening(role, question, libraries, handovers, call.limits), call, 0)
    transcript.add_reply(role.agent, "answer", text, cut=cut)
    answer = transcript.result("answer", text)
    return None if not answer or declined(answer) else answer


def _execution(
    answer: str | None, handovers: Sequence[tuple[str, str]], transcript: Transcript, libraries: Libraries
) -> Execution:
    used, unknown = {}, []
    for agent, library in libraries.items():
        named = dict.fromkeys(transcript.named.get(agent, ()))
        known = set(library.names())
        used[agent] = tuple(name for name in named if name in known)
        unknown += [f"{agent}: {name}" for name in named if name not in known and name != RESERVED]
    evidence = dict.fromkeys(_CITATION.findall("\n".join(text for _, text in handovers)))
    return Execution(answer, tuple(transcript.steps), used, tuple(unknown), tuple(evidence), tuple(transcript.problems))


def _role_text(team: str, agent: str) -> str:
    return (paths.PROMPTS / "teams" / team / f"{agent}.md").read_text(encoding="utf-8").strip()


def hotpotqa_team() -> Team:
    """Agent 1 reads question and passages and picks evidence, agent 2 answers from it (FACTS A "team")."""
    return Team(
        "hotpotqa",
        (
            Role("agent_1", _role_text("hotpotqa", "agent_1"), sees_context=True),
            Role("agent_2", _role_text("hotpotqa", "agent_2"), answers=True),
        ),
    )


def locomo_team() -> Team:
    """Agent 1 searches the conversation with grep, agent 2 answers from what it hands over (FACTS A "team")."""
    return Team(
        "locomo",
        (
            Role("agent_1", _role_text("locomo", "agent_1"), tools=("grep",)),
            Role("agent_2", _role_text("locomo", "agent_2"), answers=True),
        ),
    )


TEAMS = {"hotpotqa": hotpotqa_team, "locomo": locomo_team}
