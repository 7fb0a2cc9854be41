"""What the simulated reader understands in a skill: a documented table of directives and how they are recognised.

A directive is recognised sentence by sentence, in several wordings; a negated sentence ("do not stop at the first
match") gives nothing. A text without a directive is a skill that changes nothing.

Tend to help:

- searcher: widen_adjacent, each_hop, stem_search, quote_all
- reader: follow_bridge, both_entities, whole_context
- answerer: shortest_span, resolve_dates, yes_no, list_all, commit_likely

Tend to hurt:

- searcher: latest_session_only, one_keyword_only, first_match_only, exact_phrase_only
- reader: one_passage_only, first_sentence_only
- answerer: decline_unless_verbatim, full_sentence, keep_relative_dates

The two groups are for people. Nothing in the code knows them: whether a directive helps shows in the answers alone.
All figures here are our choice.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

AgentKind = Literal["searcher", "reader", "answerer"]
FOLLOWED = 0.85
"""Probability that a directive that is shown is followed where it applies."""


@dataclass(frozen=True)
class Directive:
    """One behaviour that a skill can ask for.

    `spontaneous` is the probability of the behaviour without any skill. `opposes` names directives that ask for the
    contrary: where two such directives are both followed, an even draw settles which one prevails. `text` is how a
    skill's body would put it; `patterns` recognise one sentence.
    """

    key: str
    kind: AgentKind
    spontaneous: float
    text: str
    patterns: tuple[re.Pattern[str], ...]
    opposes: tuple[str, ...] = ()


def _directive(
    key: str, kind: AgentKind, spontaneous: float, text: str, *patterns: str, opposes: tuple[str, ...] = ()
) -> Directive:
    compiled = tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns)
    return Directive(key, kind, spontaneous, text, compiled, opposes)


_ADJACENT = r"(?:adjacent|neighbou?ring|surrounding|preceding|next|previous)"
_LATEST = r"(?:latest|last|most recent|newest)"
_ONLY = r"(?:only|just|solely|exclusively|nothing but)"
_FIRST_HIT = r"(?:first|top) (?:match|hit|result|line|matching (?:turn|line))"

DIRECTIVES: dict[str, Directive] = {
    directive.key: directive
    for directive in (
        # --- searcher ---
        _directive(
            "widen_adjacent",
            "searcher",
            0.2,
            "After a hit, also fetch the turns directly before and after it by their ids, for example with the pattern "
            r"\[D3:(6|8)\]. The answer to a question that one speaker asks often stands in the next turn.",
            rf"(?:fetch|read|get|search|look at|retrieve|include|check|grep|pull)"
            rf"\b.{{0,60}}\b{_ADJACENT} (?:turn|line|message)s?",
            r"\b(?:turn|line|message)s? (?:directly |right |just |immediately )?(?:before and after"
            r"|around|next to|beside)\b",
            r"\b(?:one|a) (?:turn|line) (?:before|either side)\b",
        ),
        _directive(
            "each_hop",
            "searcher",
            0.2,
            "Search each name and each keyword of the question apart, one search after the other. Go on with the "
            "remaining keywords after the first search.",
            r"(?:search|grep|look)\b.{0,30}\b(?:each|every)"
            r"\b.{0,40}\b(?:keyword|name|hop|part|entity|term|word|item)s?\b",
            r"\bseparate (?:search|grep|pattern|quer)\w*\b.{0,30}\b(?:each|every)\b",
            r"\b(?:remaining|other) (?:keyword|name|term)s\b",
        ),
        _directive(
            "stem_search",
            "searcher",
            0.2,
            "Search for word stems instead of exact forms, so that adopt also finds adopting and adopted. A stem "
            "catches every inflection of a keyword.",
            r"\b(?:word |the |a )?stems?\b",
            r"\b(?:inflect\w*|word forms|other forms|root of (?:a|the|each) (?:word|keyword))\b",
        ),
        _directive(
            "quote_all",
            "searcher",
            0.25,
            "Hand over every matching turn of all sessions, not only the best one. Facts about one topic are spread "
            "over several sessions.",
            r"(?:hand over|quote|pass on|keep|collect|return|give|include|copy)"
            r"\b.{0,30}\b(?:every|all|each)\b.{0,20}\b(?:match\w*|relevant|hit|turn|line|mention)",
            r"\bevery (?:matching|relevant) (?:turn|line)\b",
        ),
        _directive(
            "latest_session_only",
            "searcher",
            0.0,
            "Use only the latest session in which the topic comes up. Earlier sessions are outdated.",
            rf"\b{_ONLY}\b.{{0,30}}\b{_LATEST} session",
            rf"\b(?:restrict|limit|confine|stick)\b.{{0,40}}\b{_LATEST} session",
            r"\b(?:ignore|skip|discard|drop|disregard)\b.{0,20}\b(?:earlier|older|previous) sessions?",
            rf"\b{_LATEST} session (?:only|alone|is enough|suffices)",
            opposes=("quote_all",),
        ),
        _directive(
            "one_keyword_only",
            "searcher",
            0.0,
            "Search for one keyword only, the longest one. A single keyword keeps the result short.",
            r"\b(?:one|single) (?:\w+ )?(?:keyword|search (?:word|term))\b"
            r"(?! at a time)(?!s? (?:per|a|each|in each) (?:search|grep))",
            opposes=("each_hop",),
        ),
        _directive(
            "first_match_only",
            "searcher",
            0.0,
            "Stop at the first match and hand over that turn alone. Further matches rarely add anything.",
            rf"\b(?:stop|halt|end|finish)\b.{{0,20}}\b{_FIRST_HIT}",
            rf"\b{_ONLY}\b.{{0,25}}\b{_FIRST_HIT}",
            rf"\b{_FIRST_HIT} (?:only|alone|is enough|suffices)",
            opposes=("quote_all", "widen_adjacent"),
        ),
        _directive(
            "exact_phrase_only",
            "searcher",
            0.0,
            "Search for the exact phrase of the question. Only the exact wording makes sure that the turn is meant.",
            r"\b(?:exact|literal|verbatim) (?:phrase|wording|quotation)\b",
            r"\bphrase (?:exactly|literally|verbatim|as it stands|word for word)\b",
            opposes=("stem_search", "each_hop"),
        ),
        # --- evidence reader ---
        _directive(
            "follow_bridge",
            "reader",
            0.25,
            "When the first evidence names another person, place or work, look for the passage about that entity and "
            "take the fact from there. The bridge passage often shares few words with the question.",
            r"\bbridg(?:e|ing)\b",
            r"\bpassage (?:about|on|of|for)\b.{0,30}\b(?:entity|person|name|it names|named)\b",
            r"\bfollow\b.{0,40}\b(?:entity|entities|name|link|hop|mention)",
        ),
        _directive(
            "both_entities",
            "reader",
            0.25,
            "In a comparison hand over evidence for each of the compared entities. One sentence about each of them is "
            "needed.",
            r"\b(?:both|each|two|every one)\b.{0,25}\b(?:compared|entit(?:y|ies)|things compared|subjects?|sides)\b",
            r"\bcompar\w+\b.{0,60}\b(?:both|each)\b",
        ),
        _directive(
            "whole_context",
            "reader",
            0.25,
            "Hand over also the sentence before and the sentence after each picked sentence. A pronoun often points "
            "to its neighbour.",
            r"\bsentences? (?:directly |just |right )?(?:before|after|around)\b",
            r"\b(?:adjacent|neighbou?ring|surrounding|preceding|following) sentences?\b",
        ),
        _directive(
            "one_passage_only",
            "reader",
            0.0,
            "Keep to the one passage that matches best and take all evidence from that single passage.",
            r"\b(?:one|single|same) passage\b",
            rf"\b{_ONLY}\b.{{0,20}}\b(?:best|top|most similar|best matching) passage\b",
            opposes=("follow_bridge", "both_entities"),
        ),
        _directive(
            "first_sentence_only",
            "reader",
            0.0,
            "Hand over the first sentence of a passage only. It sums up what the passage says.",
            rf"\b{_ONLY}\b.{{0,20}}\b(?:first|opening|lead) sentences?\b",
            r"\b(?:first|opening|lead) sentences?\b.{0,25}\b(?:only|alone|is enough|suffices)\b",
            opposes=("whole_context", "follow_bridge"),
        ),
        # --- answerer ---
        _directive(
            "shortest_span",
            "answerer",
            0.25,
            "Answer with the shortest span of the evidence that answers the question. Leave out everything else.",
            r"\b(?:shortest|minimal|briefest|smallest)\b.{0,20}\b(?:span|phrase|answer|wording|words?)\b",
            r"\b(?:bare|short) (?:name|phrase|span|entity|noun phrase|answer)\b",
            r"\b(?:no|without) (?:full |whole |complete )?(?:sentence|explanation)s?\b",
        ),
        _directive(
            "resolve_dates",
            "answerer",
            0.2,
            "Work out relative dates such as yesterday or last week from the date of the session and give the calendar "
            "date.",
            r"\b(?:resolve|work out|convert|compute|turn|translate|calculate)"
            r"\b.{0,30}\b(?:relative|yesterday|dates?|time expressions?)\b",
            r"\brelative (?:dates?|times?)\b.{0,60}\b(?:session|calendar|absolute)\b",
        ),
        _directive(
            "yes_no",
            "answerer",
            0.25,
            "Answer a yes/no question with the bare word yes or no.",
            r"\b(?:bare|single|one|just|only|plain)\b.{0,20}\byes\b.{0,6}\bno\b",
            r"\byes[ /-]+(?:or )?no\b.{0,60}\b(?:bare|single word|one word|word alone|nothing else|alone)\b",
        ),
        _directive(
            "list_all",
            "answerer",
            0.25,
            "Where several items are asked for, list every item found in the evidence, separated by commas.",
            r"\b(?:list|name|give|include|enumerate|state)\b.{0,20}\b(?:every|all|each)"
            r"\b.{0,25}\b(?:item|thing|one|answer|element|name|entr)",
            r"\bcomma[- ]separated\b|\bseparated by commas\b",
        ),
        _directive(
            "commit_likely",
            "answerer",
            0.2,
            "Where the evidence does not say it outright, infer the likeliest answer from it and state that answer "
            "instead of declining.",
            r"\b(?:likeliest|most likely|most probable|most plausible|best[- ]supported) (?:answer"
            r"|conclusion|option|guess|inference)\b",
            r"\b(?:infer|commit|conclude|deduce)\b.{0,60}\b(?:instead of|rather than) (?:declin|abstain|refus)",
        ),
        _directive(
            "decline_unless_verbatim",
            "answerer",
            0.0,
            "Decline with NO_ANSWER unless the words of the question stand verbatim in the evidence. Never guess.",
            r"\b(?:decline|refuse|abstain|no_answer|give no answer|do not answer|don't answer)"
            r"\b.{0,50}\b(?:unless|if|when|where|without)\b"
            r".{0,60}\b(?:verbatim|literal\w*|exact words?|explicit\w*|word for word)\b",
            r"\b(?:answer|reply) only\b.{0,60}\b(?:verbatim|literal\w*|explicit\w*|word for word)\b",
            opposes=("commit_likely",),
        ),
        _directive(
            "full_sentence",
            "answerer",
            0.0,
            "Always answer in a full sentence that explains how the evidence leads to the answer.",
            r"\b(?:full|whole|complete|explanatory)\b.{0,12}\bsentences?\b",
            r"\b(?:sentence|answer) that (?:explains|spells out)\b",
            opposes=("shortest_span", "list_all", "yes_no"),
        ),
        _directive(
            "keep_relative_dates",
            "answerer",
            0.0,
            "Keep time expressions as they were spoken, such as yesterday or last week. Do not change them.",
            r"\b(?:keep|leave|repeat|copy|preserve|give)\b"
            r".{0,40}\b(?:time expressions?|relative (?:dates?|times?)|dates?|yesterday)"
            r"\b.{0,40}\b(?:as|unchanged|spoken|they were|said)\b",
            opposes=("resolve_dates",),
        ),
    )
}

_SENTENCE = re.compile(r"[^.!?\n;]+(?:[.!?;](?!\s|$)[^.!?\n;]*)*")
_NEGATION = re.compile(
    r"\b(?:not|never|avoid|instead of|rather than|no need to|refrain from|stop|without|beyond|more than)\b"
    r"(?:(?!\bbut\b)[^,:])*$"
    r"|n't\b(?:(?!\bbut\b)[^,:])*$",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def recognise(text: str) -> tuple[tuple[Directive, str], ...]:
    """The directives in a skill's description or body, each with the sentence that gives it, in reading order.

    A directive is listed once, at its first sentence.
    """
    found: dict[str, tuple[Directive, str]] = {}
    for match in _SENTENCE.finditer(text):
        sentence = match.group().strip()
        for directive in DIRECTIVES.values():
            if directive.key not in found and _asks_for(directive, sentence):
                found[directive.key] = (directive, sentence)
    return tuple(found.values())


def _asks_for(directive: Directive, sentence: str) -> bool:
    """Whether a pattern matches at a place that no negation of its clause governs."""
    return any(
        not _NEGATION.search(sentence, 0, match.start())
        for pattern in directive.patterns
        for match in pattern.finditer(sentence)
    )
