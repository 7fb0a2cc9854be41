"""What training costs in tokens, GRSE against MASkills (paper Limitations, App. E): tidy frames from the ledgers.

Tokens are prompt plus completion of completed calls. A greedy call that was made before is answered by the ledger, so
validating a library a second time costs nothing here; the paper doesn't say whether it did there. The test is no part
of training and is left out. Wall clock is in `wallclock`.
"""

from dataclasses import asdict

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
    training = usage[usage["stage"].isin(TRAINING)]
    training = training.assign(task=task_names(training), part=training["stage"].map(PARTS))
    sums = ["calls", "prompt_tokens", "completion_tokens", "failures"]
    grouped = training.groupby([*KEYS, "part"], sort=False)[sums].sum()
    runs = training[KEYS].drop_duplicates()
    every = runs.merge(pd.DataFrame({"part": list(PARTS.values())}), how="cross")
    table = every.merge(grouped.reset_index(), on=[*KEYS, "part"], how="left").fillna(dict.fromkeys(sums, 0))
    return table.assign(tokens=table["prompt_tokens"] + table["completion_tokens"])


def mean_tokens(tokens: pd.DataFrame) -> pd.DataFrame:
    """`tokens_by_part` averaged over the seeds: task, method, part, calls, tokens and the share of prompt tokens."""
    sums = ["calls", "prompt_tokens", "tokens"]
    table = tokens.groupby(["task", "method", "part"], sort=False)[sums].mean().reset_index()
    share = (100 * table["prompt_tokens"] / table["tokens"].where(table["tokens"] > 0)).fillna(0.0)
    return table.assign(**{"prompt [%]": share}).drop(columns="prompt_tokens")


def token_ratios(tokens: pd.DataFrame, *, method: str = "grse", baseline: str = "maskills") -> pd.DataFrame:
    """Tokens of a method over those of its baseline, by task and quantity.

    Returns:
        task, quantity, ratio (sums over the seeds), low and high (lowest and highest ratio of one seed), n_seeds; only
        seeds that both methods have count. The ratio is missing where the baseline has no tokens.
    """
    rows = []
    for quantity, parts in QUANTITIES.items():
        part = tokens[tokens["part"].isin(parts)]
        sums = part.pivot_table(index=["task", "seed"], columns="method", values="tokens", aggfunc="sum", sort=False)
        rows.append(ratio_by_task(sums, method, baseline).assign(quantity=quantity))
    order = {task: place for place, task in enumerate(dict.fromkeys(tokens["task"]))}
    table = pd.concat(rows, ignore_index=True).sort_values("task", key=lambda t: t.map(order), kind="stable")
    return table[["task", "quantity", "ratio", "low", "high", "n_seeds"]].reset_index(drop=True)


def ratio_by_task(sums: pd.DataFrame, method: str, baseline: str) -> pd.DataFrame:
    """The ratio of two columns of a frame indexed by task and seed: of sums, and the range over single seeds."""
    both = sums[[method, baseline]].dropna()
    both = both[both[baseline] > 0]
    single = (both[method] / both[baseline]).groupby(level="task", sort=False)
    total = both.groupby(level="task", sort=False).sum()
    table = pd.DataFrame(
        {"ratio": total[method] / total[baseline], "low": single.min(), "high": single.max(), "n_seeds": single.size()}
    )
    return table.reindex(dict.fromkeys(sums.index.get_level_values("task"))).rename_axis("task").reset_index()


def reported_ranges(reported: pd.DataFrame) -> pd.DataFrame:
    """The paper's ranges from `load_reported("grse_cost")`: metric, source, low, high, note; a row a statement."""
    ends = reported.pivot(index=["metric", "source"], columns="kind", values="value")
    notes = reported.groupby(["metric", "source"])["note"].first()
    table = ends.rename(columns={"range_low": "low", "range_high": "high"}).assign(note=notes)
    return table.reset_index().rename_axis(columns=None)[["metric", "source", "low", "high", "note"]]


def wide_ratios(ratios: pd.DataFrame, reported: pd.DataFrame) -> pd.DataFrame:
    """Ratios for reading: a row a task, a column a quantity, "ratio [range over seeds]"; the paper's ranges below."""
    table = ratios.assign(cell=[_ratio(r) for r in ratios.to_dict("records")])
    wide = table.pivot(index="task", columns="quantity", values="cell").reindex(dict.fromkeys(ratios["task"]))
    wide = wide[list(dict.fromkeys(ratios["quantity"]))].reset_index()
    seeds = ratios.groupby("task")["n_seeds"].max().map(lambda n: f"{n:.0f}")
    wide = wide.rename(columns={"task": "method"}).assign(seeds=list(seeds.reindex(wide["task"])))
    said = [
        {"method": f"reported, {row['source']}", REPORTED_AS[row["metric"]]: f"{row['low']:.1f} to {row['high']:.1f}"}
        for row in reported.to_dict("records")
        if row["metric"] in REPORTED_AS
    ]
    return pd.concat([wide, pd.DataFrame(said)], ignore_index=True)


def _ratio(row: dict) -> str | None:
    return None if pd.isna(row["ratio"]) else f"{row['ratio']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"


def gains(answers: pd.DataFrame, *, rng: np.random.Generator, baseline: str = "empty") -> pd.DataFrame:
    """F1 over the team without skills in points, by task and method, over all test questions of the task.

    Returns:
        task, method and the fields of `statistics.PairedDifference`, with difference, low and high in points.
    """
    answers = answers.assign(task=task_names(answers))
    rows = []
    for (task, method), part in answers.groupby(["task", "method"], sort=False):
        if method != baseline:
            others = answers[(answers["task"] == task) & (answers["method"] == baseline)]
            rows.append({"task": task, "method": method} | asdict(paired_difference(part, others, "f1", rng=rng)))
    table = pd.DataFrame(rows)
    return table.assign(**{name: 100 * table[name] for name in ("difference", "low", "high")})


def gain_costs(tokens: pd.DataFrame, gains: pd.DataFrame) -> pd.DataFrame:
    """Tokens of training for each point of F1 gained over the team without skills.

    Args:
        tokens: from `tokens_by_part`.
        gains: from `gains`.

    Returns:
        task, method, tokens (of a run, mean over seeds), gain, low, high, tokens_per_point, cheapest, dearest (at the
        ends of the gain's interval), n_missing. A cost is missing where the gain isn't above 0: there is nothing that
        the tokens bought. `dearest` is missing as well where the interval reaches 0.
    """
    per_run = tokens.groupby(KEYS, sort=False)["tokens"].sum().groupby(["task", "method"], sort=False).mean()
    names = {"difference": "gain"}
    table = per_run.reset_index().merge(gains.rename(columns=names), on=["task", "method"], how="left")
    costs = {"tokens_per_point": "gain", "cheapest": "high", "dearest": "low"}
    costs = {name: table["tokens"] / table[end].where(table[end] > 0) for name, end in costs.items()}
    columns = ["task", "method", "tokens", "gain", "low", "high", *costs, "n_missing"]
    return table.assign(**costs)[columns]
