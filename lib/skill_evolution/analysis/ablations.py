"""Ablations of GRSE on LoCoMo (paper 5.5): their configs, and tidy frames from their runs.

A variant is the full method with one field of the config changed. Variants are trained with a library for each
category, as the paper's average of categories needs; label-conditioning tells categories apart and says nothing under
a library of one category, so it is trained on all four together and compared with the full method trained that way.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from skill_evolution.analysis.frames import where
from skill_evolution.analysis.results import with_mixed_library, with_own_library
from skill_evolution.analysis.runtime import tokens_by_part
from skill_evolution.base.settings import check_keys
from skill_evolution.runs.config import Config
from skill_evolution.runs.experiments import iterations, main_grid, usage

FULL = "grse"
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "no_structured_diagnosis": {"structured_diagnosis": False},
    "single_rollout": {"group_size": 1},
    "drop_equal_groups": {"drop_equal_groups": True},
    "label_conditioned": {"label_conditioned": True},
}
ON_MIXED = ("label_conditioned",)
KINDS = ("a library for each category", "one mixed library")
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
    found = [
        {"method": name, "changed": field, "full method": str(before), "variant": str(after)}
        | {"library": KINDS[name in ON_MIXED], "runs": len(configs)}
        for name, configs in grid.items()
        for config in configs
        for field, (before, after) in switches(full[config.category, config.seed], config).items()
    ]
    columns = ["method", "changed", "full method", "variant", "library", "runs"]
    return pd.DataFrame(found, columns=columns).drop_duplicates(["method", "changed"], ignore_index=True)


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
    cells = iterations(configs, root=root)
    last = where(cells, cells["iteration"] == cells["iteration"].max())
    tokens = tokens_by_part(usage(configs, root=root))["tokens"]
    sums = {
        "critic's items that passed": sum(cells["critic_accepted"]),
        "changes": sum(sum(changes.values()) for changes in cells["changes"]),
        "skills at the end": sum(sum(sizes.values()) for sizes in last["skills"]),
    }
    return {
        "equal groups [%]": 100 * sum(cells["equal_groups"]) / max(1, sum(cells["groups"])),
        **{name: total / len(configs) for name, total in sums.items()},
        "tokens of training [millions]": float(sum(tokens)) / len(configs) / 1e6,
    }
