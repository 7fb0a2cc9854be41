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
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from skill_evolution.analysis.frames import groups, interval_text, rows, where
from skill_evolution.analysis.names import NAMES
from skill_evolution.analysis.robustness import HELPFUL, START, TRUTHS, from_helpful
from skill_evolution.analysis.statistics import LEVEL

READINGS = ("as planted", "iteration 1", "at the end")
FATES = ("kept", "repaired", "merged", "pruned")
ALL_SIGNS = "all signs"
GUARD = "evidence-standard"  # our counterpart of the paper's verbatim-evidence guard
INTERVAL = f"{100 * LEVEL:g} % exact binomial (Clopper-Pearson) interval over runs"
CLEAN = " from the helpful skills"  # after a method's name: started from them, not from the planted libraries
_NAMES = {
    **NAMES,
    START: "perturbed start",
    HELPFUL: "helpful skills only",
    **{from_helpful(method): f"{NAMES[method]}{CLEAN}" for method in ("maskills", "grse")},
}
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
    found = []
    for (agent, skill, truth), part in groups(rates, "agent", "skill", "truth"):
        cells = {
            f"{named(r['method'])}, {r['reading']}": interval_text(r["mean"], r["low"], r["high"])
            for reading in READINGS
            for r in rows(where(part, part["reading"] == reading))
        }
        found.append(
            {"agent": agent.removeprefix("agent_"), "skill": skill, "truth": truth, **cells, "interval": INTERVAL}
        )
    return pd.DataFrame(found)


def right_signs(found: pd.DataFrame, reported: pd.DataFrame) -> pd.DataFrame:
    """How many signs are right in a run, on average over the runs, beside the paper's one run of each method.

    Returns:
        The columns method, one a reading ("mean of 5"), runs and reported.
    """
    figures = {r["method"]: r["value"] for r in rows(reported) if r["metric"] == "correct_credit_signs"}
    table = []
    for (method,), part in groups(found, "method"):
        of = len(part.drop_duplicates(["agent", "skill"]))
        counts: dict[str, list[int]] = {reading: [] for reading in READINGS}
        for (reading, _), run in groups(part, "reading", "seed"):
            counts[reading].append(sum(run["right"]))
        means = {f"{reading}, of {of}": fmean(found) for reading, found in counts.items()}
        beside = f"{figures[method]:g} of 5 (one run)" if method in figures else None
        table.append({"method": named(method), **means, "runs": len(counts[READINGS[0]]), "reported": beside})
    return pd.DataFrame(table)


def fate_table(followed: pd.DataFrame) -> pd.DataFrame:
    """What became of each planted skill: a row a skill, a column a method and fate, counts of runs."""
    last = followed.drop_duplicates(_SKILL, keep="last")
    found = []
    for (agent, skill, truth), part in groups(last, "agent", "skill", "truth"):
        counts = {
            f"{named(method)}: {fate}": list(own["fate"]).count(fate)
            for (method,), own in groups(part, "method")
            for fate in FATES
        }
        found.append({"agent": agent.removeprefix("agent_"), "skill": skill, "truth": truth, **counts})
    return pd.DataFrame(found)


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
    found = [
        {"skill": GUARD, "iteration": int(r["metric"].removeprefix(name)), "utility": r["value"]}
        for r in rows(reported)
        if r["metric"].startswith(name) and GUARD in set(truth["skill"])
    ]
    return pd.DataFrame(found, columns=["skill", "iteration", "utility"])


def displayed(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with the names of methods and teams in place of their ids."""
    return frame.assign(method=[named(method) for method in frame["method"]])


def named(value: str) -> str:
    """The name that a table or figure shows for a method or one of the untrained teams."""
    return _NAMES.get(value, value)
