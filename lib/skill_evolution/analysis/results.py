"""Frames behind the main results: which rows go together, curves over iterations, and what the calls cost."""

import pandas as pd

from skill_evolution.analysis.frames import rows, where
from skill_evolution.analysis.names import NAMES
from skill_evolution.analysis.tables import REPORTED, points

RUN = ["benchmark", "trained_on", "method", "seed"]


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
    found = pd.concat([where(table, table["method"] == NAMES["grse"]) for table in tables], ignore_index=True)
    found = found.sort_values("benchmark", kind="stable", ignore_index=True)
    view = found.assign(method="minus " + found["baseline"], points=points(found), missing=found["n_missing"])
    models = {str(name): str(name).removeprefix(f"{REPORTED} ") for name in found if str(name).startswith(REPORTED)}
    view[REPORTED] = [
        ", ".join(f"{row[name]:+.1f} {model}" for name, model in models.items() if pd.notna(row[name])) or None
        for row in rows(found)
    ]
    kept = ["benchmark", "method", "category", "points", "p_value", "n", "missing", REPORTED, "interval"]
    return view.loc[:, [name for name in kept if name != REPORTED or not view[REPORTED].isna().to_numpy().all()]]


def validation_curves(iterations: pd.DataFrame) -> pd.DataFrame:
    """Validation reward in percent by iteration, one row a run and iteration; 0 is the team before any update.

    Returns:
        The columns benchmark, trained_on, method, seed, iteration, value.
    """
    reward = 100 * pd.DataFrame(list(iterations["validation"]), iterations.index)[["base", "assembled"]].astype(float)
    start = where(iterations.assign(value=reward["base"]), iterations["iteration"] == 1).assign(iteration=0)
    both = pd.concat([start, iterations.assign(value=reward["assembled"])])
    return both.sort_values([*RUN, "iteration"], ignore_index=True).loc[:, [*RUN, "iteration", "value"]]


def usage_table(usage: pd.DataFrame) -> pd.DataFrame:
    """Calls and tokens by method, stage and purpose, summed over all runs; `cut [%]` is the share of cut replies."""
    keys = ["method", "stage", "purpose"]
    sums = ["calls", "prompt_tokens", "cached_tokens", "completion_tokens", "cut", "failures"]
    # min_count: a server that does not tell cached tokens has told nothing, not 0.
    table = pd.DataFrame(usage.groupby(keys)[sums].sum(min_count=1)).reset_index()
    share = (100 * table["cut"] / table["calls"].where(table["calls"] > 0)).fillna(0.0)
    return table.astype(dict.fromkeys(sums, "Int64")).assign(cut=share).rename(columns={"cut": "cut [%]"})


def reason_counts(iterations: pd.DataFrame) -> pd.DataFrame:
    """What was accepted, rejected, changed and refused, by method and reason, summed over runs and iterations."""
    found = [
        {"method": row["method"], "what": what, "reason": reason, "count": count}
        for row in rows(iterations)
        for what, counts in {
            "critic's items": {"accepted": row["critic_accepted"], **row["critic_rejected"]},
            "changes": row["changes"],
            "changes refused": row["changes_refused"],
            "rollouts": {"finished": row["rollouts"] - row["failed_rollouts"], "failed": row["failed_rollouts"]},
            "replies off their form": row["problems"],
        }.items()
        for reason, count in counts.items()
    ]
    table = pd.DataFrame(found, columns=["method", "what", "reason", "count"])
    wide = table.pivot_table(index=["what", "reason"], columns="method", values="count", aggfunc="sum", fill_value=0)
    return wide.rename_axis(columns=None).reset_index()
