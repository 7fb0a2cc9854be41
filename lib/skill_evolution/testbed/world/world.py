"""The mini world itself: its tasks, and sessions that run agent code on tables of their own."""

import asyncio
import inspect
from collections.abc import Mapping
from typing import Any

from skill_evolution.models import prompting
from skill_evolution.sage.agent.world import Execution, Task
from skill_evolution.testbed.world import apis as api_layer
from skill_evolution.testbed.world import checks, sandbox, scenarios
from skill_evolution.testbed.world.checks import Goals
from skill_evolution.testbed.world.scenarios import Case

SPLITS = ("train", "dev", "test", "challenge")


class MiniWorld:
    """Apps of everyday life, scenarios that compose two requests, everything generated from a seed.

    The default sizes use 112 of 315 compositions, and 16 of 99 with the app of the challenge split; the same seed and
    sizes give the same tasks.
    """

    name = "mini_world"
    splits: tuple[str, ...] = SPLITS

    def __init__(
        self,
        *,
        seed: int = 0,
        train: int = 160,
        dev: int = 16,
        test: int = 32,
        challenge: int = 16,
        limits: sandbox.SandboxLimits | None = None,
    ) -> None:
        """Generates all tasks.

        Args:
            seed: Of everything generated.
            train: Scenarios (of three tasks) to train on.
            dev: Scenarios to choose settings on.
            test: Scenarios for the final figures.
            challenge: Scenarios with an app that no other split has.
            limits: Of one execution; None for the defaults.

        Raises:
            ValueError: More scenarios are asked for than there are compositions.
        """
        self._limits = limits or sandbox.SandboxLimits()
        self._goals: dict[str, Goals] = {}
        drawn = scenarios.pairs(train=train, dev=dev, test=test, challenge=challenge, seed=seed)
        numbered = enumerate((split, pair) for split in SPLITS for pair in drawn[split])
        self._cases = {
            case.task.task_id: case
            for index, (split, pair) in numbered
            for case in scenarios.scenario_cases(pair, split=split, seed=seed, index=index)
        }

    def tasks(self, split: str) -> list[Task]:
        """The tasks of a split in a fixed order, the three of a scenario next to each other."""
        if split not in SPLITS:
            raise ValueError(f"split: {split!r} is none of {', '.join(SPLITS)}")
        return [case.task for case in self._cases.values() if case.task.split == split]

    def goals(self, task: Task) -> Goals:
        """What a task's tests look for, found once and shared by its sessions."""
        if task.task_id not in self._goals:
            self._goals[task.task_id] = checks.goals(self.case(task))
        return self._goals[task.task_id]

    def case(self, task: Task) -> Case:
        """What stands behind a task: its parts and its starting world, for the expert and for tests.

        Raises:
            ValueError: The task isn't one of this world.
        """
        case = self._cases.get(task.task_id)
        if case is None or case.task != task:
            raise ValueError(f"task {task.task_id!r} is not of this world (other seed or sizes?)")
        return case

    async def open(self, task: Task) -> "MiniSession":
        """A fresh session for a task; it holds no process, only its tables and the dumped names of its code."""
        return MiniSession(self.case(task), goals=self.goals(task), limits=self._limits)

    @property
    def overview(self) -> str:
        """What stands in a prompt about the apps and their documentation."""
        return prompting.render("sage/mini_world.md")


class MiniSession:
    """One task being worked on."""

    def __init__(self, case: Case, *, goals: Goals, limits: sandbox.SandboxLimits) -> None:
        self._case = case
        self._goals = goals
        self._limits = limits
        self._state = checks.copy(case.state)
        self._names: bytes | None = None
        self._calls = 0
        self._completed = False
        self._answer: str | None = None

    async def execute(self, code: str) -> Execution:
        """Run agent code; API calls that it made before an error stay made.

        Raises:
            WorldError: The sandbox itself failed.
        """
        before = self._calls
        # Built anew each time: kept here they would form a cycle through Monty's objects, which no collector frees.
        modules = api_layer.modules(api_layer.bind(self._state), count=self._count, complete=self._complete)
        run = await asyncio.to_thread(
            sandbox.run,
            code,
            names=self._names,
            prelude=api_layer.PRELUDE,
            modules={"apis": modules},
            limits=self._limits,
        )
        self._names = run.names
        return Execution(run.output, run.error, self._calls - before, self._completed)

    async def score(self) -> float:
        """The share of the task's tests that pass now."""
        passed = self.run_tests().values()
        return sum(passed) / len(passed)

    def run_tests(self) -> Mapping[str, bool]:
        """Each test's name and whether it passes now."""
        return checks.run_tests(
            self._goals,
            before=self._case.state,
            after=self._state,
            completed=self._completed,
            answer=self._answer,
        )

    async def close(self) -> None:
        """Nothing is held."""

    def _count(self) -> None:
        self._calls += 1

    def _complete(self, *args: Any, **kwargs: Any) -> None:
        """The completing call; the first one counts, so that answers can't be tried out one after another."""
        answer = api_layer.check("complete_task", _COMPLETE, *args, **kwargs).get("answer")
        if self._completed:
            raise RuntimeError("complete_task: the task has been completed already")
        self._completed, self._answer = True, answer


def _complete_task(answer: str = "") -> None: ...


_COMPLETE = inspect.signature(_complete_task)
