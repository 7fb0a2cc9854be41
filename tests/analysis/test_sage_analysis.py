"""Tables and figures of the SAGE experiments, on frames made by hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from skill_evolution.analysis import sage, sage_tables
from skill_evolution.analysis.names import NAMES
from skill_evolution.analysis.reported import load_reported
from skill_evolution.sage.config import load_sage_config

WORLD = "tiny policy, bundled world"


def rows(arm: str, successes: str, *, seed: int = 0, decoding: str = "greedy", **values: Any) -> pd.DataFrame:
    """One row a digit, three a scenario: 1 succeeds, 0 doesn't, x failed to run."""
    own = [
        {
            "task_id": f"s{place // 3}_{place % 3 + 1}",
            "scenario": f"s{place // 3}",
            "success": digit == "1",
            "steps": 2 + place % 3,
            "tokens": 30,
            "offered": place % 3,
            "used": int(place % 3 == 2),
            "error": "WorldError: gone" if digit == "x" else None,
        }
        for place, digit in enumerate(successes)
    ]
    where = {"group": "", "arm": arm, "split": "test", "decoding": decoding, "sft_seed": 0, "seed": seed}
    return pd.DataFrame(own).assign(**where, **values)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def summary(*parts: pd.DataFrame) -> pd.DataFrame:
    return sage.summary(pd.concat(parts, ignore_index=True), rng=rng())


def value(table: pd.DataFrame, arm: str, metric: str, column: str = "mean") -> float:
    return table.query("arm == @arm and metric == @metric")[column].item()


def test_completion_by_task_and_by_scenario() -> None:
    table = summary(rows("sage", "111" "110" "100" "000"))  # fmt: skip
    assert value(table, "sage", "tgc") == pytest.approx(100 * 6 / 12)
    assert value(table, "sage", "sgc") == 25
    assert value(table, "sage", "steps") == 3  # 2, 3 and 4 in each scenario
    assert table["usage"].unique() == pytest.approx([1 / 2])  # of the second and third tasks, the third used one
    assert value(table, "sage", "sgc", "low") < 25 < value(table, "sage", "sgc", "high")
    assert table["n"].unique().tolist() == [4]


def test_failed_rows_are_in_no_mean_and_counted() -> None:
    table = summary(rows("sage", "111" "11x" "000"))  # fmt: skip
    assert value(table, "sage", "tgc") == pytest.approx(100 * (1 + 1 + 0) / 3)
    assert value(table, "sage", "sgc") == 50  # the scenario with the failed row has no SGC
    assert value(table, "sage", "sgc", "n") == 2
    assert table["failed"].unique().tolist() == [1]


def test_seeds_are_averaged_in_a_scenario_and_their_range_is_told() -> None:
    table = summary(rows("sage", "111" "000", seed=0), rows("sage", "111" "111", seed=1))  # fmt: skip
    assert value(table, "sage", "sgc") == 75
    assert (value(table, "sage", "sgc", "lowest"), value(table, "sage", "sgc", "highest")) == (50, 100)
    assert value(table, "sage", "sgc", "n_seeds") == 2
    points = sage.seed_points(pd.concat([rows("sage", "111000", seed=0), rows("sage", "111111", seed=1)]))
    assert points["sgc"].tolist() == [50, 100]


def test_differences_are_paired_by_scenario() -> None:
    own, other = rows("sage", "111" "111" "111" "000"), rows("sft", "111" "000" "110" "000")  # fmt: skip
    found = sage.differences(pd.concat([own, other], ignore_index=True), rng=rng())
    assert set(found["baseline"]) == {"sft"}  # the other pair's baseline wasn't run
    cells = found.set_index("metric")
    assert cells.loc["sgc", "difference"] == 50  # 3 of 4 against 1 of 4
    assert cells.loc["tgc", "difference"] == pytest.approx(100 * (0 + 3 + 1 + 0) / 12)
    # sign flips: of the 4 with two scenarios that differ, by (1, 1), two are as extreme
    assert cells.loc["sgc", "p_value"] == 0.5
    assert cells.loc["steps", "difference"] == 0


def test_the_table_as_papers_print_it() -> None:
    table = summary(rows("sage", "111000", decoding="T = 1"), rows("sft", "111111", decoding="T = 1"))
    view = sage_tables.wide_table(table, sage_tables.main_reported())
    ours, theirs = view.iloc[:2], view.iloc[2:]
    assert ours["benchmark"].unique().tolist() == ["test, T = 1"]
    assert ours["method"].tolist() == ["SAGE", "SFT"]
    assert ours["TGC [%]"].tolist() == ["50.0 [0.0, 100.0]", "100.0"]  # all alike: no interval
    assert "over scenarios, n = 2 scenarios" in ours["interval"].iloc[0]
    assert all(str(name).startswith("reported by the paper: AppWorld Test-") for name in theirs["benchmark"])
    # every method of FACTS B on both splits; SFT with GRPO and the token counts on Test-Normal alone
    assert len(theirs) == 10 + 9
    best = theirs.query("method == 'SAGE (Qwen2.5-32B-Instruct)'")
    assert best[["TGC [%]", "SGC [%]", "steps", "tokens"]].iloc[0].tolist() == ["72", "60.7", "12.1", "1,475"]


def test_the_abstracts_claims_and_the_one_that_does_not_hold() -> None:
    own = summary(rows("sage", "111111"), rows("grpo", "111000").assign(tokens=60), rows("sft_grpo", "111111"))
    table = sage_tables.claims_table(own)
    # FACTS B: 60.7 - 51.8; 12.1 / 16.4; 1,475 / 3,613; 1,475 / 1,284
    assert table["reported by the paper"].tolist() == ["+8.9", "-26.2", "-59.2", "+14.9"]
    assert table["here, greedy"].tolist() == ["+50.0", "+0.0", "-50.0", "+0.0"]
    alone = sage_tables.claims_table(summary(rows("sage", "111")))
    assert not [cell for cell in alone["here, greedy"] if pd.notna(cell)]


def test_a_group_of_ablations_has_the_papers_figures_below() -> None:
    table = summary(*(rows(arm, "111000").assign(group="reward") for arm in ("sage", "reward_outcome")))
    view = sage_tables.group_table(table, "reward")
    assert view["method"].tolist() == [
        "SAGE",
        "outcome reward",
        "SAGE (Qwen2.5-32B-Instruct)",
        "outcome reward (Qwen2.5-32B-Instruct)",
    ]
    assert view["SGC [%]"].tolist()[2:] == ["60.7", "55.4"]


def test_every_reported_arm_has_a_name() -> None:
    reported = pd.concat([sage_tables.main_reported(), load_reported("sage_ablations")])
    assert set(reported["method"]) <= set(NAMES)


def training(arm: str, seed: int = 0) -> pd.DataFrame:
    steps = [0, 1, 2]
    frame = pd.DataFrame({"step": steps, "reward": [np.nan, 0.5, 0.7], "dev_sgc": [10, np.nan, 20.0], "tokens": 30})
    return frame.assign(arm=arm, sft_seed=0, seed=seed)


def test_curves_hold_what_was_measured() -> None:
    long = sage.curves(training("sage"))
    assert long.query("metric == 'reward'")[["step", "value"]].to_numpy().tolist() == [[1, 0.5], [2, 0.7]]
    assert long.query("metric == 'dev_sgc'")["step"].tolist() == [0, 2]
    assert "dev_tgc" not in set(long["metric"])


def test_skill_use_stands_beside_the_papers() -> None:
    figures = pd.DataFrame(
        [{"arm": "sage", "split": "test", "decoding": "greedy", "skill_usage_rate": 0.5, "library_size": 12.0,
          "successful_skill_usage_rate": np.nan, "skills_used": 4.0, "dropped": 0.0}]
    )  # fmt: skip
    table = sage_tables.skill_table(figures, load_reported("sage_skills"))
    assert table.iloc[0].tolist() == [
        "test, greedy",
        "SAGE",
        "0.50",
        pytest.approx(np.nan, nan_ok=True),
        "12",
        "4",
        "0",
    ]
    assert table.query("method == 'SAGE (Qwen2.5-32B-Instruct)'")["usage rate"].tolist() == ["0.88"]
    assert table["of them used"].tolist()[1:] == ["101", "205", "230"]


def test_the_stored_grid_says_what_it_is(tmp_path: Path) -> None:
    assert "run benchmarks/sage_seeds.py" in sage.load_seeds(tmp_path).title
    assert sage.summary(sage.load_seeds(tmp_path).rows, rng=rng()).empty
    rows("sage", "111").to_csv(tmp_path / "evaluation.csv", index=False)
    config = load_sage_config("demo").model_dump(mode="json")
    record = {"config": config, "sft_seeds": [0, 1], "seeds": [3], "config_hash": "12345678"}
    (tmp_path / "config.json").write_text(json.dumps(record), encoding="utf-8")
    grid = sage.load_seeds(tmp_path)
    assert grid.title == f"{WORLD}; SFT seeds 0, 1 x RL seeds 3; profile demo, config 12345678"
    assert value(sage.summary(grid.rows, rng=rng()), "sage", "sgc") == 100
