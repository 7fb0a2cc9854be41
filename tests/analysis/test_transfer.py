"""Transfer between the multi-hop tasks: which runs, which rows, and the tables."""

import numpy as np
import pandas as pd
import pytest

from skill_evolution.analysis import transfer
from skill_evolution.analysis.frames import rows
from skill_evolution.runs.config import load_config
from skill_evolution.runs.experiments import main_grid, predictions, train
from skill_evolution.runs.folder import run_folder


def test_multi_hop_configs_are_those_of_the_main_grid():
    grid = main_grid("demo", seeds=[0, 1])
    chosen = transfer.multi_hop_configs(grid)
    assert {(c.benchmark, c.category) for c in chosen} == {("hotpotqa", None), ("locomo", "multi_hop")}
    assert len(chosen) == 2 * 3 * 2
    assert all(c in grid for c in chosen)


def test_a_transferred_team_differs_from_the_targets_empty_one_by_its_libraries_alone(tmp_path):
    configs = transfer.multi_hop_configs(main_grid("demo", seeds=[0, 1]))
    teams = transfer.transfers(configs, root=tmp_path)
    assert len(teams) == 2 * 2 * 2
    for team in teams:
        assert team.source.method != "empty"
        assert team.config.benchmark != team.source.benchmark
        assert team.config.start_libraries == run_folder(team.source, root=tmp_path) / "libraries"
        assert team.config.model_copy(update={"start_libraries": None}) in configs
        assert (team.config.method, team.config.seed) == ("empty", team.source.seed)
    with pytest.raises(ValueError, match="no run of the method 'empty' on locomo with seed 0"):
        transfer.transfers([c for c in configs if c.benchmark == "hotpotqa"], root=tmp_path)


def test_answers_are_those_to_the_multi_hop_questions_under_the_libraries_of_the_other_task(tmp_path):
    sizes = {"n_train": 4, "n_validation": 2, "n_test": 8, "iterations": 1}
    configs = [
        load_config("demo", benchmark=name, category=category, method=method, **sizes)
        for name, category in (("hotpotqa", None), ("locomo", "multi_hop"))
        for method in ("empty", "grse")
    ]
    for config in configs:
        train(config, root=tmp_path)
    teams = transfer.transfers(configs, root=tmp_path)
    for team in teams:
        train(team.config, root=tmp_path)
        for agent in ("agent_1", "agent_2"):
            libraries = [run_folder(c, root=tmp_path) / "libraries" / agent for c in (team.source, team.config)]
            first, second = ({p.name for p in folder.iterdir()} for folder in libraries)
            assert first == second
    taken = transfer.transferred_skills(teams, root=tmp_path)
    assert set(taken["benchmark"]) <= {"learned on HotpotQA", "learned on LoCoMo"}
    answers = transfer.transfer_answers(configs, teams, root=tmp_path)
    assert set(zip(answers["benchmark"], answers["category"], strict=True)) == {
        ("hotpotqa", "bridge"),
        ("locomo", "multi_hop"),
    }
    assert set(answers["method"]) == {transfer.EMPTY, transfer.TRANSFERRED, transfer.IN_DOMAIN}
    own = predictions([c for c in configs if c.method == "grse"], root=tmp_path)
    expected = own[own["category"].isin(["bridge", "multi_hop"])]["answer"].tolist()
    assert answers[answers["method"] == transfer.IN_DOMAIN]["answer"].tolist() == expected


@pytest.fixture
def answers() -> pd.DataFrame:
    """Four questions: 0.2 without skills, 0.4 transferred, 0.5 in-domain, and one answer missing."""
    values = {transfer.EMPTY: 0.2, transfer.TRANSFERRED: 0.4, transfer.IN_DOMAIN: 0.5}
    return pd.DataFrame(
        {
            "learner": learner,
            "method": method,
            "benchmark": "locomo",
            "category": "multi_hop",
            "seed": 0,
            "question_id": f"q{number}",
            "f1": value + 0.1 * (number % 2),
            "error": "gone" if (method, number) == (transfer.IN_DOMAIN, 4) else None,
            "used": {"agent_1": (), "agent_2": ("spans",) if number else ()},
        }
        for learner in ("maskills", "grse")
        for method, value in values.items()
        for number in range(5)
    )


def test_means_and_differences_by_hand(answers):
    rng = np.random.default_rng(0)
    means = transfer.transfer_means(answers, rng=rng).set_index(["learner", "method"])
    assert means.loc[("grse", transfer.EMPTY), "mean"] == pytest.approx(24)  # 3 x 0.2 and 2 x 0.3
    assert means.loc[("grse", transfer.IN_DOMAIN), "n_missing"] == 1
    table = transfer.transfer_differences(answers, rng=rng)
    values = {(row["learner"], row["comparison"]): row["difference"] for row in rows(table)}
    assert values["grse", "transferred minus no skills"] == pytest.approx(20)
    assert values["grse", "in-domain minus transferred"] == pytest.approx(10)
    shown = transfer.differences_table(table).set_index(["method", "F1 of"])
    assert shown.loc[("GRSE", "transferred minus no skills"), "reported"] == "+1.3 or +1.8"
    assert shown.loc[("GRSE", "in-domain minus transferred"), "reported"] == "+1.9 or +1.2"
    assert pd.isna(shown.loc[("MASkills", "transferred minus no skills"), "reported"])
    assert shown.loc[("GRSE", "in-domain minus transferred"), "missing"] == 1
    wide = transfer.means_table(transfer.transfer_means(answers, rng=rng)).set_index("method")
    assert wide.loc["GRSE", transfer.EMPTY].startswith("24.0 [")
    assert wide.loc["GRSE", "missing"] == 1
    assert wide.loc["GRSE", transfer.EMPTY] == wide.loc["MASkills", transfer.EMPTY]
    assert set(wide["benchmark"]) == {"target: LoCoMo"}


def test_recorded_use_is_a_share_of_the_answers_that_are_there(answers):
    use = transfer.recorded_use(answers).set_index(["learner", "method", "agent"])
    assert use.loc[("grse", transfer.TRANSFERRED, "agent_2"), "share"] == 80
    assert use.loc[("grse", transfer.IN_DOMAIN, "agent_2"), "share"] == 75  # of four
    assert use.loc[("grse", transfer.TRANSFERRED, "agent_1"), "share"] == 0
    table = transfer.use_table(use.reset_index()).set_index("method")
    assert table.loc["GRSE", "transferred, agent 2 [%]"] == 80
