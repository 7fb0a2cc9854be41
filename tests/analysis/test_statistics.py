"""Intervals and paired tests; expected values by hand or from scipy on the plain array."""

import math
import warnings
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from skill_evolution.analysis.statistics import (
    mean_interval,
    paired_difference,
    permutation_test,
)
from skill_evolution.analysis.tables import difference_table, main_table


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def predictions(values, *, method="grse", seed=0, categories=None, failed=()) -> pd.DataFrame:
    count = len(values)
    return pd.DataFrame(
        {
            "method": method,
            "benchmark": "locomo",
            "category": categories or ["c"] * count,
            "seed": seed,
            "question_id": [f"q{i}" for i in range(count)],
            "f1": [float(v) for v in values],
            "error": ["timeout" if i in failed else None for i in range(count)],
        }
    )


def test_failed_rows_are_excluded_and_counted():
    rows = predictions([1, 0, 1, 0], failed=[1])
    estimate = mean_interval(rows, "f1", rng=rng())
    assert (estimate.mean, estimate.n, estimate.n_seeds, estimate.n_missing) == (pytest.approx(2 / 3), 3, 1, 1)


def test_a_failed_row_lacks_only_its_own_seed():
    rows = pd.concat([predictions([1, 0], failed=[0]), predictions([0.5, 1], seed=1)])
    # q0: seed 1 alone, 0.5; q1: mean of 0 and 1, 0.5
    estimate = mean_interval(rows, "f1", rng=rng())
    assert (estimate.mean, estimate.n, estimate.n_seeds, estimate.n_missing) == (0.5, 2, 2, 1)


def test_question_interval_is_that_of_scipy_on_the_means_over_seeds():
    values = rng().random((3, 60))
    rows = pd.concat([predictions(v, seed=s) for s, v in enumerate(values)])
    ours = mean_interval(rows, "f1", rng=rng(), over_seeds=False)
    expected = stats.bootstrap((values.mean(axis=0),), np.mean, method="percentile", rng=rng()).confidence_interval
    assert (ours.low, ours.high) == pytest.approx((expected.low, expected.high), abs=0.005)


def test_interval_over_seeds_holds_the_spread_between_seeds():
    rows = pd.concat([predictions([s * 0.1 + q * 0.01 for q in range(5)], seed=s) for s in range(3)])
    questions = mean_interval(rows, "f1", rng=rng(), over_seeds=False)
    both = mean_interval(rows, "f1", rng=rng())
    assert questions.high - questions.low < 0.04  # all that questions differ by
    # a draw of one seed three times has probability 1/27 > 2.5 %, so the ends reach the outer seeds' own means
    assert both.low < 0.03
    assert both.high > 0.21
    assert "seeds" in both.interval
    assert "seeds" not in questions.interval


@pytest.mark.parametrize("values", [[0.7], [0.5] * 8, [0.1 + 0.2, 0.3, 0.3]])
def test_one_question_or_constant_data_have_a_mean_and_no_interval(values):
    estimate = mean_interval(predictions(values), "f1", rng=rng())
    assert estimate.mean == pytest.approx(values[0])
    assert math.isnan(estimate.low)
    assert math.isnan(estimate.high)


def test_nothing_succeeded():
    estimate = mean_interval(predictions([1, 1], failed=[0, 1]), "f1", rng=rng(), by_category=True)
    assert math.isnan(estimate.mean)
    assert (estimate.n, estimate.n_missing) == (0, 2)


def test_average_weighs_categories_alike():
    rows = predictions([1, 1, 1, 0], categories=["a", "a", "a", "b"])
    table = main_table(rows, ["f1"], rng=rng()).set_index("category")
    assert table["mean"].to_dict() == {"a": 100, "b": 0, "all": 75, "average": 50}
    assert table["n"].to_dict() == {"a": 3, "b": 1, "all": 4, "average": 4}


def test_a_metric_that_a_benchmark_lacks_gives_no_row_but_total_failure_does():
    rows = predictions([1, 0]).assign(em=np.nan)
    assert set(main_table(rows, ["f1", "em"], rng=rng())["metric"]) == {"f1"}
    failed = predictions([np.nan, np.nan], failed=[0, 1])
    assert main_table(failed, ["f1"], rng=rng())[["n", "n_missing"]].to_numpy().tolist() == [[0, 2]]


def test_pairs_are_the_questions_that_both_have():
    ours, theirs = predictions([1, 1, 0.5, 0], failed=[3]), predictions([0, 1, 1], method="maskills", failed=[1])
    result = paired_difference(ours, theirs, "f1", rng=rng())
    # q0 and q2: (1 - 0 + 0.5 - 1) / 2; q1 stands only in ours, q3 in neither
    assert (result.difference, result.n, result.n_unpaired, result.n_missing) == (0.25, 2, 1, 2)


def test_numbers_of_seeds_may_differ():
    ours = pd.concat([predictions([1, 0.4], seed=0), predictions([0, 0.6], seed=1)])
    result = paired_difference(ours, predictions([0.25, 0.5], method="direct"), "f1", rng=rng())
    assert (result.difference, result.n) == (pytest.approx(0.125), 2)


def test_paired_interval_holds_the_spread_between_seeds_where_asked():
    ours = pd.concat([predictions([s * 0.5 + q * 0.01 for q in range(5)], seed=s) for s in range(2)])
    theirs = predictions([0] * 5, method="maskills")
    narrow = paired_difference(ours, theirs, "f1", rng=rng(), over_seeds=False)
    wide = paired_difference(ours, theirs, "f1", rng=rng())
    assert 0.25 <= narrow.low < narrow.high <= 0.29  # question means run from 0.25 to 0.29
    assert wide.low < 0.04  # one seed twice has probability 1/4
    assert wide.high > 0.5


def test_constant_difference_has_a_p_value_and_no_interval():
    ours, theirs = predictions([0.5] * 5), predictions([0.25] * 5, method="maskills")
    result = paired_difference(ours, theirs, "f1", rng=rng())
    assert result.p_value == pytest.approx(2 / 2**5)  # only all plus and all minus are as extreme
    assert math.isnan(result.low)
    assert paired_difference(ours, ours, "f1", rng=rng()).p_value == 1.0


def test_differences_for_each_category_against_the_baseline():
    categories = ["a", "a", "b", "b"]
    frame = pd.concat(
        [
            predictions([1, 0.5, 0.25, 0.75], categories=categories),
            predictions([0, 0.5, 0.75, 0.75], method="maskills", categories=categories),
        ]
    )
    table = difference_table(frame, "maskills", ["f1"], rng=rng())
    assert dict(zip(table["category"], table["difference"], strict=True)) == {
        "a": 50,
        "b": -25,
        "all": 12.5,
        "average": 12.5,
    }
    assert set(table["method"]) == {"grse"}
    with pytest.raises(ValueError, match=r"'empty'.*'locomo'"):
        difference_table(frame, "empty", ["f1"], rng=rng())


def test_a_category_without_a_counterpart_is_counted_as_unpaired():
    frame = pd.concat(
        [predictions([1, 0], categories=["a", "b"]), predictions([1], method="maskills", categories=["a"])]
    )
    table = difference_table(frame, "maskills", ["f1"], rng=rng()).set_index("category")
    assert table.loc["b", ["n", "n_unpaired"]].tolist() == [0, 1]
    assert math.isnan(table.loc["b", "difference"])
    assert math.isnan(table.loc["b", "p_value"])


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(-8, 8), min_size=1, max_size=7))
def test_few_questions_are_tested_exactly(differences):
    def signed(signs):
        return sum(s * Fraction(d) for s, d in zip(signs, differences, strict=True))

    sums = [signed(signs) for signs in product((1, -1), repeat=len(differences))]
    tail = min(sum(s >= sum(differences) for s in sums), sum(s <= sum(differences) for s in sums))
    ours = permutation_test(np.array(differences, dtype=float), rng=rng())
    assert ours == pytest.approx(min(1.0, 2 * tail / len(sums)))


def test_many_questions_agree_with_the_t_test():
    differences = np.random.default_rng(3).normal(0.1, 0.5, 100)
    _, expected = stats.ttest_1samp(differences, 0)
    assert permutation_test(differences, rng=rng()) == pytest.approx(expected, abs=0.02)


def test_the_same_generator_gives_the_same_interval():
    rows = predictions(rng().random(20))
    assert mean_interval(rows, "f1", rng=rng()) == mean_interval(rows, "f1", rng=rng())


def test_faulty_frames_are_named():
    rows = predictions([1, 0])
    with pytest.raises(ValueError, match="'question_id': 'q0'"):
        mean_interval(pd.concat([rows, rows.head(1)]), "f1", rng=rng())
    with pytest.raises(ValueError, match=r"lack the columns \['bleu'\]"):
        main_table(rows, ["bleu"], rng=rng())
    with pytest.raises(ValueError, match=r"without a value in \['category'\]"):
        main_table(rows.assign(category=None), ["f1"], rng=rng())
