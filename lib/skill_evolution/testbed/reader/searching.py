"""The searcher: which pattern to search for next, and which of the turns found to hand over."""

import re
from collections.abc import Sequence

from skill_evolution.models.base import Message
from skill_evolution.testbed.reader import words
from skill_evolution.testbed.reader.extraction import overlap
from skill_evolution.testbed.reader.policy import Policy
from skill_evolution.testbed.reader.reading import Brief, Line, Query, read_lines

_GREP = re.compile(r"<grep>(.*?)</grep>", re.DOTALL)
_LEFT = re.compile(r"^Searches left: (\d+)", re.MULTILINE)
_SUBJECT = re.compile(
    r"\b(?:did|does|do|is|was|has|have|had|would|will|might|could|can|are|were|both)\s+([A-Z]\w+)|\b([A-Z]\w+)['’]s\b"
)
_IDS = r"\[("


def step(query: Query, messages: Sequence[Message], brief: Brief, policy: Policy) -> tuple[str | None, list[Line]]:
    """The next pattern, or None and the turns to hand over."""
    done = [match[1] for m in messages if m.role == "assistant" and (match := _GREP.search(m.content))]
    results = [read_lines(m.content) for m in messages if m.role == "user"][1:]
    terms = search_terms(query)
    if not done:
        return _first_pattern(query, terms, policy), []
    left = _LEFT.search(messages[-1].content)
    pairs = list(zip(done, results, strict=False))
    hits = _merged([lines for pattern, lines in pairs if not pattern.startswith(_IDS)])
    if left and int(left[1]) > 0 and (pattern := _next_pattern(query, terms, done, hits, int(left[1]), policy)):
        return pattern, []
    near = _merged([lines for pattern, lines in pairs if pattern.startswith(_IDS)])
    return None, _selected(query, hits, near, brief.limit, policy)


def scan(query: Query, lines: Sequence[Line], limit: int, policy: Policy) -> list[Line]:
    """The turns that a searcher would hand over if every turn that shares a word with the question were found."""
    return _selected(query, [line for line in lines if overlap(query, line.text) > 0], list(lines), limit, policy)


def search_terms(query: Query) -> tuple[str, ...]:
    """What can be searched for: names other than the question's subject first, then keywords, longest first."""
    subjects = {name for pair in _SUBJECT.findall(query.text) for name in pair if name} or set(query.names[:1])
    names = [name.lower() for name in query.names if name.removesuffix("'s").split("'")[0] not in subjects]
    terms = (*query.keywords[:1], *names, *query.keywords[1:])
    return terms or tuple(name.lower() for name in query.names) or ("the",)


def _first_pattern(query: Query, terms: tuple[str, ...], policy: Policy) -> str:
    if query.phrase and policy.does("exact_phrase_only"):
        return rf"\b{re.escape(query.phrase.lower())}\b"
    single = len(terms) > 1 and policy.does("one_keyword_only")
    chosen = terms[: 1 if single else 2]
    return _pattern(chosen, stems=policy.does("stem_search"))


def _pattern(terms: Sequence[str], *, stems: bool) -> str:
    """A pattern for any of the terms: whole words, or whatever begins with their stems."""
    if not stems:
        return "|".join(rf"\b{re.escape(term)}\b" for term in terms)
    roots = [root for term in terms for root in ([term] if " " in term else words.search_roots(term))]
    return "|".join(rf"\b{re.escape(root)}" for root in dict.fromkeys(roots))


def _next_pattern(
    query: Query, terms: tuple[str, ...], done: list[str], hits: list[Line], left: int, policy: Policy
) -> str | None:
    """The next keyword while more than one search is left, then the turns around the hits."""
    if any(pattern.startswith(_IDS) for pattern in done):
        return None
    tried = len(done) + 1 if len(done) > 1 or "|" in done[0] else 1
    rest = terms[tried:]
    if rest and (left > 1 or not hits) and policy.does("each_hop"):
        return _pattern(rest[: 1 if left > 1 else 2], stems=policy.does("stem_search"))
    if hits and policy.does("widen_adjacent"):
        return _around(_fitting(query, hits, 0.6)[:3])
    return None


def _around(hits: Sequence[Line]) -> str:
    """A pattern for the ids before and after some turns."""
    parts = [f"{hit.group}:({hit.index - 1}|{hit.index + 1})" for hit in hits]
    return rf"\[({'|'.join(parts)})\]"


def _merged(results: Sequence[Sequence[Line]]) -> list[Line]:
    return list({line.id: line for lines in results for line in lines}.values())


def _relevance(query: Query, line: Line) -> float:
    return overlap(query, line.text) + (0.7 if line.speaker in query.names else 0.0)


def _fitting(query: Query, hits: Sequence[Line], share: float) -> list[Line]:
    """The hits that bear on the question at least by a share of the best one's degree, best first."""
    ranked = sorted(hits, key=lambda line: -_relevance(query, line))
    return [line for line in ranked if _relevance(query, line) >= share * _relevance(query, ranked[0])]


def _session(line: Line) -> int:
    digits = re.sub(r"\D", "", line.group)
    return int(digits) if digits else 0


def _selected(query: Query, hits: list[Line], near: list[Line], limit: int, policy: Policy) -> list[Line]:
    """The best hit or all of them, each question followed by its reply, then the other neighbours."""
    if not hits:
        return []
    if policy.does("first_match_only"):
        return hits[:1]
    if policy.does("latest_session_only"):
        latest = max(_session(hit) for hit in hits)
        hits = [hit for hit in hits if _session(hit) == latest]
    ranked = _fitting(query, hits, 0.4)
    kept = ranked if len(ranked) > 1 and policy.does("quote_all") else ranked[:1]
    beside = {line.id: line for line in near}
    chosen: dict[str, Line] = {}
    for hit in kept:
        chosen[hit.id] = hit
        reply = beside.get(f"{hit.group}:{hit.index + 1}")
        if reply and "?" in hit.text:
            chosen.setdefault(reply.id, reply)
    for hit in kept:
        for step in (1, -1):
            if neighbour := beside.get(f"{hit.group}:{hit.index + step}"):
                chosen.setdefault(neighbour.id, neighbour)
    return list(chosen.values())[:limit]
