"""Signs of planted skills against the truth, and what became of the skills.

What the sign of a skill's utility is about depends on when it is read, because a skill may be repaired on the way and
then rightly earns what its new text deserves. All three readings are shown:

- "as planted" (the measure): after the last iteration that ran with the planted text;
- "iteration 1": after the first one, when every planted skill is still there;
- "at the end": when it was last in the library, whatever its text had become.

A skill that was never credited has sign 0, which is wrong for a helpful and for a harmful one. An irrelevant skill has
no right sign and isn't counted.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from skill_evolution.analysis.frames import groups, rows, texts, where, wide
from skill_evolution.analysis.names import named
from skill_evolution.analysis.robustness import TRUTHS
from skill_evolution.analysis.statistics import LEVEL

READINGS = ("as planted", "iteration 1", "at the end")
FATES = ("kept", "repaired", "merged", "pruned")
ALL_SIGNS = "all signs"
GUARD = "evidence-standard"  # our counterpart of the paper's verbatim-evidence guard
INTERVAL = f"{100 * LEVEL:g} % exact binomial (Clopper-Pearson) interval over runs"
_SKILL = ["method", "seed", "agent", "skill", "truth"]


def signs(followed: pd.DataFrame) -> pd.DataFrame:
    """The sign of each signed skill's utility in each run and reading.

    Returns:
        The columns method, seed, agent, skill, truth, reading, iteration, utility, sign and right.
    """
    signed = where(followed, followed["truth"] != "irrelevant")
    parts = {
        "as planted": where(signed, signed["as_planted"]),
        "iteration 1": where(signed, signed["iteration"] == 1),
        "at the end": signed,
    }
    found = []
    for reading, part in parts.items():
        for row in rows(part.drop_duplicates(_SKILL, keep="last")):
            sign = int(np.sign(row["utility"]))
            kept = {key: row[key] for key in (*_SKILL, "iteration", "utility")}
            found.append({**kept, "reading": reading, "sign": sign, "right": sign == TRUTHS[row["truth"]]})
    return pd.DataFrame(found)


def share(hits: Sequence[bool]) -> dict[str, Any]:
    """The share of hits in percent with its exact binomial interval, and n."""
    found = binomtest(sum(hits), len(hits))
    interval = found.proportion_ci(LEVEL, method="exact")
    return {"mean": 100 * found.statistic, "low": 100 * interval.low, "high": 100 * interval.high, "n": len(hits)}


def sign_rates(found: pd.DataFrame) -> pd.DataFrame:
    """In which share of the runs a skill's sign is right, and in which all of a run's are (skill ALL_SIGNS).

    Returns:
        The columns method, reading, agent, skill, truth, mean, low, high (percent) and n (runs).
    """
    table = []
    for (method, reading), part in groups(found, "method", "reading"):
        place = {"method": method, "reading": reading}
        for (agent, skill, truth), one in groups(part, "agent", "skill", "truth"):
            line = {**place, "agent": agent, "skill": skill, "truth": truth}
            table.append({**line, **share(list(one["right"]))})
        whole = [all(run["right"]) for _, run in groups(part, "seed")]
        table.append({**place, "agent": "", "skill": ALL_SIGNS, "truth": "", **share(whole)})
    return pd.DataFrame(table)


def sign_table(rates: pd.DataFrame) -> pd.DataFrame:
    """`sign_rates` to read: a row a skill, a column a method and reading, "share [low, high]"."""
    shown = rates.assign(cell=texts(rates), head=rates["method"].map(named) + ", " + rates["reading"])
    shown = shown.sort_values("reading", key=lambda r: r.map(READINGS.index), kind="stable")
    return _by_skill(wide(shown, _SKILL[2:], "head", "cell")).assign(interval=INTERVAL)


def _by_skill(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(agent=table["agent"].str.removeprefix("agent_"))


def right_signs(found: pd.DataFrame, reported: pd.DataFrame) -> pd.DataFrame:
    """How many signs are right in a run, on average over the runs, beside the paper's one run of each method.

    Returns:
        The columns method, one a reading ("mean of 5"), runs and reported.
    """
    figures = reported.query("metric == 'correct_credit_signs'").set_index("method")["value"]
    of = len(found.drop_duplicates(["agent", "skill"]))
    counts = pd.DataFrame(found.groupby(["method", "reading", "seed"], sort=False, as_index=False)["right"].sum())
    means = pd.DataFrame(counts.groupby(["method", "reading"], sort=False, as_index=False)["right"].mean())
    means = means.assign(reading=means["reading"] + f", of {of}")
    table = wide(means, ["method"], "reading", "right")
    runs = {method: own["seed"].nunique() for (method,), own in groups(counts, "method")}
    beside = {method: f"{value:g} of 5 (one run)" for method, value in figures.items()}
    method = table["method"]
    return table.assign(method=method.map(named), runs=method.map(runs.get), reported=method.map(beside.get))


def fate_table(followed: pd.DataFrame) -> pd.DataFrame:
    """What became of each planted skill: a row a skill, a column a method and fate, counts of runs."""
    last = followed.drop_duplicates(_SKILL, keep="last")
    heads = [f"{named(method)}: {fate}" for method in dict.fromkeys(last["method"]) for fate in FATES]
    head = last["method"].map(named) + ": " + last["fate"]
    counts = last.assign(head=head).value_counts([*_SKILL[2:], "head"], sort=False).reset_index(name="runs")
    table = wide(counts, _SKILL[2:], "head", "runs").reindex(columns=[*_SKILL[2:], *heads])
    return _by_skill(table.fillna(dict.fromkeys(heads, 0)).astype(dict.fromkeys(heads, int)))


def utility_curves(followed: pd.DataFrame) -> pd.DataFrame:
    """Utility of the planted text by iteration: mean, lowest and highest over the runs that still have it, and n."""
    part = where(followed, followed["as_planted"])
    keys = ["method", "agent", "skill", "truth", "iteration"]
    return part.groupby(keys, sort=False)["utility"].agg(mean="mean", low="min", high="max", n="count").reset_index()


def reported_utility(reported: pd.DataFrame, truth: pd.DataFrame) -> pd.DataFrame:
    """The paper's utilities of its verbatim-evidence guard under GRSE, beside our skill that asks for the same.

    Returns:
        The columns skill, iteration, utility; no row where our skill GUARD is not planted.
    """
    name = "utility_iteration_"
    said = where(reported, reported["metric"].str.startswith(name))
    if GUARD not in set(truth["skill"]):
        said = said.iloc[:0]
    iteration = said["metric"].str.removeprefix(name).astype(int)
    return pd.DataFrame({"skill": GUARD, "iteration": iteration, "utility": said["value"]})
