"""The primitives that scenarios are composed of: how each is asked for, and the nested API call that does it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Call:
    """A call of `apis.<api>`; an argument is a slot's name or the call whose result is passed."""

    api: str
    arguments: tuple["Call | str", ...]

    def slots(self) -> tuple[str, ...]:
        """The slots in the order in which the call evaluates them."""
        return tuple(
            slot
            for argument in self.arguments
            for slot in (argument.slots() if isinstance(argument, Call) else (argument,))
        )

    def source(self, names: Mapping[str, str]) -> str:
        """The call as one Python expression, each slot written as `names` says."""
        arguments = (a.source(names) if isinstance(a, Call) else names[a] for a in self.arguments)
        return f"apis.{self.api}({', '.join(arguments)})"


@dataclass(frozen=True)
class Primitive:
    """One thing to ask for.

    Attributes:
        name: One word; a scenario's name joins those of its primitives.
        phrase: How it is asked for, with the slots to fill in. One wording each: with two or three, so small a policy
            spends its few hundred updates on synonyms (tried: 17 % of held-out tasks solved instead of more than half).
        call: What does it.
        answer: The call's result is to be handed to complete_task.
    """

    name: str
    phrase: str
    call: Call
    answer: bool = False

    @property
    def slots(self) -> tuple[str, ...]:
        """Its slots, each a kind of value, in the order of the function's parameters."""
        return self.call.slots()


def evaluate(call: Call, values: Mapping[str, str], perform: Callable[..., Any]) -> Any:
    """The result of a call, inner calls first.

    Args:
        call: What to evaluate.
        values: What each slot stands for.
        perform: Takes an api and its arguments, and returns its result.
    """
    arguments = [evaluate(a, values, perform) if isinstance(a, Call) else values[a] for a in call.arguments]
    return perform(call.api, *arguments)


def _find(app: str, slot: str) -> Call:
    return Call(f"{app}.find", (slot,))


_PERSON = _find("contacts", "name")
_SONG = _find("music", "song")
_EVENT = _find("calendar", "event")
_NOTE = _find("notes", "note")
_ITEM = _find("shop", "item")


def _do(name: str, phrase: str, api: str, *arguments: Call | str) -> Primitive:
    return Primitive(name, phrase, Call(api, arguments))


def _ask(name: str, phrase: str, api: str, *arguments: Call | str) -> Primitive:
    return Primitive(name, phrase, Call(api, arguments), answer=True)


ACTIONS = (
    _do("pay", "pay {name} {amount} coins", "wallet.pay", _PERSON, "amount"),
    _do("request", "request {amount} coins from {name}", "wallet.request", _PERSON, "amount"),
    _do("save", "save {amount} coins", "wallet.save", "amount"),
    _do("text", "text {name} the word {word}", "messages.send", _PERSON, "word"),
    _do("block", "block the messages of {name}", "messages.block", _PERSON),
    _do(
        "forward",
        "forward the text of my note {note} to {name}",
        "messages.send",
        _PERSON,
        Call("notes.read", (_NOTE,)),
    ),
    _do("star", "star the contact {name}", "contacts.star", _PERSON),
    _do("relocate", "relocate the contact {name} to {city}", "contacts.relocate", _PERSON, "city"),
    _do("invite", "invite {name} to the event {event}", "calendar.invite", _EVENT, _PERSON),
    _do("move", "move the event {event} to {day}", "calendar.move", _EVENT, "day"),
    _do("cancel", "cancel the event {event}", "calendar.cancel", _EVENT),
    _do("book", "book a visit of {name} on {day}", "calendar.book", _PERSON, "day"),
    _do("queue", "queue the song {song}", "music.queue", _SONG),
    _do("like", "like the song {song}", "music.like", _SONG),
    _do("share", "share the song {song} with {name}", "music.share", _SONG, _PERSON),
    _do("play", "play the song that {name} likes best", "music.play", Call("music.favourite", (_PERSON,))),
    _do("append", "append {word} to my note {note}", "notes.append", _NOTE, "word"),
    _do("pin", "pin my note {note}", "notes.pin", _NOTE),
    _do("delete", "delete my note {note}", "notes.delete", _NOTE),
    _do("lend", "lend my note {note} to {name}", "notes.lend", _NOTE, _PERSON),
    _do(
        "record",
        "record the city of {name} in my note {note}",
        "notes.append",
        _NOTE,
        Call("contacts.city", (_PERSON,)),
    ),
)

ANSWERS = (
    _ask("where", "tell me where {name} lives", "contacts.city", _PERSON),
    _ask("when", "tell me the day of the event {event}", "calendar.day", _EVENT),
    _ask("read", "read me my note {note}", "notes.read", _NOTE),
    _ask("owed", "tell me how many coins {name} owes me", "wallet.owed", _PERSON),
    _ask("heard", "tell me what {name} wrote last", "messages.last", _PERSON),
)

#: Primitives of the app that only challenge scenarios use; their wording holds the names of its APIs.
CHALLENGE_ACTIONS = (
    _do("order", "order the {item} in the shop", "shop.order", _ITEM),
    _do("wish", "wish for the {item} in the shop", "shop.wish", _ITEM),
    _do("gift", "gift the {item} from the shop to {name}", "shop.gift", _ITEM, _PERSON),
)

CHALLENGE_ANSWERS = (_ask("price", "tell me the price of the {item} in the shop", "shop.price", _ITEM),)
