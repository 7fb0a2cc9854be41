"""Rewards of a chain's tasks and their advantages (FACTS B, "reward", "ablation rewards", "longer chains")."""

import statistics
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from skill_evolution.sage.agent.chains import Chain

NO_CODE = -1.0
EQUAL = 1e-9  # rewards closer than this are equal


@dataclass(frozen=True)
class Outcome:
    """What a reward needs to know of one task of a chain.

    Attributes:
        score: Share of the task's tests that pass, in [0, 1].
        success: All of them pass and the agent said that it was done.
        no_code: The agent gave no code, which ended the task.
        used: It used a skill that was there before.
        used_from: Positions in the chain (from 0) of the tasks that made the skills it used.
        failed: The world or the policy failed: there is no reward.
    """

    score: float
    success: bool = False
    no_code: bool = False
    used: bool = False
    used_from: frozenset[int] = frozenset()
    failed: bool = False


Reward = Callable[[Sequence[Outcome]], list[float | None]]


def outcomes(chain: Chain) -> list[Outcome]:
    """The outcomes of a chain's tasks, in order. The maker of a skill is the last task that defined its name."""
    maker: dict[str, int] = {}
    result: list[Outcome] = []
    for position, episode in enumerate(chain.episodes):
        used_from = frozenset(maker[name] for name in episode.used if name in maker)
        failed = episode.error is not None
        used = bool(episode.used)
        result.append(Outcome(episode.score, episode.success, episode.no_code, used, used_from, failed))
        if not failed:  # what a failed task defined stays out of the library
            maker |= {skill.name: position for skill in episode.defined}
    return result


def outcome(tasks: Sequence[Outcome]) -> list[float | None]:
    """R_k = r_k, the share of tests that pass; -1 where the agent gave no code; None where the row failed."""
    return _with_bonus(tasks, [0] * len(tasks))


def chain(tasks: Sequence[Outcome]) -> list[float | None]:
    """R_k = r_k + 1 where all tasks of the chain succeed (the bonus of 1 is FACTS' inference); -1 and None as above."""
    return _with_bonus(tasks, [int(all(_succeeded(one) for one in tasks))] * len(tasks))


def skill_integrated(tasks: Sequence[Outcome]) -> list[float | None]:
    """R_k = r_k + 1[success, an earlier skill used] + 1[success, and a later success used a skill made here].

    For two tasks that is the paper's reward: R1 = r1 + 1[r1 = 1] 1[r2 = 1] 1[skill of task 1 used in task 2] and
    R2 = r2 + 1[r2 = 1] 1[skill used]. More tasks are FACTS' inference. -1 and None as above.
    """
    bonuses = []
    for position, one in enumerate(tasks):
        reused = any(_succeeded(later) and position in later.used_from for later in tasks[position + 1 :])
        bonuses.append(_succeeded(one) * (one.used + reused))
    return _with_bonus(tasks, bonuses)


def _succeeded(one: Outcome) -> bool:
    return one.success and not one.failed and not one.no_code


def _with_bonus(tasks: Sequence[Outcome], bonuses: Sequence[int]) -> list[float | None]:
    rewards = (NO_CODE if one.no_code else one.score + bonus for one, bonus in zip(tasks, bonuses, strict=True))
    return [None if one.failed else reward for one, reward in zip(tasks, rewards, strict=True)]


REWARDS: dict[str, Reward] = {"outcome": outcome, "chain": chain, "skill_integrated": skill_integrated}


def group_advantages(rewards: Sequence[float | None], groups: Sequence[Hashable]) -> list[float | None]:
    """A = R - mean of the rewards in the same group, not divided by the standard deviation (FACTS B, "objective").

    A group is a (scenario, position) over its G chains. A group of one and one of equal rewards (within 1e-9) get 0:
    they train nothing. A failed row, None, stays None and is in no mean.

    Raises:
        ValueError: The two have different lengths.
    """
    members: dict[Hashable, list[float]] = {}
    for group, reward in zip(groups, rewards, strict=True):
        members.setdefault(group, []).extend([] if reward is None else [reward])
    means = {group: statistics.fmean(there) for group, there in members.items() if there}
    equal = {group for group, there in members.items() if not there or max(there) - min(there) < EQUAL}
    return [
        None if reward is None else 0.0 if group in equal else reward - means[group]
        for group, reward in zip(groups, rewards, strict=True)
    ]
