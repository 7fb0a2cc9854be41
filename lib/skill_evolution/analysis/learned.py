"""How training changed the answers, how libraries grew, and what was kept of the critic's items (paper 5.2, App. B).

The definitions are the paper's (FACTS A "analysis"): an answer is declined, correct (token F1 of at least 0.5) or
wrong, and it has evidence if at least one line was cited to the answering agent. An answer is broken if it was correct
before training and is not correct after it. "Before" is the run without skills of the same seed and questions.
"""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from skill_evolution.analysis.frames import counted, groups, rows, texts, where, wide
from skill_evolution.analysis.names import named
from skill_evolution.analysis.reported import load_reported, with_reported
from skill_evolution.analysis.results import RUN
from skill_evolution.analysis.statistics import ALL
from skill_evolution.analysis.tables import difference_table, main_table

CORRECT = 0.5
STATES = ("declined", "wrong", "correct")
MISSING = "missing"
QUESTION = ["benchmark", "trained_on", "seed", "question_id"]
MEASURES = {
    "broken_answers": "broken: correct before, not correct after",
    "repaired_answers": "repaired: not correct before, correct after",
    "declined_to_correct": "declined before, correct after",
    "declined_to_correct_with_evidence": "– of these, with cited evidence",
    "declined_to_correct_without_evidence": "– of these, without cited evidence",
    "no_cited_evidence_before": "no evidence cited before",
    "no_cited_evidence": "no evidence cited after",
}
"""Each a yes or no of one question, under the names of data/reported/grse_skills.csv, with what tables call it."""
RATES = ("broken_answers", "repaired_answers", "declined_to_correct", "no_cited_evidence")
"""Of these the shares over all training runs are shown."""
COLUMNS = {
    "broken_answers": "broken",
    "declined_to_correct": "declined → correct",
    "no_cited_evidence_before": "no evidence before",
    "no_cited_evidence": "no evidence",
}
"""Of these the counts are shown by category, under shorter names."""
DIFFERENCE = "GRSE minus MASkills"


def answer_states(answers: pd.DataFrame) -> list[str]:
    """Of each answer: declined, wrong or correct; "missing" where the row failed."""
    conditions = [answers["error"].notna(), answers["declined"].astype(bool), answers["f1"].astype(float) >= CORRECT]
    return list(np.select(conditions, [MISSING, "declined", "correct"], default="wrong"))


def transitions(answers: pd.DataFrame, *, baseline: str = "empty") -> pd.DataFrame:
    """One row a test answer of a trained team, beside the answer that the baseline gave to the same question.

    Args:
        answers: rows of `experiments.predictions`, the baseline's among them.
        baseline: the method that is "before".

    Returns:
        The columns method, benchmark, trained_on, category, seed, question_id, question, gold, answer_before, answer,
        before, after (states), each of MEASURES as 0.0 or 1.0, and `error`, which is null where both answers are
        there; else it says which one is missing, and the measures are null.

    Raises:
        ValueError: the baseline has no answers.
        pandas.errors.MergeError: the baseline has a question twice.
    """
    stated = answers.assign(after=answer_states(answers), cited=[bool(ids) for ids in answers["evidence"]])
    before = where(stated, stated["method"] == baseline)
    if before.empty:
        raise ValueError(f"no answers of {baseline!r} to compare with; there are {sorted(set(answers['method']))}")
    beside = pd.DataFrame({name: before[name] for name in QUESTION}).assign(
        answer_before=before["answer"], before=before["after"], cited_before=before["cited"]
    )
    after = where(stated, stated["method"] != baseline)
    pairs = after.merge(beside, on=QUESTION, how="left", validate="many_to_one").fillna({"before": MISSING})
    kept = ["method", "benchmark", "trained_on", "category", "seed", "question_id", "question", "gold"]
    kept += ["answer_before", "answer", "before", "after"]
    lacking = [pairs["before"] == MISSING, pairs["after"] == MISSING]
    error = pd.Series(np.select(lacking, ["no answer before", "no answer after"], default=""), index=pairs.index)
    measures = {name: values.where(error == "") for name, values in _measures(pairs).items()}
    return pairs.loc[:, kept].assign(**measures, error=error.where(error != "", None))


def _measures(pairs: pd.DataFrame) -> dict[str, Any]:
    was, now = pairs["before"] == "correct", pairs["after"] == "correct"
    cited = pairs["cited"].astype(bool)
    found = now & (pairs["before"] == "declined")
    values = (was & ~now, ~was & now, found, found & cited, found & ~cited, pairs["cited_before"].eq(False), ~cited)
    return {name: value.astype(float) for name, value in zip(MEASURES, values, strict=True)}


def transition_counts(pairs: pd.DataFrame) -> pd.DataFrame:
    """How many answers went from which state to which: benchmark, method, before, after, count, share (percent).

    Every transition has a row, also one that no answer made. Rows that lack an answer are left out.
    """
    found = []
    for (benchmark, method), part in groups(where(pairs, pairs["error"].isna()), "benchmark", "method"):
        counts = part.groupby(["before", "after"]).size()
        for before, after in product(STATES, STATES):
            count = counts.get((before, after)) or 0
            cell = {"benchmark": benchmark, "method": method, "before": before, "after": after}
            found.append({**cell, "count": count, "share": 100 * count / len(part)})
    return pd.DataFrame(found, columns=["benchmark", "method", "before", "after", "count", "share"])


def measure_counts(pairs: pd.DataFrame) -> pd.DataFrame:
    """Counts and shares of MEASURES by benchmark, method and category, and over all categories.

    Returns:
        Tidy: benchmark, method, category, metric, count, n (questions with both answers), n_missing, share (percent).
    """
    found = []
    for (benchmark, method), part in groups(pairs, "benchmark", "method"):
        for category, cell in [*((category, cell) for (category,), cell in groups(part, "category")), (ALL, part)]:
            known = where(cell, cell["error"].isna())
            place = {"benchmark": benchmark, "method": method, "category": category}
            counts = {"n": len(known), "n_missing": len(cell) - len(known)}
            for metric in MEASURES:
                count = int(np.count_nonzero(known[metric]))
                share = 100 * count / len(known) if len(known) else float("nan")
                found.append({**place, "metric": metric, "count": count, **counts, "share": share})
    return pd.DataFrame(found)


def overview(counts: pd.DataFrame) -> pd.DataFrame:
    """`measure_counts` over all categories to read: a row a measure, our counts and the paper's figures by method.

    `counts` holds ids, not names: the paper's figures are found by them.
    """
    ours = where(counts, counts["category"] == ALL)
    ours = ours.assign(cell=counted(ours))
    lost = ours.drop_duplicates(["benchmark", "method"]).assign(metric="n_missing")
    lost["cell"] = [f"{lack} of {n + lack}" for lack, n in zip(lost["n_missing"], lost["n"], strict=True)]
    said = load_reported("grse_skills").query("category == @ALL")
    table = with_reported(pd.concat([ours, lost]), said, "metric")
    measures = {**MEASURES, "n_missing": "answers missing"}
    return table.assign(metric=table["metric"].map(measures.get)).rename(columns={"metric": "measure"})


def by_category(counts: pd.DataFrame) -> pd.DataFrame:
    """`measure_counts` to read: a row a category, a column a method and measure of COLUMNS, "count (share %)" in it."""
    once = counts["metric"] == "no_cited_evidence_before"  # the same team, whatever it is compared with
    shown = where(
        counts, counts["metric"].isin(list(COLUMNS)) & ~(once & (counts["method"] != counts["method"].iloc[0]))
    )
    words = shown["metric"].map(COLUMNS.get)
    head = words.where(shown["metric"] == "no_cited_evidence_before", words + ", " + shown["method"].map(named))
    shown = shown.assign(cell=counted(shown, 0), head=head)
    heads = [head for metric in COLUMNS for head in dict.fromkeys(where(shown, shown["metric"] == metric)["head"])]
    table = wide(shown, ["benchmark", "category"], "head", "cell", questions=("n", "first"))
    return table.loc[:, ["benchmark", "category", "questions", *heads]]


def rates(pairs: pd.DataFrame, *, rng: np.random.Generator) -> pd.DataFrame:
    """RATES over all questions and training runs, in percent, and GRSE's minus MASkills' in points.

    Returns:
        Tidy: benchmark, method, metric, value, low, high, n, n_missing, interval, and p_value for the method
        DIFFERENCE, whose rows are there if both methods are.
    """
    whole = pairs.assign(category=ALL)
    frames = [main_table(whole, RATES, rng=rng).rename(columns={"mean": "value"})]
    if {"grse", "maskills"} <= set(whole["method"]):
        both = where(whole, whole["method"].isin(["grse", "maskills"]))
        difference = difference_table(both, "maskills", RATES, rng=rng).rename(columns={"difference": "value"})
        frames.append(difference.assign(method=DIFFERENCE))
    kept = ["benchmark", "method", "metric", "value", "low", "high", "p_value", "n", "n_missing", "interval"]
    return pd.concat(frames, ignore_index=True).reindex(columns=kept)


def rates_table(rates: pd.DataFrame) -> pd.DataFrame:
    """`rates` to read: a row a measure, a column a method, "value [low, high]" in each cell."""
    is_difference = rates["method"] == DIFFERENCE
    cells = texts(rates, "value").where(~is_difference, texts(rates, "value", sign="+"))
    measured = rates.assign(cell=cells, measure=rates["metric"].map(MEASURES.get))
    counts = {"n": ("n", "first"), "missing": ("n_missing", "max"), "interval": ("interval", "first")}
    return wide(measured, ["benchmark", "measure"], "method", "cell", p_value=("p_value", "max"), **counts)


def library_growth(iterations: pd.DataFrame) -> pd.DataFrame:
    """Skills in each agent's library after each iteration, one row a run, agent and iteration; before the first, none.

    Args:
        iterations: rows of `experiments.iterations`, of runs that start with empty libraries.

    Returns:
        The columns benchmark, trained_on, method, seed, agent, iteration, value.
    """
    found = []
    for row in rows(iterations):
        run = {key: row[key] for key in RUN}
        for agent, size in row["skills"].items():
            if row["iteration"] == 1:
                found.append({**run, "agent": agent, "iteration": 0, "value": 0})
            found.append({**run, "agent": agent, "iteration": row["iteration"], "value": size})
    return pd.DataFrame(found, columns=[*RUN, "agent", "iteration", "value"])


def critic_items(iterations: pd.DataFrame) -> pd.DataFrame:
    """The critic's items by what became of them, summed over runs and iterations.

    Returns:
        Tidy: benchmark, method, outcome, count, share (percent of the benchmark's and method's items). `outcome` is
        "accepted" or the reason for which an item, or a whole reply, was dropped.
    """
    found = [
        {"benchmark": row["benchmark"], "method": row["method"], "outcome": outcome, "count": count}
        for row in rows(iterations)
        for outcome, count in {"accepted": row["critic_accepted"], **row["critic_rejected"]}.items()
    ]
    keys = ["benchmark", "method"]
    items = pd.DataFrame(pd.DataFrame(found).groupby([*keys, "outcome"], sort=False, as_index=False)["count"].sum())
    whole = pd.DataFrame(items.groupby(keys)[["count"]].transform("sum"))["count"]
    return items.assign(share=(100 * items["count"] / whole.where(whole > 0)).fillna(0.0))


def critic_table(items: pd.DataFrame) -> pd.DataFrame:
    """`critic_items` to read: a row an outcome, a column a method, "count (share %)" in each cell."""
    shown = items.assign(cell=counted(items), outcome=items["outcome"].str.replace("_", " "))
    table = wide(shown.sort_values("benchmark", kind="stable"), ["benchmark", "outcome"], "method", "cell")
    return table.fillna("0")
