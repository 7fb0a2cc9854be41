"""Statistics of the SAGE experiments: rows of evaluations to means with intervals, paired differences and curves.

The unit of all statistics is the scenario: its tasks share a chain, so they aren't independent. A scenario's value is
the mean over its tasks (TGC, steps, tokens) or whether all succeed (SGC), and over the seeds where there are several.
Rows that failed are in no mean; a scenario with one has no SGC.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skill_evolution.analysis import frames
from skill_evolution.analysis.frames import groups
from skill_evolution.analysis.statistics import mean_interval, paired_difference
from skill_evolution.base import paths
from skill_evolution.sage.config import SageConfig, recorded_config

HEADS = {"tgc": "TGC [%]", "sgc": "SGC [%]", "steps": "steps", "tokens": "tokens"}
METRICS = tuple(HEADS)
PAIRS = (("sage", "sft"), ("sage", "sft_grpo"))
"""Arms whose difference the main results state."""
INTERVAL = "95 % bootstrap intervals over scenarios"
_KEYS = ["group", "arm", "split", "decoding"]
ROW_COLUMNS = (
    *_KEYS, "sft_seed", "seed", "task_id", "scenario", "success", "steps", "tokens", "offered", "used", "error",
)  # fmt: skip
"""The columns of evaluation rows that are used here."""


def made_with(config: SageConfig) -> str:
    """What a title has to say: whose policy, and in which world."""
    return f"{config.label}, {'bundled world' if config.world.name == 'mini_world' else 'AppWorld'}"


def by_scenario(rows: pd.DataFrame) -> pd.DataFrame:
    """One row a scenario of each arm, evaluation and seed: `tgc` and `sgc` (0 to 100), `steps` and `tokens` a task.

    Args:
        rows: As of `stages.study.rows`.
    """
    keys, sound = [*_KEYS, "sft_seed", "seed", "scenario"], rows["error"].isna()
    values = {name: rows[name].where(sound).astype(float) for name in ("success", "steps", "tokens")}
    tasks = rows.loc[:, keys].assign(**values, sound=sound).groupby(keys, sort=False)
    means = tasks[list(values)].mean()
    whole = (100.0 * (tasks["success"].min() == 1)).where(tasks["sound"].all())
    return means.assign(tgc=100 * means["success"], sgc=whole).reset_index().loc[:, [*keys, *METRICS]]


def summary(rows: pd.DataFrame, *, rng: np.random.Generator) -> pd.DataFrame:
    """One row an arm, evaluation and metric, in order.

    Columns: group, arm, split, decoding, metric, mean, low, high (the interval over scenarios; seeds are averaged
    first), n (scenarios), n_seeds, lowest and highest (of the seeds' own means), usage (share of the tasks with skills
    on offer whose code used one; empty where none was offered), failed (rows).
    """
    found: list[dict[str, Any]] = []
    for key, part in groups(rows, *_KEYS):
        whole = {"usage": _usage(part), "failed": len(part) - part["error"].isna().sum()}
        cell, scenarios = dict(zip(_KEYS, key, strict=True)), by_scenario(part)
        found += [cell | {"metric": metric} | _estimate(scenarios, metric, rng) | whole for metric in METRICS]
    return pd.DataFrame(found, columns=[*_KEYS, "metric", *_ESTIMATE, "lowest", "highest", "usage", "failed"])


_ESTIMATE = ("mean", "low", "high", "n", "n_seeds")


def _estimate(scenarios: pd.DataFrame, metric: str, rng: np.random.Generator) -> dict[str, Any]:
    estimate = asdict(mean_interval(_predictions(scenarios), metric, rng=rng, over_seeds=False))
    own = [part[metric].mean() for _, part in groups(scenarios, "sft_seed", "seed")]
    kept = {name: estimate[name] for name in _ESTIMATE}
    return kept | {"lowest": np.nanmin(own), "highest": np.nanmax(own)}


def _usage(rows: pd.DataFrame) -> float:
    offered = frames.where(rows, rows["error"].isna() & (rows["offered"] > 0))
    return np.mean(offered["used"].to_numpy() > 0).item() if len(offered) else np.nan


def _predictions(scenarios: pd.DataFrame) -> pd.DataFrame:
    """The scenarios in the columns that `statistics` takes; one (SFT seed, RL seed) pair is a seed."""
    seeds = [f"{sft}/{rl}" for sft, rl in zip(scenarios["sft_seed"], scenarios["seed"], strict=True)]
    benchmark = scenarios["split"] + ", " + scenarios["decoding"]
    own = {"method": scenarios["arm"], "benchmark": benchmark, "category": "all", "seed": seeds, "error": None}
    return scenarios.assign(**own, question_id=scenarios["scenario"])


def differences(
    rows: pd.DataFrame, pairs: Iterable[tuple[str, str]] = PAIRS, *, rng: np.random.Generator
) -> pd.DataFrame:
    """Paired differences by scenario: one row a pair of arms, evaluation and metric.

    Columns: split, decoding, arm, baseline, metric, difference, low, high, p_value (permutation test), n (scenarios).
    Pairs of which an arm is missing, and evaluations that only one of them has, are left out.
    """
    scenarios = by_scenario(rows.drop_duplicates(["arm", "split", "decoding", "sft_seed", "seed", "task_id"]))
    found: list[dict[str, Any]] = []
    for (split, decoding), part in groups(scenarios, "split", "decoding"):
        arms = {name: own for (name,), own in groups(part, "arm")}
        for arm, baseline in pairs:
            if arm in arms and baseline in arms:
                cell = {"split": split, "decoding": decoding, "arm": arm, "baseline": baseline}
                found += [cell | one for one in _differences(arms[arm], arms[baseline], rng)]
    return pd.DataFrame(found, columns=["split", "decoding", "arm", "baseline", "metric", *_DIFFERENCE])


_DIFFERENCE = ("difference", "low", "high", "p_value", "n")


def _differences(own: pd.DataFrame, other: pd.DataFrame, rng: np.random.Generator) -> list[dict[str, Any]]:
    sides = (_predictions(own), _predictions(other))
    found = {metric: asdict(paired_difference(*sides, metric, rng=rng, over_seeds=False)) for metric in METRICS}
    return [{"metric": metric, **{name: one[name] for name in _DIFFERENCE}} for metric, one in found.items()]


CURVES = {
    "reward": "reward (training)",
    "dev_tgc": "TGC on dev [%]",
    "dev_sgc": "SGC on dev [%]",
    "skill_usage_rate": "skill usage (training)",
    "tokens": "tokens a task (training)",
    "steps": "steps a task (training)",
}
"""Columns of a training run's CSV file that are drawn, and what they are."""


def curves(training: pd.DataFrame) -> pd.DataFrame:
    """One row an arm, seeds, step and figure (columns arm, sft_seed, seed, step, metric, value), as far as measured.

    Args:
        training: As of `stages.study.training`.
    """
    present = [column for column in CURVES if column in training]
    keys = ["arm", "sft_seed", "seed", "step"]
    long = training.melt(id_vars=keys, value_vars=present, var_name="metric", value_name="value")
    return long.dropna(subset="value").drop_duplicates([*keys, "metric"]).reset_index(drop=True)


SEEDS = paths.ROOT / "results" / "sage_seeds"


@dataclass(frozen=True)
class SeedGrid:
    """The stored grid of seeds (benchmarks/sage_seeds.py).

    Attributes:
        rows: As of `stages.study.rows`; empty where nothing was measured.
        title: Whose policy it is, which seeds and which config, for tables and figures.
    """

    rows: pd.DataFrame
    title: str


def load_seeds(folder: Path = SEEDS) -> SeedGrid:
    """Read the stored grid; without one the title says how to measure it."""
    if not (folder / "evaluation.csv").is_file():
        return SeedGrid(pd.DataFrame(columns=ROW_COLUMNS), "not measured yet: run benchmarks/sage_seeds.py")
    record = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    rows = pd.read_csv(folder / "evaluation.csv", dtype={"error": "str"})
    config = recorded_config(record["config"])
    seeds = " x ".join(f"{what} seeds {', '.join(map(str, record[key]))}" for what, key in _SEED_KINDS)
    title = f"{made_with(config)}; {seeds}; profile {config.profile}, config {record['config_hash']}"
    return SeedGrid(rows.assign(group=""), title)


_SEED_KINDS = (("SFT", "sft_seeds"), ("RL", "seeds"))


def seed_points(rows: pd.DataFrame) -> pd.DataFrame:
    """One row an arm, evaluation and pair of seeds: the means of `by_scenario` over its scenarios."""
    keys = ["arm", "split", "decoding", "sft_seed", "seed"]
    return pd.DataFrame(by_scenario(rows).groupby(keys, sort=False, as_index=False)[list(METRICS)].mean())
