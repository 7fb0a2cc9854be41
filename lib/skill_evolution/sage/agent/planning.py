"""Which tasks each training step works on: scenarios and K tasks of each, in an order that the seed alone decides."""

from collections.abc import Sequence

import numpy as np

from skill_evolution.sage.agent.world import Task

Step = tuple[tuple[Task, ...], ...]
"""One training step: for each of its scenarios the K tasks of its chains, in turn."""


def by_scenario(tasks: Sequence[Task]) -> list[list[Task]]:
    """The tasks of each scenario, all in the order given: the chains of a test."""
    scenarios: dict[str, list[Task]] = {}
    for task in tasks:
        scenarios.setdefault(task.scenario, []).append(task)
    return list(scenarios.values())


def plan_steps(
    tasks: Sequence[Task], *, steps: int, scenarios: int, chain_length: int, rng: np.random.Generator
) -> list[Step]:
    """Plan all steps at once, so that a resumed run goes on with the same tasks.

    Every scenario has its turn before any comes again (random order within such a round), and no step has one twice.
    Which of its tasks make up a chain, and in which order, is drawn afresh every time. A run with more steps begins
    with those of one with fewer.

    Raises:
        ValueError: Fewer scenarios than a step takes, or a scenario with fewer tasks than a chain has.
    """
    grouped = {own[0].scenario: own for own in by_scenario(tasks)}
    if len(grouped) < scenarios:
        raise ValueError(f"a step takes {scenarios} scenarios, there are {len(grouped)}")
    for scenario, own in grouped.items():
        if len(own) < chain_length:
            raise ValueError(f"a chain has {chain_length} tasks, scenario {scenario!r} has {len(own)}")
    waiting: list[str] = []
    return [
        tuple(_drawn(grouped[name], chain_length, rng) for name in _next(waiting, list(grouped), scenarios, rng))
        for _ in range(steps)
    ]


def _next(waiting: list[str], names: list[str], count: int, rng: np.random.Generator) -> list[str]:
    """Takes the next `count` different scenarios off the waiting ones, of which a new round is added where needed."""
    if len(waiting) < count:
        waiting += [names[index] for index in rng.permutation(len(names))]
    chosen = list(dict.fromkeys(waiting))[:count]
    for name in chosen:
        waiting.remove(name)
    return chosen


def _drawn(tasks: list[Task], count: int, rng: np.random.Generator) -> tuple[Task, ...]:
    return tuple(tasks[index] for index in rng.permutation(len(tasks))[:count])
