"""Questions in HotpotQA's distractor format, over passages about invented people, places and works."""

import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from skill_evolution.benchmarks.synthetic.pools import WOMEN, Names

COUNT = 200
Passage = tuple[str, list[str]]


@dataclass(frozen=True)
class Drafted:
    """A question before its passages are shuffled; `facts` are the supporting (title, sentence index)."""

    question: str
    answer: str
    facts: list[tuple[str, int]]
    passages: list[Passage]
    kind: str


@dataclass(frozen=True)
class Thing:
    """A kind of thing: who made it (`{y}`), the maker's role, verb and trade, and where it is (`{y}` again)."""

    noun: str
    made: str
    role: str
    did: str
    trade: str
    seat: str


_THINGS = (
    Thing("Observatory", "was founded by {y}", "founder", "founded", "astronomer", "stands"),
    Thing("Orchestra", "was for many years conducted by {y}", "conductor", "conducted", "violinist", "is based"),
    Thing("Viaduct", "was designed by {y}", "designer", "designed", "civil engineer", "starts"),
    Thing("Botanic Garden", "was planned by {y}", "planner", "planned", "botanist", "is found"),
    Thing("Almanac", "was edited by {y}", "editor", "edited", "historian", "is printed"),
    Thing("Lighthouse", "was built by {y}", "builder", "built", "stonemason", "stands"),
    Thing("Film Festival", "was first directed by {y}", "first director", "first directed", "film critic", "is held"),
    Thing("Museum", "was established by {y}", "founder", "established", "collector", "is housed"),
    Thing("Opera House", "was managed by {y}", "manager", "managed", "baritone", "stands"),
    Thing("Expedition", "was led by {y}", "leader", "led", "geologist", "set out"),
    Thing("Dictionary", "was compiled by {y}", "compiler", "compiled", "linguist", "is printed"),
)


@dataclass(frozen=True)
class Relation:
    """A fact about the second entity of a bridge question.

    Attributes:
        asks: Wordings of the question; `{m}` is the description of the entity by the first passage's thing.
        pool: Kind of the answer.
        shared: A sentence that shares words with the question and names the thing again.
        hidden: A sentence with the same fact that shares no word but names with the question.
        beside: A sentence that shares words with the question, and the next one, which holds the fact.
    """

    asks: tuple[str, ...]
    pool: str
    shared: str
    hidden: str
    beside: tuple[str, str]


_OF_PEOPLE = (
    Relation(("In which town was {m} born?", "Which town was {m} born in?"), "place",
             "{s}, who {d} the {x}, was born in the town of {a}.",
             "{s} came into the world in {a}, where {his} parents ran a bakery.",
             ("For a long time nobody knew in which town {s} was born.",
              "A register found in an attic finally named {a}.")),
    Relation(("At which university did {m} study?", "Which university did {m} study at?"), "university",
             "{s}, who {d} the {x}, went to university and chose to study law at {a}.",
             "{s} holds a degree in philosophy from {a}.",
             ("{s} left home early to study at a university by the sea.", "{He} never regretted having chosen {a}.")),
    Relation(("Who was the teacher of {m}?", "Who was {m} a pupil of?"), "person",
             "The teacher of {s}, who {d} the {x}, was {a}.",
             "{s} learned everything that mattered from {a}, at a school for gifted children.",
             ("{s} often spoke of a teacher who had shaped {his} whole career.", "The person {he} meant was {a}.")),
    Relation(("In what year was {m} born?", "What year was {m} born in?"), "year",
             "{s}, who {d} the {x}, was born in the year {a}.",
             "{s} came into the world in {a}, as the youngest of five.",
             ("The year in which {s} was born was long disputed.", "Letters kept by a niece have settled it as {a}.")),
    Relation(("Which novel did {m} write?", "What is the title of the novel that {m} came to write?"), "work",
             "{s}, who {d} the {x}, also found time to write a novel, {a}.",
             "Under a pen name {s} published {a}, the story of a shipwrecked family.",
             ("{s} managed to write only one novel, which sold well abroad.", "Its title is {a}.")),
    Relation(("In which village did {m} die?", "Which village did {m} die in?"), "place",
             "{s}, who {d} the {x}, died in the village of {a}.",
             "{s} passed away in {a} after a short illness.",
             ("{s} had always wished to die in a quiet village.", "That wish came true in {a}.")),
    Relation(("Which company did {m} work for?", "For which company did {m} work?"), "company",
             "{s}, who {d} the {x}, used to work for the company {a}.",
             "For ten years {s} was on the payroll of {a}.",
             ("{s} gave up well-paid work at a company to follow {his} calling.", "The firm was called {a}.")),
    Relation(("Who was {m} married to?", "Who married {m}?"), "person",
             "{s}, who {d} the {x}, was married to {a}.",
             "The wedding of {s} and {a} drew a large crowd.",
             ("{s} was nearly sixty when {he} got married.", "The other half of the couple was {a}.")),
)  # fmt: skip
_OF_TOWNS = (
    Relation(("Which river flows through {m}?", "What is the name of the river that flows through {m}?"), "river",
             "The river {a} flows through the town of {s}, known for the {x}.",
             "{s} stretches along both banks of the {a}.",
             ("A slow river flows through the middle of {s}.", "People there call it the {a}.")),
    Relation(("Who is the mayor of {m}?", "Who serves as mayor of {m}?"), "person",
             "The mayor of the town of {s}, known for the {x}, is {a}.",
             "Voters in {s} chose {a} to lead their council at the last election.",
             ("{s} got a new mayor after a very close vote.", "The winner was {a}.")),
    Relation(("Which company is the largest employer in {m}?",
              "What company is the largest employer of {m}?"), "company",
             "The largest employer in the town of {s}, known for the {x}, is the company {a}.",
             "In {s} more people earn their living at {a} than anywhere else.",
             ("One company is by far the largest employer in {s}.", "It trades under the name {a}.")),
    Relation(("In what year was {m} founded?", "What year was {m} founded in?"), "old year",
             "{s}, known for the {x}, is a town founded in the year {a}.",
             "{s} began in {a} as a camp of salt traders.",
             ("The year in which {s} was founded is not told by any chronicle.",
              "A stone under the church gives it as {a}.")),
)  # fmt: skip

_INTROS = (
    "{y} was a {o} with a taste for long walks.", "{y} was a {o} whose name was known far beyond the region.",
    "{y} was a {o} who kept a diary for forty years.",
    "{y}, a {o} by trade, grew up among seven brothers and sisters.",
)  # fmt: skip
_ASIDES = (
    "{He} rarely gave interviews.", "A street in the capital is named after {him}.",
    "Friends remember {his} dry sense of humour.", "Many of {his} letters are kept in an archive.",
    "{He} spoke four languages and collected maps.",
)  # fmt: skip
_TOWN_INTROS = (
    "{y} is a small town with a weekly market.", "{y} is a quiet town on the edge of a forest.",
    "{y} is a town best known for its cheese.",
)  # fmt: skip
_TOWN_ASIDES = ("Its railway station was closed long ago.", "About nine thousand people live there.")
_THING_ASIDES = (
    "Several books have been devoted to it.", "A stamp was issued for its anniversary.",
    "Local newspapers have reported on it many times.", "A short film about it has been shown on television.",
    "Its early years are described in a memoir.",
)  # fmt: skip


def _an(text: str) -> str:
    """The article corrected before a vowel."""
    for vowel in "aeiou":
        text = text.replace(f" a {vowel}", f" an {vowel}")
    return text


def _words_for(name: str) -> dict[str, str]:
    """The pronouns that stand for a person."""
    she = name.split()[0] in WOMEN
    he, him, his = ("she", "her", "her") if she else ("he", "him", "his")
    return {"he": he, "him": him, "his": his, "He": he.capitalize()}


def _value(pool: str, names: Names, rng: random.Random) -> str:
    """An invented answer of a kind."""
    makers: dict[str, Callable[[], str]] = {
        "place": names.place,
        "person": names.person,
        "work": names.work,
        "river": names.river,
        "year": lambda: str(rng.randint(1840, 1940)),
        "old year": lambda: str(rng.randint(1112, 1690)),
        "university": lambda: f"{names.place()} {rng.choice(('College', 'Academy', 'Polytechnic', 'Institute'))}",
        "company": lambda: f"{names.surname()} {rng.choice(('Brothers', 'Shipyards', 'Instruments', 'Textiles'))}",
    }
    return makers[pool]()


def _thing(title: str, line: str, rng: random.Random) -> Passage:
    """A passage about a thing; the line that leads on stands first or second."""
    asides = rng.sample(_THING_ASIDES, 2)
    opening = f"The {title} is well known far beyond its county."
    return title, [line, *asides] if rng.random() < 0.7 else [opening, line, asides[0]]


def _entity(name: str, facts: list[str], trade: str, rng: random.Random) -> Passage:
    """A passage about a person (who has a trade) or a town."""
    intro = _an(rng.choice(_INTROS if trade else _TOWN_INTROS).format(y=name, o=trade))
    aside = rng.choice(_ASIDES if trade else _TOWN_ASIDES).format(**_words_for(name))
    return name, [intro, *facts, aside] if rng.random() < 0.6 else [intro, aside, *facts]


def _world(rng: random.Random, names: Names, thing: Thing, relation: Relation, depth: str) -> Drafted:
    """A thing, the person or town that it leads to, and a fact about that one, in two passages.

    `depth` is shared, hidden, beside (the fact follows the sentence that fits) or alias (under another name only).
    """
    of_person = relation in _OF_PEOPLE
    entity, alias = (names.person(), names.surname()) if of_person else (names.place(), names.place())
    title, answer = f"{names.place()} {thing.noun}", _value(relation.pool, names, rng)
    slots = {"s": entity.split()[-1], "x": title, "a": answer, "d": thing.did, **_words_for(entity)}
    if of_person:
        known = f"the {thing.trade} known as {alias}" if depth == "alias" else entity
        line = f"The {title} {thing.made.format(y=known)}."
        link = "Throughout {his} career {s} was known as " + alias + "."
        meant = rng.choice((f"the {thing.role} of the {title}", f"the person who {thing.did} the {title}"))
    else:
        known = f"the town once known as {alias}" if depth == "alias" else f"the town of {entity}"
        where = f"{thing.seat} {'from' if thing.seat == 'set out' else 'in'}"
        line = f"The {title} {where} {known}."
        link = "Until a century ago {s} was known as " + alias + "."
        meant = f"the town {'from which' if thing.seat == 'set out' else 'where'} the {title} {thing.seat}"
    told = {"shared": (relation.shared,), "beside": relation.beside}.get(depth, (relation.hidden,))
    facts = [text.format(**slots) for text in ((link, *told) if depth == "alias" else told)]
    passages = [_thing(title, line, rng), _entity(entity, facts, thing.trade if of_person else "", rng)]
    gold = [(title, passages[0][1].index(line)), *((entity, passages[1][1].index(fact)) for fact in facts)]
    return Drafted(rng.choice(relation.asks).format(m=meant), answer, gold, passages, "bridge")


def _bridge(rng: random.Random, names: Names, depth: str) -> Drafted:
    """A bridge question among four other worlds on the same kind of things, whose passages share its words."""
    relations = _OF_PEOPLE if rng.random() < 0.7 else _OF_TOWNS
    thing, relation = rng.choice(_THINGS), rng.choice(relations)
    world = _world(rng, names, thing, relation, depth)
    for _ in range(4):
        other = thing if rng.random() < 0.5 else rng.choice(_THINGS)
        near = relation if rng.random() < 0.4 else rng.choice(relations)
        depth = rng.choice(("hidden", "hidden", "beside"))
        world.passages.extend(_world(rng, names, other, near, depth).passages)
    return world


@dataclass(frozen=True)
class Scale:
    """Things that can be compared: by a value, or by a trait that two of them may share.

    `asks` are questions on the value with whether the lower one wins; `traits` are (question, sentence, pool).
    """

    noun: str
    openings: tuple[str, ...]
    line: str
    values: tuple[int, int]
    asks: tuple[tuple[str, bool], ...]
    traits: tuple[tuple[str, str, str], ...]


_COUNTY = ("Are {p} and {q} in the same county?", "It lies in the county of {v}.", "county")
_ARCHITECT = ("Were {p} and {q} designed by the same architect?", "It was designed by the architect {v}.", "person")
_SCALES = (
    Scale(
        "Bridge", ("carries a country road across a gorge", "spans a narrow inlet"), "It was opened to traffic in {v}.",
        (1850, 1990),
        (("Which bridge was opened earlier, {p} or {q}?", True),
         ("Which bridge was opened more recently, {p} or {q}?", False)), (_COUNTY, _ARCHITECT)),
    Scale(
        "Lighthouse", ("warns ships of a reef", "marks the entrance of a bay", "stands on a rocky island"),
        "Its tower is {v} metres high.", (12, 95),
        (("Which lighthouse is taller, {p} or {q}?", False), ("Which lighthouse is shorter, {p} or {q}?", True)),
        (_COUNTY, _ARCHITECT)),
    Scale(
        "Lake", ("was formed by a glacier", "lies between two mountains", "is rich in trout"),
        "It covers an area of {v} square kilometres.", (3, 480),
        (("Which lake is larger, {p} or {q}?", False), ("Which lake is smaller, {p} or {q}?", True)), (_COUNTY,)),
    Scale(
        "Library", ("is open to readers of three counties", "was once part of an abbey"),
        "It keeps {v} manuscripts in its vaults.", (100, 1700),
        (("Which library keeps more manuscripts, {p} or {q}?", False),
         ("Which library has fewer manuscripts, {p} or {q}?", True)), (_COUNTY, _ARCHITECT)),
    Scale(
        "Theatre", ("stages comedies", "is known for its puppet plays", "has its own choir"), "Its hall has {v} seats.",
        (80, 999),
        (("Which theatre has fewer seats, {p} or {q}?", True), ("Which theatre has more seats, {p} or {q}?", False)),
        (_COUNTY, _ARCHITECT)),
    Scale(
        "Railway", ("runs along the coast", "crosses a range of hills", "carries mostly freight"),
        "The line was finished in {v}.", (1840, 1960),
        (("Which railway was finished first, {p} or {q}?", True),),
        (("Were {p} and {q} planned by the same engineer?", "It was planned by the engineer {v}.", "person"),)),
    Scale(
        "person", ("was a painter of landscapes", "was a maker of violins", "was a marine biologist"),
        "{He} was born in {v}.", (1790, 1940),
        (("Who was born earlier, {p} or {q}?", True), ("Who was born first, {p} or {q}?", True)),
        (("Were {p} and {q} born in the same town?", "{He} was born in the town of {v}.", "place"),)),
    Scale(
        "work", ("is a novel about two families", "is a novel set on an island"), "It was published in {v}.",
        (1860, 1990),
        (("Which novel was published first, {p} or {q}?", True),),
        (("Were {p} and {q} written by the same author?", "It was written by the author {v}.", "person"),)),
)  # fmt: skip


def _compared(scale: Scale, line: str, value: str, names: Names, rng: random.Random) -> tuple[Passage, int]:
    """A passage about one of two compared things, and the index of the sentence that tells what is compared."""
    plain = scale.noun in ("person", "work")
    name = _value(scale.noun, names, rng) if plain else f"{names.place()} {scale.noun}"
    told = line.format(v=value, **_words_for(name))
    aside = f"A guidebook of {rng.randint(1991, 2015)} has a chapter on it."
    if scale.noun == "person":
        aside = rng.choice(_ASIDES).format(**_words_for(name))
    elif scale.noun == "work" or rng.random() < 0.4:
        aside = rng.choice(_THING_ASIDES)
    body = [f"{'' if plain else 'The '}{name} {rng.choice(scale.openings)}.", *rng.sample((told, aside), 2)]
    return (name, body), body.index(told)


def _comparison(rng: random.Random, names: Names) -> Drafted:
    """A comparison by value, or of one trait (yes/no), of two things among eight others."""
    scale = rng.choice(_SCALES)
    by_trait, same = rng.random() < 0.5, rng.random() < 0.5
    if by_trait:
        ask, line, pool = rng.choice(scale.traits)
        make = (lambda: f"{names.place()}shire") if pool == "county" else (lambda: _value(pool, names, rng))
        first = make()
        values = [first, first if same else make()]
    else:
        (ask, lower), line = rng.choice(scale.asks), scale.line
        values = [str(number) for number in rng.sample(range(*scale.values), 2)]
    made = [_compared(scale, line, value, names, rng) for value in values]
    titles = [name for (name, _), _ in made]
    if by_trait:
        answer = "yes" if same else "no"
    else:
        answer = titles[0] if (int(values[0]) < int(values[1])) == lower else titles[1]
    passages = [passage for passage, _ in made]
    for _ in range(8):
        other = scale if rng.random() < 0.5 else rng.choice(_SCALES)
        passages.append(_compared(other, other.line, str(rng.randrange(*other.values)), names, rng)[0])
    the = "" if scale.noun in ("person", "work") else "the "
    question = ask.format(p=the + titles[0], q=the + titles[1])
    return Drafted(question, answer, [(name, index) for (name, _), index in made], passages, "comparison")


_DEPTHS = ("shared",) * 8 + ("hidden",) * 5 + ("beside",) * 4 + ("alias",) * 3


def _clear(drafted: Drafted) -> bool:
    """Whether every passage has its own name and no other passage names the answer, as repeated draws may do."""
    titles = [title for title, _ in drafted.passages]
    gold = {title for title, _ in drafted.facts}
    others = " ".join(" ".join([title, *text]) for title, text in drafted.passages if title not in gold)
    return len(set(titles)) == len(titles) and (drafted.kind == "comparison" or drafted.answer not in others)


def questions(rng: random.Random) -> list[dict[str, Any]]:
    """The 200 questions: three bridge questions to a comparison, depths spread evenly over the file."""
    names = Names(rng)
    records: list[dict[str, Any]] = []
    depths: list[str] = []
    asked: set[str] = set()
    while len(records) < COUNT:
        number = len(records)
        depths = depths or rng.sample(_DEPTHS, len(_DEPTHS))
        drafted = _comparison(rng, names) if number % 4 == 3 else _bridge(rng, names, depths[-1])
        if not _clear(drafted) or drafted.question in asked:
            continue
        if drafted.kind == "bridge":
            depths.pop()
        asked.add(drafted.question)
        passages = rng.sample(drafted.passages, len(drafted.passages))
        records.append(
            {
                "_id": hashlib.sha256(f"{number}/{drafted.question}".encode()).hexdigest()[:24],
                "answer": drafted.answer,
                "question": drafted.question,
                "supporting_facts": [list(fact) for fact in drafted.facts],
                "context": [[title, sentences] for title, sentences in passages],
                "type": drafted.kind,
                "level": "hard",
            }
        )
    return records
