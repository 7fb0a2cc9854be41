"""Questions in HotpotQA's distractor format, over passages about invented people, places and works."""

import hashlib
import random
from dataclasses import dataclass
from typing import Any

from skill_evolution.testbed.questions.pools import OCCUPATIONS, Names

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


# What was made, how a sentence says who made it, and what the maker is called in a question.
_MAKINGS = (
    ("Observatory", "was founded by {y}", "founder"),
    ("Orchestra", "is conducted by {y}", "conductor"),
    ("Viaduct", "was designed by {y}", "designer"),
    ("Botanic Garden", "was planned by {y}", "planner"),
    ("Almanac", "is edited by {y}", "editor"),
    ("Lighthouse", "was built by {y}", "builder"),
    ("Film Festival", "is directed by {y}", "director"),
    ("Ballet", "was choreographed by {y}", "choreographer"),
    ("Museum", "was established by {y}", "establisher"),
    ("Opera House", "is managed by {y}", "manager"),
    ("Expedition", "was led by {y}", "leader"),
    ("Dictionary", "was compiled by {y}", "compiler"),
)

# Question on the maker, the answer's pool, a sentence that shares words with the question, one that shares none, and a
# pair of sentences of which only the first shares words with the question.
_FACTS = (
    (
        "In which town was the {r} of the {x} born?",
        "place",
        "{s}, the {r} of the {x}, was born in the town of {a}.",
        "Childhood for {s} meant the harbour streets of {a}.",
        ("Records on the town where {s} was born survived a fire.", "They point to {a}."),
    ),
    (
        "At which university did the {r} of the {x} study?",
        "university",
        "{s}, the {r} of the {x}, went to study at the university {a}.",
        "A degree from {a} was awarded to {s} with distinction.",
        ("{s} chose a university far from home to study law.", "It was {a}."),
    ),
    (
        "Who was the teacher of the {r} of the {x}?",
        "person",
        "The teacher of {s}, {r} of the {x}, was {a}.",
        "{s} learned the craft in the workshop of {a}.",
        ("{s} had a famous teacher and often said so.", "That was {a}."),
    ),
    (
        "In what year was the {r} of the {x} born?",
        "year",
        "{s}, the {r} of the {x}, was born in the year {a}.",
        "The parish book gives {a} for the baptism of {s}.",
        ("The year in which {s} was born was long disputed.", "Letters now settle it as {a}."),
    ),
    (
        "Which novel did the {r} of the {x} write?",
        "work",
        "{s}, the {r} of the {x}, found time to write the novel {a}.",
        "Under a pen name {s} published {a}.",
        ("One novel that {s} came to write sold well abroad.", "Its title is {a}."),
    ),
    (
        "In which village did the {r} of the {x} die?",
        "place",
        "{s}, the {r} of the {x}, died in the village of {a}.",
        "The last winter of {s} was spent by the sea in {a}.",
        ("{s} wished to die in a quiet village.", "The choice fell on {a}."),
    ),
    (
        "Which company did the {r} of the {x} work for?",
        "company",
        "{s}, the {r} of the {x}, used to work for the company {a}.",
        "For ten years {s} drew plans at {a}.",
        ("{s} left the company after a decade of work.", "It traded as {a}."),
    ),
    (
        "Who married the {r} of the {x}?",
        "person",
        "{s}, the {r} of the {x}, married {a}.",
        "The wedding of {s} and {a} drew a large crowd.",
        ("{s} married late in life.", "The ceremony joined the family to {a}."),
    ),
)

_INTROS = (
    "{y} is {an} {o} with a taste for long walks.",
    "{y} is {an} {o} known far beyond the region.",
    "{y} was {an} {o} and a collector of maps.",
    "{y} was {an} {o} who kept a diary.",
)
_ASIDES = (
    "{s} rarely gave interviews.",
    "A street is named after {s}.",
    "Friends of {s} remember a dry sense of humour.",
    "Many letters of {s} are kept in an archive.",
    "A stamp with the portrait of {s} appeared later.",
    "{s} spoke four languages.",
)
_THING_ASIDES = (
    "It draws visitors from many countries.",
    "Repairs closed it for two seasons.",
    "A café stands beside the entrance.",
    "The anniversary was marked with a concert.",
    "Local newspapers report on it every spring.",
    "Its archive holds photographs and drawings.",
)


def _an(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"


def _pool(kind: str, names: Names, rng: random.Random) -> str:
    if kind == "year":
        return str(rng.randint(1840, 1975))
    if kind == "university":
        return f"{names.place()} {rng.choice(('College', 'Academy', 'Polytechnic', 'Institute'))}"
    if kind == "company":
        return f"{names.surname()} {rng.choice(('Brothers', 'Shipyards', 'Instruments', 'Textiles'))}"
    return {"place": names.place, "person": names.person, "work": names.work}[kind]()


def _thing(noun: str, making: str, maker: str, place: str, rng: random.Random) -> Passage:
    """A passage about something made; the maker's name stands in its first or second sentence."""
    title = f"{place} {noun}"
    lead = f"The {title} {making.format(y=maker)}."
    rest = rng.sample(_THING_ASIDES, 2)
    place_line = f"The {title} belongs to the sights of its county."
    return title, [lead, *rest] if rng.random() < 0.7 else [place_line, lead, rest[0]]


def _person(name: str, facts: list[str], rng: random.Random) -> Passage:
    surname = name.split()[-1]
    occupation = rng.choice(OCCUPATIONS)
    intro = rng.choice(_INTROS).format(y=name, o=occupation, an=_an(occupation))
    aside = rng.choice(_ASIDES).format(s=surname)
    return name, [intro, *facts, aside] if rng.random() < 0.6 else [intro, aside, *facts]


def _bridge(rng: random.Random, names: Names, depth: str) -> Drafted:
    """A bridge question; `depth` is shared, hidden, beside (the fact follows the sentence that fits) or alias."""
    noun, making, role = rng.choice(_MAKINGS)
    ask, kind, shared, hidden, beside = rng.choice(_FACTS)
    place, maker, answer = names.place(), names.person(), _pool(kind, names, rng)
    slots = {"s": maker.split()[-1], "r": role, "x": f"{place} {noun}", "a": answer}
    alias = names.surname() if depth == "alias" else ""
    told = {"shared": [shared], "hidden": [hidden], "beside": list(beside), "alias": [hidden]}[depth]
    facts = [sentence.format(**slots) for sentence in told]
    if alias:
        facts = [f"Colleagues only ever said {alias}.", *facts]
    thing = _thing(noun, making, f"the artist called {alias}" if alias else maker, place, rng)
    person = _person(maker, facts, rng)
    gold = [(thing[0], next(i for i, text in enumerate(thing[1]) if (alias or maker) in text))]
    gold += [(maker, person[1].index(fact)) for fact in facts]
    decoys: list[Passage] = []
    for _ in range(4):
        decoys += _decoy(rng, names, noun, kind, role)
    return Drafted(ask.format(**slots), answer, gold, [thing, person, *decoys], "bridge")


def _decoy(rng: random.Random, names: Names, noun: str, kind: str, role: str) -> list[Passage]:
    """Two passages of another world on the same kind of things, so that the question's words stand there too."""
    other_noun, making, _ = rng.choice(_MAKINGS)
    if rng.random() < 0.5:
        other_noun = noun
    maker = names.person()
    fact = rng.choice([fact for fact in _FACTS if fact[1] == kind] if rng.random() < 0.5 else _FACTS)
    slots = {"s": maker.split()[-1], "r": role, "x": f"{names.place()} {other_noun}", "a": _pool(fact[1], names, rng)}
    told = fact[3].format(**slots) if rng.random() < 0.6 else fact[4][0].format(**slots)
    return [_thing(other_noun, making, maker, slots["x"].split()[0], rng), _person(maker, [told], rng)]


# Kind of thing, how its passage opens, the sentence with the value, range of values, and questions (text, lower wins).
_SCALES = (
    (
        "Bridge",
        "carries a country road across a gorge",
        "Traffic first crossed it in {v}.",
        (1850, 1990),
        (("Which bridge opened earlier, {p} or {q}?", True), ("Which bridge opened more recently, {p} or {q}?", False)),
    ),
    (
        "Lighthouse",
        "warns ships off a reef",
        "The tower rises {v} metres above the rocks.",
        (12, 95),
        (("Which lighthouse is taller, {p} or {q}?", False), ("Which lighthouse is shorter, {p} or {q}?", True)),
    ),
    (
        "Lake",
        "fills an old glacier basin",
        "Its surface covers {v} square kilometres.",
        (3, 480),
        (("Which lake is larger, {p} or {q}?", False), ("Which lake is smaller, {p} or {q}?", True)),
    ),
    (
        "Library",
        "serves readers of three counties",
        "The shelves hold {v} manuscripts.",
        (100, 9000),
        (("Which library holds more manuscripts, {p} or {q}?", False),),
    ),
    (
        "Theatre",
        "stages comedies and puppet plays",
        "There are {v} seats in the hall.",
        (80, 2100),
        (("Which theatre has fewer seats, {p} or {q}?", True), ("Which theatre has more seats, {p} or {q}?", False)),
    ),
    (
        "Railway",
        "runs along the coast",
        "The line was finished in {v}.",
        (1840, 1960),
        (("Which railway was finished first, {p} or {q}?", True),),
    ),
)
_SHARED_TRAITS = (
    ("Are {p} and {q} located in the same province?", "{x} lies in the province of {v}."),
    ("Were {p} and {q} designed by the same architect?", "The plans for it came from the architect {v}."),
)


def _comparison(rng: random.Random, names: Names, depth: str) -> Drafted:
    """A comparison by value, or of one trait (yes/no); `depth` alias leaves one value out of the passages' words."""
    kind, opening, value_line, (low, high), asks = rng.choice(_SCALES)
    pair = [f"{names.place()} {kind}" for _ in range(2)]
    if rng.random() < 0.45:
        ask, line = rng.choice(_SHARED_TRAITS)
        same = rng.random() < 0.5
        first = names.place() if "province" in ask else names.person()
        second = first if same else (names.place() if "province" in ask else names.person())
        values, answer = [first, second], "yes" if same else "no"
    else:
        ask, lower = rng.choice(asks)
        numbers = rng.sample(range(low, high), 2)
        values, line = [str(number) for number in numbers], value_line
        answer = pair[0] if (numbers[0] < numbers[1]) == lower else pair[1]
    passages: list[Passage] = []
    gold: list[tuple[str, int]] = []
    hidden = depth == "alias" or rng.random() < 0.12
    for name, value in zip(pair, values, strict=True):
        told = line.format(v=value, x=name)
        if hidden and name == pair[1]:
            told = (
                "Nobody has measured it since the old survey."
                if value.isdigit()
                else "Its papers were lost in a flood."
            )
        body = [f"{name} {opening}.", told, rng.choice(_THING_ASIDES)]
        if rng.random() < 0.35:
            body = [f"{name} {opening}.", rng.choice(_THING_ASIDES), told]
        passages.append((name, body))
        gold.append((name, body.index(told)))
    for _ in range(8):
        other, start, told, (a, b), _asks = rng.choice(_SCALES)
        name = f"{names.place()} {kind if rng.random() < 0.5 else other}"
        passages.append((name, [f"{name} {start}.", told.format(v=rng.randint(a, b)), rng.choice(_THING_ASIDES)]))
    return Drafted(ask.format(p=pair[0], q=pair[1]), answer, gold, passages, "comparison")


_DEPTHS = ("shared",) * 8 + ("hidden",) * 5 + ("beside",) * 4 + ("alias",) * 3


def questions(rng: random.Random) -> list[dict[str, Any]]:
    """The 200 questions: three bridge questions to a comparison, depths spread evenly over the file."""
    names = Names(rng)
    records: list[dict[str, Any]] = []
    depths: list[str] = []
    for number in range(COUNT):
        if not depths:
            depths = rng.sample(_DEPTHS, len(_DEPTHS))
        depth = depths.pop()
        drafted = (_comparison if number % 4 == 3 else _bridge)(rng, names, depth)
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
