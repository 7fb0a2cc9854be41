"""What training costs in tokens, GRSE against MASkills (paper Limitations, App. E): tidy frames from the ledgers.

Tokens are prompt plus completion of completed calls. A greedy call that was made before is answered by the ledger, so
validating a library a second time costs nothing here; the paper doesn't say whether it did there. The test is no part
of training and is left out. Wall clock is in `wallclock`.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from skill_evolution.analysis.names import NAMES
from skill_evolution.analysis.statistics import paired_difference

TRAINING = ("train", "validation", "critic", "optimizer")
PARTS = dict(zip(TRAINING, ("training rollouts", "validation", "critic", "optimizer"), strict=True))
QUANTITIES = {  # paper: the actor's tokens, without and with validation; critic and optimizer stand apart
    "training rollouts": ("training rollouts",),
    "rollouts and validation": ("training rollouts", "validation"),
    "critic and optimizer": ("critic", "optimizer"),
    "all of training": tuple(PARTS.values()),
}
REPORTED_AS = {"rollout_tokens": "training rollouts", "actor_tokens": "rollouts and validation"}
KEYS = ["task", "method", "seed"]


def task_names(frame: pd.DataFrame) -> pd.Series:
    """What was trained on, from the columns benchmark and trained_on: "HotpotQA", "LoCoMo temporal", "LoCoMo mixed"."""
    return pd.Series(
        [
            f"{NAMES.get(b, b)}{_suffix(b, t)}"
            for b, t in zip(frame["benchmark"], frame["trained_on"], strict=True)
        ],
        index=frame.index,
        dtype=object,
    )  # fmt: skip


def _suffix(benchmark: str, trained_on: str) -> str:
    if trained_on == "all":
        return " mixed" if benchmark == "locomo" else ""
    return f" {NAMES.get(trained_on, trained_on)}"


def tokens_by_part(usage: pd.DataFrame) -> pd.DataFrame:
    """Tokens of training, one row a run and part, from `experiments.usage`.

    Returns:
        task, method, seed, part, calls, prompt_tokens, completion_tokens, tokens, failures; a part in which a run made
        no call is a row of zeros, so that means over runs are right.
    """
    training = usage.query("stage in @TRAINING")
    training = training.assign(task=task_names(training), part=training["stage"].replace(PARTS))
    sums = ["calls", "prompt_tokens", "completion_tokens", "failures"]
    grouped = training.groupby([*KEYS, "part"], sort=False, as_index=False)[sums].agg("sum")
    runs = training.drop_duplicates(KEYS).filter(KEYS)
    every = runs.merge(pd.DataFrame({"part": list(PARTS.values())}), how="cross")
    table = every.merge(grouped, on=[*KEYS, "part"], how="left").fillna(dict.fromkeys(sums, 0))
    return table.assign(tokens=table["prompt_tokens"] + table["completion_tokens"])


def mean_tokens(tokens: pd.DataFrame) -> pd.DataFrame:
    """`tokens_by_part` averaged over the seeds: task, method, part, calls, tokens and the share of prompt tokens."""
    sums = ["calls", "prompt_tokens", "tokens"]
    table = pd.DataFrame(tokens.groupby(["task", "method", "part"], sort=False, as_index=False)[sums].agg("mean"))
    share = 100 * table["prompt_tokens"] / table["tokens"]  # missing where there are none
    return table.assign(**{"prompt [%]": share}).drop(columns="prompt_tokens")


def wide_tokens(means: pd.DataFrame) -> pd.DataFrame:
    """`mean_tokens` for reading: a row a task and method, thousands of tokens by part, their sum and the calls."""
    rows = []
    for task, method in dict.fromkeys(zip(means["task"], means["method"], strict=True)):
        cells = means.query("task == @task and method == @method").to_dict("records")
        whole = sum(cell["tokens"] for cell in cells)
        prompt = sum(cell["tokens"] * cell["prompt [%]"] / 100 for cell in cells if cell["tokens"])
        row = {"benchmark": task, "method": method} | {cell["part"]: cell["tokens"] / 1e3 for cell in cells}
        calls = f"{sum(cell['calls'] for cell in cells):,.0f}"
        rows.append(row | {"all of training": whole / 1e3, "prompt [%]": 100 * prompt / whole, "calls": calls})
    return pd.DataFrame(rows)


def token_ratios(tokens: pd.DataFrame, *, method: str = "grse", baseline: str = "maskills") -> pd.DataFrame:
    """Tokens of a method over those of its baseline, by task and quantity.

    Returns:
        task, quantity, ratio (sums over the seeds), low and high (lowest and highest ratio of one seed), n_seeds; only
        seeds that both methods have count. The ratio is missing where the baseline has no tokens.
    """
    rows = [
        ratio_by_task(
            pd.DataFrame(tokens[tokens["part"].isin(parts)]), "tokens", method=method, baseline=baseline
        ).assign(quantity=quantity)
        for quantity, parts in QUANTITIES.items()
    ]
    tasks = list(dict.fromkeys(tokens["task"]))
    table = pd.concat(rows, ignore_index=True).sort_values("task", key=lambda t: t.map(tasks.index), kind="stable")
    return table.filter(["task", "quantity", "ratio", "low", "high", "n_seeds"]).reset_index(drop=True)


def ratio_by_task(frame: pd.DataFrame, column: str, *, method: str, baseline: str) -> pd.DataFrame:
    """A column of one method over that of another, by task: of sums over the seeds, and the range over single seeds.

    Seeds that both have count; the ratio is missing where the baseline's sum is 0 in all of them.
    """
    sums: dict[tuple[str, int, str], float] = defaultdict(float)
    for run in frame.to_dict("records"):
        sums[run["task"], run["seed"], run["method"]] += run[column]
    rows = []
    for task in dict.fromkeys(frame["task"]):
        keys = [(task, seed) for t, seed, name in sums if t == task and name == method]
        pairs = [(sums[*key, method], sums.get((*key, baseline), 0)) for key in keys]
        pairs = [(ours, theirs) for ours, theirs in pairs if theirs > 0]
        row: dict[str, Any] = {"task": task, "ratio": np.nan, "low": np.nan, "high": np.nan, "n_seeds": len(pairs)}
        if pairs:
            single = [ours / theirs for ours, theirs in pairs]
            total = sum(ours for ours, _ in pairs) / sum(theirs for _, theirs in pairs)
            row |= {"ratio": total, "low": min(single), "high": max(single)}
        rows.append(row)
    return pd.DataFrame(rows)


def reported_ranges(reported: pd.DataFrame) -> pd.DataFrame:
    """The paper's ranges from `load_reported("grse_cost")`: metric, source, low, high, note; a row a statement."""
    table = reported.pivot(index=["metric", "source", "note"], columns="kind", values="value").reset_index()
    table = table.rename(columns={"range_low": "low", "range_high": "high"}).rename_axis(columns=None)
    return table.filter(["metric", "source", "low", "high", "note"])


def wide_ratios(ratios: pd.DataFrame, reported: pd.DataFrame) -> pd.DataFrame:
    """Ratios for reading: a row a task, a column a quantity, "ratio [range over seeds]"; the paper's ranges below."""
    table = ratios.assign(cell=[ratio_text(r) for r in ratios.to_dict("records")])
    wide = table.pivot(index="task", columns="quantity", values="cell").reindex(dict.fromkeys(ratios["task"]))
    wide = wide.filter(list(dict.fromkeys(ratios["quantity"]))).rename_axis("method").reset_index()
    seeds = ratios.drop_duplicates("task")["n_seeds"].astype(int).astype(str)
    wide = wide.rename_axis(columns=None).assign(seeds=list(seeds))
    said: dict[str, dict[str, str]] = defaultdict(dict)
    for row in reported.to_dict("records"):
        if row["metric"] in REPORTED_AS:
            said[row["source"]][REPORTED_AS[row["metric"]]] = f"{row['low']:.1f} to {row['high']:.1f}"
    rows = [{"method": f"reported, {source}", **ranges} for source, ranges in said.items()]
    return pd.concat([wide, pd.DataFrame(rows)], ignore_index=True)


def ratio_text(row: Mapping[Any, Any]) -> str | None:
    """A row of `ratio_by_task` as a cell, "ratio [lowest, highest seed]"; None where there is no ratio."""
    return None if pd.isna(row["ratio"]) else f"{row['ratio']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"


def gains(answers: pd.DataFrame, *, rng: np.random.Generator, baseline: str = "empty") -> pd.DataFrame:
    """F1 over the team without skills in points, by task and method, over all test questions of the task.

    Returns:
        task, method and the fields of `statistics.PairedDifference`, with difference, low and high in points.
    """
    answers = answers.assign(task=task_names(answers))
    rows = []
    parts = {key: part for key, part in answers.groupby(["task", "method"], sort=False)}
    for task, method in parts:  # pyright: ignore[reportGeneralTypeIssues]
        if method != baseline:
            result = paired_difference(parts[task, method], parts[task, baseline], "f1", rng=rng)
            rows.append({"task": task, "method": method} | asdict(result))
    table = pd.DataFrame(rows)
    return table.assign(**{name: 100 * table[name] for name in ("difference", "low", "high")})


def gain_costs(tokens: pd.DataFrame, gains: pd.DataFrame, *, beyond: str | None = None) -> pd.DataFrame:
    """Tokens of training for each point of F1 gained.

    Args:
        tokens: from `tokens_by_part`.
        gains: from `gains`.
        beyond: the method whose tokens are taken off, where the gains are over that method; None where they are over
            the team without skills, which takes no training.

    Returns:
        task, method, tokens (of a run, mean over seeds), gain, low, high, tokens_per_point, cheapest, dearest (at the
        ends of the gain's interval), n_missing. A cost is missing where the gain isn't above 0: there is nothing that
        the tokens bought. `dearest` is missing as well where the interval reaches 0.
    """
    per_run = tokens.groupby(KEYS, sort=False, as_index=False)["tokens"].agg("sum")
    per_run = per_run.groupby(["task", "method"], sort=False, as_index=False)["tokens"].agg("mean")
    means = {(run["task"], run["method"]): run["tokens"] for run in pd.DataFrame(per_run).to_dict("records")}
    taken_off = [means.get((task, beyond), np.nan) if beyond else 0 for task in gains["task"]]
    spent = [means.get(key, np.nan) for key in zip(gains["task"], gains["method"], strict=True)]
    table = gains.rename(columns={"difference": "gain"}).assign(tokens=np.subtract(spent, taken_off))
    ends = {"tokens_per_point": "gain", "cheapest": "high", "dearest": "low"}
    costs = {name: table["tokens"] / table[end].where(table[end] > 0) for name, end in ends.items()}
    for name in ("cheapest", "dearest"):
        costs[name] = costs[name].where(costs["tokens_per_point"].notna())
    return table.assign(**costs).filter(["task", "method", "tokens", "gain", "low", "high", *costs, "n_missing"])


def cost_view(costs: pd.DataFrame) -> pd.DataFrame:
    """`gain_costs` for reading: a group a task, thousands of tokens for a point with the ends of the interval.

    Rows of one task stand together, in the order in which they come.
    """
    costs = costs.sort_values("task", key=lambda t: t.map(list(dict.fromkeys(t)).index), kind="stable")
    cells = costs.to_dict("records")
    return pd.DataFrame(
        {
            "benchmark": costs["task"],
            "method": costs["method"],
            "tokens of a run [millions]": [f"{cell['tokens'] / 1e6:.2f}" for cell in cells],
            "F1 gained [points]": [_gain(cell) for cell in cells],
            "tokens for a point [thousands]": [_cost(cell) for cell in cells],
            "answers missing": [f"{cell['n_missing']:.0f}" for cell in cells],
        }
    )


def _gain(cell: dict) -> str:
    interval = "" if pd.isna(cell["low"]) else f" [{cell['low']:+.1f}, {cell['high']:+.1f}]"
    return f"{cell['gain']:+.1f}{interval}"


def _cost(cell: dict) -> str | None:
    if pd.isna(cell["tokens_per_point"]):
        return None
    ends = [f"{cell[name] / 1e3:,.0f}" if pd.notna(cell[name]) else "no end" for name in ("cheapest", "dearest")]
    interval = "" if pd.isna(cell["low"]) else f" [{ends[0]}, {ends[1]}]"
    return f"{cell['tokens_per_point'] / 1e3:,.0f}{interval}"
