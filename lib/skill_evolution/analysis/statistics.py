"""Intervals and paired tests on predictions: pure functions, every one with its own random generator.

A predictions frame is tidy, one row an answer: `method`, `benchmark`, `category`, `seed`, `question_id`, one column a
metric, and `error`, null where the row succeeded. Rows that failed or have no value are left out and counted. The unit
of everything is the question: its value is the mean over the seeds that answered it (GRSE 4.2 reports the mean of three
training runs).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from skill_evolution.analysis.frames import groups, where

COLUMNS = ("method", "benchmark", "category", "seed", "question_id", "error")
ALL = "all"  # the mean over all questions, whatever their category
AVERAGE = "average"  # the unweighted mean of the categories (GRSE 5.5)
LEVEL = 0.95
RESAMPLES = 2_000  # our choice: a table of a hundred cells takes seconds; p-values go down to 0.001

Matrix = NDArray[np.float64]
Strata = Sequence[NDArray[np.intp]]


class Cell(NamedTuple):
    """What one figure of a table is about."""

    category: str
    rows: pd.DataFrame
    metric: str


@dataclass(frozen=True)
class Estimate:
    """A mean with its interval (NaN where it isn't defined), in the metric's unit.

    `n` counts questions, `n_seeds` the seeds with at least one answer, `n_missing` the answers (rows) left out;
    `interval` says in words what `low` and `high` are.
    """

    mean: float
    low: float
    high: float
    n: int
    n_seeds: int
    n_missing: int
    interval: str


@dataclass(frozen=True)
class PairedDifference:
    """Method minus baseline on the same questions; `p_value` is two-sided.

    `n` counts questions that both have, `n_unpaired` those that only one has, `n_missing` the answers left out;
    `interval` says in words what `low` and `high` are.
    """

    difference: float
    low: float
    high: float
    p_value: float
    n: int
    n_unpaired: int
    n_missing: int
    interval: str


def mean_interval(
    rows: pd.DataFrame,
    metric: str,
    *,
    rng: np.random.Generator,
    over_seeds: bool = True,
    by_category: bool = False,
) -> Estimate:
    """The mean of one method on one benchmark with its percentile bootstrap interval.

    Args:
        rows: predictions of one method and benchmark.
        metric: the column to average.
        rng: the source of the resamples.
        over_seeds: resample seeds and questions, both (hierarchical); False keeps the seeds and resamples questions.
            All seeds answer the same questions, so one draw of questions serves all drawn seeds: drawn for each seed
            apart, the spread between questions would average out.
        by_category: average the category means (questions are resampled within each category).

    Raises:
        ValueError: a column is missing, or a question stands twice under one seed.

    The interval is NaN for fewer than two questions (in a category) and where no resample differs from another.
    With one seed the spread between seeds can't be seen and both kinds of interval are the same.
    """
    values = _seeds_by_questions(rows, metric)
    matrix = values.to_numpy() if over_seeds else _mean(values.to_numpy(), axis=0)[None, :]
    strata = _strata(rows, values.columns, by_category)
    low, high = _interval([matrix], strata, rng=rng)
    mean = float(_weights(strata) @ _mean(values.to_numpy(), axis=0)) if values.size else np.nan
    counts = len(values.columns), len(values), _n_missing(rows, metric)
    return Estimate(mean, low, high, *counts, _in_words(over_seeds))


def paired_difference(
    rows: pd.DataFrame,
    baseline: pd.DataFrame,
    metric: str,
    *,
    rng: np.random.Generator,
    over_seeds: bool = True,
    by_category: bool = False,
) -> PairedDifference:
    """The mean difference to a baseline on the questions that both answered, with its interval and p-value.

    The numbers of seeds may differ: a question's values are averaged over seeds before they are subtracted, and each
    method's seeds are resampled apart. The test takes the seeds as they are, so with `over_seeds` the interval may
    hold 0 at a small p-value. Arguments, NaN rules and errors are those of `mean_interval`.
    """
    ours, theirs = _seeds_by_questions(rows, metric), _seeds_by_questions(baseline, metric)
    shared = ours.columns.intersection(theirs.columns)
    sides = [side[shared].to_numpy() for side in (ours, theirs)]
    means = [_mean(side, axis=0) for side in sides]
    strata = _strata(rows, shared, by_category)
    weighted = _weights(strata) * (means[0] - means[1])
    low, high = _interval(sides if over_seeds else [m[None, :] for m in means], strata, rng=rng)
    return PairedDifference(
        float(weighted.sum()) if len(shared) else np.nan,
        low,
        high,
        permutation_test(weighted, rng=rng),
        len(shared),
        len(ours.columns.symmetric_difference(theirs.columns)),
        _n_missing(rows, metric) + _n_missing(baseline, metric),
        _in_words(over_seeds),
    )


def permutation_test(differences: Matrix, *, rng: np.random.Generator) -> float:
    """Two-sided p-value of a zero sum under random sign flips, one a question; exact where 2^n <= RESAMPLES.

    `differences` (questions,) may carry weights. NaN without questions, 1.0 where all are zero.
    """
    if len(differences) < 2:  # one question: both signs are equally extreme
        return 1.0 if len(differences) else np.nan
    result = stats.permutation_test(
        (differences,),
        np.sum,
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=200,
        rng=rng,
    )
    return float(result.pvalue)


def cells(predictions: pd.DataFrame, metrics: Sequence[str]) -> dict[tuple[str, str], list[Cell]]:
    """The cells of a table by benchmark and method, in the order of appearance: category, its rows, and metric.

    Where there are several categories, "all" (mean over questions) and "average" (mean of the categories) follow.
    A metric that no successful row of a benchmark has gives no cell.

    Raises:
        ValueError: a column is missing, or has rows without a value.
    """
    _check(predictions, metrics)
    found: dict[tuple[str, str], list[Cell]] = {}
    for (benchmark, method), rows in groups(predictions, "benchmark", "method"):
        parts = {name: part for (name,), part in groups(rows, "category")}
        parts |= {ALL: rows, AVERAGE: rows} if len(parts) > 1 else {}
        sound = where(rows, rows["error"].isna())
        measured = [metric for metric in metrics if sound.empty or any(sound[metric].notna())]
        found[benchmark, method] = [Cell(name, part, metric) for metric in measured for name, part in parts.items()]
    return found


def _check(predictions: pd.DataFrame, metrics: Sequence[str]) -> None:
    if missing := [c for c in (*COLUMNS, *metrics) if c not in predictions.columns]:
        raise ValueError(f"predictions lack the columns {missing}; they have {list(predictions.columns)}")
    if empty := [c for c in COLUMNS if c != "error" and np.any(predictions[c].isna())]:
        raise ValueError(f"predictions have rows without a value in {empty}")


def _present(rows: pd.DataFrame, metric: str) -> pd.Series:
    return pd.Series(rows["error"].isna() & rows[metric].notna())


def _n_missing(rows: pd.DataFrame, metric: str) -> int:
    return int((~_present(rows, metric)).sum())


def _seeds_by_questions(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The values (seeds, questions) of the rows that succeeded; NaN where a seed lacks the question."""
    _check(rows, [metric])
    if rows.duplicated(["seed", "question_id"]).any():
        twice = rows.loc[rows.duplicated(["seed", "question_id"]), ["method", "seed", "question_id"]].iloc[0]
        raise ValueError(f"predictions hold the same question twice: {twice.to_dict()}")
    present = rows[_present(rows, metric)].astype({metric: float})
    return present.pivot(index="seed", columns="question_id", values=metric)


def _in_words(over_seeds: bool) -> str:
    return f"{100 * LEVEL:g} % bootstrap interval over questions{' and seeds' if over_seeds else ''}"


def _strata(rows: pd.DataFrame, questions: pd.Index, by_category: bool) -> Strata:
    """Positions of `questions`, all together or one array a category."""
    if not by_category:
        return [np.arange(len(questions))]
    category = rows.drop_duplicates("question_id").set_index("question_id")["category"].loc[questions]
    return [np.flatnonzero(category == name) for name in category.unique()]


def _weights(strata: Strata) -> Matrix:
    """The weight (questions,) of each question in the mean of the strata's means."""
    weights = np.empty(sum(map(len, strata)))
    for positions in strata:
        weights[positions] = 1 / (len(strata) * max(len(positions), 1))
    return weights


def _mean(values: Matrix, *, axis: int) -> Matrix:
    """`np.nanmean` that gives NaN for a slice of NaN without a warning."""
    count = np.sum(~np.isnan(values), axis=axis)
    return np.divide(np.nansum(values, axis=axis), count, out=np.full(count.shape, np.nan), where=count > 0)


def _question_means(side: Matrix, seeds: NDArray[np.intp], questions: NDArray[np.intp]) -> Matrix:
    """Means over the drawn seeds; a question that none of them answered keeps its mean over all seeds."""
    means = _mean(side[seeds[..., :, None], questions[..., None, :]], axis=-2)
    return np.where(np.isnan(means), _mean(side, axis=0)[questions], means)


def _interval(sides: Sequence[Matrix], strata: Strata, *, rng: np.random.Generator) -> tuple[float, float]:
    """Percentile interval of the mean of one side, or of the difference of two, each (seeds, questions).

    Questions (within strata) and the seeds of each side are samples that scipy resamples independently.
    """
    if not strata or min(map(len, strata)) < 2:
        return np.nan, np.nan
    seeds = [np.arange(len(side)) for side in sides if len(side) > 1]

    def statistic(*samples: NDArray[np.intp], axis: int = -1) -> Matrix:
        drawn = iter(samples[len(strata) :])
        rows = [next(drawn) if len(side) > 1 else np.zeros_like(samples[0][..., :1]) for side in sides]
        means = []
        for questions in samples[: len(strata)]:
            values = [_question_means(side, row, questions) for side, row in zip(sides, rows, strict=True)]
            means.append(np.mean(values[0] - values[1] if len(values) == 2 else values[0], axis=axis))
        return np.mean(means, axis=0)

    result = stats.bootstrap(
        (*strata, *seeds),
        statistic,
        vectorized=True,
        method="percentile",
        confidence_level=LEVEL,
        n_resamples=RESAMPLES,
        batch=200,
        rng=rng,
    )
    if np.ptp(result.bootstrap_distribution) < 1e-12:  # constant data: zero width would claim certainty
        return np.nan, np.nan
    return float(result.confidence_interval.low), float(result.confidence_interval.high)
