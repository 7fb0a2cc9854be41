"""Single-model baselines: one user message a call, no system message, no agents, no skills (paper 4.2, appendix A, F).

What they read is stated for HotpotQA only: "the same passages as the agent teams" (FACTS, grse.txt F). For LoCoMo we
give all of them the whole conversation (our choice: without agents there is nobody to search it). So `full_context` is
`direct` with answers of at most 32 tokens there, and is not applicable to HotpotQA. What of a conversation does not
fit the model's context is cut from its start: whole sessions, the oldest first; of a last session that is too long by
itself, the oldest turns. The prompt says so, the row counts the lines (`lines_cut`), and "context_cut" is among its
problems. Passages are never cut, as the teams' aren't: a question that doesn't fit is a failed row.

Replies have the teams' form and are read by the same rules (`teams.Transcript`): without a tag the whole reply is the
answer, and counted as such. Nothing is handed over, so `evidence`, and every metric made of it, is empty.
"""

import re
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from skill_evolution.base.aio import gather
from skill_evolution.benchmarks.base import Question
from skill_evolution.benchmarks.scoring import tokens
from skill_evolution.models.base import Completion, Message, Request
from skill_evolution.models.prompting import render
from skill_evolution.teams.team import NO_ANSWER, Call, Execution, Libraries, StepKind, Transcript, declined, tagged

AGENT = "single"
SAMPLES, TEMPERATURE = 5, 0.7  # CoT-SC (FACTS A "baselines")
ROUNDS = 3  # of feedback and revision, at most (FACTS A "baselines")
FULL_CONTEXT_TOKENS = 32  # longest reply, tags included (FACTS A "baselines")
NO_CHANGE = "NO_CHANGE"
CHARACTERS_A_TOKEN = 2.5  # careful: LoCoMo files have 2.9 to 3.1 with SmolLM2, which cuts dates into digits (measured)
_SESSION = re.compile(r"\[([^\[\]\n]+):\d+\]")


@dataclass
class _Talk:
    """One baseline's calls about one question."""

    question: Question
    call: Call
    transcript: Transcript = field(default_factory=Transcript)
    lines_cut: int = 0

    async def ask(self, template: str, name: str, **values: str) -> Completion:
        """One call. `name` extends the sample_id to this very call."""
        prompt, lines_cut = _prompt(template, self.question, _room(self.call), **values)
        self.lines_cut = max(self.lines_cut, lines_cut)
        request = Request(
            (Message("user", prompt),), self.call.sampling, f"actor/{AGENT}", f"{self.call.sample_id}/{AGENT}/{name}"
        )
        return await self.call.model.generate(request)

    def step(self, kind: StepKind, completion: Completion) -> str:
        """A reply as the next step; its text."""
        self.transcript.add_reply(AGENT, kind, completion.text, cut=completion.finish_reason == "length")
        return completion.text

    def answered(self, completion: Completion) -> str:
        """The answer that a reply gives, as the next step; "" where it holds nothing."""
        return self.transcript.result("answer", self.step("answer", completion))

    def execution(self, answer: str) -> Execution:
        """What came of it; an empty answer is a declined one, as a team's."""
        problems = (*self.transcript.problems, *(["context_cut"] if self.lines_cut else []))
        given = None if not answer or declined(answer) else answer
        return Execution(given, tuple(self.transcript.steps), {}, problems=problems, lines_cut=self.lines_cut)


def _room(call: Call) -> int:
    """Characters there are for a prompt beside the longest reply."""
    return int((call.model.context_length - call.sampling.max_tokens) * CHARACTERS_A_TOKEN)


def _prompt(template: str, question: Question, room: int, **values: str) -> tuple[str, int]:
    """The prompt, and how many of the conversation's lines had to be cut to fit it into so many characters."""
    heading = "Passages" if question.context else "Conversation"
    values = {"heading": heading, "question": question.text, **values}
    lines = (question.context,) if question.context else question.document
    prompt = render(f"teams/single/{template}.md.j2", source="\n".join(lines), lines_cut=0, **values)
    if question.context or len(prompt) <= room:
        return prompt, 0
    frame = render(f"teams/single/{template}.md.j2", source="", lines_cut=len(lines), **values)
    kept = newest_sessions(lines, room - len(frame))
    cut = len(lines) - len(kept)
    return render(f"teams/single/{template}.md.j2", source="\n".join(kept), lines_cut=cut, **values), cut


def newest_sessions(lines: Sequence[str], room: int) -> Sequence[str]:
    """The last sessions of a conversation that fit together into `room` characters; else the last one's last turns.

    Args:
        lines: one turn each, in order, starting with its id in brackets ("[D3:7] ..."); a session is what stands
            before the colon.
        room: characters, line ends included.
    """
    sessions = [match[1] if (match := _SESSION.match(line)) else "" for line in lines]
    sizes = list(accumulate(len(line) + 1 for line in reversed(lines)))
    fitting = sum(size <= room for size in sizes)  # turns, counted from the end
    whole = [n for n in range(1, fitting + 1) if n == len(lines) or sessions[-n] != sessions[-n - 1]]
    kept = whole[-1] if whole else fitting
    return lines[len(lines) - kept :]


async def direct(talk: _Talk) -> str:
    """One call for the answer."""
    return talk.answered(await talk.ask("direct", "0"))


async def cot(talk: _Talk) -> str:
    """One call that thinks before it answers (chain of thought)."""
    return talk.answered(await talk.ask("cot", "0"))


async def cot_sc(talk: _Talk) -> str:
    """Self-consistency: five chains of thought at T = 0.7, the answer that most of them give.

    Answers are compared normalised (HotpotQA's rule: case, punctuation and articles aside); declining is an answer, an
    empty reply is none. A reply without the answer's tag has no vote unless no reply has one: then, as with `cot`, its
    whole text is the answer. Of answers with equally many votes the one whose first sample came first wins (our
    choice).
    """
    talk.call = replace(talk.call, sampling=talk.call.sampling.model_copy(update={"temperature": TEMPERATURE}))
    samples = await gather(talk.ask("cot", str(index)) for index in range(SAMPLES))
    answers = [(talk.answered(sample), tagged("answer", sample.text)) for sample in samples]
    votes = [answer for answer, tags in answers if answer and tags]
    return majority(votes or [answer for answer, _ in answers if answer])


def majority(answers: Sequence[str]) -> str:
    """The first of the answers that most of them equal, normalised; "" where there is none."""
    keys = [NO_ANSWER if declined(answer) else " ".join(tokens(answer)) for answer in answers]
    votes = Counter(keys)  # in the order of first appearance, which most_common keeps among equals
    return answers[keys.index(votes.most_common(1)[0][0])] if answers else ""


async def self_refine(talk: _Talk) -> str:
    """An answer, then feedback on it and a revision, at most three times; ends once the feedback says NO_CHANGE.

    Feedback without a text ends it too, and a revision without one leaves the answer as it was (our choices); both are
    counted as problems.
    """
    answer = await direct(talk)
    for number in range(1, ROUNDS + 1):
        shown = answer or NO_ANSWER
        feedback = talk.step("feedback", await talk.ask("feedback", f"feedback{number}", answer=shown)).strip()
        if not feedback:
            talk.transcript.problems.append("empty_feedback")
        if not feedback or re.search(rf"\b{NO_CHANGE}\b", feedback, re.IGNORECASE):
            break
        revision = await talk.ask("revise", f"revise{number}", answer=shown, feedback=feedback)
        answer = talk.answered(revision) or answer
    return answer


async def full_context(talk: _Talk) -> str:
    """The whole conversation and an answer of at most 32 tokens."""
    sampling = talk.call.sampling
    limit = min(sampling.max_tokens, FULL_CONTEXT_TOKENS)
    talk.call = replace(talk.call, sampling=sampling.model_copy(update={"max_tokens": limit}))
    return await direct(talk)


@dataclass(frozen=True)
class Baseline:
    """A single model in place of a team (a `rollouts.Solver`)."""

    answer: Callable[[_Talk], Coroutine[Any, Any, str]]

    async def execute(self, question: Question, libraries: Libraries, call: Call) -> Execution:
        """Answer one question; ModelError if a call fails. There are no libraries to look at."""
        talk = _Talk(question, call)
        return talk.execution(await self.answer(talk))


BASELINES: Mapping[str, Baseline] = {
    function.__name__: Baseline(function) for function in (direct, cot, cot_sc, self_refine, full_context)
}


def applicable(method: str, benchmark: str) -> bool:
    """Whether a method has a meaning on a benchmark: full context has none where all passages are shown anyway."""
    return not (method == full_context.__name__ and benchmark == "hotpotqa")
