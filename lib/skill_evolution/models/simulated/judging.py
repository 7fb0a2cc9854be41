"""How the simulated reader judges rollouts: where a run went wrong and what the agent was missing.

It works on what a critic's message shows: the gold answer, the steps, the skills' texts. One rule base serves the
critic of groups and the critic of single trajectories; the difference is what they are shown. With a better rollout
to compare with, the missing capability is read off what that one did; without one it is a guess from the run itself.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from skill_evolution.models.simulated.chance import uniform
from skill_evolution.models.simulated.directives import recognise
from skill_evolution.models.simulated.words import FUNCTION_WORDS, parse

FOUND = 0.99  # share of the gold answer's content words that must stand in a text to hold the answer
LOW = 0.5  # a run at or below this reward is a failure (MASkills' hard case)
_RELATIVE = re.compile(r"\b(?:yesterday|today|tomorrow|ago|last|next|this|coming)\b", re.IGNORECASE)
_DATE = re.compile(
    r"\b(?:19|20)\d\d\b|\b(?:January|February|March|April|May|June|July|August|September|October|November|December)\b"
)
_ID_SEARCH = re.compile(r"\\?\[?D\d+:")
_HEDGE = re.compile(r"\b(?:likely|probably|perhaps|maybe|would)\b", re.IGNORECASE)
_TAG = re.compile(r"</?(?:grep|handover|answer)>", re.IGNORECASE)

# What an agent is missing, in words that a skill's writer understands, by the behaviour that was seen to help.
CAPABILITIES = {
    "widen_adjacent": "fetch the adjacent turns next to a hit",
    "each_hop": "search each keyword and name separately",
    "stem_search": "search word stems for inflected forms",
    "quote_all": "hand over every matching turn of all sessions",
    "follow_bridge": "follow the bridge entity to its passage",
    "both_entities": "evidence for both entities of a comparison",
    "whole_context": "include the sentences before and after",
    "shortest_span": "answer with the shortest span",
    "resolve_dates": "resolve relative dates by the session",
    "yes_no": "answer yes/no questions with the bare word",
    "list_all": "list all items, separated by commas",
    "commit_likely": "state the likeliest answer instead of declining",
}
_RESTRICTS = re.compile(
    r"(?<!not )\b(?:only|alone|unless|stop at|ignore|discard|skip|never|outdated|keep to|single)\b", re.IGNORECASE
)


@dataclass(frozen=True)
class Step:
    """A step as the message shows it, its reference to a shared text resolved."""

    number: int
    agent: str
    kind: str
    text: str


@dataclass(frozen=True)
class Rollout:
    """A rollout as the message shows it."""

    number: int
    reward: float
    steps: tuple[Step, ...]
    used: dict[str, list[str]]
    answer: str | None

    def own(self, agent: str) -> list[Step]:
        """The steps of an agent."""
        return [step for step in self.steps if step.agent == agent]

    def handed_over(self) -> str:
        """All that the answering agent was handed."""
        return "\n".join(_TAG.sub("", step.text) for step in self.steps if step.kind == "handover")

    def seen(self) -> str:
        """All that tools returned."""
        return "\n".join(step.text for step in self.steps if step.kind == "result")


@dataclass(frozen=True)
class Failure:
    """Where a rollout went wrong: failure type, agent, the step that shows it with a quotation, what was missing."""

    failure_type: str
    agent: str
    step: int
    quote: str
    capability: str


def read_rollouts(payload: dict[str, Any]) -> list[Rollout]:
    """The rollouts of a critic's message."""
    texts = payload.get("texts", {})
    return [
        Rollout(
            entry["rollout"],
            entry["reward"],
            tuple(_step(step, texts) for step in entry["steps"]),
            entry["skills_used"],
            entry["final_answer"],
        )
        for entry in payload["rollouts"]
    ]  # fmt: skip


def _step(step: dict[str, Any], texts: dict[str, str]) -> Step:
    text = step["text"] if "text" in step else texts[step["see"]]
    return Step(step["step"], step["agent"], step["kind"], text)


def content_words(text: str) -> set[str]:
    """Stems of the words that carry content."""
    sentence = parse(text)
    return {s for s, low in zip(sentence.stems, sentence.lowers, strict=True) if low not in FUNCTION_WORDS}


def holds_answer(text: str, gold: str) -> bool | None:
    """Whether a text holds the gold answer; None where its words can't tell (yes/no, an inferred answer)."""
    if not gold.strip() or gold.lower().strip(" .") in ("yes", "no") or _HEDGE.search(gold):
        return None
    wanted = content_words(gold)
    if not wanted:
        return None
    there = content_words(text)
    if len(wanted & there) / len(wanted) >= FOUND:
        return True
    return bool(_DATE.search(gold) and _RELATIVE.search(text))  # a date can be worked out from the session's


def enough(rollout: Rollout, gold: str, best: Rollout | None) -> bool:
    """Whether the answering agent was handed what the answer needs.

    Where the gold answer's words can't tell, a hand-over that led another run to success serves as the measure.
    """
    held = holds_answer(rollout.handed_over(), gold)
    if held is not None:
        return held
    if best is not None and best.reward > LOW:
        wanted, there = content_words(best.handed_over()), content_words(rollout.handed_over())
        return len(wanted & there) >= 0.8 * len(wanted)
    return "NO_EVIDENCE" not in rollout.handed_over()


def locate(payload: dict[str, Any], rollout: Rollout, best: Rollout | None, answering: str) -> Failure | None:
    """The failure of a low rollout; None if it did well enough."""
    if rollout.reward > LOW or not rollout.steps:
        return None
    gold, question = payload["gold_answer"], payload["question"]
    if not enough(rollout, gold, best):
        return _evidence_failure(payload, rollout, best, answering)
    step = rollout.own(answering)[-1]
    failure_type, capability = _answer_failure(rollout.answer, gold, question)
    return Failure(failure_type, answering, step.number, _snippet(step.text), CAPABILITIES.get(capability, capability))


def _evidence_failure(
    payload: dict[str, Any], rollout: Rollout, best: Rollout | None, answering: str
) -> Failure | None:
    gold = payload["gold_answer"]
    own = [step for step in rollout.steps if step.agent != answering]
    if not own:
        return None
    searched = [step for step in own if step.kind == "call"]
    dropped = bool(holds_answer(rollout.seen() if searched else payload.get("context", ""), gold))
    failure_type = "evidence_dropped" if dropped else "retrieval_miss"
    capability = (
        _search_capability(payload, rollout, best, dropped) if searched else _reading_capability(payload, rollout)
    )
    last = own[-1]
    return Failure(failure_type, last.agent, last.number, _snippet(last.text), CAPABILITIES[capability])


def _search_capability(payload: dict[str, Any], rollout: Rollout, best: Rollout | None, dropped: bool) -> str:
    if dropped or _several(payload["gold_answer"]):
        return "quote_all"
    if best is not None and best.reward > rollout.reward and enough(best, payload["gold_answer"], None):
        read = _difference(rollout, best)
        if read:
            return read
    # Nothing to compare with: a guess among what may have been missing, settled by the question alone.
    options = ["widen_adjacent", "each_hop", "stem_search"]
    return options[int(uniform("guess", payload["question"]) * len(options))]


def _difference(rollout: Rollout, best: Rollout) -> str | None:
    """What the better run's searches did that this run's did not."""
    ours, theirs = _patterns(rollout), _patterns(best)
    if any(map(_ID_SEARCH.search, theirs)) and not any(map(_ID_SEARCH.search, ours)):
        return "widen_adjacent"
    words = {w for p in ours for w in re.findall(r"\w+", p.lower())}
    other = {w for p in theirs for w in re.findall(r"\w+", p.lower())}
    if any(new != old and len(new) >= 3 and old.startswith(new) for new in other - words for old in words):
        return "stem_search"
    if len(theirs) > len(ours) or other - words:
        return "each_hop"
    return None


def _patterns(rollout: Rollout) -> list[str]:
    return [_TAG.sub("", step.text) for step in rollout.steps if step.kind == "call"]


def _reading_capability(payload: dict[str, Any], rollout: Rollout) -> str:
    question = payload["question"].lower()
    if payload["gold_answer"].lower().strip(" .") in ("yes", "no") or re.search(r"\b(?:both|same| or )\b", question):
        return "both_entities"
    handed = content_words(rollout.handed_over())
    lines = [line for line in payload.get("context", "").splitlines() if holds_answer(line, payload["gold_answer"])]
    near = any(len(content_words(line.split("]")[0]) & handed) >= 1 for line in lines)
    return "whole_context" if lines and near and uniform("guess", question) < 0.5 else "follow_bridge"


def _answer_failure(answer: str | None, gold: str, question: str) -> tuple[str, str]:
    if answer is None:
        return "wrong_abstention", "commit_likely"
    if gold.lower().strip(" .") in ("yes", "no"):
        bare = answer.lower().strip(" .") in ("yes", "no")
        return ("reasoning_error", "compare the facts of both entities") if bare else ("answer_format", "yes_no")
    if holds_answer(answer, gold) and not (_DATE.search(gold) and not _DATE.search(answer)):
        return "answer_format", "shortest_span"
    if _several(gold) and content_words(gold) & content_words(answer):
        return "reasoning_error", "list_all"
    if _DATE.search(gold):
        return "reasoning_error", "resolve_dates"
    if _HEDGE.search(gold):
        return "reasoning_error", "commit_likely"
    return "reasoning_error", "shortest_span" if len(
        answer.split()
    ) > 8 else "check the conclusion against the evidence"


def _several(gold: str) -> bool:
    return "," in gold and not _DATE.search(gold)


def _snippet(text: str) -> str:
    """A stretch of a step's text, copied as it stands."""
    line = next((line for line in _TAG.sub("\n", text).splitlines() if len(line.strip()) >= 3), text)
    return line.strip()[:80].strip()


def covered(capability: str, skills: Sequence[dict[str, Any]]) -> bool:
    """Whether one of the skills asks for what the capability names."""
    wanted = {directive.key for directive, _ in recognise(capability)}
    return any(wanted & {d.key for d, _ in recognise(f"{s['description']}\n{s['body']}")} for s in skills)


def opposed(capability: str, body: str) -> bool:
    """Whether a skill's body asks for the contrary of what a capability names."""
    wanted, there = [d for d, _ in recognise(capability)], [d for d, _ in recognise(body)]
    return any(w.key in t.opposes or t.key in w.opposes for w in wanted for t in there)


def restricting(skills: Sequence[dict[str, Any]], used: Sequence[str]) -> list[dict[str, Any]]:
    """The skills in use whose text narrows what the agent does."""
    return [s for s in skills if s["name"] in used and _RESTRICTS.search(s["body"])]


def local_outcome(rollout: Rollout, agent: str, answering: str, gold: str, best: Rollout | None) -> float | None:
    """How an agent's own part went: the answering agent's reward where it was handed enough (else None: an answer
    can't be better than its evidence), the other agents' by whether they handed over enough."""
    given = enough(rollout, gold, best)
    if agent == answering:
        return rollout.reward if given else None
    return float(given)

