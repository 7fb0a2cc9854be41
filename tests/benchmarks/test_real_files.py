"""The whole method on the real benchmark files, in small; where they are depends on the environment."""

import os
from pathlib import Path

import pytest

from skill_evolution.runs.config import load_config
from skill_evolution.runs.experiments import label, train

SIZES = {"n_train": 6, "n_validation": 6, "n_test": 12, "iterations": 1}


@pytest.mark.parametrize(
    ("benchmark", "variable"), [("hotpotqa", "SKILL_EVOLUTION_HOTPOTQA"), ("locomo", "SKILL_EVOLUTION_LOCOMO")]
)
@pytest.mark.parametrize("method", ["grse", "maskills"])
def test_real_questions_go_through_all_stages(benchmark: str, variable: str, method: str, tmp_path: Path):
    if variable not in os.environ:
        pytest.skip(f"{variable} is not set")
    path = Path(os.environ[variable])
    config = load_config("demo", benchmark=benchmark, method=method, data_path=path, **SIZES)
    summary = train(config, root=tmp_path)
    assert label([config]) == f"simulated reader; file {path.name}"
    assert summary["test_rows"] == 12
    assert summary["failures"]["total"] == 0
    (iteration,) = summary["iterations"]
    assert iteration["critic_accepted"] > 0
    assert not iteration["critic_rejected"]
    assert 0 < summary["test"]["f1"] < 1
