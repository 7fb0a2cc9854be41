"""The answerer: what the evidence says, in the wording that its skills ask for."""

import re
from collections.abc import Sequence

from skill_evolution.models.simulated import dates, extraction
from skill_evolution.models.simulated.extraction import Finding
from skill_evolution.models.simulated.policy import Policy
from skill_evolution.models.simulated.reading import Line, Query

_CLAUSE = re.compile(r"[,;:.!?](?:\s|$)|\s(?:and|but|because|so|while)\s")


def answer(query: Query, lines: Sequence[Line], policy: Policy) -> str:
    """The final answer, "" to decline."""
    if not lines:
        return ""
    if policy.does("decline_unless_verbatim") and not _verbatim(query, lines):
        return ""
    if query.kind == "likely":
        return _likely(query, lines, policy)
    if query.kind in ("yes_no", "choice") and (verdict := _verdict(query, lines, policy)):
        return verdict
    found = extraction.findings(query, lines)
    if not found:
        return ""
    if query.kind == "when":
        return _time(found[0], policy)
    if query.kind == "list":
        return _items(query, found, policy)
    return _worded(found[0].span, found[0], policy)


def _verbatim(query: Query, lines: Sequence[Line]) -> bool:
    """Whether every keyword of the question stands in the evidence in the very form of the question."""
    text = " ".join(line.text for line in lines).lower()
    return all(re.search(rf"\b{re.escape(word)}\b", text) for word in query.keywords)


def _worded(span: str, found: Finding, policy: Policy) -> str:
    """A span on its own, in its clause, or in an explaining sentence."""
    if policy.does("full_sentence"):
        return _explained(found)
    return span if policy.does("shortest_span") else clause(found.sentence, span)


def _explained(found: Finding) -> str:
    return f"According to the evidence that was handed over, {found.sentence}"


def clause(sentence: str, span: str) -> str:
    """The clause of a sentence that holds a span, cut to two words before the span and one after it."""
    at = sentence.find(span)
    if at < 0:
        return sentence
    start = max((m.end() for m in _CLAUSE.finditer(sentence) if m.end() <= at), default=0)
    end = min((m.start() for m in _CLAUSE.finditer(sentence) if m.start() >= at + len(span)), default=len(sentence))
    before, after = sentence[start:at].split(), sentence[at + len(span) : end].split()
    return " ".join([*before[-2:], span, *after[:1]]).strip(" .!?,")


def _time(found: Finding, policy: Policy) -> str:
    mention = dates.find_time(found.line.text, found.line.stamp)
    if mention is None:
        today = dates.session_date(found.span)
        return dates.written(today) if today else _worded(found.span, found, policy)
    if not mention.relative:
        return _worded(mention.resolved or mention.written, found, policy)
    if not policy.does("keep_relative_dates") and policy.does("resolve_dates") and mention.resolved:
        return mention.resolved
    return _worded(mention.written, found, policy)


def _items(query: Query, found: Sequence[Finding], policy: Policy) -> str:
    """One item, or those of all lines that fit nearly as well as the best one, told by whom the question is about.

    Two speakers may tell of the same things, and a list of either's would mix them.
    """
    found = [finding for finding in found if finding.line.speaker in query.names] or found
    if policy.does("full_sentence"):
        return _explained(found[0])
    fitting = [finding for finding in found if finding.score >= 0.5 * found[0].score]
    items = list(dict.fromkeys(item for finding in fitting for item in finding.span.split(" and ")))
    if len(items) > 1 and policy.does("list_all"):
        return ", ".join(items)
    return _worded(found[0].span, found[0], policy)


def _verdict(query: Query, lines: Sequence[Line], policy: Policy) -> str:
    value, line = extraction.compare(query, lines)
    if line is None:
        if query.kind == "yes_no":
            return _lone(query, lines, policy)
        value, line = _guess(query, lines)
        if line is None:
            return ""
    if value in ("yes", "no"):
        if policy.does("full_sentence") or not policy.does("yes_no"):
            return f"{value.capitalize()}, {clause(line.text, '')}"
        return value
    return _worded(value, Finding(value, f"Probably {value}.", line, 0.0), policy)


def _guess(query: Query, lines: Sequence[Line]) -> tuple[str, Line | None]:
    """Where only one side of a choice is known: the side that the evidence is about."""
    known = [(option, line) for option in query.options or () for line in lines if option in (line.group, line.text)]
    return known[0] if known else ("", None)


def _lone(query: Query, lines: Sequence[Line], policy: Policy) -> str:
    """A yes/no question about one thing: yes where the evidence shares most of it and doesn't deny it."""
    if len(query.names) >= 2:
        return ""
    value = "yes" if max(extraction.overlap(query, line.text) for line in lines) >= 0.5 * len(query.content) else "no"
    return value if policy.does("yes_no") else f"{value.capitalize()}, {lines[0].text}"


def _likely(query: Query, lines: Sequence[Line], policy: Policy) -> str:
    """An open question: declined unless the reader commits, except that a choice between two things is answered."""
    value, found = extraction.infer(query, lines)
    if found is None:
        return ""
    if not query.options and not policy.does("commit_likely"):
        return ""
    return _worded(value, Finding(value, f"{found.sentence} So {value}", found.line, 0.0), policy)
