"""Ablations of GRSE and sweeps of its settings on LoCoMo (paper 5.5): their configs, and tidy frames from their runs.

A variant is the full method with one field of the config changed. Variants are trained with a library for each
category, as the paper's average of categories needs; label-conditioning tells categories apart and says nothing under
a library of one category, so it is trained on all four together and compared with the full method trained that way.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skill_evolution.analysis.names import NAMES
from skill_evolution.analysis.results import with_mixed_library, with_own_library
from skill_evolution.analysis.runtime import tokens_by_part
from skill_evolution.analysis.statistics import AVERAGE, mean_interval, paired_difference
from skill_evolution.config import Config, check_keys
from skill_evolution.experiments import iterations, main_grid, predictions, usage

FULL = "grse"
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "no_structured_diagnosis": {"structured_diagnosis": False},
    "single_rollout": {"group_size": 1},
    "drop_equal_groups": {"drop_equal_groups": True},
    "label_conditioned": {"label_conditioned": True},
}
ON_MIXED = ("label_conditioned",)
METRICS = ("f1", "bleu")

Grid = Mapping[str, Sequence[Config]]


def ablation_grid(
    profile: str = "demo",
    *,
    variants: Sequence[str] = tuple(VARIANTS),
    seeds: Sequence[int] = (0, 1, 2),
    locomo_path: Path | str | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> dict[str, list[Config]]:
    """The configs of the full method (the main results' own) and of each variant, by name.

    Raises:
        ConfigError: a variant is unknown; names the nearest one.
    """
    check_keys(variants, VARIANTS, where="variants")
    options = {"seeds": seeds, "locomo_path": locomo_path}
    grid = {FULL: _locomo(profile, overrides=overrides or {}, **options)}
    for name in variants:
        configs = _locomo(profile, overrides={**(overrides or {}), **VARIANTS[name]}, **options)
        grid[name] = [c for c in configs if (c.category is None) == (name in ON_MIXED)]
    return grid


def _locomo(profile: str, **options: Any) -> list[Config]:
    return [c for c in main_grid(profile, methods=[FULL], **options) if c.benchmark == "locomo"]


def switches(config: Config, other: Config) -> dict[str, tuple[Any, Any]]:
    """The fields in which two resolved configs differ, with both values."""
    ours, theirs = config.model_dump(), other.model_dump()
    return {name: (ours[name], theirs[name]) for name in ours if ours[name] != theirs[name]}


def switch_table(grid: Grid) -> pd.DataFrame:
    """What each variant changes, read off the resolved configs of its runs beside the full method's.

    Returns:
        The columns method, changed, full method, variant, library and runs.
    """
    full = {(c.category, c.seed): c for c in grid[FULL]}
    rows = [
        {
            "method": name,
            "changed": field,
            "full method": str(before),
            "variant": str(after),
            "library": "one, of all categories" if name in ON_MIXED else "one a category",
            "runs": len(configs),
        }
        for name, configs in grid.items()
        for field, (before, after) in _changed(full, configs).items()
    ]
    return pd.DataFrame(rows, columns=["method", "changed", "full method", "variant", "library", "runs"])


def _changed(full: Mapping[Any, Config], configs: Iterable[Config]) -> dict[str, tuple[Any, Any]]:
    return {field: values for c in configs for field, values in switches(full[c.category, c.seed], c).items()}


def variant_answers(grid: Grid, *, root: Path | None = None) -> pd.DataFrame:
    """`experiments.predictions` of all runs, with the variant's name as the method."""
    return pd.concat([predictions(c, root=root).assign(method=name) for name, c in grid.items()], ignore_index=True)


def by_library(answers: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows under a library of their own category, and rows under the mixed library of the variants that need it."""
    own = with_own_library(answers)
    mixed = with_mixed_library(answers[answers["method"].isin([FULL, *ON_MIXED])])
    return own, mixed


def differences_in_one(own: pd.DataFrame, mixed: pd.DataFrame) -> pd.DataFrame:
    """Two `tables.difference_table` with display names as one for a figure; what is under the mixed library says so."""
    mixed = mixed.assign(method=mixed["method"] + " (mixed library)")
    return pd.concat([own, mixed], ignore_index=True)


def wide_differences(table: pd.DataFrame, metric: str) -> pd.DataFrame:
    """A `tables.difference_table` with display names as papers print it: a row a variant, a column a category.

    The papers' differences follow as rows of their own. `p (average)` is the paired permutation test of the average
    of the categories, or of all questions where there is one category only.
    """
    rows = []
    part = table[table["metric"] == metric]
    reported = [column for column in table.columns if column.startswith("reported")]
    for method, cells in part.groupby("method", sort=False):
        whole = cells.iloc[-1]  # the average, where there is one
        texts = {cell["category"]: _signed(cell) for cell in cells.to_dict("records")}
        counts = {"n": str(cells["n"].max()), "missing": str(cells["n_missing"].max())}
        rows.append({"method": method, **texts, "p (average)": f"{whole['p_value']:.3f}", **counts})
        rows[-1]["interval"] = whole["interval"]
        for column in reported:
            figures = {c["category"]: f"{c[column]:+.1f}" for c in cells.to_dict("records") if pd.notna(c[column])}
            if figures:
                rows.append({"method": f"{method} ({column.replace(' (', ', ')}", **figures})
    columns = ["method", *dict.fromkeys(part["category"]), "p (average)", "n", "missing", "interval"]
    return pd.DataFrame(rows, columns=columns)


def _signed(cell: Mapping[str, Any]) -> str | None:
    if pd.isna(cell["difference"]):
        return None
    interval = "" if pd.isna(cell["low"]) else f" [{cell['low']:+.1f}, {cell['high']:+.1f}]"
    return f"{cell['difference']:+.1f}{interval}"


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
            for c in _locomo(profile, seeds=seeds, locomo_path=locomo_path, overrides=fields)
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


def sweep_table(points: Sequence[SweepPoint], *, rng: np.random.Generator, root: Path | None = None) -> pd.DataFrame:
    """F1 (mean of the categories), its difference to the profile's own value, skills and tokens, a row a point.

    Returns:
        field, value, own, mean, low, high (percent), difference, difference_low, difference_high (points), p_value,
        n, n_seeds, n_missing, interval; skills (of all agents at the end, mean over runs) and training_tokens (of all
        calls of training, mean over runs).
    """
    own = {p.field: predictions(p.configs, root=root) for p in points if p.own}
    return pd.DataFrame([_sweep_row(point, own[point.field], rng, root) for point in points])


def _sweep_row(point: SweepPoint, own: pd.DataFrame, rng: np.random.Generator, root: Path | None) -> dict[str, Any]:
    rows = predictions(point.configs, root=root)
    estimate = mean_interval(rows, "f1", rng=rng, by_category=True)
    row: dict[str, Any] = {"field": point.field, "value": point.value, "own": point.own, "category": AVERAGE}
    row |= {name: 100 * getattr(estimate, name) for name in ("mean", "low", "high")}
    row |= {name: getattr(estimate, name) for name in ("n", "n_seeds", "n_missing", "interval")}
    if not point.own:
        paired = paired_difference(rows, own, "f1", rng=rng, by_category=True)
        row |= {"difference": 100 * paired.difference, "p_value": paired.p_value}
        row |= {"difference_low": 100 * paired.low, "difference_high": 100 * paired.high}
    progress = iterations(point.configs, root=root)
    ends = progress[progress["iteration"] == progress["iteration"].max()]
    tokens = tokens_by_part(usage(point.configs, root=root))["tokens"].sum() / len(point.configs)
    return {**row, "skills": ends["skills"].map(lambda s: sum(s.values())).mean(), "training_tokens": tokens}


FIELDS = {
    "group_size": "group size G",
    "gate_delta": "gate tolerance δ",
    "induction_support": "support for induction",
}


def value_text(field: str, value: float) -> str:
    """A swept value as tables and figures show it: a gate that tolerates a loss of 1 refuses nothing."""
    return "none" if field == "gate_delta" and value >= 1 else f"{value:g}"


def sweep_view(table: pd.DataFrame) -> pd.DataFrame:
    """A `sweep_table` for reading: a group a field, "mean [low, high]" in the cells, tokens in millions."""
    cells = table.to_dict("records")
    return pd.DataFrame(
        {
            "benchmark": [FIELDS.get(c["field"], c["field"]) for c in cells],
            "method": [value_text(c["field"], c["value"]) + (" (as elsewhere)" if c["own"] else "") for c in cells],
            "F1, average of categories [%]": [_with_interval(c["mean"], c["low"], c["high"]) for c in cells],
            "minus as elsewhere [points]": [
                None
                if c["own"]
                else _signed({name: c[f"difference{end}"] for name, end in _ENDS.items()})
                for c in cells
            ],
            "p_value": table.get("p_value"),
            "skills at the end": table["skills"],
            "training tokens [millions]": table["training_tokens"] / 1e6,
            "seeds": table["n_seeds"],
            "n": table["n"],
            "missing": table["n_missing"],
            "interval": table["interval"],
        }
    )  # fmt: skip


_ENDS = {"difference": "", "low": "_low", "high": "_high"}


def _with_interval(mean: float, low: float, high: float) -> str:
    return f"{mean:.1f}" if np.isnan(low) else f"{mean:.1f} [{low:.1f}, {high:.1f}]"


def variant_names() -> list[str]:
    """Display names of all variants, in order, for one colour each over the figures."""
    return [NAMES[name] + (" (mixed library)" if name in ON_MIXED else "") for name in VARIANTS]
