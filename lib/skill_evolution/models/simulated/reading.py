"""What an actor's messages say: its skills and reply form, the question, passages and conversation lines."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from skill_evolution.models.simulated import words
from skill_evolution.models.simulated.directives import AgentKind, recognise

AnswerKind = Literal["likely", "choice", "yes_no", "when", "year", "number", "list", "name", "phrase"]

_SKILL = re.compile(r'<skill name="([^"\n]*)">\s*\n(.*?)\n?\s*</skill>', re.DOTALL)
_FORM = re.compile(r"^# Form of your reply[^\n]*\n", re.MULTILINE)
_HANDOVER_LIMIT = re.compile(r"at most (\d+) lines between")
_QUESTION = re.compile(r"^# Question[^\n]*\n(.*?)(?=^# Handed over by |\Z)", re.MULTILINE | re.DOTALL)
_HANDED = re.compile(r"^# Handed over by [^\n]*\n(.*?)(?=^# Handed over by |\Z)", re.MULTILINE | re.DOTALL)
_PASSAGES = re.compile(r"\A\s*# Passages[^\n]*\n(.*?)(?=^# Question)", re.MULTILINE | re.DOTALL)
_LINE = re.compile(r"^\s*(?:[-*] )?\[([^\[\]\n]+):(\d+)\]\s*(?:\(([^()\n]*\d[^()\n]*)\)\s+([^:\n]{1,40}):\s)?(.*)$")


@dataclass(frozen=True)
class Brief:
    """An agent's standing instructions: what it is, how it may reply and which directives its skills hold."""

    kind: AgentKind
    answers: bool
    limit: int
    skills: tuple[tuple[str, frozenset[str]], ...]


@dataclass(frozen=True, slots=True)
class Line:
    """A line that can be cited. `group` is the passage's title or the session ("D3"); `stamp` the session's date."""

    id: str
    group: str
    index: int
    stamp: str
    speaker: str
    text: str
    raw: str


@dataclass(frozen=True)
class Query:
    """A question as the reader sees it.

    `content` holds the stems that evidence should share, names included; `keywords` are the content words outside
    names, longest first; `names` the proper names as written; `options` the two things of "A or B".
    """

    text: str
    kind: AnswerKind
    content: frozenset[str]
    keywords: tuple[str, ...]
    names: tuple[str, ...]
    name_stems: frozenset[str]
    options: tuple[str, str] | None
    phrase: str


@lru_cache(maxsize=2048)
def read_brief(system: str) -> Brief:
    """The standing instructions in a system message; the reply form alone tells what kind of agent this is."""
    form = _FORM.split(system)[-1]
    answers = "<answer>" in form
    kind: AgentKind = "searcher" if "<grep>" in form else "reader" if "<handover>" in form else "answerer"
    limit = _HANDOVER_LIMIT.search(form)
    skills = tuple(
        (name, frozenset(directive.key for directive, _ in recognise(body))) for name, body in _SKILL.findall(system)
    )
    return Brief(kind, answers, int(limit[1]) if limit else 6, skills)


@lru_cache(maxsize=8192)
def read_lines(text: str) -> tuple[Line, ...]:
    """The citable lines of a text, in order, each id once; a line without an id is left out."""
    lines: dict[str, Line] = {}
    for raw in text.splitlines():
        if match := _LINE.match(raw):
            group, index, stamp, speaker, rest = match.groups()
            line_id = f"{group}:{index}"
            lines.setdefault(line_id, Line(line_id, group, int(index), stamp or "", speaker or "", rest, raw.strip()))
    return tuple(lines.values())


@lru_cache(maxsize=4096)
def read_user(user: str) -> tuple[str, str, tuple[str, ...]]:
    """A user message's question, passages ("" if none) and earlier hand-overs."""
    question = _QUESTION.search(user)
    passages = _PASSAGES.search(user)
    handed = tuple(part.strip() for part in _HANDED.findall(user))
    return (question[1] if question else user).strip(), passages[1].strip() if passages else "", handed


_LIKELY = re.compile(r"^(?:would|might|could)\b|\b(?:likely|probably|might|potentially|would be a)\b", re.IGNORECASE)
_YES_NO = re.compile(r"^(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should)\b", re.IGNORECASE)
_WHEN = re.compile(r"^when\b|\b(?:what|which|on which|on what) (?:date|day|month)\b", re.IGNORECASE)
_YEAR = re.compile(r"\b(?:what|which) year\b", re.IGNORECASE)
_NUMBER = re.compile(r"\bhow (?:many|much|old|long|often|far|tall|high|large|deep)\b", re.IGNORECASE)
_LIST = re.compile(
    r"^(?:[Ww]hat|[Ww]hich)(?: (?:kinds?|types?) of)?(?: (?!do |did |does )[a-z]+){0,3}?"
    r" (?!does|was|is\b|has)[a-z]{3,}(?<![sui])s\b(?! the\b)"
    r"|\b[a-z]+ and (?:(?:at|from|in|on) )?(?:the )?[a-z][a-z ]*\?$"
)
_NAME = re.compile(
    r"^(?:who|whose|whom|where)\b"
    r"|\b(?:what|which|whose) (?:\w+ )?(?:city|town|village|country|county|state|river|lake|island|band|"
    r"book|novel|film|magazine|school|university|college|company|museum|street|person|singer|composer|harbou?r|region)\b",
    re.IGNORECASE,
)
_OR = re.compile(r"([\w'’ .-]+?),? or (?:an? |the )?([\w'’ .-]+?)\s*\?", re.IGNORECASE)
_ASIDE = frozenset(
    words.stem(word)
    for word in """likely probably might would person year date day month city town village country kind type name both
    many much long often old interested prefer rather good suitable become consider considered""".split()  # noqa: SIM905
)
"""Words of questions that say what kind of answer is wanted, not what evidence to look for."""


@lru_cache(maxsize=16384)
def read_question(text: str) -> Query:
    """A question taken apart by general rules on its words."""
    sentence = words.parse(text)
    runs = [run for run in words.proper_names(text) if not (run[0] == 0 and sentence.lowers[0] in _OPENERS)]
    names = tuple(re.sub(r"['’]s$", "", sentence.slice(*run)) for run in runs)
    in_name = {index for first, last in runs for index in range(first, last + 1)}
    name_stems = frozenset(sentence.stems[index] for index in in_name) - words.FUNCTION_WORDS
    plain = [
        index
        for index, low in enumerate(sentence.lowers)
        if index not in in_name
        and sentence.stems[index] in sentence.content
        and sentence.stems[index] not in _ASIDE
        and low not in words.FILLERS
        and index > 0
    ]
    keywords = tuple(dict.fromkeys(sorted((sentence.lowers[i] for i in plain), key=len, reverse=True)))
    content = frozenset(sentence.stems[i] for i in plain) | name_stems
    return Query(text, _kind(text), content, keywords, names, name_stems, _options(text), _phrase(sentence, plain))


_OPENERS = frozenset(
    """what which who whose whom where when why how in on at for is are was were do does did has have had can could will
    would should""".split()  # noqa: SIM905
)


def _kind(text: str) -> AnswerKind:
    if _LIKELY.search(text):
        return "likely"
    if _WHEN.search(text):
        return "when"
    if _YEAR.search(text):
        return "year"
    if _YES_NO.search(text):
        return "yes_no"
    if _OR.search(text):
        return "choice"
    if _NUMBER.search(text):
        return "number"
    if _NAME.search(text):
        return "name"
    return "list" if _LIST.search(text) else "phrase"


def _options(text: str) -> tuple[str, str] | None:
    """The two things between which the question chooses: what stands on both sides of its "or"."""
    match = _OR.search(text)
    if not match:
        return None
    left, right = match.groups()
    names = [left[a:b] for a, b in _name_spans(left)]
    if right[:1].isupper() and names:
        return names[-1], right.strip()
    return " ".join(left.split()[-len(right.split()) :]), right.strip()


def _name_spans(text: str) -> list[tuple[int, int]]:
    sentence = words.parse(text)
    return [(sentence.spans[a][0], sentence.spans[b][1]) for a, b in words.proper_names(text)]


def _phrase(sentence: words.Sentence, plain: list[int]) -> str:
    """The longest stretch of neighbouring keywords as it stands in the question; at least two words, else one word."""
    best: list[int] = []
    run: list[int] = []
    for index in plain:
        run = [*run, index] if run and index == run[-1] + 1 else [index]
        if len(run) > len(best) or (len(run) == len(best) and index > 0):
            best = run
    return sentence.slice(best[0], best[-1]) if best else ""
