"""A task's tests: comparisons of the session's final tables with the world it started in."""

from collections import Counter
from dataclasses import dataclass

from skill_evolution.testbed.world.apis import bind
from skill_evolution.testbed.world.apps import State
from skill_evolution.testbed.world.primitives import evaluate
from skill_evolution.testbed.world.scenarios import Case, Part

Rows = Counter[tuple[str, frozenset[tuple[str, str]]]]


@dataclass(frozen=True)
class Change:
    """Rows that appear and rows that vanish."""

    added: Rows
    removed: Rows

    def made(self, found: "Change") -> bool:
        """Whether `found` holds all of this change."""
        return self.added <= found.added and self.removed <= found.removed


@dataclass(frozen=True)
class Goals:
    """What a task's parts are to change, one by one and together, and the answer it wants (None: none)."""

    parts: tuple[Change, ...]
    together: Change
    answer: str | None


def goals(case: Case) -> Goals:
    """The goals, found by performing the task's parts on copies of its world."""
    answers = [_perform(part, copy(case.state)) for part in case.parts if part.primitive.answer]
    actions = [part for part in case.parts if not part.primitive.answer]
    alone = []
    together = copy(case.state)
    for part in actions:
        state = copy(case.state)
        _perform(part, state)
        _perform(part, together)
        alone.append(change(case.state, state))
    return Goals(tuple(alone), change(case.state, together), answers[0] if answers else None)


def run_tests(goals: Goals, *, before: State, after: State, completed: bool, answer: str | None) -> dict[str, bool]:
    """Each test's name and whether it passes.

    One test for each change asked for, one for the answer if one is wanted, and two that count only beside those:
    nothing else was changed (once a change asked for was made), and the task was completed (once a change was made or
    the answer is right). So neither doing nothing, nor crashing, nor complete_task on an untouched world is worth
    anything.
    """
    found = change(before, after)
    changes = {f"change_{i}": part.made(found) for i, part in enumerate(goals.parts, 1)}
    right = goals.answer is not None and answer is not None and answer.strip() == goals.answer
    clean = found.added <= goals.together.added and found.removed <= goals.together.removed
    changed = any(changes.values())
    return {
        **changes,
        **({} if goals.answer is None else {"answer": right}),
        "nothing_else": changed and clean,
        "completed": completed and (changed or right),
    }


def change(before: State, after: State) -> Change:
    """The rows that two states don't share; the order of rows doesn't count."""
    first, second = _rows(before), _rows(after)
    return Change(second - first, first - second)


def copy(state: State) -> State:
    """Tables and rows of their own (values are strings)."""
    return {table: [row.copy() for row in rows] for table, rows in state.items()}


def _perform(part: Part, state: State) -> str | None:
    apis = bind(state)

    def perform(api: str, *arguments: str) -> str | None:
        app, name = api.split(".")
        return apis[app][name](*arguments)

    return evaluate(part.primitive.call, part.values, perform)


def _rows(state: State) -> Rows:
    return Counter((table, frozenset(row.items())) for table, rows in state.items() for row in rows)
