"""Invented names for people, places and works: syllables and word lists, drawn without repeats."""

import random
from collections.abc import Iterator, Sequence
from typing import TypeVar

_words = str.split

WOMEN = _words(
    """Adela Beatrix Calla Dagny Edda Esther Fenna Greta Hedda Imke Juno Kira Lotte Mira Nadja Odile Petra Ragna
    Selma Tilda Ulla Vera Wanda Yara Zelda"""
)
MEN = _words(
    """Anselm Bruno Casper Darius Elmo Fabian Gideon Hanno Jonas Kasimir Leander Magnus Niels Orson Quentin Rufus
    Silas Tobias Urban Viktor Wenzel Yorick Zeno"""
)
# Of every pair the first is a woman and the second a man, so that a question can say "her" and "his".
SPEAKERS = (
    ("Ingrid", "Malik"), ("Paloma", "Stellan"), ("Nerys", "Dorian"), ("Amara", "Lucian"), ("Freya", "Rafiq"),
    ("Odessa", "Bertram"), ("Junia", "Caspian"), ("Thora", "Emeric"), ("Zarina", "Ludo"), ("Marisol", "Hector"),
)  # fmt: skip
_SURNAME_STARTS = _words(
    """Toll Brann Harg Lind Mos Quar Rov Stav Tren Vail Wex Yar Zell Corb Dask Fenn Gorl Holm Ister Jask Kell
    Lorr"""
)
_SURNAME_ENDS = _words("ander er ick mere oway stein strom ard enby orth quist man eller ovan ritt")
_PLACE_STARTS = _words(
    """Esk Dor Lark Mor Hal Wyn Bram Cald Fern Gris Hex Ilm Jor Kest Lud Marl Nor Ost Pell Quin Rush Sel Thorn
    Ulv Vell"""
)
_PLACE_ENDS = _words(
    """en lan field wick ford bury holm stead mouth ham dale by combe gate moor ness port ridge shaw vale"""
)
ADJECTIVES = _words(
    """Amber Silver Crooked Hollow Painted Northern Quiet Golden Broken Winter Ochre Distant Velvet Iron Paper
    Wandering"""
)
NOUNS = _words(
    """Harbour Orchard Lantern Compass Mirror Heron Staircase Meadow Island Clock Garden Voyage Feather Window
    Letter Forest"""
)


Item = TypeVar("Item")


def endless(rng: random.Random, items: Sequence[Item]) -> Iterator[Item]:
    """The items in shuffled order, shuffled anew each time they run out: the same one comes back late."""
    while True:
        yield from rng.sample(items, len(items))


class Names:
    """Names that come back only when their pool (hundreds of names) has run out."""

    def __init__(self, rng: random.Random) -> None:
        places = [start + end for start in _PLACE_STARTS for end in _PLACE_ENDS]
        self._rng = rng
        self._surnames = endless(rng, [start + end for start in _SURNAME_STARTS for end in _SURNAME_ENDS])
        self._places = endless(rng, places)
        self._rivers = endless(rng, [start + end for start in _PLACE_STARTS for end in ("ow", "ava", "ine")])
        self._works = endless(rng, [f"The {a} {b}" for a in ADJECTIVES for b in NOUNS])

    def surname(self) -> str:
        """A family name."""
        return next(self._surnames)

    def person(self) -> str:
        """First and family name."""
        return f"{self._rng.choice((*WOMEN, *MEN))} {self.surname()}"

    def place(self) -> str:
        """A town or village."""
        return next(self._places)

    def river(self) -> str:
        """A river, without the article."""
        return next(self._rivers)

    def work(self) -> str:
        """A title of a novel."""
        return next(self._works)
