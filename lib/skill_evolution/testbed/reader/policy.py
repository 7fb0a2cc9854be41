"""Which behaviours a call shows: the directives of the shown skills against chance, and what is recorded as used."""

import math
from functools import lru_cache
from statistics import NormalDist

from skill_evolution.testbed.reader.chance import Chance, uniform
from skill_evolution.testbed.reader.directives import DIRECTIVES, FOLLOWED

MENTIONED = 0.3
"""Probability that a skill which the reader doesn't understand is named as used all the same."""


SPREAD = 1.5
"""Standard deviation, in logits, of how readily a behaviour comes on one question or another (our choice)."""


@lru_cache(maxsize=65536)
def inclined(p: float, key: str, question: str) -> float:
    """A behaviour's probability on one question: the logit of `p` moved by an amount that belongs to the two.

    Questions differ in what they bring out in a reader: on some it does the right thing unasked even when it is
    greedy, on some it overlooks a skill. Certain behaviours stay certain.
    """
    if p in (0.0, 1.0):
        return p
    move = SPREAD * NormalDist().inv_cdf(max(uniform("inclined", key, question), 1e-12))
    return 1 / (1 + (1 - p) / p * math.exp(-move))


class Policy:
    """Decides by key, and remembers which directives had an occasion.

    Args:
        skills: Name and directive keys of each skill shown.
        chance: The call's draws.
        question: Settles ties between opposed directives where the call is greedy.
    """

    def __init__(self, skills: tuple[tuple[str, frozenset[str]], ...], chance: Chance, question: str) -> None:
        self._skills = skills
        self._chance = chance
        self._question = question
        self._asked = frozenset(key for _, keys in skills for key in keys)
        self._shown: set[str] = set()

    def does(self, key: str) -> bool:
        """Whether the reader behaves so in this call; ask only where there is an occasion, for it counts as one."""
        opponents = _OPPONENTS[key]
        if not self._wants(key) or any(self._yields(key, other) for other in opponents if other in self._asked):
            return False
        self._shown.add(key)
        return True

    def _wants(self, key: str) -> bool:
        p = FOLLOWED if key in self._asked else DIRECTIVES[key].spontaneous
        return self._chance.follows(key, inclined(p, key, self._question))

    def _yields(self, key: str, other: str) -> bool:
        """Whether a followed opponent prevails: always over a spontaneous behaviour, else by an even draw."""
        if not self._wants(other):
            return False
        if key not in self._asked:
            return True
        pair = sorted((key, other))
        return pair[self._chance.coin("|".join(pair), self._question)] != key

    def used(self) -> list[str]:
        """Names of the skills that were followed here, in the order in which they are shown."""
        return [
            name
            for name, keys in self._skills
            if (keys & self._shown if keys else self._chance.follows(f"mention/{name}", MENTIONED))
        ]


_OPPONENTS: dict[str, tuple[str, ...]] = {
    key: directive.opposes + tuple(other.key for other in DIRECTIVES.values() if key in other.opposes)
    for key, directive in DIRECTIVES.items()
}
