"""Tokens of training: sums, ratios and prices by hand, and the paper's two ranges side by side."""

import numpy as np
import pandas as pd
import pytest

from skill_evolution.analysis import runtime
from skill_evolution.analysis.reported import load_reported


def usage(*rows: tuple[str, int, str, int, int]) -> pd.DataFrame:
    """Rows of method, seed, stage, prompt and completion tokens, on HotpotQA."""
    frame = pd.DataFrame(rows, columns=["method", "seed", "stage", "prompt_tokens", "completion_tokens"])
    return frame.assign(benchmark="hotpotqa", trained_on="all", purpose="p", calls=2, failures=0)


@pytest.fixture
def tokens() -> pd.DataFrame:
    return runtime.tokens_by_part(
        usage(
            ("maskills", 0, "train", 90, 10),
            ("maskills", 0, "validation", 50, 0),
            ("maskills", 0, "test", 999, 999),
            ("maskills", 1, "train", 200, 0),
            ("maskills", 1, "critic", 40, 10),
            ("grse", 0, "train", 300, 100),
            ("grse", 0, "validation", 30, 20),
            ("grse", 1, "train", 150, 50),
            ("grse", 1, "train", 150, 50),  # another purpose of the same stage
            ("grse", 1, "critic", 100, 0),
        )
    )


def test_tokens_are_summed_by_part_without_the_test_and_with_zeros(tokens):
    sums = tokens.set_index(["method", "seed", "part"]).sort_index()
    assert sums.loc[("maskills", 0), "tokens"].to_dict() == {
        "training rollouts": 100, "validation": 50, "critic": 0, "optimizer": 0,
    }  # fmt: skip
    assert sums.loc[("grse", 1, "training rollouts"), ["prompt_tokens", "tokens", "calls"]].tolist() == [300, 400, 4]


def test_means_are_over_the_seeds_also_where_one_made_no_call(tokens):
    means = runtime.mean_tokens(tokens).set_index(["method", "part"])
    assert means.loc[("maskills", "validation"), "tokens"] == 25
    assert means.loc[("maskills", "training rollouts"), "tokens"] == 150
    assert means.loc[("maskills", "training rollouts"), "prompt [%]"] == pytest.approx(100 * 290 / 300)
    wide = runtime.wide_tokens(means.reset_index()).set_index("method")
    assert wide.loc["maskills", "all of training"] == pytest.approx((150 + 25 + 25) / 1e3)
    assert wide.loc["maskills", "calls"] == "4"  # (3 + 2 stages) of 2 calls, less the test's, over two seeds


def test_ratios_are_of_sums_with_the_range_over_seeds(tokens):
    ratios = runtime.token_ratios(tokens).set_index("quantity")
    rollouts = ratios.loc["training rollouts"]  # 800 / 300; 400 / 100 and 400 / 200
    assert rollouts[["ratio", "low", "high", "n_seeds"]].tolist() == pytest.approx([800 / 300, 2, 4, 2])
    assert ratios.loc["rollouts and validation", "ratio"] == pytest.approx(850 / 350)
    assert ratios.loc["critic and optimizer", ["ratio", "n_seeds"]].tolist() == [2, 1]  # seed 0 has none to divide by
    assert ratios.loc["all of training", "ratio"] == pytest.approx(950 / 400)
    assert ratios["task"].unique().tolist() == ["HotpotQA"]


def test_a_ratio_without_a_baseline_is_missing(tokens):
    alone = runtime.token_ratios(tokens.query("method == 'grse'"))
    assert alone["ratio"].isna().tolist() == [True] * 4
    assert alone["n_seeds"].tolist() == [0] * 4
    assert runtime.ratio_texts(alone).tolist() == [None] * 4


def test_tasks_are_named():
    frame = pd.DataFrame(
        {"benchmark": ["hotpotqa", "locomo", "locomo", "mine"], "trained_on": ["all", "all", "multi_hop", "all"]}
    )
    assert runtime.task_names(frame).tolist() == ["HotpotQA", "LoCoMo mixed", "LoCoMo multi-hop", "mine"]


def test_both_ranges_of_the_paper_stand_below_ours(tokens):
    ranges = runtime.reported_ranges(load_reported("grse_cost"))
    found = {(r["metric"], r["source"]): (r["low"], r["high"]) for r in ranges.to_dict("records")}
    assert found["actor_tokens", "GRSE Limitations"] == (1.6, 2.9)
    assert found["actor_tokens", "GRSE App. E"] == (1.7, 3.0)
    assert found["wall_clock", "GRSE App. E"] == (1.2, 1.5)
    wide = runtime.wide_ratios(runtime.token_ratios(tokens), ranges).set_index("method")
    assert wide.loc["HotpotQA", "training rollouts"] == "2.67 [2.00, 4.00]"
    assert wide.loc["reported, GRSE App. E", ["training rollouts", "rollouts and validation"]].tolist() == [
        "3.8 to 4.3", "1.7 to 3.0",
    ]  # fmt: skip
    assert wide.loc["reported, GRSE Limitations", "rollouts and validation"] == "1.6 to 2.9"


def gained(method: str, *, gain: float, low: float = np.nan, high: float = np.nan) -> dict:
    return {"task": "HotpotQA", "method": method, "difference": gain, "low": low, "high": high, "n_missing": 0}


def test_price_of_a_point_and_its_ends(tokens):
    gains = pd.DataFrame([gained("maskills", gain=2, low=-1, high=4), gained("grse", gain=-1, low=-2, high=1)])
    prices = runtime.gain_costs(tokens, gains).set_index("method")
    maskills = prices.loc["maskills"]  # 400 tokens over two seeds
    assert maskills[["tokens", "tokens_per_point", "cheapest"]].tolist() == [200, 100, 50]
    assert np.isnan(maskills["dearest"])  # the gain may be nothing
    assert prices.loc["grse", ["tokens_per_point", "cheapest", "dearest"]].isna().all()
    texts = runtime.cost_view(prices.reset_index()).set_index("method")
    assert texts.loc["maskills", "F1 gained [points]"] == "+2.0 [-1.0, +4.0]"
    assert texts.loc["maskills", "tokens for a point [thousands]"] == "0 [0, no end]"
    assert pd.isna(texts["tokens for a point [thousands]"].to_dict()["grse"])


def test_price_beyond_another_method_takes_off_its_tokens(tokens):
    row = runtime.gain_costs(tokens, pd.DataFrame([gained("grse", gain=5)]), beyond="maskills").iloc[0]
    assert row[["tokens", "tokens_per_point"]].tolist() == [475 - 200, 55]


def test_gains_are_paired_by_task_and_in_points():
    rows = [
        {"benchmark": "locomo", "trained_on": trained_on, "category": "temporal", "method": method, "seed": 0}
        | {"question_id": f"{trained_on}{q}", "f1": value, "error": None}
        for trained_on, shift in (("all", 0.25), ("temporal", 0.5))
        for method, value in (("empty", 0.25), ("grse", 0.25 + shift))
        for q in range(3)
    ]
    found = runtime.gains(pd.DataFrame(rows), rng=np.random.default_rng(0)).set_index("task")
    assert found["difference"].to_dict() == {"LoCoMo mixed": 25, "LoCoMo temporal": 50}
    assert found["method"].tolist() == ["grse", "grse"]
