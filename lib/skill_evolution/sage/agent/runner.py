"""Chains run by a policy as a config says: all side by side, and shared among processes where there are several."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from skill_evolution.base import aio
from skill_evolution.sage.agent.chains import Chain, run_chain, stopped_chain
from skill_evolution.sage.agent.episode import TimedPolicy
from skill_evolution.sage.agent.planning import by_scenario
from skill_evolution.sage.agent.world import Task, World
from skill_evolution.sage.config import AgentConfig

Share = Callable[[list[tuple[int, Chain]]], list[tuple[int, Chain]]]
"""Given what this process ran, what all processes ran (accelerate's gather_object)."""
POLL_SECONDS = 1.0  # how often a process looks how far the others are, where chains are stopped early


@dataclass(frozen=True)
class Work:
    """One chain to run: its tasks in turn, the key that `run_chain` adds to, and which chain of its group it is."""

    tasks: tuple[Task, ...]
    key: str
    index: int = 0


@dataclass(frozen=True)
class Enough:
    """When the chains of a step that are done are enough: these shares of all, and of each scenario's."""

    share: float
    share_scenario: float

    def reached(self, asked: Mapping[str, int], done: Mapping[str, int]) -> bool:
        """Whether so many chains done, by scenario, are enough of those asked for."""
        each = all(done[scenario] >= self.share_scenario * count for scenario, count in asked.items())
        return each and sum(done.values()) >= self.share * sum(asked.values())


Tally = Callable[[Iterable[str]], Mapping[str, int]]
"""Takes the scenarios of chains that are done now, and gives how many of each all processes together have done."""


@dataclass
class Runner:
    """Runs chains with one policy, world and agent.

    Attributes:
        policy: The policy. In training its model changes from step to step.
        world: Where it works.
        agent: Prompt, limits, library and retrieval.
        rank, processes, share: Which of how many processes this is, and how they tell each other what they ran. A
            chain is run whole by one process, whatever the number of processes is.
        seconds: Time spent so far on chains, the policy's included.
    """

    policy: TimedPolicy
    world: World
    agent: AgentConfig
    rank: int = 0
    processes: int = 1
    share: Share | None = None
    seconds: float = field(default=0.0, init=False)

    def run(
        self, work: Sequence[Work], *, temperature: float, enough: Enough | None = None, tally: Tally | None = None
    ) -> list[Chain]:
        """The chains of all work, in its order, on every process. Works inside a running event loop too.

        With `enough`, those that aren't done once it is reached are stopped (see `stopped_chain`): which these are
        depends on timing. Where there are several processes their common `tally` says how far the others are; with a
        few chains each, none of them would have enough by itself.
        """
        started = time.perf_counter()
        mine = list(enumerate(work))[self.rank :: self.processes]
        own = [one for _, one in mine]
        coroutines = [self._chain(one, temperature) for one in own]
        asked = Counter(one.tasks[0].scenario for one in work)
        chains = aio.run_sync(
            _until(own, coroutines, lambda done: enough.reached(asked, done), tally or _counting())
            if enough
            else aio.gather(coroutines)
        )
        done = [(place, chain) for (place, _), chain in zip(mine, chains, strict=True)]
        everyone = self.share(done) if self.share and self.processes > 1 else done
        self.seconds += time.perf_counter() - started
        return [chain for _, chain in sorted(everyone, key=lambda one: one[0])]

    def evaluate(self, tasks: Sequence[Task], *, temperature: float, key: str) -> list[Chain]:
        """One chain a scenario over all its tasks in order, each from an empty library (the paper's test)."""
        return self.run([Work(tuple(own), key) for own in by_scenario(tasks)], temperature=temperature)

    def _chain(self, work: Work, temperature: float) -> Coroutine[Any, Any, Chain]:
        return run_chain(
            self.policy, self.world, work.tasks, self.agent, key=work.key, index=work.index, temperature=temperature
        )


def _counting() -> Tally:
    """The tally where there is one process."""
    counter: Counter[str] = Counter()

    def count(done: Iterable[str]) -> Mapping[str, int]:
        counter.update(done)
        return counter

    return count


async def _until(
    work: Sequence[Work],
    chains: Sequence[Coroutine[Any, Any, Chain]],
    reached: Callable[[Mapping[str, int]], bool],
    tally: Tally,
) -> list[Chain]:
    """Run chains side by side; once the tally has reached its end, those still under way are stopped."""
    async with asyncio.TaskGroup() as group:
        running = {group.create_task(chain): one for one, chain in zip(work, chains, strict=True)}
        pending = set(running)
        while pending:
            done, pending = await asyncio.wait(pending, timeout=POLL_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if reached(tally(running[task].tasks[0].scenario for task in done)):
                for task in pending:
                    task.cancel()
                break
    return [
        stopped_chain(one.tasks, key=one.key, index=one.index) if task.cancelled() else task.result()
        for task, one in running.items()
    ]
