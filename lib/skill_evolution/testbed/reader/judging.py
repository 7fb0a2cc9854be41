"""How the simulated reader judges rollouts: where a run went wrong and what the agent was missing.

It works on what a critic's message shows: the gold answer, the steps, the skills' texts. One rule base serves the
critic of groups and the critic of single trajectories; the difference is what they are shown. With a better rollout
to compare with, what a searcher or reader was missing is read off what that one did; without one it is inferred from
the run itself, or guessed where that doesn't tell. All figures are our choice.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skill_evolution.testbed.reader import dates
from skill_evolution.testbed.reader.chance import uniform
from skill_evolution.testbed.reader.directives import recognise
from skill_evolution.testbed.reader.documents import Case, Rollout, SkillText, Step
from skill_evolution.testbed.reader.reading import read_lines
from skill_evolution.testbed.reader.words import FUNCTION_WORDS, parse

LOW = 0.5  # a run at or below this reward is a failure (MASkills' hard case)
LONG = 8  # words; a longer wrong answer is taken for one that hides its point

_DATE = re.compile(
    r"\b(?:19|20)\d\d\b|\b(?:January|February|March|April|May|June|July|August|September|October|November|December)\b"
)
_YES_NO = re.compile(r"\s*(?:yes|no)\s*(?:[.,;:!]|$)", re.IGNORECASE)
_HEDGE = re.compile(r"\b(?:likely|probably|perhaps|maybe|would)\b", re.IGNORECASE)
_ID_SEARCH = re.compile(r"\[?\(?D\d+:")
_COMPARES = re.compile(r"\b(?:both|same|or)\b", re.IGNORECASE)
_CUT = re.compile(r"\[\.\.\. \d+ characters cut \.\.\.\]")  # how a payload marks what it left out
_MARKUP = re.compile(r"</?\w+>")
_QUOTE = 80  # characters

# What an agent is missing, in words that a skill's writer understands, by the behaviour that would have helped.
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
    "conclude": "check the conclusion against the evidence",
}
_SEARCHES = ("widen_adjacent", "each_hop", "stem_search")


@dataclass(frozen=True)
class Failure:
    """Where a rollout went wrong.

    `step` shows it; `quote` is copied from that step, "" where it holds too little to quote. `capability` is what the
    agent was missing.
    """

    rollout: Rollout
    failure_type: str
    agent: str
    step: int
    quote: str
    capability: str


def content_words(text: str) -> set[str]:
    """Stems of the words that carry content; the month of May is one of them."""
    sentence = parse(text)
    words = zip(sentence.words, sentence.lowers, sentence.stems, strict=True)
    return {stem for word, low, stem in words if low not in FUNCTION_WORDS or word == "May"}


def holds_answer(text: str, gold: str) -> bool | None:
    """Whether a text holds the gold answer; None where its words can't tell (none, yes or no, an inferred answer).

    A date has to stand in one line, or to follow from the line's time expression and its session's date.
    """
    wanted = content_words(gold)
    if not wanted or _YES_NO.match(gold) or _HEDGE.search(gold):
        return None
    texts = _dated(text) if _DATE.search(gold) else [text]
    return any(wanted <= content_words(part) for part in texts)


def _dated(text: str) -> Iterator[str]:
    """The lines of a text without their ids, each with its session's date and its time expression resolved."""
    for raw in text.splitlines():
        lines = read_lines(raw)
        if not lines:
            yield raw
            continue
        mention, day = dates.find_time(lines[0].text, lines[0].stamp), dates.session_date(lines[0].stamp)
        yield f"{dates.written(day) if day else ''} {lines[0].text} {mention.resolved if mention else ''}"


def supports(text: str, case: Case) -> bool | None:
    """Whether a text is evidence enough for the answer; None where nothing tells.

    Where the gold answer's words don't stand in the evidence of the runs that succeeded either, they are no measure;
    all lines that one of those runs was handed are.
    """
    held = holds_answer(text, case.gold)
    successes = [r.handed_over() for r in case.rollouts if r.reward > LOW]
    if held or not successes or any(holds_answer(handed, case.gold) for handed in successes):
        return held
    return any(_lines(handed) <= _lines(text) for handed in successes)


def _lines(text: str) -> set[str]:
    """The lines of a text: by their ids, else by their content words."""
    return {
        lines[0].id if (lines := read_lines(raw)) else " ".join(sorted(content_words(raw)))
        for raw in text.splitlines()
        if raw.strip()
    }


def enough(rollout: Rollout, case: Case, answering: str) -> bool:
    """Whether the answering agent was handed what the answer needs; always, where it has nobody to hand it over."""
    if all(step.agent == answering for step in rollout.steps):
        return True
    handed = rollout.handed_over()
    held = supports(handed, case)
    return bool(handed) if held is None else held


def blamed(rollout: Rollout, case: Case, answering: str) -> str:
    """The agent that the lack of evidence is laid at, of those before the answering one.

    The first one that handed the answer over in the best run and not in this one; else the one that searches; else
    the first.
    """
    agents = list(dict.fromkeys(step.agent for step in rollout.steps if step.agent != answering))
    for agent in agents:
        there = holds_answer(case.best.handed_over(agent), case.gold)
        if there and not holds_answer(rollout.handed_over(agent), case.gold):
            return agent
    return next((step.agent for step in rollout.steps if step.kind == "call"), agents[0])


def given(rollout: Rollout, agent: str) -> bool:
    """Whether an agent had something to work on: a line that its searches returned, if it searched at all."""
    results = rollout.texts("result", agent)
    return not rollout.texts("call", agent) or any(read_lines(text) for text in results)


def outcome(rollout: Rollout, agent: str, case: Case, answering: str) -> float | None:
    """How an agent's own part went, in [0, 1]; None where the run doesn't tell.

    The answering agent has the reward, if it was handed enough: an answer can't be better than its evidence. Of the
    others each has 1 where they handed over enough, else the one to blame has 0.
    """
    if enough(rollout, case, answering):
        return rollout.reward if agent == answering else 1.0
    return 0.0 if agent == blamed(rollout, case, answering) else None


def locate(case: Case, rollout: Rollout, answering: str) -> Failure | None:
    """The failure of a low rollout; None if it did well enough, or the agent to blame has no step."""
    if rollout.reward > LOW or not rollout.steps:
        return None
    if enough(rollout, case, answering):
        agent = answering
        failure_type, capability = _answer_failure(rollout.answer, case.gold)
    else:
        agent = blamed(rollout, case, answering)
        failure_type, capability = _evidence_failure(case, rollout, agent)
    own = rollout.own(agent)
    if not own:
        return None
    return Failure(rollout, failure_type, agent, own[-1].number, _quotation(own[-1]), CAPABILITIES[capability])


def _evidence_failure(case: Case, rollout: Rollout, agent: str) -> tuple[str, str]:
    """Whether what was missing had been found, and what the agent should have done."""
    if rollout.texts("call", agent):
        dropped = _had_more(rollout, case)
        return "evidence_dropped" if dropped else "retrieval_miss", "quote_all" if dropped else _search(case, rollout)
    there = holds_answer(case.context, case.gold) if case.context else False
    return "retrieval_miss" if there is False else "evidence_dropped", _reading(case, rollout)


def _had_more(rollout: Rollout, case: Case) -> bool:
    """Whether the searches returned (a part of) the answer that was not handed over."""
    seen, handed = rollout.seen(), rollout.handed_over()
    parts = case.gold.split(",") if _several(case.gold) else [case.gold]
    if any(holds_answer(seen, part) and not holds_answer(handed, part) for part in parts):
        return True
    return holds_answer(seen, case.gold) is None and bool(supports(seen, case))


def _search(case: Case, rollout: Rollout) -> str:
    """What the searches should have done: what a better run's did; else a guess, settled by the question."""
    best = case.best
    if best.reward > rollout.reward and supports(best.handed_over(), case):
        read = _difference(_patterns(rollout), _patterns(best))
        if read:
            return read
    return _SEARCHES[int(uniform("guess", case.question) * len(_SEARCHES))]


def _patterns(rollout: Rollout) -> list[str]:
    return [text.replace(r"\b", " ") for text in rollout.texts("call")]


def _difference(ours: Sequence[str], theirs: Sequence[str]) -> str | None:
    """What the better run's patterns did that this run's did not."""
    if any(map(_ID_SEARCH.search, theirs)) and not any(map(_ID_SEARCH.search, ours)):
        return "widen_adjacent"
    own, other = ({w for p in patterns for w in re.findall(r"\w+", p.lower())} for patterns in (ours, theirs))
    if any(len(new) >= 3 and old != new and old.startswith(new) for new in other - own for old in own):
        return "stem_search"
    return "each_hop" if other - own else None


def _reading(case: Case, rollout: Rollout) -> str:
    """What a reader of passages should have handed over: what a better run did, else where the answer stands."""
    if _YES_NO.match(case.gold) or _COMPARES.search(case.question):
        return "both_entities"
    here = read_lines(rollout.handed_over())
    better = read_lines(case.best.handed_over()) if case.best.reward > rollout.reward else ()
    missing = [line for line in better if line not in here] or read_lines(case.context)
    telling = [line for line in missing if holds_answer(line.text, case.gold)] or (missing if better else [])
    return "whole_context" if {line.group for line in telling} & {line.group for line in here} else "follow_bridge"


def _answer_failure(answer: str | None, gold: str) -> tuple[str, str]:
    """What is wrong with an answer whose evidence was there."""
    if answer is None:
        return "wrong_abstention", "commit_likely"
    held = holds_answer(answer, gold)
    if _several(gold) and content_words(gold) & content_words(answer):
        return "answer_format" if held else "reasoning_error", "list_all"
    if held:
        return "answer_format", "shortest_span"
    if _YES_NO.match(gold):
        return ("reasoning_error", "conclude") if _YES_NO.fullmatch(answer) else ("answer_format", "yes_no")
    if _DATE.search(gold):
        return "reasoning_error", "resolve_dates"
    if _HEDGE.search(gold):
        return "reasoning_error", "commit_likely"
    return "reasoning_error", "shortest_span" if len(answer.split()) > LONG else "conclude"


def _several(gold: str) -> bool:
    return "," in gold and not _DATE.search(gold) and not _YES_NO.match(gold)


def _quotation(step: Step) -> str:
    """A stretch of a step's text, copied as it stands; "" where it holds less than three characters in a row."""
    pieces = (piece.strip() for piece in _CUT.sub("\n", _MARKUP.sub("\n", step.text)).splitlines())
    return next((piece[:_QUOTE].strip() for piece in (*pieces, step.text.strip()) if len(piece) >= 3), "")


def covered(capability: str, skills: Sequence[SkillText]) -> bool:
    """Whether one of the skills asks for what the capability names."""
    wanted = {directive.key for directive, _ in recognise(capability)}
    return any(wanted & {d.key for d, _ in recognise(f"{s.description}\n{s.body}")} for s in skills)


def opposed(capability: str, body: str) -> bool:
    """Whether a skill's body asks for the contrary of what a capability names."""
    wanted, there = [d for d, _ in recognise(capability)], [d for d, _ in recognise(body)]
    return any(w.key in t.opposes or t.key in w.opposes for w in wanted for t in there)
