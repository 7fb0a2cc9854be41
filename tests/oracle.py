"""A reader that knows the forms of the bundled questions and reads nothing but the evidence that it is given.

Not a method: it shows that the gold evidence of every bundled question holds the answer. It answers None where a step
is missing. What the encyclopedia's sentences mean, how dates are counted and what a like or a dislike is stands here,
apart from the generator; the turns of single facts and lists are read by the generator's patterns.
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from skill_evolution.benchmarks.synthetic import talk

_NAME = r"((?:[A-Z]\w+ ?)+\b)"

# --- HotpotQA's format: evidence as (title, sentence) ---

_MADE_BY = {
    "founder": ("founded", "established"), "conductor": ("conducted",), "designer": ("designed",),
    "planner": ("planned",), "editor": ("edited",), "builder": ("built",), "director": ("first directed",),
    "manager": ("managed",), "leader": ("led",), "compiler": ("compiled",),
}  # fmt: skip
_SECOND_HOP = {
    r"\btown .*\bborn\b": (
        rf"was born in the town of {_NAME}\.",
        rf"came into the world in {_NAME},",
        rf"in which town \w+ was born\. A register \D*named {_NAME}\.",
    ),
    r"\buniversity\b.*\bstudy\b": (
        rf"went to university .*\bstudy law at {_NAME}\.",
        rf"holds a degree in philosophy from {_NAME}\.",
        rf"study at a university by the sea\. S?[Hh]e never regretted having chosen {_NAME}\.",
    ),
    r"\bteacher\b|\bpupil\b": (
        rf"\bThe teacher of [^.]*, was {_NAME}\.",
        rf"learned everything that mattered from {_NAME},",
        rf"spoke of a teacher .*\. The person s?he meant was {_NAME}\.",
    ),
    r"\byear .*\bborn\b": (
        r"was born in the year (\d{4})\.",
        r"came into the world in (\d{4}),",
        r"year in which \w+ was born was long disputed\. .* settled it as (\d{4})\.",
    ),
    r"\bnovel\b": (
        rf"to write a novel, {_NAME}\.",
        rf"Under a pen name \w+ published {_NAME},",
        rf"write only one novel, .*\. Its title is {_NAME}\.",
    ),
    r"\bvillage\b.*\bdie\b": (
        rf"died in the village of {_NAME}\.",
        rf"passed away in {_NAME} after",
        rf"wished to die in a quiet village\. That wish came true in {_NAME}\.",
    ),
    r"\bcompany did\b": (
        rf"used to work for the company {_NAME}\.",
        rf"was on the payroll of {_NAME}\.",
        rf"work at a company .*\. The firm was called {_NAME}\.",
    ),
    r"\bmarried\b": (
        rf"was married to {_NAME}\.",
        rf"The wedding of \w+ and {_NAME} drew",
        rf"got married\. The other half of the couple was {_NAME}\.",
    ),
    r"\briver\b": (
        rf"\bThe river {_NAME} flows through",
        rf"along both banks of the {_NAME}\.",
        rf"river flows through .*\. People there call it the {_NAME}\.",
    ),
    r"\bmayor\b": (
        rf"\bThe mayor of [^.]*, is {_NAME}\.",
        rf"\bVoters in \w+ chose {_NAME} to lead",
        rf"got a new mayor .*\. The winner was {_NAME}\.",
    ),
    r"\blargest employer\b": (
        rf"\bThe largest employer [^.]* is the company {_NAME}\.",
        rf"more people earn their living at {_NAME} than anywhere",
        rf"by far the largest employer .*\. It trades under the name {_NAME}\.",
    ),
    r"\byear .*\bfounded\b": (
        r"is a town founded in the year (\d{4})\.",
        r"began in (\d{4}) as a camp",
        r"year in which \w+ was founded is not told .*\. .* gives it as (\d{4})\.",
    ),
}
# What is compared: the question, the sentence, and for values whether the lower one wins.
_COMPARISONS = (
    (r"same county", rf"lies in the county of {_NAME}\.", None),
    (r"same architect", rf"designed by the architect {_NAME}\.", None),
    (r"same engineer", rf"planned by the engineer {_NAME}\.", None),
    (r"same town", rf"was born in the town of {_NAME}\.", None),
    (r"same author", rf"written by the author {_NAME}\.", None),
    (r"bridge was opened earlier", r"opened to traffic in (\d+)\.", True),
    (r"bridge was opened more recently", r"opened to traffic in (\d+)\.", False),
    (r"lighthouse is taller", r"tower is (\d+) metres high\.", False),
    (r"lighthouse is shorter", r"tower is (\d+) metres high\.", True),
    (r"lake is larger", r"area of (\d+) square kilometres\.", False),
    (r"lake is smaller", r"area of (\d+) square kilometres\.", True),
    (r"keeps more manuscripts", r"keeps (\d+) manuscripts", False),
    (r"has fewer manuscripts", r"keeps (\d+) manuscripts", True),
    (r"has fewer seats", r"hall has (\d+) seats\.", True),
    (r"has more seats", r"hall has (\d+) seats\.", False),
    (r"railway was finished first", r"line was finished in (\d+)\.", True),
    (r"was born (?:earlier|first)", r"was born in (\d+)\.", True),
    (r"novel was published first", r"was published in (\d+)\.", True),
)


def _first(patterns: Sequence[str], text: str) -> str | None:
    return next((match[1].strip() for pattern in patterns if (match := re.search(pattern, text))), None)


def hotpotqa(question: str, evidence: Sequence[tuple[str, str]]) -> str | None:
    """The answer by supporting sentences."""
    texts: dict[str, str] = {}
    for title, sentence in evidence:
        texts[title] = f"{texts.get(title, '')} {sentence}".strip()
    for asked, told, lower in _COMPARISONS:
        if re.search(asked, question):
            return _compared(question, texts, told, lower)
    entity = _second_entity(question, texts)
    for asked, told in _SECOND_HOP.items():
        if entity and re.search(asked, question):
            return _first(told, texts.get(entity, ""))
    return None


def _compared(question: str, texts: dict[str, str], told: str, lower: bool | None) -> str | None:
    pair = sorted((title for title in texts if title in question), key=question.index)
    values = [_first([told], texts[title]) for title in pair]
    if len(values) != 2 or None in values:
        return None
    if lower is None:
        return "yes" if values[0] == values[1] else "no"
    numbers = [int(value or 0) for value in values]
    return pair[0] if (numbers[0] < numbers[1]) == lower else pair[1]


def _second_entity(question: str, texts: dict[str, str]) -> str | None:
    """Whom or what the question means by its thing: the maker, or the town, under whatever name it is told."""
    things = [title for title in texts if f"the {title}" in question]
    if len(things) != 1:
        return None
    line = texts[things[0]]
    if "the town " in question.split(things[0])[0] and (seat := question.split(things[0])[1].split("?")[0].split()):
        name = _first([rf"\b{' '.join(seat[:2])}.* the town (?:of|once known as) {_NAME}\."], line) or _first(
            [rf"\b{seat[0]}.* the town (?:of|once known as) {_NAME}\."], line
        )
    else:
        role = re.search(r"\b(\w+) of the [A-Z]|the person who ((?:first )?\w+) the [A-Z]", question)
        verbs = () if not role else _MADE_BY.get(role[1], ()) if role[1] else (role[2],)
        name = _first([rf"was (?:for many years )?{v} by (?:the [a-z ]+ known as )?{_NAME}\." for v in verbs], line)
    if not name or name in texts:
        return name
    return next((title for title, text in texts.items() if f"was known as {name}." in text), None)


# --- LoCoMo's format: evidence as turns ---


@dataclass(frozen=True)
class Turn:
    """A turn with the date of its session, as in "1:56 pm on 8 May, 2023"."""

    dia_id: str
    stamp: str
    speaker: str
    text: str


_MONTHS = "January February March April May June July August September October November December".split()  # noqa: SIM905
_LIKES = re.compile(r"\b(?:favourite|adore|dream|best|love|happiest|delight)\b")
_DISLIKES = re.compile(r"\b(?:dislike|dread|scared|bored|hate|avoid|headache|afraid|nervous)\b")
_KNOWN = {
    ("financial situation", "plenty in the bank"): "Wealthy",
    ("political cause", "clean rivers"): "Environmental protection",
    ("health problem", "the pollen"): "Hay fever",
    ("personality trait", "the truth"): "Honesty",
    ("country", "Amsterdam"): "The Netherlands",
}


def _pattern(form: str, *, whole: bool = True) -> re.Pattern[str]:
    """A form with slots as a pattern; slots of values become groups."""
    parts = re.split(r"\{(\w)\}", form)
    slots = {"S": r"(?P<S>\w+)", "P": "(?:her|his)", "x": r"([\w' -]+)", "y": r"([\w' -]+)"}
    text = "".join(slots[part] if number % 2 else re.escape(part) for number, part in enumerate(parts))
    return re.compile(f"^{text}$" if whole else text)


_FACTS = [
    (_pattern(fact.question), _pattern(fact.opening), _pattern(fact.turn, whole=False))
    for fact in (*talk.DIRECT, *talk.LATER_WORD, *talk.ADJACENT, *talk.INFLECTED, *talk.REMOTE)
]
_LISTS = [
    (_pattern(items.question), [_pattern(turn, whole=False) for turn in (items.both, *items.turns, items.plain)])
    for items in talk.LISTS
]
_BROUGHT = re.compile(r"^What did (?P<S>\w+) bring home from the (.+), the (.+) and the (.+)\?$")
_SOURCES = {place: _pattern(turn, whole=False) for place, turn in talk.SOURCES}
_PAST = {f"{base} {what}".replace(" my ", " {P} "): f"{past} {what}" for past, base, what in talk.EVENTS}


def locomo(question: str, turns: Sequence[Turn]) -> str | None:
    """The answer by the turns that are the evidence."""
    if when := re.fullmatch(r"When (?:did|is) (\w+) (?:going to )?(.+)\?", question):
        return _time(*when.groups(), turns)
    if brought := _BROUGHT.match(question):
        told = [_values(turns, brought["S"], [_SOURCES[place]]) for place in brought.groups()[1:]]
        return ", ".join(values[0] for values in told) if all(len(values) == 1 for values in told) else None
    for asked, forms in _LISTS:
        if match := asked.match(question):
            items = _values(turns, match["S"], forms)
            return ", ".join(items) if len(items) > 1 else None
    for asked, opening, form in _FACTS:
        if match := asked.match(question):
            told = _replies(turns, opening) if opening.pattern != "^$" else turns
            values = _values(told, match["S"], [form])
            return values[0] if len(values) == 1 else None
    return _inferred(question, turns)


def _values(turns: Sequence[Turn], speaker: str, forms: Sequence[re.Pattern[str]]) -> list[str]:
    """What a speaker tells in the forms."""
    own = [turn.text for turn in turns if turn.speaker == speaker]
    return [value for text in own for form in forms if (match := form.search(text)) for value in match.groups()]


def _replies(turns: Sequence[Turn], opening: re.Pattern[str]) -> list[Turn]:
    """The turns that answer a question."""
    return [after for before, after in itertools.pairwise(turns) if opening.match(before.text)]


def _inferred(question: str, turns: Sequence[Turn]) -> str | None:
    """The preferred one of two things, a likely yes or no, or what is known of the world."""
    speaker = next((turn.speaker for turn in turns if re.search(rf"\b{turn.speaker}\b", question)), "")
    texts = [turn.text for turn in turns if turn.speaker == speaker]
    known = {answer for (asked, told), answer in _KNOWN.items() if asked in question and any(told in t for t in texts)}
    if known:
        return known.pop()
    for asked, options, _ in talk.PREFERENCES:
        if question == asked.format(S=speaker, a=options[0], b=options[1]):
            liked = {option for option in options for text in texts if option in text and _LIKES.search(text)}
            return liked.pop() if len(liked) == 1 else None
    for topic, asked, *_ in talk.LIKELY:
        if question == asked.format(S=speaker):
            told = [text for text in texts if topic in text.lower() and (_LIKES.search(text) or _DISLIKES.search(text))]
            answers = {"Likely no" if _DISLIKES.search(text) else "Likely yes" for text in told}
            return answers.pop() if len(answers) == 1 else None
    return None


def _written(day: date) -> str:
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def _time(speaker: str, event: str, turns: Sequence[Turn]) -> str | None:
    """When something happened, or is going to."""
    base = re.sub(r"\b(?:her|his)\b", "{P}", event)
    if base in _PAST:
        told = [turn for turn in turns if turn.speaker == speaker and re.search(rf"I {_PAST[base]} ", turn.text)]
    else:
        told = _replies(turns, re.compile(rf".*\bwhen you will {re.escape(event)}\?$"))
        told = [turn for turn in told if turn.speaker == speaker]
    return _resolved(told[0], turns) if len(told) == 1 else None


def _resolved(turn: Turn, turns: Sequence[Turn]) -> str | None:
    """The time that a turn tells, counted from its session or from another event that the same speaker dates."""
    by_event = re.search(r" (two days|the day) (after|before) I ([^.]+)\.", turn.text)
    if by_event:
        size, side, event = by_event.groups()
        dated = [t for t in turns if t.speaker == turn.speaker and t is not turn and f"I {event} " in t.text]
        anchor = _resolved(dated[0], turns) if len(dated) == 1 else None
        shift = (2 if size == "two days" else 1) * (1 if side == "after" else -1)
        return _written(_day(anchor) + timedelta(days=shift)) if anchor else None
    today = _day(turn.stamp.replace(",", ""))
    if stated := re.search(r" on (\d+ [A-Z][a-z]+ \d{4})\.", turn.text):
        return stated[1]
    if ago := re.search(r"(two|three|four|five|six) days ago", turn.text):
        return _written(today - timedelta(days=["two", "three", "four", "five", "six"].index(ago[1]) + 2))
    for word, shift in (("yesterday", -1), ("tomorrow", 1)):
        if word in turn.text:
            return _written(today + timedelta(days=shift))
    named = re.search(r"\b(last|next) (week|month|year|[A-Z]\w+day)\b", turn.text)
    if not named:
        return None
    step = 1 if named[1] == "next" else -1
    if named[2] == "year":
        return str(today.year + step)
    if named[2] == "month":
        months = today.year * 12 + today.month - 1 + step
        return f"{_MONTHS[months % 12]} {months // 12}"
    return f"The {named[2]} {'after' if step > 0 else 'before'} {_written(today)}"


def _day(text: str) -> date:
    match = re.search(r"(\d+) ([A-Z][a-z]+) (\d{4})", text)
    assert match
    return date(int(match[3]), _MONTHS.index(match[2]) + 1, int(match[1]))
