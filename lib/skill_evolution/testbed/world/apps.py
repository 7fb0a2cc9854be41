"""The apps: their tables, and the APIs that read and change them.

A public method is an API; its signature and docstring are its documentation. All arguments are strings.
"""

from collections.abc import Iterable

from skill_evolution.testbed.world.values import KINDS

Row = dict[str, str]
State = dict[str, list[Row]]  # table -> rows; everything a session can change


class AppError(LookupError):
    """A request that the app refuses; its text goes back to the agent."""


class App:
    """One app over a session's tables."""

    name: str
    private = False  # True: only in the sessions of tasks that need it

    def __init__(self, state: State) -> None:
        self._state = state

    def _one(self, table: str, what: str, **where: str) -> Row:
        (field, value), *_ = where.items()
        for row in self._state[table]:
            if row[field] == value:
                return row
        raise AppError(f"there is no {what} with {field} {value!r}")

    def _check(self, table: str, what: str, identifier: str) -> str:
        return self._one(table, what, id=identifier)["id"]

    def _add(self, table: str, **row: str) -> None:
        self._state[table].append(row)

    def _all(self, table: str) -> list[Row]:
        return [dict(row) for row in self._state[table]]


def _member(value: str, allowed: Iterable[str], parameter: str) -> str:
    if value not in allowed:
        raise AppError(f"{parameter} must be one of {', '.join(allowed)}, not {value!r}")
    return value


class Contacts(App):
    """The people whom the user knows."""

    name = "contacts"

    def find(self, name: str) -> str:
        """The id of the person with this name."""
        return self._one("people", "person", name=name)["id"]

    def city(self, person: str) -> str:
        """The city where the person with this id lives."""
        return self._one("people", "person", id=person)["city"]

    def relocate(self, person: str, city: str) -> None:
        """Change the city of the person with this id."""
        self._one("people", "person", id=person)["city"] = city

    def star(self, person: str) -> None:
        """Mark the person with this id as a favourite."""
        self._one("people", "person", id=person)["starred"] = "yes"

    def show(self) -> list[Row]:
        """All people: id, name, city, starred."""
        return self._all("people")


class Calendar(App):
    """The user's events and bookings."""

    name = "calendar"

    def find(self, title: str) -> str:
        """The id of the event with this title."""
        return self._one("events", "event", title=title)["id"]

    def day(self, event: str) -> str:
        """The day of the event with this id."""
        return self._one("events", "event", id=event)["day"]

    def move(self, event: str, day: str) -> None:
        """Move the event with this id to another day of the week."""
        self._one("events", "event", id=event)["day"] = _member(day, KINDS["day"].pool, "day")

    def invite(self, event: str, person: str) -> None:
        """Invite the person with this id to the event with this id."""
        event, person = self._check("events", "event", event), self._check("people", "person", person)
        self._add("invitations", event=event, person=person)

    def cancel(self, event: str) -> None:
        """Remove the event with this id."""
        self._state["events"].remove(self._one("events", "event", id=event))

    def book(self, person: str, day: str) -> None:
        """Book a visit of the person with this id on a day of the week."""
        person = self._check("people", "person", person)
        self._add("visits", person=person, day=_member(day, KINDS["day"].pool, "day"))

    def show(self) -> list[Row]:
        """All events: id, title, day."""
        return self._all("events")


class Music(App):
    """Songs, likes and the play queue."""

    name = "music"

    def find(self, title: str) -> str:
        """The id of the song with this title."""
        return self._one("songs", "song", title=title)["id"]

    def like(self, song: str) -> None:
        """Like the song with this id."""
        self._one("songs", "song", id=song)["liked"] = "yes"

    def queue(self, song: str) -> None:
        """Put the song with this id into the queue."""
        self._add("queue", song=self._check("songs", "song", song))

    def play(self, song: str) -> None:
        """Play the song with this id now."""
        self._add("played", song=self._check("songs", "song", song))

    def share(self, song: str, person: str) -> None:
        """Share the song with this id with the person with this id."""
        song, person = self._check("songs", "song", song), self._check("people", "person", person)
        self._add("shared_songs", song=song, person=person)

    def favourite(self, person: str) -> str:
        """The id of the song that the person with this id likes best."""
        return self._one("favourites", "favourite", person=person)["song"]

    def show(self) -> list[Row]:
        """All songs: id, title, liked."""
        return self._all("songs")


class Notes(App):
    """The user's notes."""

    name = "notes"

    def find(self, title: str) -> str:
        """The id of the note with this title."""
        return self._one("notes", "note", title=title)["id"]

    def read(self, note: str) -> str:
        """The text of the note with this id."""
        return self._one("notes", "note", id=note)["text"]

    def append(self, note: str, text: str) -> None:
        """Add text at the end of the note with this id."""
        row = self._one("notes", "note", id=note)
        row["text"] = f"{row['text']} {text}"

    def pin(self, note: str) -> None:
        """Pin the note with this id."""
        self._one("notes", "note", id=note)["pinned"] = "yes"

    def delete(self, note: str) -> None:
        """Remove the note with this id."""
        self._state["notes"].remove(self._one("notes", "note", id=note))

    def lend(self, note: str, person: str) -> None:
        """Let the person with this id read the note with this id."""
        note, person = self._check("notes", "note", note), self._check("people", "person", person)
        self._add("readers", note=note, person=person)

    def show(self) -> list[Row]:
        """All notes: id, title, text, pinned."""
        return self._all("notes")


class Wallet(App):
    """Payments, requests, savings and debts, in coins; an amount is a number word from two to nine."""

    name = "wallet"

    def pay(self, person: str, amount: str) -> None:
        """Pay coins to the person with this id."""
        person = self._check("people", "person", person)
        self._add("payments", person=person, amount=_member(amount, KINDS["amount"].pool, "amount"))

    def request(self, person: str, amount: str) -> None:
        """Ask the person with this id for coins."""
        person = self._check("people", "person", person)
        self._add("requests", person=person, amount=_member(amount, KINDS["amount"].pool, "amount"))

    def save(self, amount: str) -> None:
        """Put coins aside as savings."""
        self._add("savings", amount=_member(amount, KINDS["amount"].pool, "amount"))

    def owed(self, person: str) -> str:
        """How many coins the person with this id owes the user."""
        return self._one("debts", "debt", person=person)["amount"]

    def show(self) -> list[Row]:
        """All payments: person, amount."""
        return self._all("payments")


class Messages(App):
    """Messages from and to people."""

    name = "messages"

    def send(self, person: str, text: str) -> None:
        """Send a text to the person with this id."""
        self._add("sent", person=self._check("people", "person", person), text=text)

    def last(self, person: str) -> str:
        """The last text that the person with this id wrote to the user."""
        return self._one("inbox", "message", person=person)["text"]

    def block(self, person: str) -> None:
        """Take no more messages from the person with this id."""
        self._add("blocked", person=self._check("people", "person", person))

    def show(self) -> list[Row]:
        """All texts that people wrote: person, text."""
        return self._all("inbox")


class Shop(App):
    """Items to order."""

    name = "shop"
    private = True

    def find(self, title: str) -> str:
        """The id of the item with this title."""
        return self._one("items", "item", title=title)["id"]

    def price(self, item: str) -> str:
        """The price of the item with this id, in coins."""
        return self._one("items", "item", id=item)["price"]

    def order(self, item: str) -> None:
        """Order the item with this id."""
        self._add("orders", item=self._check("items", "item", item))

    def wish(self, item: str) -> None:
        """Put the item with this id on the wish list."""
        self._add("wishes", item=self._check("items", "item", item))

    def gift(self, item: str, person: str) -> None:
        """Order the item with this id as a gift for the person with this id."""
        item, person = self._check("items", "item", item), self._check("people", "person", person)
        self._add("gifts", item=item, person=person)

    def show(self) -> list[Row]:
        """All items: id, title, price."""
        return self._all("items")


APPS: tuple[type[App], ...] = (Contacts, Calendar, Music, Notes, Wallet, Messages, Shop)

#: Tables that start empty; those that tasks fill are in `scenarios`.
LOGS = (
    *("invitations", "visits", "queue", "played", "shared_songs", "readers"),
    *("payments", "requests", "savings", "sent", "blocked"),
)
SHOP_LOGS = ("orders", "wishes", "gifts")
