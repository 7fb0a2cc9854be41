"""Ablations of GRSE on LoCoMo (paper 5.5): their configs, and tidy frames from their runs.

A variant is the full method with one field of the config changed. Variants are trained with a library for each
category, as the paper's average of categories needs; label-conditioning tells categories apart and says nothing under
a library of one category, so it is trained on all four together and compared with the full method trained that way.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from skill_evolution.analysis.names import NAMES
from skill_evolution.analysis.results import with_mixed_library, with_own_library
from skill_evolution.analysis.runtime import tokens_by_part
from skill_evolution.analysis.tables import signed, wide_table
from skill_evolution.base.settings import check_keys
from skill_evolution.runs.config import Config
from skill_evolution.runs.experiments import iterations, main_grid, predictions, usage

FULL = "grse"
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "no_structured_diagnosis": {"structured_diagnosis": False},
    "single_rollout": {"group_size": 1},
    "drop_equal_groups": {"drop_equal_groups": True},
    "label_conditioned": {"label_conditioned": True},
}
ON_MIXED = ("label_conditioned",)
KINDS = ("a library for each category", "one mixed library")
NOT_STATED = ", model not stated"
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
    grid = {FULL: locomo_grid(profile, overrides=overrides or {}, **options)}
    for name in variants:
        configs = locomo_grid(profile, overrides={**(overrides or {}), **VARIANTS[name]}, **options)
        grid[name] = [c for c in configs if (c.category is None) == (name in ON_MIXED)]
    return grid


def locomo_grid(profile: str, **options: Any) -> list[Config]:
    """The full method's configs on LoCoMo: those of the main results, by category and mixed."""
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
            "library": KINDS[name in ON_MIXED],
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
    mixed = with_mixed_library(answers.query("method in @ON_MIXED or method == @FULL"))
    return own, mixed


def differences_in_one(own: pd.DataFrame, mixed: pd.DataFrame) -> pd.DataFrame:
    """Two `tables.difference_table` with display names as one for a figure; what is under the mixed library says so."""
    mixed = mixed.assign(method=mixed["method"] + " (mixed library)")
    return pd.concat([own, mixed], ignore_index=True)


def training_table(grid: Grid, *, root: Path | None = None) -> pd.DataFrame:
    """What training was like, a row a variant and kind of library, means over its runs.

    Returns:
        benchmark (the kind of library), method, equal groups [%] (of the rollouts' groups), credits and diagnoses and
        needs of the critic that passed the checks, changes of libraries, skills at the end, tokens of training.
    """
    rows = []
    for kind in KINDS:
        for name, every in grid.items():
            configs = [c for c in every if (c.category is None) == (kind == KINDS[1])]
            if configs and (name != FULL or kind == KINDS[0] or any(v in grid for v in ON_MIXED)):
                rows.append({"benchmark": kind, "method": name, **training(configs, root=root)})
    return pd.DataFrame(rows)


def training(configs: Sequence[Config], *, root: Path | None = None) -> dict[str, float]:
    """What training was like, means over runs: the columns of `training_table`."""
    runs, cells = len(configs), iterations(configs, root=root).to_dict("records")
    last = max((cell["iteration"] for cell in cells), default=0)
    tokens = tokens_by_part(usage(configs, root=root))["tokens"]
    return {
        "equal groups [%]": 100 * sum(c["equal_groups"] for c in cells) / max(1, sum(c["groups"] for c in cells)),
        "critic's items that passed": sum(c["critic_accepted"] for c in cells) / runs,
        "changes": sum(sum(c["changes"].values()) for c in cells) / runs,
        "skills at the end": sum(sum(c["skills"].values()) for c in cells if c["iteration"] == last) / runs,
        "tokens of training [millions]": float(sum(tokens)) / runs / 1e6,
    }


def means_view(table: pd.DataFrame, metric: str) -> pd.DataFrame:
    """`tables.wide_table`; the model of the reported figures, which nobody states, is left out of the row's name."""
    view = wide_table(table, metric)
    return view.assign(method=[name.replace(NOT_STATED, "") for name in view["method"]])


def wide_differences(table: pd.DataFrame, metric: str) -> pd.DataFrame:
    """A `tables.difference_table` with display names as papers print it: a row a variant, a column a category.

    The papers' differences follow as rows of their own. `p (average)` is the paired permutation test of the average
    of the categories, or of all questions where there is one category only.
    """
    rows = []
    part = table.query("metric == @metric")
    reported = [column for column in table.columns if column.startswith("reported")]
    for method in dict.fromkeys(part["method"]):
        cells = part.query("method == @method").to_dict("records")
        whole = cells[-1]  # the average, where there is one
        texts = {cell["category"]: signed(cell) for cell in cells}
        counts = {name: str(max(cell[key] for cell in cells)) for name, key in (("n", "n"), ("missing", "n_missing"))}
        rows.append({"method": method, **texts, "p (average)": f"{whole['p_value']:.3f}", **counts})
        rows[-1]["interval"] = whole["interval"]
        for column in reported:
            figures = {cell["category"]: f"{cell[column]:+.1f}" for cell in cells if pd.notna(cell[column])}
            if figures:
                label = f"{method} ({column.replace(' (', ', ')}".replace(NOT_STATED, "")
                rows.append({"method": label, **figures})
    columns = ["method", *dict.fromkeys(part["category"]), "p (average)", "n", "missing", "interval"]
    return pd.DataFrame(rows, columns=columns)


def variant_names() -> list[str]:
    """Display names of all variants, in order, for one colour each over the figures."""
    return [NAMES[name] + (" (mixed library)" if name in ON_MIXED else "") for name in VARIANTS]
