"""The evidence reader: picks sentences from passages (or from what was handed over before)."""

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from skill_evolution.testbed.reader import words
from skill_evolution.testbed.reader.extraction import answer_span, mentions, named_by, value_of
from skill_evolution.testbed.reader.policy import Policy
from skill_evolution.testbed.reader.reading import Line, Query


def pick(query: Query, lines: Sequence[Line], policy: Policy) -> list[Line]:
    """The sentences to hand over, in the order of the reasoning."""
    scores = _scores(query, tuple(lines))
    if not scores or max(scores.values()) <= 0:
        return []
    compared = _compared(query, lines)
    if len(compared) >= 2:
        chosen = _for_entities(query, compared, lines, policy)
    else:
        chosen = _for_fact(query, lines, scores, policy)
    if policy.does("first_sentence_only"):
        openings = {line.group: line for line in reversed(lines)}
        chosen = [openings[line.group] for line in chosen]
    elif policy.does("whole_context"):
        chosen = _widened(chosen, lines)
    return list({line.id: line for line in chosen}.values())


@lru_cache(maxsize=8192)
def _scores(query: Query, lines: tuple[Line, ...]) -> dict[Line, float]:
    """Overlap with the question, each stem weighted by its rarity among the lines; the title counts half."""
    contents = [words.parse(line.text).content for line in lines]
    titles = [words.parse(line.group).content for line in lines]
    frequency = Counter(stem for content in contents for stem in content & query.content)
    weight = {stem: math.log(1 + len(lines) / (1 + frequency[stem])) for stem in query.content}
    # fsum: the order in which a set is walked must not decide between lines that share the same words
    return {
        line: math.fsum(weight[s] for s in content & query.content)
        + 0.5 * math.fsum(weight[s] for s in (title - content) & query.content)
        for line, content, title in zip(lines, contents, titles, strict=True)
    }


def _compared(query: Query, lines: Sequence[Line]) -> list[str]:
    """Titles of the passages about things that a comparing question names, in the question's order."""
    if query.kind not in ("choice", "yes_no") and "both" not in query.text and " or " not in query.text:
        return []
    named: dict[str, str] = {}
    for title in dict.fromkeys(line.group for line in lines):
        name = title.split(" (")[0]
        if mentions(query.text, title) and (name not in named or title == name):
            named[name] = title  # a plain title before "Name (film)" and the like
    return [named[name] for name in sorted(named, key=query.text.find)]


def _for_entities(query: Query, titles: Sequence[str], lines: Sequence[Line], policy: Policy) -> list[Line]:
    """The best sentence about each compared thing, or about the first one alone."""
    narrow = policy.does("one_passage_only")
    wanted = titles if not narrow and policy.does("both_entities") else titles[:1]
    return [
        max((line for line in lines if line.group == title), key=lambda line: _telling(query, line)) for title in wanted
    ]


def _telling(query: Query, line: Line) -> float:
    """How well a sentence tells the compared trait: shared words other than names, and a value where one is needed."""
    shared = (query.content - query.name_stems) & words.parse(line.text).content
    return len(shared) + (1.5 if query.kind == "choice" and value_of(line.text) is not None else 0.0)


def _worth(query: Query, line: Line, scores: dict[Line, float]) -> float:
    """A sentence's overlap, and a bonus where it offers an answer of the wanted type."""
    spans = (answer_span(query, sentence, line) for sentence in words.sentences(line.text))
    typed = query.kind in ("year", "number", "when", "name") and any(s and not named_by(s, line) for s in spans)
    return scores[line] + (1.0 if typed else 0.0)


def _for_fact(query: Query, lines: Sequence[Line], scores: dict[Line, float], policy: Policy) -> list[Line]:
    """The best sentence; then the bridge passage it leads to, or the runner-up from another passage."""
    best = max(lines, key=lambda line: scores[line])
    if policy.does("one_passage_only"):
        same = [line for line in lines if line.group == best.group and line is not best]
        return [best, *sorted(same, key=lambda line: -scores[line])[:1]]
    targets = _targets(query, best, lines)
    if targets and policy.does("follow_bridge"):
        return [best, *(max(target, key=lambda line: _worth(query, line, scores)) for target in targets[:2])]
    others = [line for line in lines if line.group != best.group and scores[line] >= 0.6 * scores[best]]
    return [best, *sorted(others, key=lambda line: -scores[line])[:1]]


def _targets(query: Query, best: Line, lines: Sequence[Line]) -> list[list[Line]]:
    """The passages about things that the best sentence names and the question doesn't."""
    groups: dict[str, list[Line]] = {}
    for line in lines:
        groups.setdefault(line.group, []).append(line)
    return [
        group
        for title, group in groups.items()
        if title != best.group and mentions(best.text, title) and not mentions(query.text, title)
    ]


def _widened(chosen: Sequence[Line], lines: Sequence[Line]) -> list[Line]:
    """The picked sentences with their neighbours in the passage; picked ones and followers come before predecessors."""
    by_id = {line.id: line for line in lines}
    ids = [line.id for line in chosen]
    ids += [f"{line.group}:{line.index + step}" for step in (1, -1) for line in reversed(chosen)]
    return [by_id[line_id] for line_id in ids if line_id in by_id]
