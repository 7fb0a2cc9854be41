"""Frames behind the main results: which rows go together, curves over iterations, and what the calls cost."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from skill_evolution.analysis import frames
from skill_evolution.analysis.names import NAMES
from skill_evolution.analysis.tables import REPORTED, signed


def with_own_library(predictions: pd.DataFrame) -> pd.DataFrame:
    """Rows of the main table: HotpotQA, and LoCoMo categories each under a library trained on that category."""
    return predictions.query("benchmark == 'hotpotqa' or trained_on != 'all'")


def with_mixed_library(predictions: pd.DataFrame) -> pd.DataFrame:
    """LoCoMo rows under one library trained on all four categories."""
    return predictions.query("benchmark == 'locomo' and trained_on == 'all'")


def grse_differences(*tables: pd.DataFrame) -> pd.DataFrame:
    """GRSE's rows of several difference tables with display names, one under the other, to read.

    Returns:
        benchmark, method ("minus <baseline>"), category, points ("difference [low, high]"), p_value, n, missing,
        interval and, if any of the tables has reported figures, `reported`: "difference (model)", several set apart
        by a comma.
    """
    parts = [frames.where(table, table["method"] == NAMES["grse"]) for table in tables]
    found = pd.concat(parts, ignore_index=True).sort_values("benchmark", kind="stable", ignore_index=True)
    lines = [
        {
            "benchmark": row["benchmark"],
            "method": f"minus {row['baseline']}",
            "category": row["category"],
            "points": signed(row),
            "p_value": row["p_value"],
            "n": row["n"],
            "missing": row["n_missing"],
            "reported": _reported(row),
            "interval": row["interval"],
        }
        for row in frames.rows(found)
    ]
    view = pd.DataFrame(lines)
    return view if view["reported"].notna().to_numpy().any() else view.drop(columns="reported")


def _reported(row: Mapping[str, Any]) -> str | None:
    """The papers' figures of a row, from its columns "reported (<model>)"."""
    figures = {name.removeprefix(f"{REPORTED} "): value for name, value in row.items() if name.startswith(REPORTED)}
    return ", ".join(f"{value:+.1f} {model}" for model, value in figures.items() if pd.notna(value)) or None


def validation_curves(iterations: pd.DataFrame) -> pd.DataFrame:
    """Validation reward in percent by iteration, one row a run and iteration; 0 is the team before any update.

    Returns:
        The columns benchmark, trained_on, method, seed, iteration, value.
    """
    keys = ["benchmark", "trained_on", "method", "seed"]
    points: list[dict[str, Any]] = []
    for row in frames.rows(iterations):
        run, scores = {key: row[key] for key in keys}, row["validation"]
        if row["iteration"] == 1:
            points.append({**run, "iteration": 0, "value": _percent(scores["base"])})
        points.append({**run, "iteration": row["iteration"], "value": _percent(scores["assembled"])})
    return pd.DataFrame(points).sort_values([*keys, "iteration"], ignore_index=True)


def _percent(share: float | None) -> float:
    return float("nan") if share is None else 100 * share


def usage_table(usage: pd.DataFrame) -> pd.DataFrame:
    """Calls and tokens by method, stage and purpose, summed over all runs; `cut [%]` is the share of cut replies."""
    keys = ["method", "stage", "purpose"]
    sums = ["calls", "prompt_tokens", "cached_tokens", "completion_tokens", "cut", "failures"]
    # min_count: a server that does not tell cached tokens has told nothing, not 0.
    table = pd.DataFrame(usage.groupby(keys)[sums].sum(min_count=1)).reset_index()
    share = [100 * cut / calls if calls else 0.0 for cut, calls in zip(table["cut"], table["calls"], strict=True)]
    return table.astype(dict.fromkeys(sums, "Int64")).assign(cut=share).rename(columns={"cut": "cut [%]"})


def reason_counts(iterations: pd.DataFrame) -> pd.DataFrame:
    """What was accepted, rejected, changed and refused, by method and reason, summed over runs and iterations."""
    rows = [
        {"method": row["method"], "what": what, "reason": reason, "count": count}
        for row in frames.rows(iterations)
        for what, counts in _counts(row).items()
        for reason, count in counts.items()
    ]
    table = pd.DataFrame(rows, columns=["method", "what", "reason", "count"])
    wide = table.pivot_table(index=["what", "reason"], columns="method", values="count", aggfunc="sum", fill_value=0)
    return wide.rename_axis(columns=None).reset_index()


def _counts(row: dict) -> dict[str, dict[str, int]]:
    return {
        "critic's items": {"accepted": row["critic_accepted"], **row["critic_rejected"]},
        "changes": row["changes"],
        "changes refused": row["changes_refused"],
        "rollouts": {"finished": row["rollouts"] - row["failed_rollouts"], "failed": row["failed_rollouts"]},
        "replies off their form": row["problems"],
    }
