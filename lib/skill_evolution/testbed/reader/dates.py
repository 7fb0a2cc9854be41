"""Time expressions: found in a turn, resolved against the date of its session in LoCoMo's way of writing."""

import re
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "a couple of": 2, "three": 3, "a few": 3, "four": 4, "five": 5, "six": 6,
    "seven": 7, "eight": 8, "nine": 9, "ten": 10,
}  # fmt: skip
_MONTH = "|".join(MONTHS)
_DAY = "|".join(WEEKDAYS)
_COUNT = r"(?P<count>a couple of|a few|an?|one|two|three|four|five|six|seven|eight|nine|ten|\d+)"
_SESSION = re.compile(rf"(\d{{1,2}}) ({_MONTH}),? (\d{{4}})", re.IGNORECASE)
_EXPLICIT = re.compile(
    rf"\b(?:(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<m1>{_MONTH})"
    rf"|(?P<m2>{_MONTH}) (?P<d2>\d{{1,2}})(?:st|nd|rd|th)?)"
    rf"(?:,? (?P<y>\d{{4}}))?\b"
    rf"|\b(?:in|since|during|by) (?P<m3>{_MONTH})(?: (?P<y3>\d{{4}}))?\b|\b(?:in|since) (?P<y4>(?:19|20)\d\d)\b"
)
_RELATIVE = re.compile(
    rf"\b(?:(?P<plain>the day before yesterday|yesterday|tomorrow|today|tonight|this morning|last night)"
    rf"|{_COUNT} (?P<unit>day|week|weekend|month|year)s? (?P<dir>ago|from now)"
    rf"|in {_COUNT.replace('count', 'ahead')} (?P<aunit>day|week|month|year)s?(?= time|[.,!]|$)"
    rf"|(?P<which>last|next|this|this past|this coming|the past) (?P<what>week|weekend|month|year|{_DAY}))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class TimeMention:
    """A time expression: as written, and resolved ("" where there is no session date to resolve it by)."""

    written: str
    resolved: str
    relative: bool


def session_date(text: str) -> date | None:
    """The date in a session's time stamp such as "1:56 pm on 8 May, 2023"."""
    match = _SESSION.search(text)
    if not match:
        return None
    day, month, year = match.groups()
    try:
        return date(int(year), MONTHS.index(month.capitalize()) + 1, int(day))
    except ValueError:  # 31 June and the like stay text
        return None


def written(day: date) -> str:
    """A date as LoCoMo's answers put it: "7 May 2023"."""
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


@lru_cache(maxsize=16384)
def find_time(text: str, stamp: str) -> TimeMention | None:
    """The first time expression of a text, an explicit date before a relative one; None where there is none."""
    today = session_date(stamp)
    if match := _EXPLICIT.search(text):
        return TimeMention(match.group(), _explicit(match, today), relative=False)
    if match := _RELATIVE.search(text):
        return TimeMention(match.group(), _resolve(match, today) if today else "", relative=True)
    return None


def _explicit(match: re.Match[str], today: date | None) -> str:
    part = match.groupdict()
    if part["y4"]:
        return part["y4"]
    year = part["y"] or part["y3"] or (str(today.year) if today else "")
    month = part["m1"] or part["m2"] or part["m3"]
    return " ".join(filter(None, (part["d1"] or part["d2"], month, year)))


def _resolve(match: re.Match[str], today: date) -> str:
    if plain := match["plain"]:
        shift = {"yesterday": -1, "last night": -1, "the day before yesterday": -2, "tomorrow": 1}.get(plain.lower(), 0)
        return written(today + timedelta(days=shift))
    if match["unit"] or match["aunit"]:
        count = (match["count"] or match["ahead"]).lower()
        number = _NUMBERS[count] if count in _NUMBERS else int(count)
        back = bool(match["unit"]) and match["dir"].lower() == "ago"
        return _shifted(today, -number if back else number, (match["unit"] or match["aunit"]).lower())
    return _named(match["which"].lower(), match["what"], today)


def _shifted(today: date, number: int, unit: str) -> str:
    """The time `number` units from today, negative ones back, as exact as the unit is."""
    if unit == "day":
        return written(today + timedelta(days=max(-36500, min(36500, number))))
    if unit in ("week", "weekend"):
        side = "before" if number < 0 else "after"
        size = abs(number)
        spelled = next(
            (word for word, n in _NUMBERS.items() if n == size and word not in ("a", "an", "one")), str(size)
        )
        return f"The {unit} {side} {written(today)}" if size == 1 else f"{spelled} {unit}s {side} {written(today)}"
    if unit == "month":
        return _month(today, number)
    return str(today.year + number)


def _month(today: date, number: int) -> str:
    index = today.year * 12 + today.month - 1 + number
    return f"{MONTHS[index % 12]} {index // 12}"


def _named(which: str, what: str, today: date) -> str:
    """ "last week", "next month", "this Friday" ... A weekday stays relative to the session, as in LoCoMo's answers."""
    step = -1 if which in ("last", "the past", "this past") else 0 if which == "this" else 1
    unit = what.lower()
    if unit == "month":
        return _month(today, step)
    if unit == "year":
        return str(today.year + step)
    side = {-1: "before", 0: "of", 1: "after"}[step]
    name = what if unit in ("week", "weekend") else what.capitalize()
    return f"The {name} {side} {written(today)}"
