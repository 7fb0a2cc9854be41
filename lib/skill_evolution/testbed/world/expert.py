"""A scripted expert that solves every task, in the three styles that traces for supervised training need."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from skill_evolution.testbed.world.apis import bind
from skill_evolution.testbed.world.checks import copy
from skill_evolution.testbed.world.primitives import evaluate
from skill_evolution.testbed.world.scenarios import Case

#: direct: step by step, reading what was printed. skill: define a function and call it. reuse: only call it.
STYLES = ("direct", "skill", "reuse")
_CALLS_PER_TURN = 2


def expert_turns(case: Case, *, style: str) -> tuple[str, ...]:
    """The code of each turn, without fences; the last one completes the task.

    `reuse` calls the function of `skill_source`, which must have been executed in the session.

    Raises:
        ValueError: There is no such style.
    """
    if style == "direct":
        return _direct(case)
    if style == "skill":
        return (f"{skill_source(case)}\n{_use(case)}",)
    if style == "reuse":
        return (_use(case),)
    raise ValueError(f"style: {style!r} is none of {', '.join(STYLES)}")


def skill_source(case: Case) -> str:
    """The scenario's function, the same for all its tasks: named after the scenario, with the values as parameters."""
    parameters = ", ".join(p for part in case.parts for p in part.parameters.values())
    lines = [
        f"    {'return ' if part.primitive.answer else ''}{part.primitive.call.source(part.parameters)}"
        for part in case.parts
    ]
    return "\n".join([f"def {case.task.scenario}({parameters}):", *lines])


def _use(case: Case) -> str:
    values = [part.values[slot] for part in case.parts for slot in part.parameters]
    call = f"{case.task.scenario}({_quoted(values)})"
    answers = any(part.primitive.answer for part in case.parts)
    return f"complete_task({call})" if answers else f"{call}\ncomplete_task()"


def _quoted(values: Iterable[str]) -> str:
    return ", ".join(f'"{value}"' for value in values)


@dataclass
class _Turns:
    """Turns being written: one ends where the next line needs what it printed, or where it's full."""

    finished: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    printed: set[str] = field(default_factory=set)

    def add(self, line: str, needs: tuple[str, ...], shows: str | None) -> None:
        if self.printed.intersection(needs) or len(self.lines) == _CALLS_PER_TURN:
            self.end()
        self.lines.append(line)
        self.printed.update([shows] if shows else [])

    def end(self) -> None:
        self.finished.append("\n".join(self.lines))
        self.lines, self.printed = [], set()


def _direct(case: Case) -> tuple[str, ...]:
    """One or two calls a turn: each look-up is printed, and the next turn writes out what it showed."""
    apis, turns = bind(copy(case.state)), _Turns()

    def perform(api: str, *arguments: str) -> str | None:
        app, name = api.split(".")
        result = apis[app][name](*arguments)
        call = f"apis.{api}({_quoted(arguments)})"
        turns.add(call if result is None else f"print({call})", arguments, result)
        return result

    results = [evaluate(part.primitive.call, part.values, perform) for part in case.parts]
    answer = next((r for part, r in zip(case.parts, results, strict=True) if part.primitive.answer), None)
    if answer is not None:
        turns.end()
    turns.lines.append("complete_task()" if answer is None else f'complete_task("{answer}")')
    turns.end()
    return tuple(turns.finished)
