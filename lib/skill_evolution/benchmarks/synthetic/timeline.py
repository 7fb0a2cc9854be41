"""Dates of invented sessions and events, written as LoCoMo writes them."""

import random
from dataclasses import dataclass
from datetime import date, timedelta

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_NUMBERS = ("two", "three", "four", "five", "six")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def month_of(day: date) -> str:
    """The month's name, whatever the locale."""
    return MONTHS[day.month - 1]


def day_month_year(day: date) -> str:
    """ "7 May 2023"."""
    return f"{day.day} {month_of(day)} {day.year}"


def stamp(day: date, rng: random.Random) -> str:
    """A session's time stamp, "1:56 pm on 8 May, 2023"."""
    half = rng.choice(("am", "pm"))
    return f"{rng.randint(1, 11)}:{rng.randint(0, 59):02d} {half} on {day.day} {month_of(day)}, {day.year}"


def session_days(rng: random.Random, count: int) -> list[date]:
    """Days of `count` sessions, one to three weeks apart."""
    day = date(2022, 1, 10) + timedelta(days=rng.randint(0, 500))
    days = []
    for _ in range(count):
        days.append(day)
        day += timedelta(days=rng.randint(6, 20))
    return days


@dataclass(frozen=True)
class When:
    """A time as it is said in a session and as the gold answer gives it."""

    said: str
    gold: str


def past(rng: random.Random, session: date) -> When:
    """A past event told relative to the session; the vague "week before" is rare."""
    kind = rng.choice(("yesterday", "days", "days", "weekday", "weekday", "month", "week"))
    if kind == "yesterday":
        return When("yesterday", day_month_year(session - timedelta(days=1)))
    if kind == "days":
        return days_ago(rng, session)
    if kind == "weekday":
        name = rng.choice(WEEKDAYS)
        return When(f"last {name}", f"The {name} before {day_month_year(session)}")
    if kind == "month":
        before = session.replace(day=1) - timedelta(days=1)
        return When("last month", f"{month_of(before)} {before.year}")
    return When("last week", f"The week before {day_month_year(session)}")


def days_ago(rng: random.Random, session: date) -> When:
    """A past event told by the days since."""
    number = rng.randint(2, 6)
    return When(f"{_NUMBERS[number - 2]} days ago", day_month_year(session - timedelta(days=number)))


def stated(rng: random.Random, session: date) -> When:
    """A past event whose date is told outright."""
    day = session - timedelta(days=rng.randint(8, 60))
    return When(f"on {day.day} {month_of(day)} {day.year}", day_month_year(day))


def coming(rng: random.Random, session: date) -> When:
    """A plan told relative to the session."""
    kind = rng.choice(("tomorrow", "month", "month", "year", "week"))
    if kind == "tomorrow":
        return When("tomorrow", day_month_year(session + timedelta(days=1)))
    if kind == "month":
        after = (session.replace(day=28) + timedelta(days=4)).replace(day=1)
        return When("next month", f"{month_of(after)} {after.year}")
    if kind == "year":
        return When("next year", str(session.year + 1))
    return When("next week", f"The week after {day_month_year(session)}")


def moved(gold: str, days: int) -> str:
    """A day as a gold answer gives it, some days later."""
    day, month, year = gold.split()
    return day_month_year(date(int(year), MONTHS.index(month) + 1, int(day)) + timedelta(days=days))
