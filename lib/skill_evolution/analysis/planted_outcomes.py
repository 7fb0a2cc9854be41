"""How teams with planted skills end: test F1, differences to what they could have been, what we set out to show."""

import numpy as np
import pandas as pd

from skill_evolution.analysis.frames import interval_text, rows, texts, where, wide
from skill_evolution.analysis.names import named
from skill_evolution.analysis.planted_signs import ALL_SIGNS, INTERVAL, READINGS
from skill_evolution.analysis.robustness import HELPFUL, START, from_helpful
from skill_evolution.analysis.tables import difference_table, main_table

METHODS = ("maskills", "grse")
WANTED = 90.0  # percent of runs with all signs right


def f1_curves(start: pd.DataFrame, answers: pd.DataFrame, *, rng: np.random.Generator) -> pd.DataFrame:
    """Token F1 in percent by method and iteration with its interval; iteration 0 is the perturbed start.

    Args:
        start: test answers of the perturbed start.
        answers: as `robustness.answers_by_iteration` gives them.
        rng: the source of the resamples.
    """
    parts = [(0, start.assign(method=method)) for method in answers["method"].unique()]
    parts += [(number, part) for number, part in answers.groupby("iteration")]
    return pd.concat([main_table(part, ["f1"], rng=rng).assign(iteration=number) for number, part in parts])


def end_differences(answers: pd.DataFrame, *, rng: np.random.Generator, reported: pd.DataFrame) -> pd.DataFrame:
    """Paired differences in points at the end: to the perturbed start, to the helpful skills only, to MASkills.

    And each method's to itself from the helpful skills only, where that was run: what the planted harm still costs.

    Returns:
        A row a comparison: method, minus, points, low, high, p_value, n, missing, reported, interval.
    """
    there = list(dict.fromkeys(answers["method"]))
    trained = [m for m in METHODS if m in there]
    pairs: list[tuple[str, list[str]]] = [(START, [HELPFUL, *trained]), (HELPFUL, trained)]
    pairs += [(start, [m]) for m in trained if (start := from_helpful(m)) in there]
    pairs += [("maskills", ["grse"])] if set(METHODS) <= set(there) else []
    tables = [
        difference_table(where(answers, answers["method"].isin([baseline, *methods])), baseline, ["f1"], rng=rng)
        for baseline, methods in pairs
    ]
    table = pd.concat(tables, ignore_index=True)
    sides = list(zip(table["method"], table["baseline"], strict=True))
    table = table.assign(
        method=table["method"].map(named),
        minus=table["baseline"].map(named),
        reported=[_reported_difference(reported, *side) for side in sides],
    ).rename(columns={"difference": "points", "n_missing": "missing"})
    return table.loc[:, ["method", "minus", "points", "low", "high", "p_value", "n", "missing", "reported", "interval"]]


def _reported_difference(reported: pd.DataFrame, method: str, baseline: str) -> float | None:
    """The paper's figure: GRSE against its start stands there, against the helpful skills it follows from two."""
    f1 = {(r["kind"], r["method"]): r["value"] for r in rows(reported) if r["metric"] == "f1"}
    known = {
        ("grse", START): f1["difference", "grse"],
        ("grse", HELPFUL): round(f1["absolute", "grse"] - f1["absolute", HELPFUL], 1),
    }
    return known.get((method, baseline))


def claims(rates: pd.DataFrame, means: pd.DataFrame) -> pd.DataFrame:
    """What we set out to show and whether it came out: all signs right, and the end where a clean start ends.

    The end is held against two intervals: of the helpful skills only, which are not trained, and of the same method
    trained from them, which like the one from the planted libraries may learn new skills.

    Args:
        rates: as `sign_rates` gives them.
        means: `tables.main_table` of the final answers.
    """
    ends = {r["method"]: r for r in rows(means) if r["metric"] == "f1"}
    rate_of = {r["method"]: r for r in rows(rates) if (r["skill"], r["reading"]) == (ALL_SIGNS, READINGS[0])}
    found = []
    for method, rate in rate_of.items():
        met = "yes" if rate["mean"] >= WANTED else "no"
        wanted = [(f"all signs right in at least {WANTED:g} % of the runs", rate, met)]
        for clean in (HELPFUL, from_helpful(method)):
            if clean in ends:
                low, high = ends[clean]["low"], ends[clean]["high"]
                text = f"F1 at the end in {low:.1f} to {high:.1f} ({named(clean)})"
                wanted.append((text, ends[method], _placed(ends[method]["mean"], low, high)))
        for text, row, met in wanted:
            measured = interval_text(row["mean"], row["low"], row["high"])
            found.append({"method": named(method), "wanted": text, "measured": measured, "came out": met})
    return pd.DataFrame(found)


def _placed(value: float, low: float, high: float) -> str:
    return "no, below" if value < low else "no, above" if value > high else "yes"


def f1_table(means: pd.DataFrame) -> pd.DataFrame:
    """A `tables.main_table` of the final answers to read: a row a team, with the paper's F1 beside."""
    beside = {f"F1, {column}": (column, "first") for column in means if str(column).startswith("reported")}
    counts = {"n": ("n", "first"), "seeds": ("n_seeds", "first"), "missing": ("n_missing", "first")}
    shown = means.assign(cell=texts(means), metric=means["metric"].str.upper())
    table = wide(shown, ["method"], "metric", "cell", **beside, **counts, interval=("interval", "first"))
    return table.assign(method=table["method"].map(named))


def differences_table(differences: pd.DataFrame) -> pd.DataFrame:
    """`end_differences` to read: "points [low, high]" in one column."""
    names = differences["method"] + " minus " + differences["minus"]
    view = differences.assign(method=names, points=texts(differences, "points", sign="+"))
    return view.drop(columns=["minus", "low", "high"])


def assumptions_table(assumptions: pd.DataFrame) -> pd.DataFrame:
    """`robustness.load_assumptions` to read: a row a method and its critic's rules, the share with its interval."""
    occasion = assumptions["occasion"].map({True: "with an occasion", False: "all"}.get)
    return pd.DataFrame(
        {
            "method": assumptions["method"].map(named),
            "runs compared": occasion.where(occasion.notna(), "none: it compares nothing"),
            "blame by wording": assumptions["blame"].map({True: "yes", False: "no"}.get),
            f"all signs right, {READINGS[0]} [%]": texts(assumptions),
            f"{READINGS[1]} [%]": assumptions["first"],
            "runs": assumptions["runs"],
            "interval": INTERVAL,
        }
    )


def sets_table(sets: pd.DataFrame) -> pd.DataFrame:
    """`robustness.load_sets` to read: a row a set, the shares of runs with all signs right, their means below."""
    names = {"smallest_effect": "smallest effect [points]", "weakest_skill": "of"}
    shares = {
        f"{method}, {reading}": f"{named(method)}, {reading} [%]" for method in METHODS for reading in READINGS[:2]
    }
    table = sets.loc[:, ["agent_1", "agent_2", *names, *shares]].rename(columns={**names, **shares})
    last = {"agent_1": f"mean of {len(sets)} sets", **{name: table[name].mean() for name in shares.values()}}
    table = pd.concat([table, pd.DataFrame([last])], ignore_index=True)
    return table.rename(columns={"agent_1": "agent 1", "agent_2": "agent 2"})
