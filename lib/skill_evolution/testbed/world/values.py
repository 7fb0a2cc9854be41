"""The words that tasks are about: small pools of single lower-case words, disjoint from one another.

A policy of a few hundred thousand parameters copies a value only if it's one token and was seen often (measured with a
prototype: digits gave templates that no sample solved), so identifiers and amounts are words as well.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A kind of value: its pool, and the parameter's name for the first and a second value of it in one function."""

    pool: tuple[str, ...]
    parameters: tuple[str, str]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


KINDS = {
    "name": Kind(_words("ada ben cleo dan eva finn gina hugo iris jack kim leo"), ("name", "friend")),
    "song": Kind(_words("sunrise thunder velvet horizon gravity lullaby echo neon"), ("song", "track")),
    "event": Kind(_words("standup dinner workshop concert picnic review dentist yoga"), ("event", "meeting")),
    "note": Kind(_words("groceries ideas recipes budget packing goals travel garden"), ("note", "memo")),
    "word": Kind(_words("hello thanks sorry maybe later soon yes never milk bread"), ("word", "reply")),
    "amount": Kind(_words("two three four five six seven eight nine"), ("amount", "sum")),
    "day": Kind(_words("monday tuesday wednesday thursday friday saturday sunday"), ("day", "date")),
    "city": Kind(_words("paris rome oslo lima cairo tokyo delhi"), ("city", "town")),
    "item": Kind(_words("lamp chair kettle scarf puzzle mug"), ("item", "product")),
}

USERS = _words("mia noah olga pete quinn rosa sam tina")

IDENTIFIERS = _words(
    "oak elm fir ash yew bay fig pine palm plum pear lime cedar maple birch alder aspen hazel holly olive rowan larch "
    "willow poplar laurel myrtle walnut acacia"
)

#: Every value that an instruction, an observation or code may hold; a tokenizer should give each a token of its own.
VALUES = (*(word for kind in KINDS.values() for word in kind.pool), *USERS, *IDENTIFIERS)
