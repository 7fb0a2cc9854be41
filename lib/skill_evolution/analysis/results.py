"""Frames behind the main results: which rows go together, curves over iterations, and what the calls cost."""

import pandas as pd

from skill_evolution.analysis.names import NAMES


def with_own_library(predictions: pd.DataFrame) -> pd.DataFrame:
    """Rows of the main table: HotpotQA, and LoCoMo categories each under a library trained on that category."""
    return predictions[(predictions["benchmark"] == "hotpotqa") | (predictions["trained_on"] != "all")]


def with_mixed_library(predictions: pd.DataFrame) -> pd.DataFrame:
    """LoCoMo rows under one library trained on all four categories."""
    return predictions[(predictions["benchmark"] == "locomo") & (predictions["trained_on"] == "all")]


def grse_differences(*tables: pd.DataFrame) -> pd.DataFrame:
    """GRSE's rows of several difference tables under one another, without the columns that say the same in each."""
    rows = pd.concat([table[table["method"] == NAMES["grse"]] for table in tables], ignore_index=True)
    rows = rows.sort_values("benchmark", kind="stable", ignore_index=True).drop(columns=["metric", "method"])
    return rows.rename(columns={"baseline": "method"}).assign(method=lambda frame: "minus " + frame["method"])


def validation_curves(iterations: pd.DataFrame) -> pd.DataFrame:
    """Validation reward in percent by iteration, one row a run and iteration; 0 is the team before any update.

    Returns:
        The columns benchmark, trained_on, method, seed, iteration, value.
    """
    keys = ["benchmark", "trained_on", "method", "seed"]
    scores = pd.DataFrame(iterations["validation"].tolist(), index=iterations.index)
    ends = iterations[[*keys, "iteration"]].assign(value=100 * scores["assembled"].astype(float))
    first = iterations["iteration"] == 1
    starts = iterations.loc[first, keys].assign(iteration=0, value=100 * scores.loc[first, "base"].astype(float))
    return pd.concat([starts, ends], ignore_index=True).sort_values([*keys, "iteration"], ignore_index=True)


def usage_table(usage: pd.DataFrame) -> pd.DataFrame:
    """Calls and tokens by method, stage and purpose, summed over all runs; `cut [%]` is the share of cut replies."""
    keys = ["method", "stage", "purpose"]
    sums = ["calls", "prompt_tokens", "cached_tokens", "completion_tokens", "cut", "failures"]
    # min_count: a server that does not tell cached tokens has told nothing, not 0.
    table = usage.groupby(keys)[sums].sum(min_count=1).reset_index()
    return table.assign(cut=(100 * table["cut"] / table["calls"].where(table["calls"] > 0)).fillna(0.0)).rename(
        columns={"cut": "cut [%]"}
    )


def reason_counts(iterations: pd.DataFrame) -> pd.DataFrame:
    """What was accepted, rejected, changed and refused, by method and reason, summed over runs and iterations."""
    rows = [
        {"method": row["method"], "what": what, "reason": reason, "count": count}
        for row in iterations.to_dict("records")
        for what, counts in _counts(row).items()
        for reason, count in counts.items()
    ]
    table = pd.DataFrame(rows, columns=["method", "what", "reason", "count"])
    return table.groupby(["what", "reason", "method"])["count"].sum().unstack("method", fill_value=0).reset_index()


def _counts(row: dict) -> dict[str, dict[str, int]]:
    return {
        "critic's items": {"accepted": row["critic_accepted"], **row["critic_rejected"]},
        "changes": row["changes"],
        "changes refused": row["changes_refused"],
        "rollouts": {"finished": row["rollouts"] - row["failed_rollouts"], "failed": row["failed_rollouts"]},
        "replies off their form": row["problems"],
    }
