"""Grouped rollouts: G executions of one question under the same libraries, rewards and advantages (paper 3.1)."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from skill_evolution.base.aio import gather
from skill_evolution.benchmarks.base import Benchmark, Question
from skill_evolution.models.base import ModelError
from skill_evolution.teams.team import Call, Execution, Libraries

EQUAL = 1e-9  # rewards closer than this are equal (FACTS A "advantage")
STD_EPSILON = 1e-4  # added to the standard deviation, as GRPO implementations do: near-equal rewards stay small


class Solver(Protocol):
    """What answers a question: a team, or a single model without skills. ModelError where a call fails."""

    async def execute(self, question: Question, libraries: Libraries, call: Call) -> Execution: ...


@dataclass(frozen=True)
class Trajectory:
    """One rollout. Either `execution` and `reward` (in [0, 1]) are set, or `error` says why it did not finish."""

    question: Question
    rollout: int
    execution: Execution | None = None
    reward: float | None = None
    error: str | None = None


@dataclass(frozen=True)
class Group:
    """The rollouts of one question. `advantages` has one entry a trajectory: None where it did not finish."""

    question: Question
    trajectories: tuple[Trajectory, ...]
    advantages: tuple[float | None, ...]

    @property
    def finished(self) -> tuple[Trajectory, ...]:
        """The trajectories that have a reward."""
        return tuple(t for t in self.trajectories if t.reward is not None)

    @property
    def equal(self) -> bool:
        """Whether the finished rollouts' rewards do not differ."""
        return all(a == 0 for a in self.advantages if a is not None)

    @property
    def mean_reward(self) -> float | None:
        """The mean over the finished rollouts, None if there is none."""
        rewards = [t.reward for t in self.finished if t.reward is not None]
        return statistics.fmean(rewards) if rewards else None


def advantages(rewards: Sequence[float | None], *, divide_by_std: bool = False) -> tuple[float | None, ...]:
    """A_g = r_g - mean(r) over the rewards that are there; all zero where max - min < 1e-9 (FACTS A "advantage").

    A missing reward stays None: it is not a reward of 0. `divide_by_std` divides by the population standard
    deviation plus 1e-4 (GRPO's normalisation; off in the paper's setting).
    """
    there = [r for r in rewards if r is not None]
    if not there or max(there) - min(there) < EQUAL:
        return tuple(None if r is None else 0.0 for r in rewards)
    mean = statistics.fmean(there)
    scale = statistics.pstdev(there) + STD_EPSILON if divide_by_std else 1.0
    return tuple(None if r is None else (r - mean) / scale for r in rewards)


async def run_once(
    team: Solver, benchmark: Benchmark, question: Question, libraries: Libraries, call: Call, *, rollout: int = 0
) -> Trajectory:
    """One execution with its reward. A failed call gives a trajectory with its error, not an exception."""
    try:
        execution = await team.execute(question, libraries, call)
    except ModelError as error:
        return Trajectory(question, rollout, error=str(error))
    return Trajectory(question, rollout, execution, benchmark.reward(question, execution.answer or ""))


async def run_group(
    team: Solver,
    benchmark: Benchmark,
    question: Question,
    libraries: Libraries,
    call: Call,
    *,
    group_size: int,
    divide_by_std: bool = False,
) -> Group:
    """G rollouts of one question, side by side; `call.sample_id` is extended by question and rollout."""
    calls = [replace(call, sample_id=f"{call.sample_id}/{question.id}/{g}") for g in range(group_size)]
    trajectories = await gather(
        run_once(team, benchmark, question, libraries, one, rollout=g) for g, one in enumerate(calls)
    )
    relative = advantages([t.reward for t in trajectories], divide_by_std=divide_by_std)
    return Group(question, tuple(trajectories), relative)


async def run_all(
    team: Solver, benchmark: Benchmark, questions: Sequence[Question], libraries: Libraries, call: Call
) -> list[Trajectory]:
    """Every question once, side by side, in the questions' order (validation and test)."""
    calls = [replace(call, sample_id=f"{call.sample_id}/{q.id}/0") for q in questions]
    return await gather(run_once(team, benchmark, q, libraries, one) for q, one in zip(questions, calls, strict=True))
