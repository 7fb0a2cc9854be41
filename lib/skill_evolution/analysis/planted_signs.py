"""Signs of planted skills against the truth, their fates, and the tables of `03_robustness`.

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
from skill_evolution.analysis.robustness import HELPFUL, START, TRUTHS
from skill_evolution.analysis.statistics import LEVEL, summarize
from skill_evolution.analysis.tables import difference_table

READINGS = ("as planted", "iteration 1", "at the end")
FATES = ("kept", "repaired", "merged", "pruned")
ALL_SIGNS = "all signs"
GUARD = "evidence-standard"  # our counterpart of the paper's verbatim-evidence guard
INTERVAL = f"{100 * LEVEL:g} % exact binomial (Clopper-Pearson) interval over runs"
WANTED = 90.0  # percent of runs with all signs right (what we set out to show)
_NAMES = {**NAMES, START: "perturbed start", HELPFUL: "helpful skills only"}
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
        found.append({"agent": agent.replace("_", " "), "skill": skill, "truth": truth, **cells, "interval": INTERVAL})
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
        found.append({"agent": agent.replace("_", " "), "skill": skill, "truth": truth, **counts})
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


def f1_curves(start: pd.DataFrame, answers: pd.DataFrame, *, rng: np.random.Generator) -> pd.DataFrame:
    """Token F1 in percent by method and iteration with its interval; iteration 0 is the perturbed start.

    Args:
        start: test answers of the perturbed start.
        answers: as `robustness.answers_by_iteration` gives them.
        rng: the source of the resamples.
    """
    parts = [(0, start.assign(method=method)) for method in answers["method"].unique()]
    parts += [(number, part) for number, part in answers.groupby("iteration")]
    table = pd.concat([summarize(part, ["f1"], rng=rng).assign(iteration=number) for number, part in parts])
    return table.assign(**{column: 100 * table[column] for column in ("mean", "low", "high")})


def end_differences(answers: pd.DataFrame, *, rng: np.random.Generator, reported: pd.DataFrame) -> pd.DataFrame:
    """Paired differences in points at the end: to the perturbed start, to the helpful skills only, to MASkills.

    Returns:
        A row a comparison: method, minus, points, low, high, p_value, n, missing, reported, interval.
    """
    found = []
    there = list(dict.fromkeys(answers["method"]))
    trained = [m for m in there if m not in (START, HELPFUL)]
    pairs: list[tuple[str, list[str]]] = [(START, [HELPFUL, *trained]), (HELPFUL, trained)]
    if {"maskills", "grse"} <= set(there):
        pairs.append(("maskills", ["grse"]))
    for baseline, methods in pairs:
        part = where(answers, answers["method"].isin([baseline, *methods]))
        for row in rows(difference_table(part, baseline, ["f1"], rng=rng)):
            found.append(
                {"method": named(row["method"]), "minus": named(baseline), "points": row["difference"],
                 "low": row["low"], "high": row["high"], "p_value": row["p_value"], "n": row["n"],
                 "missing": row["n_missing"], "reported": _reported_difference(reported, row["method"], baseline),
                 "interval": row["interval"]}
            )  # fmt: skip
    return pd.DataFrame(found)


def _reported_difference(reported: pd.DataFrame, method: str, baseline: str) -> float | None:
    """The paper's figure: GRSE against its start stands there, against the helpful skills it follows from two."""
    f1 = {(r["kind"], r["method"]): r["value"] for r in rows(reported) if r["metric"] == "f1"}
    known = {
        ("grse", START): f1["difference", "grse"],
        ("grse", HELPFUL): round(f1["absolute", "grse"] - f1["absolute", HELPFUL], 1),
    }
    return known.get((method, baseline))


def claims(rates: pd.DataFrame, means: pd.DataFrame) -> pd.DataFrame:
    """What we set out to show and whether it came out: all signs right, and the end within the helpful team's interval.

    Args:
        rates: as `sign_rates` gives them.
        means: `tables.main_table` of the final answers.
    """
    ends = {r["method"]: r for r in rows(means) if r["metric"] == "f1"}
    rate_of = {r["method"]: r for r in rows(rates) if (r["skill"], r["reading"]) == (ALL_SIGNS, READINGS[0])}
    low, high = ends[HELPFUL]["low"], ends[HELPFUL]["high"]
    found = []
    for method, rate in rate_of.items():
        end = ends[method]
        for wanted, row, met in (
            (f"all signs right in at least {WANTED:g} % of the runs", rate, rate["mean"] >= WANTED),
            (f"F1 at the end in {low:.1f} to {high:.1f} (helpful skills only)", end, low <= end["mean"] <= high),
        ):
            measured = interval_text(row["mean"], row["low"], row["high"])
            found.append(
                {"method": named(method), "wanted": wanted, "measured": measured, "met": "yes" if met else "no"}
            )
    return pd.DataFrame(found)


def f1_table(means: pd.DataFrame) -> pd.DataFrame:
    """A `tables.main_table` of the final answers to read: a row a team, with the paper's F1 beside."""
    beside = [column for column in means.columns if column.startswith("reported")]
    found = []
    for (method,), part in groups(means, "method"):
        cells = {r["metric"].upper(): interval_text(r["mean"], r["low"], r["high"]) for r in rows(part)}
        first = rows(part)[0]
        paper = {f"F1, {column}": first[column] for column in beside}
        counts = {"n": first["n"], "seeds": first["n_seeds"], "missing": first["n_missing"]}
        found.append({"method": named(method), **cells, **paper, **counts, "interval": first["interval"]})
    return pd.DataFrame(found)


def differences_table(differences: pd.DataFrame) -> pd.DataFrame:
    """`end_differences` to read: "points [low, high]" in one column."""
    found = []
    for row in rows(differences):
        points = interval_text(row["points"], row["low"], row["high"], sign="+")
        line = {"method": f"{row['method']} minus {row['minus']}", "points": points}
        found.append({**line, **{key: row[key] for key in ("p_value", "n", "missing", "reported", "interval")}})
    return pd.DataFrame(found)


def displayed(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with the names of methods and teams in place of their ids."""
    return frame.assign(method=[named(method) for method in frame["method"]])


def named(value: str) -> str:
    """The name that a table or figure shows for a method or one of the untrained teams."""
    return _NAMES.get(value, value)
