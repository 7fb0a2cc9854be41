"""Sweeps of GRSE's settings on one mixed LoCoMo library: their configs, and tidy frames from their runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skill_evolution.analysis.ablations import locomo_grid, training
from skill_evolution.analysis.frames import texts
from skill_evolution.analysis.statistics import AVERAGE, mean_interval, paired_difference
from skill_evolution.analysis.tables import points as points_of
from skill_evolution.runs.config import Config
from skill_evolution.runs.experiments import predictions

FIELDS = {
    "group_size": "group size G",
    "gate_delta": "gate tolerance δ",
    "induction_support": "support for induction",
}


@dataclass(frozen=True)
class SweepPoint:
    """Runs of the full method on the mixed library with one field set to a value; `own` marks the profile's value."""

    field: str
    value: float
    own: bool
    configs: tuple[Config, ...]


def sweep_grid(
    profile: str = "demo",
    *,
    sweeps: Mapping[str, Sequence[float]],
    seeds: Sequence[int] = (0, 1, 2),
    locomo_path: Path | str | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> list[SweepPoint]:
    """One point a field and value, with the other fields as in the profile; the profile's own value is always there.

    Args:
        profile: a profile's name or file.
        sweeps: values by the field of Config that is set to them.
        seeds: one run each.
        locomo_path: a real LoCoMo file.
        overrides: fields of Config for all runs.
    """

    def mixed(**changed: Any) -> tuple[Config, ...]:
        fields = {**(overrides or {}), **changed}
        return tuple(
            c
            for c in locomo_grid(profile, seeds=seeds, locomo_path=locomo_path, overrides=fields)
            if c.category is None
        )  # fmt: skip

    own = mixed()
    points = []
    for field, values in sweeps.items():
        own_value = getattr(own[0], field)
        for value in sorted({*values, own_value}):
            configs = own if value == own_value else mixed(**{field: value})
            points.append(SweepPoint(field, value, value == own_value, configs))
    return points


def fewer(questions: int | None) -> dict[str, int]:
    """Fields of Config for so many training and validation questions; none for None."""
    return {} if questions is None else {"n_train": questions, "n_validation": questions}


def trained_with(config: Config) -> str:
    """The number of training questions in words, for titles."""
    return "all training questions" if config.n_train is None else f"{config.n_train} training questions"


def sweep_configs(points: Sequence[SweepPoint]) -> list[Config]:
    """The configs of all points, those with the profile's own values once."""
    own = next((point.configs for point in points if point.own), ())
    return [*own, *(config for point in points if not point.own for config in point.configs)]


def sweep_table(points: Sequence[SweepPoint], *, rng: np.random.Generator, root: Path | None = None) -> pd.DataFrame:
    """F1 (mean of the categories), its difference to the profile's own value, skills and tokens, a row a point.

    Returns:
        field, value, own, trained_with, mean, low, high (percent), difference, difference_low, difference_high
        (points), p_value, n, n_seeds, n_missing, interval, and the columns of `training_table` that describe training.
    """
    own = {p.field: predictions(p.configs, root=root) for p in points if p.own}
    return pd.DataFrame([_sweep_row(point, own[point.field], rng, root) for point in points])


def _sweep_row(point: SweepPoint, own: pd.DataFrame, rng: np.random.Generator, root: Path | None) -> dict[str, Any]:
    rows = predictions(point.configs, root=root)
    estimate = mean_interval(rows, "f1", rng=rng, by_category=True)
    row: dict[str, Any] = {"field": point.field, "value": point.value, "own": point.own, "category": AVERAGE}
    row["trained_with"] = trained_with(point.configs[0])
    row |= {name: 100 * getattr(estimate, name) for name in ("mean", "low", "high")}
    row |= {name: getattr(estimate, name) for name in ("n", "n_seeds", "n_missing", "interval")}
    if not point.own:
        paired = paired_difference(rows, own, "f1", rng=rng, by_category=True)
        row |= {"difference": 100 * paired.difference, "p_value": paired.p_value}
        row |= {"difference_low": 100 * paired.low, "difference_high": 100 * paired.high}
    return row | training(point.configs, root=root)


def value_text(field: str, value: float) -> str:
    """A swept value as tables and figures show it: a gate that tolerates a loss of 1 refuses nothing."""
    return "none" if field == "gate_delta" and value >= 1 else f"{value:g}"


def sweep_view(table: pd.DataFrame) -> pd.DataFrame:
    """A `sweep_table` for reading: a group a field, "mean [low, high]" in the cells."""
    values = [value_text(*cell) for cell in zip(table["field"], table["value"], strict=True)]
    columns = ["difference", "difference_low", "difference_high"]
    minus = table.reindex(columns=columns).set_axis(["difference", "low", "high"], axis=1)
    view = {
        "benchmark": table["field"].replace(FIELDS),
        "method": [text + " (usual)" * own for text, own in zip(values, table["own"], strict=True)],
        "F1, average of categories [%]": texts(table),
        "minus the usual setting [points]": points_of(minus),
    }
    same = ["changes", "skills at the end", "tokens of training [millions]"]
    counts = {"seeds": "n_seeds", "n": "n", "missing": "n_missing", "interval": "interval"}
    kept = {name: table[name] for name in ("p_value", *same) if name in table}
    return pd.DataFrame(view | kept | {head: table[name] for head, name in counts.items()})
