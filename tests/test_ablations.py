"""Ablations: resolved configs and calls made differ by exactly the switch named; tables and sweeps by hand."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from skill_evolution.analysis import ablations, gallery, sweeps
from skill_evolution.config import Config, ConfigError
from skill_evolution.experiments import iterations, main_grid, train
from skill_evolution.runs import run_folder

SMALL = {"n_train": 12, "n_validation": 4, "n_test": 8, "iterations": 1}
VARIANTS = list(ablations.VARIANTS)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_differs_from_the_full_method_by_exactly_its_switch(name: str):
    grid = ablations.ablation_grid(variants=[name], seeds=[0, 7])
    full = {(c.category, c.seed): c for c in grid["grse"]}
    for config in grid[name]:
        changed = ablations.switches(full[config.category, config.seed], config)
        assert {field: after for field, (_, after) in changed.items()} == dict(ablations.VARIANTS[name])


def test_the_full_methods_configs_are_those_of_the_main_results():
    options = {"seeds": [0, 1], "overrides": {"iterations": 2}}
    main = [c for c in main_grid(methods=["grse"], **options) if c.benchmark == "locomo"]
    assert ablations.ablation_grid(**options)["grse"] == main


def test_variants_are_trained_by_category_and_label_conditioning_on_all_of_them():
    grid = ablations.ablation_grid(seeds=[0])
    by_category = ["multi_hop", "temporal", "open_domain", "single_hop"]
    assert [c.category for c in grid["grse"]] == [*by_category, None]
    assert {name: [c.category for c in grid[name]] for name in VARIANTS} == {
        **dict.fromkeys(VARIANTS[:3], by_category), "label_conditioned": [None],
    }  # fmt: skip
    table = ablations.switch_table(grid).set_index("method")
    assert table.loc["single_rollout", ["changed", "full method", "variant", "runs"]].tolist() == [
        "group_size", "4", "1", 4,
    ]  # fmt: skip
    assert table["changed"].to_dict() == {
        "no_structured_diagnosis": "structured_diagnosis", "single_rollout": "group_size",
        "drop_equal_groups": "drop_equal_groups", "label_conditioned": "label_conditioned",
    }  # fmt: skip


def test_an_unknown_variant_is_refused_with_the_nearest_name():
    with pytest.raises(ConfigError, match=r"variants: unknown key 'single_rolout'; did you mean 'single_rollout'"):
        ablations.ablation_grid(variants=["single_rolout"])


# The calls made


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Config], Path]:
    """One small run of the full method and of each variant on all categories."""
    root = tmp_path_factory.mktemp("runs")
    full = next(c for c in main_grid(methods=["grse"], seeds=[0], overrides=SMALL) if c.data_path is c.category is None
                and c.benchmark == "locomo")  # fmt: skip
    configs = {"grse": full}
    for name, switch in ablations.VARIANTS.items():
        configs[name] = Config.model_validate({**full.model_dump(), **switch})
    for config in configs.values():
        train(config, root=root)
    return configs, root


def calls(trained: tuple[dict[str, Config], Path], name: str, stage: str) -> list[dict[str, Any]]:
    """A stage's calls in a variant's ledger: sample_id, key, and the texts of its schema and messages."""
    configs, root = trained
    database = sqlite3.connect(run_folder(configs[name], root=root) / "calls.sqlite")
    texts = dict(database.execute("SELECT hash, text FROM texts"))
    query = "SELECT sample_id, key, schema, messages FROM calls WHERE sample_id LIKE ? ORDER BY sample_id"
    rows = database.execute(query, (f"{stage}/%",)).fetchall()
    database.close()
    return [
        {"sample_id": i, "key": k, "schema": texts.get(s), "said": "\n".join(texts[h] for _, h in json.loads(m))}
        for i, k, s, m in rows
    ]


def rollouts(trained: tuple[dict[str, Config], Path], name: str) -> list[set[str]]:
    """Keys of the rollouts' calls: of all, and of each question's first rollout."""
    found = calls(trained, name, "train")
    return [{c["key"] for c in found}, {c["key"] for c in found if c["sample_id"].split("/")[-3] == "0"}]


@pytest.mark.parametrize("name", ["no_structured_diagnosis", "drop_equal_groups", "label_conditioned"])
def test_what_concerns_the_critic_leaves_the_rollouts_as_they_are(trained, name: str):
    assert rollouts(trained, name) == rollouts(trained, "grse")


def asked_for(critic_calls: list[dict[str, Any]]) -> set[tuple[str, ...]]:
    """The fields of the replies; a group without a failure may have an empty list of diagnoses, others not."""
    return {tuple(json.loads(call["schema"])["properties"]) for call in critic_calls}


def test_one_rollout_is_the_first_of_the_four(trained):
    full, first = rollouts(trained, "grse")
    assert rollouts(trained, "single_rollout") == [first, first]
    assert len(first) < len(full)
    groups = calls(trained, "single_rollout", "critic")
    assert [c["sample_id"] for c in groups] == [c["sample_id"] for c in calls(trained, "grse", "critic")]
    assert asked_for(groups) == asked_for(calls(trained, "grse", "critic"))


def test_without_structured_diagnosis_the_critic_is_asked_for_credits_and_feedback(trained):
    assert asked_for(calls(trained, "grse", "critic")) == {("contrast", "diagnoses", "credits")}
    assert asked_for(calls(trained, "no_structured_diagnosis", "critic")) == {("feedback", "credits")}


def test_without_equal_groups_the_critic_sees_the_others_as_before(trained):
    configs, root = trained
    full, kept = calls(trained, "grse", "critic"), calls(trained, "drop_equal_groups", "critic")
    equal = int(iterations([configs["grse"]], root=root)["equal_groups"].iloc[0])
    assert 0 < equal < SMALL["n_train"] == len(full)
    assert len(kept) == len(full) - equal
    assert {c["key"] for c in kept} < {c["key"] for c in full}


def test_label_conditioning_tells_the_critic_the_category_and_changes_nothing_else_it_is_told(trained):
    full, told = calls(trained, "grse", "critic"), calls(trained, "label_conditioned", "critic")
    assert [c["sample_id"] for c in told] == [c["sample_id"] for c in full]
    for ours, theirs in zip(told, full, strict=True):
        (*system, case), (*same, plain) = ours["said"].splitlines(), theirs["said"].splitlines()
        conditioned = json.loads(case)
        assert (system, {k: v for k, v in conditioned.items() if k != "category"}) == (same, json.loads(plain))
        assert "category" in conditioned


def test_training_is_described_by_kind_of_library(trained):
    configs, root = trained
    table = ablations.training_table({name: [config] for name, config in configs.items()}, root=root)
    assert set(table["benchmark"]) == {"one mixed library"}
    rows = table.set_index("method")
    assert rows.loc["single_rollout", "equal groups [%]"] == 100
    assert 0 < rows.loc["grse", "equal groups [%]"] < 100
    one, four = (rows.loc[name, "tokens of training [millions]"] for name in ("single_rollout", "grse"))
    assert one < four


# Tables


def difference(method: str, category: str, value: float, *, reported: float = np.nan) -> dict[str, Any]:
    low, high = (np.nan, np.nan) if value == 0 else (value - 1, value + 1)
    cell = {"benchmark": "LoCoMo", "method": method, "category": category, "metric": "f1", "difference": value}
    return cell | {"low": low, "high": high, "p_value": 0.25, "n": 40, "n_missing": 1, "interval": "95 %",
                   "reported (model not stated)": reported}  # fmt: skip


def test_differences_are_wide_with_the_papers_below():
    rows = [difference("G = 1", "temporal", 0.0), difference("G = 1", "average", -1.5, reported=-0.8)]
    wide = ablations.wide_differences(pd.DataFrame(rows), "f1")
    assert wide["method"].tolist() == ["G = 1", "G = 1 (reported)"]
    assert wide["average"].tolist() == ["-1.5 [-2.5, -0.5]", "-0.8"]
    assert wide.loc[0, ["temporal", "p (average)", "n", "missing"]].tolist() == ["±0", "0.250", "40", "1"]


def test_figure_puts_the_papers_difference_in_its_variants_line(tmp_path: Path):
    own = pd.DataFrame([difference("G = 1", "average", -1.5, reported=-0.8), difference("x", "average", 2.0)])
    mixed = pd.DataFrame([difference("label-conditioned", "average", 1.0)])
    both = ablations.differences_in_one(own, mixed)
    assert both["method"].tolist() == ["G = 1", "x", "label-conditioned (mixed library)"]
    gallery.save_table(both, tmp_path, "05_minus_full", made_with="simulated reader")
    gallery.draw("05_minus_full", tmp_path)
    figure = gallery.DRAWINGS["05_minus_full"].draw(both.assign(made_with="simulated reader"))
    lines = {str(line.get_label()): np.asarray(line.get_xydata()) for line in figure.axes[0].get_lines()}
    crosses = lines["reported by the paper"]
    assert crosses[0].tolist() == [-0.8, lines["G = 1"][0, 1]]


# Sweeps


def test_a_sweep_changes_one_field_and_always_has_the_profiles_value():
    points = sweeps.sweep_grid(
        sweeps={"group_size": [8, 1], "gate_delta": [1.0]}, seeds=[0, 3], overrides=sweeps.fewer(16)
    )
    assert [(p.field, p.value, p.own) for p in points] == [
        ("group_size", 1, False), ("group_size", 4, True), ("group_size", 8, False),
        ("gate_delta", 0.03, True), ("gate_delta", 1.0, False),
    ]  # fmt: skip
    own = points[1].configs
    assert [(c.category, c.seed, c.n_train) for c in own] == [(None, 0, 16), (None, 3, 16)]
    for point in points:
        for config, usual in zip(point.configs, own, strict=True):
            assert set(ablations.switches(usual, config)) == (set() if point.own else {point.field})
    assert len(sweeps.sweep_configs(points)) == 2 + 3 * 2  # the usual one once
    assert sweeps.fewer(None) == {}


def test_sweep_table_compares_with_the_usual_setting_and_is_drawn(trained, tmp_path: Path):
    configs, root = trained
    points = [
        sweeps.SweepPoint("group_size", 1, False, (configs["single_rollout"],)),
        sweeps.SweepPoint("group_size", 4, True, (configs["grse"],)),
    ]
    table = sweeps.sweep_table(points, rng=np.random.default_rng(0), root=root)
    assert table["difference"].tolist()[0] == pytest.approx(table["mean"][0] - table["mean"][1])
    assert np.isnan(table["difference"][1])
    view = sweeps.sweep_view(table)
    assert view["method"].tolist() == ["1", "4 (usual)"]
    assert view["benchmark"].tolist() == ["group size G"] * 2
    gallery.save_table(table, tmp_path, "05_sweeps", made_with="simulated reader")
    gallery.draw("05_sweeps", tmp_path)
    assert (tmp_path / "figures" / "05_sweeps.pdf").is_file()


def test_swept_values_are_shown_as_they_are_meant():
    assert [sweeps.value_text("gate_delta", v) for v in (0.0, 0.03, 1.0)] == ["0", "0.03", "none"]
    assert sweeps.value_text("group_size", 8) == "8"
