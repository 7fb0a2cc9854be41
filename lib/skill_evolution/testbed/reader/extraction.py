"""Answers out of evidence lines, by general rules: which sentence fits the question, which span has the right type."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from skill_evolution.testbed.reader import dates, words
from skill_evolution.testbed.reader.reading import Line, Query

_NUMBER = re.compile(
    r"\b(?:\d+(?:[.,]\d+)*|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|once|twice)\b"
    r"(?: (?:years?|months?|weeks?|days?|hours?|minutes?|kilomet(?:er|re)s?|met(?:er|re)s?|times))?",
    re.IGNORECASE,
)
_YEAR = re.compile(r"\b1[0-9]\d\d\b|\b20\d\d\b")
_POSITIVE = re.compile(
    r"\b(?:love|loved|adore|enjoy|enjoyed|favou?rite|dream|dreaming|wish|hope|keen|fan|happiest|best|prefer|excited|thrilled|delight)\w*",
    re.IGNORECASE,
)
_NEGATIVE = re.compile(
    r"\b(?:hate|hated|dislike|can't stand|cannot stand|couldn't|afraid|scared|dread|worst|"
    r"never again|bored|boring|allergic|"
    r"avoid|sick of|tired of|not for me|don't|doesn't|nervous|gives me a headache)\b",
    re.IGNORECASE,
)
_LESS = re.compile(r"\b(?:older|earlier|first|before|fewer|smaller|shorter|lower|less)\b", re.IGNORECASE)
_DETERMINERS = frozenset(
    ["a", "an", "the", "my", "our", "his", "her", "their", "its", "your", "some", "this", "that", "these", "those"]
)

_PRONOUNS = frozenset("i we he she they it you me us him them myself everywhere".split())  # noqa: SIM905
_COPULAS = frozenset("is was are were be became called named for with the a an".split())  # noqa: SIM905


@dataclass(frozen=True)
class Finding:
    """A span that may answer the question, with the sentence and line that it stands in and how well that line fits."""

    span: str
    sentence: str
    line: Line
    score: float


def overlap(query: Query, text: str) -> float:
    """How much of a question a text shares: one a keyword stem, a third a name's stem."""
    shared = query.content & words.parse(text).content
    named = len(shared & query.name_stems)
    return len(shared) - named + named / 3


def findings(query: Query, lines: Sequence[Line]) -> tuple[Finding, ...]:
    """What the lines offer as an answer, best first, at most one finding a line."""
    return _findings(query, tuple(lines))


@lru_cache(maxsize=8192)
def _findings(query: Query, lines: tuple[Line, ...]) -> tuple[Finding, ...]:
    by_id = {line.id: line for line in lines}
    bridges = _bridges(query, lines)
    found: list[Finding] = []
    for line in lines:
        base = _context_score(query, line, by_id) + (2.0 if line.group in bridges else 0.0)
        best: Finding | None = None
        for sentence in words.sentences(line.text):
            if sentence.asks or not (span := answer_span(query, sentence, line, bridges)):
                continue
            score = base + overlap(query, sentence.text) + 0.4 * _typed(query, span)
            if named_by(span, line, bridges):
                score -= 2.0
            elif " " not in span and sentence.text.startswith(span) and query.kind in ("name", "phrase"):
                score -= 1.0  # a capital that opens a sentence is poor evidence of a name
            if best is None or score > best.score + 1e-9:
                best = Finding(span, sentence.text, line, score)
        if best:
            found.append(best)
    return tuple(sorted(found, key=lambda finding: -finding.score))


def _bridges(query: Query, lines: tuple[Line, ...]) -> frozenset[str]:
    """Titles of lines that another passage's line mentions and the question doesn't: where a first fact leads."""
    groups = {line.group for line in lines if not line.stamp}
    return frozenset(
        group
        for group in groups
        if group not in query.text
        and any(mentions(line.text, group) for line in lines if line.group != group and not line.stamp)
    )


@lru_cache(maxsize=65536)
def mentions(text: str, title: str) -> bool:
    """Whether a text names what a passage is about; a bracketed addition to the title doesn't count."""
    return title.split(" (")[0] in text


def _context_score(query: Query, line: Line, by_id: dict[str, Line]) -> float:
    """What a line gains from its speaker and from its neighbours: a reply counts for the question that it answers."""
    score = 0.0
    if line.speaker:
        if line.speaker in query.names:
            score += 0.7
        before = by_id.get(f"{line.group}:{line.index - 1}")
        if before and "?" in before.text:
            score += 0.9 * overlap(query, before.text)
    else:
        score += overlap(query, line.group) * 0.5
        before = by_id.get(f"{line.group}:{line.index - 1}")
        if before:
            score += 0.4 * overlap(query, before.text)
    return score


def named_by(span: str, line: Line, bridges: frozenset[str] = frozenset()) -> bool:
    """Whether a span only repeats what the line's passage, or a passage on the way, is about: a last resort."""
    last = span.rsplit(" ", 1)[-1]
    return not line.stamp and any(span in title or last in title.split() for title in (line.group, *bridges))


def _typed(query: Query, span: str) -> bool:
    """Whether the span is of the type that the question asks for, not a stopgap."""
    if query.kind == "name":
        return span[:1].isupper()
    return query.kind in ("year", "number", "when")


def answer_span(query: Query, sentence: words.Sentence, line: Line, bridges: frozenset[str] = frozenset()) -> str:
    """The span of a sentence that has the type that the question asks for; "" where there is none."""
    if query.kind == "when":
        mention = dates.find_time(line.text, line.stamp)
        if mention:
            return mention.written
        year = _YEAR.search(sentence.text)
        return year.group() if year else line.stamp
    if query.kind == "year":
        year = _YEAR.search(sentence.text)
        return year.group() if year else ""
    if query.kind == "number":
        number = _NUMBER.search(sentence.text)
        return number.group() if number else ""
    if query.kind == "name":
        return _name(query, sentence, line, bridges) or (_chunk(query, sentence) if line.stamp else "")
    if query.kind == "phrase" and not line.stamp and (name := _name(query, sentence, line, bridges)):
        return name
    return _chunk(query, sentence)


def _name(query: Query, sentence: words.Sentence, line: Line, bridges: frozenset[str]) -> str:
    """The proper name nearest after the words shared with the question, other than the names known already."""
    best, best_rank = "", (9.0, 99)
    for first, last in words.proper_names(sentence.text):
        name = sentence.slice(first, last)
        known = all(s in query.name_stems or s in words.FUNCTION_WORDS for s in sentence.stems[first : last + 1])
        if known or name in dates.MONTHS or name in query.text:
            continue
        shared = [i for i, s in enumerate(sentence.stems) if s in query.content and i < first]
        doubt = 2.0 * named_by(name, line, bridges) + (first == last == 0) + (0.0 if shared else 0.5)
        rank = (doubt, first - shared[-1] if shared else first)
        if rank < best_rank:
            best, best_rank = name, rank
    return best


def _chunk(query: Query, sentence: words.Sentence) -> str:
    """The noun-like stretch that stands nearest after the words shared with the question; else the longest one."""
    runs = _chunks(query, sentence)
    if not runs:
        return ""
    shared = [i for i, s in enumerate(sentence.stems) if s in query.content]

    def rank(run: tuple[int, int]) -> tuple[float, ...]:
        first, last = run
        after = [i for i in shared if i < first]
        told = first > 0 and sentence.lowers[first - 1] in _COPULAS
        return (_is_verb(sentence, first, last), not after, first - after[-1] if after else not told, first)

    return sentence.slice(*min(runs, key=rank))


def _is_verb(sentence: words.Sentence, first: int, last: int) -> bool:
    """Whether a one-word stretch looks like a verb or an adverb."""
    low = sentence.lowers[first]
    follower = sentence.lowers[last + 1] if last + 1 < len(sentence.lowers) else ""
    return first == last and (low.endswith(("ed", "ly")) or (low.endswith("ing") and follower in _DETERMINERS))


def _trimmed(sentence: words.Sentence, first: int, last: int) -> tuple[int, int]:
    """A stretch without a verb at its start (after a pronoun) or at its end (an -ed form before a pronoun)."""
    before = sentence.lowers[first - 1] if first else ""
    follower = sentence.lowers[last + 1] if last + 1 < len(sentence.lowers) else ""
    if last > first and before in _PRONOUNS:
        first += 1
    if last > first and sentence.lowers[last].endswith("ed") and follower in _PRONOUNS:
        last -= 1
    return first, last


def _chunks(query: Query, sentence: words.Sentence) -> list[tuple[int, int]]:
    """Stretches of words that are neither common nor in the question; "of" and "and" may stand inside."""
    runs: list[tuple[int, int]] = []
    start: int | None = None
    last = -1
    for index, low in enumerate(sentence.lowers):
        joins = low in ("of", "and")
        plain = low in words.FUNCTION_WORDS or low in words.FILLERS or sentence.stems[index] in query.content
        broken = start is not None and bool(
            set(sentence.text[sentence.spans[last][1] : sentence.spans[index][0]]) & set(',;:.()"!?')
        )
        if start is not None and (broken or (plain and not joins)):
            runs.append(_trimmed(sentence, start, last))
            start = None
        if not plain:
            start = index if start is None else start
            last = index
    if start is not None:
        runs.append(_trimmed(sentence, start, last))
    return runs


def compare(query: Query, lines: Sequence[Line]) -> tuple[str, Line | None]:
    """The answer to a comparison: "yes", "no", one of the options, or "" where one of the two sides is missing."""
    pair = query.options if query.kind == "choice" and query.options else query.names[:2]
    if len(pair) < 2:
        return "", None
    sides = [[line for line in lines if line.group == name or name in line.text or name in line.group] for name in pair]
    if not all(sides):
        return "", None
    texts = [" ".join(line.text for line in side) for side in sides]
    if query.kind == "choice":
        values = [value_of(text) for text in texts]
        if None in values or values[0] == values[1]:
            return "", None
        lowest = 0 if values[0] < values[1] else 1  # type: ignore[operator]
        return pair[lowest if _LESS.search(query.text) else 1 - lowest], sides[0][0]
    return ("yes" if _alike(query, pair, texts) else "no"), sides[0][0]


def value_of(text: str) -> float | None:
    """The number that a comparison can go by: a year, else the first number."""
    year = _YEAR.search(text)
    if year:
        return float(year.group())
    number = re.search(r"\d+(?:,\d{3})*(?:\.\d+)?", text)
    return float(number.group().replace(",", "")) if number else None


def _alike(query: Query, pair: Sequence[str], texts: list[str]) -> bool:
    """Whether both sides have what is asked: the predicate of "both P", or a shared value of "the same P"."""
    known = {words.stem(word) for name in pair for word in name.split()}
    contents = [words.parse(text).content - known for text in texts]
    if re.search(r"\bsame\b", query.text, re.IGNORECASE):
        values = [
            {
                sentence.slice(*run)
                for sentence in words.sentences(text)
                for run in words.proper_names(sentence.text)
                if run != (0, 0)
            }
            - set(pair)
            for text in texts
        ]
        return bool(values[0] & values[1])
    predicate = (query.content - query.name_stems) | {s for s in query.name_stems if s not in known}
    return bool(predicate) and all(len(predicate & content) >= 0.6 * len(predicate) for content in contents)


def infer(query: Query, lines: Sequence[Line]) -> tuple[str, Finding | None]:
    """The likely answer to an open question: the better liked option, likely yes or no by the tone, else a span."""
    ranked = findings(query, lines)
    if not ranked:
        return "", None
    top = ranked[0]
    if query.options:
        return _preferred(query.options, lines), top
    if query.text.lower().startswith(("would", "could", "might", "is", "does", "will")):
        tone = _tone(" ".join(finding.line.text for finding in ranked if finding.score >= top.score - 0.5))
        return ("Likely no" if tone < 0 else "Likely yes"), top
    return top.span, top


def _tone(text: str) -> int:
    return len(_POSITIVE.findall(text)) - 2 * len(_NEGATIVE.findall(text))


def _preferred(options: tuple[str, str], lines: Sequence[Line]) -> str:
    """The option about which the lines speak better; lines count for the option whose words they share."""
    scores = []
    for option in options:
        own = words.parse(option).content
        shared = [(len(own & words.parse(line.text).content), line.text) for line in lines]
        scores.append(sum(n * (1 + 2 * _tone(text)) for n, text in shared if n))
    return options[0] if scores[0] >= scores[1] else options[1]
