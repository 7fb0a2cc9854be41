"""Scenarios as compositions of two primitives, and their tasks with users, values and worlds of their own.

Which two primitives meet is what tells the splits apart: no unordered pair occurs in two of them, while each primitive
of the held-out splits occurs in training (at the default sizes). A held-out scenario is so a new composition of things
that were learnt one by one: the headroom that reinforcement learning is to use.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skill_evolution.sage.agent.world import Task
from skill_evolution.testbed.world.apps import LOGS, SHOP_LOGS, Row, State
from skill_evolution.testbed.world.primitives import (
    ACTIONS,
    ANSWERS,
    CHALLENGE_ACTIONS,
    CHALLENGE_ANSWERS,
    Primitive,
)
from skill_evolution.testbed.world.values import IDENTIFIERS, KINDS, USERS

TASKS_PER_SCENARIO = 3
_ROWS = 5  # rows of each kind that a world holds: enough to have to look the right one up
_JOINERS = ("{} and then {}", "please {} and also {}")

Pair = tuple[Primitive, Primitive]


@dataclass(frozen=True)
class Part:
    """A primitive within a task: the values of its slots, and their parameters' names in the scenario's function."""

    primitive: Primitive
    values: Mapping[str, str]
    parameters: Mapping[str, str]


@dataclass(frozen=True)
class Case:
    """A task with everything that its agent doesn't see: its parts, and the world it starts in."""

    task: Task
    parts: tuple[Part, ...]
    state: State


def pairs(*, train: int, dev: int, test: int, challenge: int, seed: int) -> dict[str, list[Pair]]:
    """The pairs of primitives of each split.

    Raises:
        ValueError: More are asked for than there are.
    """
    rng = np.random.default_rng([seed, 0])
    known, private = _known_pairs(rng), _challenge_pairs(rng)
    for name, asked, available in (
        ("train + dev + test", train + dev + test, known),
        ("challenge", challenge, private),
    ):
        if asked > len(available):
            raise ValueError(f"{name}: {asked} scenarios asked for, {len(available)} compositions exist")
    splits = {split: _draw(known, size) for split, size in (("train", train), ("dev", dev), ("test", test))}
    return splits | {"challenge": _draw(private, challenge)}


def scenario_cases(pair: Pair, *, split: str, seed: int, index: int) -> list[Case]:
    """The tasks of one scenario; they depend on nothing but the pair, the split's name, the seed and the index."""
    rng = np.random.default_rng([seed, 1, index])
    users = rng.permutation(USERS)[:TASKS_PER_SCENARIO]
    parameters = _parameters(pair)
    values = _values(parameters, rng)
    return [
        _case(pair, split=split, number=n, user=str(user), parameters=parameters, values=values[n], rng=rng)
        for n, user in enumerate(users)
    ]


def _known_pairs(rng: np.random.Generator) -> list[Pair]:
    """Each unordered pair of actions once, in a random order, and each action before each answer."""
    actions = [ACTIONS[i] for i in rng.permutation(len(ACTIONS))]
    both = [(a, b) if rng.random() < 0.5 else (b, a) for i, a in enumerate(actions) for b in actions[:i]]
    everything = both + [(action, answer) for action in actions for answer in ANSWERS]
    return [everything[i] for i in rng.permutation(len(everything))]


def _challenge_pairs(rng: np.random.Generator) -> list[Pair]:
    new_first = [(new, old) for new in CHALLENGE_ACTIONS for old in (*ACTIONS, *ANSWERS)]
    new_last = [(old, new) for new in CHALLENGE_ANSWERS for old in ACTIONS]
    everything = new_first + new_last
    return [everything[i] for i in rng.permutation(len(everything))]


def _draw(available: list[Pair], size: int) -> list[Pair]:
    """Takes `size` pairs out of those available, so that all primitives get their turns in both places."""
    first, second = Counter[str](), Counter[str]()
    drawn = []
    for _ in range(size):
        pair = min(available, key=lambda p: first[p[0].name] + second[p[1].name])
        available.remove(pair)
        first[pair[0].name] += 1
        second[pair[1].name] += 1
        drawn.append(pair)
    return drawn


def _parameters(pair: Pair) -> tuple[dict[str, str], dict[str, str]]:
    """By part and slot, the function's parameter; a kind that both parts need has another name in the second."""
    first = {slot: KINDS[slot].parameters[0] for slot in pair[0].slots}
    return first, {slot: KINDS[slot].parameters[slot in first] for slot in pair[1].slots}


def _values(parameters: Sequence[Mapping[str, str]], rng: np.random.Generator) -> list[list[dict[str, str]]]:
    """By task, part and slot, the value: different in each task, and different in the two parts."""
    drawn = {kind: rng.permutation(KINDS[kind].pool).tolist() for part in parameters for kind in part}
    return [
        [{kind: drawn[kind][2 * n + place] for kind in part} for place, part in enumerate(parameters)]
        for n in range(TASKS_PER_SCENARIO)
    ]


def _case(
    pair: Pair,
    *,
    split: str,
    number: int,
    user: str,
    parameters: Sequence[Mapping[str, str]],
    values: Sequence[Mapping[str, str]],
    rng: np.random.Generator,
) -> Case:
    scenario = "_".join(primitive.name for primitive in pair)
    phrases = [p.phrase.format(**named) for p, named in zip(pair, values, strict=True)]
    task = Task(
        task_id=f"{scenario}_{number + 1}",
        scenario=scenario,
        split=split,
        instruction=str(rng.choice(_JOINERS)).format(*phrases),
        user={"name": user},
    )
    parts = tuple(Part(*part) for part in zip(pair, values, parameters, strict=True))
    return Case(task, parts, _state(values, rng, private=split == "challenge"))


def _state(values: Sequence[Mapping[str, str]], rng: np.random.Generator, *, private: bool) -> State:
    """A world that holds what the task speaks of among other things, and in which nothing is yet as it asks."""
    asked = {kind: [part[kind] for part in values if kind in part] for kind in KINDS}
    identifiers = iter(rng.permutation(IDENTIFIERS).tolist())

    def others(kind: str) -> Iterator[str]:
        """Values that the task doesn't ask for: a change to the value that a row has already could not be seen."""
        free = [value for value in KINDS[kind].pool if value not in asked[kind]]
        return iter(rng.choice(free, size=_ROWS, replace=True).tolist())

    def rows(kind: str, title: str, **fields: Iterator[str]) -> list[Row]:
        rest = [value for value in rng.permutation(KINDS[kind].pool).tolist() if value not in asked[kind]]
        titles = rng.permutation([*asked[kind], *rest][:_ROWS]).tolist()
        return [
            {"id": next(identifiers), title: name} | {field: next(given) for field, given in fields.items()}
            for name in titles
        ]

    people = rows("name", "name", city=others("city"), starred=iter(["no"] * _ROWS))
    songs = rows("song", "title", liked=iter(["no"] * _ROWS))
    state: State = {
        "people": people,
        "songs": songs,
        "events": rows("event", "title", day=others("day")),
        "notes": rows("note", "title", text=others("word"), pinned=iter(["no"] * _ROWS)),
        "favourites": _each(people, "song", iter(rng.permutation([song["id"] for song in songs]).tolist())),
        "debts": _each(people, "amount", others("amount")),
        "inbox": _each(people, "text", others("word")),
    }
    if private:
        state["items"] = rows("item", "title", price=others("amount"))
    return state | {table: [] for table in (*LOGS, *(SHOP_LOGS if private else ()))}


def _each(people: Sequence[Row], field: str, given: Iterator[str]) -> list[Row]:
    return [{"person": person["id"], field: next(given)} for person in people]
