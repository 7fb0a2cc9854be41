"""What training costs in tokens, GRSE against MASkills (paper Limitations, App. E): tidy frames from the ledgers.

Tokens are prompt plus completion of completed calls. A greedy call that was made before is answered by the ledger, so
validating a library a second time costs nothing here; the paper doesn't say whether it did there. The test is no part
of training and is left out. Wall clock is in `wallclock`.
"""

from collections.abc import Mapping
from dataclasses import asdict

import numpy as np
import pandas as pd

from skill_evolution.analysis.frames import rows, texts, where, wide
from skill_evolution.analysis.names import named
from skill_evolution.analysis.statistics import paired_difference
from skill_evolution.analysis.tables import in_percent

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
    every = frame["benchmark"].map({"locomo": " mixed"}.get).fillna("")
    suffix = (" " + frame["trained_on"].map(named)).where(frame["trained_on"] != "all", every)
    return pd.Series(frame["benchmark"].map(named) + suffix, dtype=object)


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
    prompt = (means["tokens"] * means["prompt [%]"] / 100).fillna(0)
    cells = means.assign(benchmark=means["task"], thousands=means["tokens"] / 1e3, prompt=prompt)
    kept = {"whole": ("tokens", "sum"), "prompt": ("prompt", "sum"), "calls": ("calls", "sum")}
    table = wide(cells, ["benchmark", "method"], "part", "thousands", **kept)
    shares = {"all of training": table["whole"] / 1e3, "prompt [%]": 100 * table["prompt"] / table["whole"]}
    calls = table["calls"].map("{:,.0f}".format)
    return table.drop(columns=["whole", "prompt", "calls"]).assign(**shares, calls=calls)


def token_ratios(tokens: pd.DataFrame) -> pd.DataFrame:
    """GRSE's tokens over those of MASkills, by task and quantity.

    Returns:
        task, quantity, ratio (sums over the seeds), low and high (lowest and highest ratio of one seed), n_seeds; only
        seeds that both methods have count. The ratio is missing where the baseline has no tokens.
    """
    parts = [
        ratio_by_task(where(tokens, tokens["part"].isin(parts)), "tokens").assign(quantity=quantity)
        for quantity, parts in QUANTITIES.items()
    ]
    tasks = list(dict.fromkeys(tokens["task"]))
    table = pd.concat(parts).sort_values("task", key=lambda t: t.map(tasks.index), kind="stable", ignore_index=True)
    return table.loc[:, ["task", "quantity", "ratio", "low", "high", "n_seeds"]]


def ratio_by_task(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """A column of GRSE over that of MASkills, by task: of sums over the seeds, and the range over single seeds.

    Seeds that both have count; the ratio is missing where the baseline's sum is 0 in all of them.
    """
    sums = frame.pivot_table(index=["task", "seed"], columns="method", values=column, aggfunc="sum", sort=False)
    sums = sums.reindex(columns=["grse", "maskills"])
    both = where(sums, sums["grse"].notna() & (sums["maskills"] > 0))
    by_task, single = pd.DataFrame(both.groupby("task").sum()), (both["grse"] / both["maskills"]).groupby("task")
    table = pd.DataFrame(
        {
            "ratio": by_task["grse"] / by_task["maskills"],
            "low": single.min(),
            "high": single.max(),
            "n_seeds": single.size(),
        }
    )
    table = table.reindex(pd.Index(dict.fromkeys(frame["task"]), name="task")).fillna({"n_seeds": 0})
    return table.astype({"n_seeds": int}).reset_index()


def reported_ranges(reported: pd.DataFrame) -> pd.DataFrame:
    """The paper's ranges from `load_reported("grse_cost")`: metric, source, low, high, note; a row a statement."""
    table = reported.pivot(index=["metric", "source", "note"], columns="kind", values="value").reset_index()
    table = table.rename(columns={"range_low": "low", "range_high": "high"}).rename_axis(columns=None)
    return table.filter(["metric", "source", "low", "high", "note"])


def wide_ratios(ratios: pd.DataFrame, reported: pd.DataFrame) -> pd.DataFrame:
    """Ratios for reading: a row a task, a column a quantity, "ratio [range over seeds]"; the paper's ranges below."""
    shown = ratios.assign(cell=ratio_texts(ratios), method=ratios["task"], seeds=ratios["n_seeds"].map(str))
    ours = wide(shown, ["method"], "quantity", "cell", seeds=("seeds", "first"))
    said = reported.assign(quantity=reported["metric"].map(REPORTED_AS.get)).dropna(subset="quantity")
    said = said.assign(cell=range_texts(said), method="reported, " + said["source"])
    return pd.concat([ours, wide(said, ["method"], "quantity", "cell")], ignore_index=True)


def ratio_texts(ratios: pd.DataFrame) -> pd.Series:
    """Rows of `ratio_by_task` as cells, "ratio [lowest, highest seed]"; None where there is no ratio."""
    return texts(ratios, "ratio", form=".2f")


def range_texts(reported: pd.DataFrame) -> list[str]:
    """Rows of `reported_ranges` as cells, "low to high"."""
    return [f"{low:.1f} to {high:.1f}" for low, high in zip(reported["low"], reported["high"], strict=True)]


def gains(answers: pd.DataFrame, *, rng: np.random.Generator, baseline: str = "empty") -> pd.DataFrame:
    """F1 over the team without skills in points, by task and method, over all test questions of the task.

    Returns:
        task, method and the fields of `statistics.PairedDifference`, with difference, low and high in points.
    """
    answers = answers.assign(task=task_names(answers))
    found = []
    parts = {key: part for key, part in answers.groupby(["task", "method"], sort=False)}
    for task, method in parts:  # pyright: ignore[reportGeneralTypeIssues]
        if method != baseline:
            result = paired_difference(parts[task, method], parts[task, baseline], "f1", rng=rng)
            found.append({"task": task, "method": method} | asdict(result))
    return in_percent(pd.DataFrame(found), "difference")


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
    return pd.DataFrame(
        {
            "benchmark": costs["task"],
            "method": costs["method"],
            "tokens of a run [millions]": (costs["tokens"] / 1e6).map("{:.2f}".format),
            "F1 gained [points]": texts(costs, "gain", sign="+"),
            "tokens for a point [thousands]": [_cost(cell) for cell in rows(costs)],
            "answers missing": costs["n_missing"].map("{:.0f}".format),
        }
    )


def _cost(cell: Mapping[str, float]) -> str | None:
    if pd.isna(cell["tokens_per_point"]):
        return None
    ends = [f"{cell[name] / 1e3:,.0f}" if pd.notna(cell[name]) else "no end" for name in ("cheapest", "dearest")]
    interval = "" if pd.isna(cell["low"]) else f" [{ends[0]}, {ends[1]}]"
    return f"{cell['tokens_per_point'] / 1e3:,.0f}{interval}"
