"""How training changed the answers, how libraries grew, and what was kept of the critic's items (paper 5.2, App. B).

The definitions are the paper's (FACTS A "analysis"): an answer is declined, correct (token F1 of at least 0.5) or wrong,
and it has evidence if at least one line was cited to the answering agent. An answer is broken if it was correct before
training and is not correct after it. "Before" is the run of the team without skills with the same seed and questions.
"""

from collections.abc import Sequence

import pandas as pd

from skill_evolution.analysis.reported import load_reported
from skill_evolution.analysis.statistics import ALL

CORRECT = 0.5
STATES = ("declined", "wrong", "correct")
MISSING = "missing"
QUESTION = ["benchmark", "trained_on", "seed", "question_id"]
MEASURES = {
    "broken_answers": "broken: correct before, not correct after",
    "repaired_answers": "repaired: not correct before, correct after",
    "declined_to_correct": "declined before, correct after",
    "declined_to_correct_with_evidence": "of these, with cited evidence",
    "declined_to_correct_without_evidence": "of these, without cited evidence",
    "no_cited_evidence_before": "no evidence cited before",
    "no_cited_evidence": "no evidence cited after",
}
"""Each a yes or no of one question, under the names of data/reported/grse_skills.csv, with what tables call it."""


def answer_states(answers: pd.DataFrame) -> pd.Series:
    """Of each answer: declined, wrong or correct; "missing" where the row failed."""
    states = (answers["f1"].astype(float) >= CORRECT).map({True: "correct", False: "wrong"})
    states = states.mask(answers["declined"].astype(bool), "declined")
    return states.mask(answers["error"].notna(), MISSING).rename("state")


def transitions(answers: pd.DataFrame, *, baseline: str = "empty") -> pd.DataFrame:
    """One row a test answer of a trained team, beside the answer that the baseline gave to the same question.

    Args:
        answers: rows of `experiments.predictions`, the baseline's among them.
        baseline: the method that is "before".

    Returns:
        The columns method, benchmark, trained_on, category, seed, question_id, question, gold, answer_before, answer,
        before, after (states), each of MEASURES as 0.0 or 1.0, and `error`, which says which of the two answers is
        missing and is null where both are there.

    Raises:
        ValueError: the baseline has no answers, or has a question twice.
    """
    rows = answers.assign(state=answer_states(answers), cited=answers["evidence"].map(bool))
    before, after = rows[rows["method"] == baseline], rows[rows["method"] != baseline]
    if before.empty:
        raise ValueError(f"no answers of {baseline!r} to compare with; there are {sorted(set(answers['method']))}")
    beside = before[[*QUESTION, "answer", "state", "cited"]]
    pairs = after.merge(beside, on=QUESTION, how="left", suffixes=("", "_before"), validate="many_to_one")
    pairs = pairs.rename(columns={"state": "after", "state_before": "before"}).fillna({"before": MISSING})
    kept = ["method", "benchmark", "trained_on", "category", "seed", "question_id", "question", "gold"]
    kept += ["answer_before", "answer", "before", "after"]
    return pairs[kept].assign(**_measures(pairs), error=_lacking(pairs))


def _measures(pairs: pd.DataFrame) -> dict[str, pd.Series]:
    was, now = pairs["before"] == "correct", pairs["after"] == "correct"
    cited = pairs["cited"].astype(bool)
    found = now & (pairs["before"] == "declined")
    values = (was & ~now, ~was & now, found, found & cited, found & ~cited, pairs["cited_before"].eq(False), ~cited)
    return {name: value.astype(float) for name, value in zip(MEASURES, values, strict=True)}


def _lacking(pairs: pd.DataFrame) -> pd.Series:
    """Which answer a row lacks, null where it has both: what is not known is no transition."""
    lacking = pd.Series(None, index=pairs.index, dtype=object)
    lacking = lacking.mask(pairs["before"] == MISSING, "no answer before")
    return lacking.mask(pairs["after"] == MISSING, "no answer after")


def transition_counts(pairs: pd.DataFrame) -> pd.DataFrame:
    """How many answers went from which state to which: benchmark, method, before, after, count, share [%]; zeros too."""
    known = pairs[pairs["error"].isna()]
    rows = []
    for (benchmark, method), part in known.groupby(["benchmark", "method"], sort=False):
        counts = part.groupby(["before", "after"]).size()
        for before in STATES:
            for after in STATES:
                count = int(counts.get((before, after), 0))
                cell = {"benchmark": benchmark, "method": method, "before": before, "after": after}
                rows.append({**cell, "count": count, "share [%]": 100 * count / len(part)})
    return pd.DataFrame(rows, columns=["benchmark", "method", "before", "after", "count", "share [%]"])


def measure_counts(pairs: pd.DataFrame) -> pd.DataFrame:
    """Counts and shares of MEASURES by benchmark, method and category, and over all categories.

    Returns:
        Tidy: benchmark, method, category, metric, count, n (questions with both answers), n_missing, share (percent).
    """
    rows = []
    for (benchmark, method), part in pairs.groupby(["benchmark", "method"], sort=False):
        cells = [*part.groupby("category", sort=False), (ALL, part)]
        for category, cell in cells:
            known = cell[cell["error"].isna()]
            place = {"benchmark": benchmark, "method": method, "category": category}
            counts = {"n": len(known), "n_missing": len(cell) - len(known)}
            for metric in MEASURES:
                count = int(known[metric].sum())
                share = 100 * count / len(known) if len(known) else float("nan")
                rows.append({**place, "metric": metric, "count": count, **counts, "share": share})
    return pd.DataFrame(rows)


def overview(counts: pd.DataFrame) -> pd.DataFrame:
    """`measure_counts` over all categories as a table to read: a row a measure, our counts and the paper's figures.

    Call it before ids are replaced by names.
    """
    whole = counts[counts["category"] == ALL]
    rows = []
    for benchmark, part in whole.groupby("benchmark", sort=False):
        cells = {(row["metric"], row["method"]): f"{row['count']} ({row['share']:.1f} %)" for row in _rows(part)}
        methods = list(dict.fromkeys(part["method"]))
        for metric, words in MEASURES.items():
            ours = {method: cells[metric, method] for method in methods}
            rows.append({"benchmark": benchmark, "measure": words, **ours, **_reported(str(benchmark), metric, methods)})
        lost = {row["method"]: f"{row['n_missing']} of {row['n'] + row['n_missing']}" for row in _rows(part)}
        rows.append({"benchmark": benchmark, "measure": "answers missing", **lost})
    return pd.DataFrame(rows)


def _rows(frame: pd.DataFrame) -> list[dict]:
    return frame.to_dict("records")


def _reported(benchmark: str, metric: str, methods: Sequence[str]) -> dict[str, str]:
    """The paper's figure for each method, with its model, as text under "<method> (reported)"."""
    figures = load_reported("grse_skills")
    figures = figures[(figures["benchmark"] == benchmark) & (figures["metric"] == metric) & (figures["category"] == ALL)]
    units = {"percent": " %", "points": "", "count": ""}
    return {
        f"{row['method']} (reported)": f"{row['value']:g}{units[row['unit']]}, {row['model']}"
        for row in _rows(figures)
        if row["method"] in methods
    }


def by_category(counts: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """`measure_counts` with a row a category and a column a measure and method, "count (share %)" in each cell."""
    part = counts[counts["metric"].isin(metrics)]
    cells = part.assign(
        text=part["count"].astype(str) + part["share"].map(" ({:.0f} %)".format),
        column=part["metric"].map(MEASURES).str.split(":").str[0] + ", " + part["method"],
    )
    columns = [f"{MEASURES[m].split(':')[0]}, {method}" for m in metrics for method in dict.fromkeys(part["method"])]
    order = list(dict.fromkeys(zip(part["benchmark"], part["category"], strict=True)))
    wide = cells.pivot(index=["benchmark", "category"], columns="column", values="text").loc[order, columns]
    n = part.drop_duplicates(["benchmark", "category"]).set_index(["benchmark", "category"])["n"].loc[order]
    wide.insert(0, "questions", n)
    return wide.reset_index().rename_axis(columns=None)


def library_growth(iterations: pd.DataFrame) -> pd.DataFrame:
    """Skills in each agent's library after each iteration, one row a run, agent and iteration; before the first, none.

    Args:
        iterations: rows of `experiments.iterations`, of runs that start with empty libraries.

    Returns:
        The columns benchmark, trained_on, method, seed, agent, iteration, value.
    """
    keys = ["benchmark", "trained_on", "method", "seed"]
    rows = []
    for row in _rows(iterations):
        run = {key: row[key] for key in keys}
        for agent, size in row["skills"].items():
            if row["iteration"] == 1:
                rows.append({**run, "agent": agent, "iteration": 0, "value": 0})
            rows.append({**run, "agent": agent, "iteration": row["iteration"], "value": size})
    return pd.DataFrame(rows, columns=[*keys, "agent", "iteration", "value"])


def critic_items(iterations: pd.DataFrame) -> pd.DataFrame:
    """The critic's items by what became of them, summed over runs and iterations: benchmark, method, outcome, count.

    `outcome` is "accepted" or the reason for which an item, or a whole reply, was dropped; `share [%]` is of all items
    of the benchmark and method.
    """
    rows = [
        {"benchmark": row["benchmark"], "method": row["method"], "outcome": outcome, "count": count}
        for row in _rows(iterations)
        for outcome, count in {"accepted": row["critic_accepted"], **row["critic_rejected"]}.items()
    ]
    keys = ["benchmark", "method", "outcome"]
    table = pd.DataFrame(rows, columns=[*keys, "count"]).groupby(keys, sort=False)["count"].sum().reset_index()
    total = table.groupby(["benchmark", "method"])["count"].transform("sum")
    return table.assign(**{"share [%]": (100 * table["count"] / total.where(total > 0)).fillna(0.0)})


def critic_table(items: pd.DataFrame) -> pd.DataFrame:
    """`critic_items` with a row an outcome and a column a method, "count (share %)" in each cell."""
    texts = items["count"].map("{:,}".format) + items["share [%]"].map(" ({:.1f} %)".format)
    wide = items.assign(text=texts).pivot(index=["benchmark", "outcome"], columns="method", values="text")
    order = list(dict.fromkeys(zip(items["benchmark"], items["outcome"], strict=True)))
    wide = wide.loc[order, list(dict.fromkeys(items["method"]))].fillna("0")
    return wide.reset_index().rename_axis(columns=None)
