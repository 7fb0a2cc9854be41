"""What chains come to: one row an episode, and the figures of the paper's tables.

A row that failed (`error`) is in no figure but `failed`, and its scenario is left out of SGC.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from skill_evolution.sage.agent.chains import Chain
from skill_evolution.sage.agent.rewards import REWARDS, outcomes


def episode_frame(chains: Sequence[Chain]) -> pd.DataFrame:
    """One row an episode, in order.

    Columns: `chain` (its place in `chains`), `position`, `task_id`, `scenario`; `score` (missing where the row failed),
    `success`, `completed`, `steps`, `tokens` (sampled ones), `offered`, `dropped`, `used`, `defined` (numbers of
    skills), `no_code`, `cut`, `ended`, `error`.
    """
    rows = [row for place, chain in enumerate(chains) for row in _rows(place, chain, "outcome")]
    return pd.DataFrame(rows).drop(columns="reward")


def _rows(place: int, chain: Chain, reward: str) -> list[dict[str, Any]]:
    rewards = REWARDS[reward](outcomes(chain))
    return [
        {
            "chain": place,
            "position": position,
            "task_id": episode.task.task_id,
            "scenario": episode.task.scenario,
            "score": math.nan if episode.error else episode.score,
            "reward": math.nan if value is None else value,
            "success": episode.success,
            "completed": episode.completed,
            "steps": episode.steps,
            "tokens": episode.sampled_tokens,
            "offered": len(episode.offered),
            "dropped": len(episode.dropped),
            "used": len(episode.used),
            "defined": len(episode.defined),
            "no_code": episode.no_code,
            "cut": episode.cut,
            "ended": episode.ended,
            "error": episode.error,
        }
        for position, (episode, value) in enumerate(zip(chain.episodes, rewards, strict=True))
    ]


def metrics(chains: Sequence[Chain], *, reward: str = "outcome") -> dict[str, float]:
    """The figures of the paper's tables over all chains; NaN where there is nothing to take a mean of.

    - `tgc`: task goal completion, the percentage of tasks that succeed (all tests pass, and the agent said it's done).
    - `sgc`: scenario goal completion, the percentage of scenarios whose tasks (three in the paper's test, K in
      training) all succeed; with G chains each counts by itself.
    - `steps`, `tokens`: means of turns and of sampled tokens a task.
    - `score`, `reward`: means a task.
    - `skill_usage_rate`: of the tasks that were offered a skill, the share whose code used one.
    - `successful_skill_usage_rate`: of the tasks whose code used a skill, the share that succeed. The paper names
      both rates; what they are shares of isn't known, and this is our reading.
    - `library_size`: skills in the libraries at the chains' ends, all chains together.
    - `skills_used`: of the skills' names that a chain ever offered, those that were used at least once, likewise.
    - `dropped`: skills that failed to load, each time counted.
    - `no_code`, `cut`: shares of tasks ended by a turn without code, and with a sample that the token limit cut.
    - `tasks`, `failed`: rows that count, and rows that failed.

    Raises:
        KeyError: There is no such reward.
        ValueError: There are no chains.
    """
    if not chains:
        raise ValueError("no chains: there is nothing to measure")
    every = [row for place, chain in enumerate(chains) for row in _rows(place, chain, reward)]
    rows = [row for row in every if row["error"] is None]
    used = [row for row in rows if row["used"]]
    return {
        "tgc": 100 * _mean(row["success"] for row in rows),
        "sgc": 100 * _mean(_scenario_success(every)),
        **{name: _mean(row[name] for row in rows) for name in ("steps", "tokens", "score", "reward")},
        "skill_usage_rate": _mean(row["used"] > 0 for row in rows if row["offered"]),
        "successful_skill_usage_rate": _mean(row["success"] for row in used),
        "library_size": float(sum(len(chain.library) for chain in chains)),
        "skills_used": float(sum(len(_used(chain)) for chain in chains)),
        "dropped": float(sum(row["dropped"] for row in rows)),
        **{name: _mean(row[name] for row in rows) for name in ("no_code", "cut")},
        "tasks": float(len(rows)),
        "failed": float(len(every) - len(rows)),
    }


def _mean(values: Iterable[float]) -> float:
    there = list(values)
    return statistics.fmean(there) if there else math.nan


def _scenario_success(rows: Iterable[Mapping[str, Any]]) -> list[bool]:
    """Whether all tasks succeed, by (chain, scenario), without those in which a row failed."""
    groups: dict[tuple[int, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["chain"], row["scenario"]), []).append(row)
    whole = [group for group in groups.values() if all(row["error"] is None for row in group)]
    return [all(row["success"] for row in group) for group in whole]


def _used(chain: Chain) -> set[str]:
    """Names of the skills that a chain used at least once."""
    return {name for episode in chain.episodes if episode.error is None for name in episode.used}
