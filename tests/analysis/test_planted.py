"""Planted libraries: the bundled ones, how planted skills are followed, their signs; expectations computed by hand."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from skill_evolution.analysis import planted_outcomes, planted_signs, robustness
from skill_evolution.analysis.frames import rows, where
from skill_evolution.analysis.reported import load_reported
from skill_evolution.base import paths
from skill_evolution.runs.experiments import predictions, train_all
from skill_evolution.runs.folder import run_folder, write_json, write_jsonl
from skill_evolution.skills import EditRecord, Skill, SkillLibrary, load_library, save_library
from skill_evolution.testbed.reader.directives import recognise

LIBRARIES = {name: paths.PLANTED / "locomo" / name for name in (robustness.START, robustness.HELPFUL)}


# The paper's figures


def test_what_else_the_paper_reports_is_listed_with_its_source():
    table = robustness.other_reported(load_reported("grse_robustness"))
    assert table["value"].tolist() == ["5", "6", "453", "-0.19", "-0.07", "3", "7"]  # 5.3 and App. C
    assert table.iloc[2].tolist()[:4] == ["single-hop", "test questions", "453", "GRSE App. C"]
    assert table["note"].isna().tolist() == [False, False, True, True, True, True, False]


# The bundled libraries


def test_one_helpful_skill_an_agent_two_others_and_a_free_slot():
    """Paper C: three skills an agent, one helpful, the cap of 4 leaves one slot; five of the six have a sign."""
    truth = robustness.load_truth()
    assert truth["agent"].value_counts().to_dict() == {"agent_1": 3, "agent_2": 3}
    assert truth.query("truth == 'helpful'")["agent"].tolist() == ["agent_1", "agent_2"]
    assert len(truth.query("truth != 'irrelevant'")) == 5
    config = robustness.planted_grid(seeds=[0])["grse"][0]
    assert config.library_cap == 4


def test_each_text_asks_for_one_thing_and_the_names_and_descriptions_for_none():
    for agent in ("agent_1", "agent_2"):
        for skill in load_library(LIBRARIES["perturbed"] / agent, agent):
            assert len(recognise(skill.body)) == 1
            assert not recognise(f"{skill.name.replace('-', ' ')}. {skill.description}")


def test_the_helpful_library_holds_the_same_texts():
    for agent in ("agent_1", "agent_2"):
        planted = load_library(LIBRARIES["perturbed"] / agent, agent)
        for skill in load_library(LIBRARIES["helpful_only"] / agent, agent):
            assert planted.get(skill.name) == skill


@pytest.mark.parametrize(
    ("row", "message"),
    [("agent_1,turn-context,good", "truth 'good'"), ("agent_2,unheard-of,harmful", "agent_2/unheard-of must stand")],
)
def test_a_truth_that_does_not_fit_is_refused(tmp_path: Path, row: str, message: str):
    folder = tmp_path / "planted"
    shutil.copytree(paths.PLANTED, folder)
    with (folder / "truth.csv").open("a", encoding="utf-8") as file:
        file.write(row + "\n")
    with pytest.raises(ValueError, match=message):
        robustness.load_truth(folder)


def test_the_grid_differs_by_method_and_library_only():
    grid = robustness.planted_grid(seeds=[3, 4], methods=["grse", "maskills"])
    assert {name: len(configs) for name, configs in grid.items()} == {
        "perturbed": 1, "helpful_only": 1, "grse": 2, "maskills": 2,
    }  # fmt: skip
    assert {c.test_every_iteration for c in grid["grse"] + grid["maskills"]} == {True}
    assert {c.start_libraries for name in ("perturbed", "grse", "maskills") for c in grid[name]} == {
        LIBRARIES["perturbed"]
    }
    grid = robustness.planted_grid(seeds=[3, 4], helpful_seeds=[3], methods=["grse"])
    (clean,) = grid["grse from helpful_only"]
    assert clean.start_libraries == LIBRARIES["helpful_only"]
    same = {"start_libraries": grid["grse"][0].start_libraries, "test_every_iteration": True}
    assert clean.model_copy(update=same) == grid["grse"][0]
    sampled = robustness.planted_grid(seeds=[3, 4], overrides={"test_sampling": {"temperature": 1}})
    assert [c.seed for c in sampled["perturbed"]] == [3, 4]


# Following skills through a run that is written by hand


def skill(name: str, body: str = "Look.", **fields: Any) -> Skill:
    return Skill(name=name, description="Use it.", body=body, **{"id": name, **fields})


def credit(name: str, value: float | None, question: str = "q1") -> dict[str, Any]:
    return {"question": question, "agent": "agent_1", "skill": name, "value": value, "contribution": "neutral"}


def written(root: Path, planted: SkillLibrary, steps: list[tuple[list[Any], list[Any], SkillLibrary]]) -> Any:
    """A run from hand-written iterations: credits, edits as (operator, skill), and the library at the end."""
    start = root / "start"
    for agent in ("agent_1", "agent_2"):
        save_library(planted if agent == "agent_1" else SkillLibrary(agent), start / agent)
    grid = robustness.planted_grid(seeds=[0], overrides={"iterations": len(steps)})
    config = grid["grse"][0].model_copy(update={"start_libraries": start})
    folder = run_folder(config, root=root)
    for number, (credits, edits, library) in enumerate(steps, start=1):
        place = folder / "iterations" / str(number)
        write_jsonl(place / "feedback.jsonl", [{"credits": credits}])
        record = EditRecord("x", number, (), "", "")
        changes = [{"agent": "agent_1", "operator": o, "skill": s, "record": record} for o, s in edits]
        write_jsonl(place / "edits.jsonl", changes)
        for agent in ("agent_1", "agent_2"):
            save_library(library if agent == "agent_1" else SkillLibrary(agent), place / "libraries" / agent)
    for agent in ("agent_1", "agent_2"):
        (folder / "libraries" / agent).mkdir(parents=True)
    write_json(folder / "summary.json", {})
    return config


def test_utility_fate_and_sign_of_a_repaired_a_pruned_a_merged_and_a_kept_skill(tmp_path: Path):
    """Utility by hand: u <- 0.6 u + 0.4 mean credit, and the iteration that removes a skill counts."""
    planted = SkillLibrary("agent_1", tuple(skill(name) for name in ("keep", "mend", "merge", "prune")))
    after = SkillLibrary(
        "agent_1",
        (
            skill("keep", utility=0.2), skill("mend", "Look well.", utility=-0.4), skill("prune", utility=0.0),
            skill("joint", id="new"),
        ),
    )  # fmt: skip
    end = SkillLibrary("agent_1", (skill("keep", utility=0.2), skill("mend", "Look well.", utility=0.16)))
    first = [credit("keep", 1.0), credit("keep", 0.0, "q2"), credit("mend", -1.0), credit("merge", -0.5)]
    config = written(
        tmp_path,
        planted,
        [
            (first, [("refine", "mend"), ("consolidate", "joint")], after),
            ([credit("mend", 1.0), credit("prune", -0.75), credit("keep", None)], [("prune", "prune")], end),
        ],
    )
    truth = pd.DataFrame(
        [("agent_1", name, kind) for name, kind in
         [("keep", "helpful"), ("mend", "harmful"), ("merge", "harmful"), ("prune", "harmful")]],
        columns=["agent", "skill", "truth"],
    )  # fmt: skip
    followed = robustness.follow([config], truth, root=tmp_path)
    table = {(r["skill"], r["iteration"]): (round(r["utility"], 6), r["as_planted"], r["fate"]) for r in rows(followed)}
    assert table == {
        ("keep", 1): (0.2, True, "kept"),
        ("keep", 2): (0.2, True, "kept"),
        ("mend", 1): (-0.4, True, "repaired"),
        ("mend", 2): (0.16, False, "repaired"),
        ("merge", 1): (-0.2, True, "merged"),
        ("prune", 1): (0.0, True, "kept"),
        ("prune", 2): (-0.3, True, "pruned"),
    }
    signs = planted_signs.signs(followed)
    right = {
        reading: dict(zip(part["skill"], part["right"], strict=True)) for reading, part in signs.groupby("reading")
    }
    assert right["as planted"] == {"keep": True, "mend": True, "merge": True, "prune": True}
    assert right["iteration 1"] == {"keep": True, "mend": True, "merge": True, "prune": False}  # never credited yet
    assert right["at the end"] == {"keep": True, "mend": False, "merge": True, "prune": True}
    fates = planted_signs.fate_table(followed).set_index("skill")
    assert fates.loc["mend", ["GRSE: kept", "GRSE: repaired", "GRSE: merged", "GRSE: pruned"]].tolist() == [0, 1, 0, 0]
    curves = planted_signs.utility_curves(followed).set_index(["skill", "iteration"])
    assert ("mend", 2) not in curves.index
    assert curves.loc[("prune", 2), "n"] == 1


def test_a_skill_that_was_not_planted_is_named(tmp_path: Path):
    library = SkillLibrary("agent_1", (skill("keep"),))
    config = written(tmp_path, library, [([], [], library)])
    truth = pd.DataFrame([("agent_1", "other", "helpful")], columns=["agent", "skill", "truth"])
    with pytest.raises(ValueError, match="agent_1 has no skill 'other'"):
        robustness.follow([config], truth, root=tmp_path)


def followed_signs(*rights: tuple[bool, bool]) -> pd.DataFrame:
    """Signs of a helpful and a harmful skill in so many runs."""
    return pd.DataFrame(
        [
            {"method": "grse", "seed": seed, "agent": "agent_1", "skill": name, "truth": kind, "reading": reading,
             "right": right}
            for reading in planted_signs.READINGS
            for seed, run in enumerate(rights)
            for (name, kind), right in zip([("a", "helpful"), ("b", "harmful")], run, strict=True)
        ]
    )  # fmt: skip


def test_all_signs_of_a_run_have_to_be_right():
    rates = planted_signs.sign_rates(followed_signs((True, True), (True, False), (True, True), (False, True)))
    rates = rates.query("reading == 'as planted'").set_index("skill")
    assert rates["mean"].to_dict() == {"a": 75.0, "b": 75.0, planted_signs.ALL_SIGNS: 50.0}
    assert rates["n"].unique().tolist() == [4]
    table = planted_signs.right_signs(followed_signs((True, True), (True, False)), load_reported("grse_robustness"))
    assert table.to_dict("records") == [
        {"method": "GRSE", "as planted, of 2": 1.5, "iteration 1, of 2": 1.5, "at the end, of 2": 1.5, "runs": 2,
         "reported": "5 of 5 (one run)"}
    ]  # fmt: skip


def test_the_interval_is_the_exact_binomial_one():
    """20 of 20: the lower end is 0.025 ** (1 / 20) = 83.16 %."""
    assert planted_signs.share([True] * 20) == pytest.approx(
        {"mean": 100, "low": 83.157, "high": 100, "n": 20}, abs=1e-3
    )


def test_the_papers_utilities_stand_beside_our_guard_only():
    truth = robustness.load_truth()
    reported = planted_signs.reported_utility(load_reported("grse_robustness"), truth)
    assert reported.values.tolist() == [["evidence-standard", 1, -0.19], ["evidence-standard", 2, -0.07]]
    other = where(truth, truth["skill"] != planted_signs.GUARD)
    assert planted_signs.reported_utility(load_reported("grse_robustness"), other).empty


@pytest.mark.parametrize(("end", "came_out"), [(41.0, "yes"), (39.9, "no, below"), (50.1, "no, above")])
def test_what_we_set_out_to_show_can_fail_either_way(end: float, came_out: str):
    means = pd.DataFrame(
        [("helpful_only", "f1", 45.0, 40.0, 50.0), ("grse from helpful_only", "f1", 55.0, 50.05, 60.0),
         ("grse", "f1", end, end - 5, end + 5)],
        columns=["method", "metric", "mean", "low", "high"],
    )  # fmt: skip
    rates = planted_signs.sign_rates(followed_signs(*[(True, True)] * 8, (True, False), (True, True)))
    claims = planted_outcomes.claims(rates, means)
    clean = "yes" if end > 50.05 else "no, below"
    assert claims["came out"].tolist() == ["yes", came_out, clean]  # 9 of 10 is 90 %
    assert claims["wanted"].tolist()[2] == "F1 at the end in 50.0 to 60.0 (GRSE from the helpful skills)"
    without = means.query("method != 'grse from helpful_only'")
    assert planted_outcomes.claims(rates, without)["came out"].tolist() == ["yes", came_out]


def answered(**f1: tuple[float, float]) -> pd.DataFrame:
    """Two answers a team, F1 as given."""
    return pd.DataFrame(
        [
            {"method": method.replace("_from_", " from "), "benchmark": "locomo", "category": "single_hop", "seed": 0,
             "question_id": question, "error": None, "f1": value}
            for method, values in f1.items()
            for question, value in enumerate(values)
        ]
    )  # fmt: skip


def test_a_method_is_held_against_itself_from_the_helpful_skills():
    teams = {
        "perturbed": (0.0, 0.2),
        "helpful_only": (0.4, 0.4),
        "grse": (0.6, 0.4),
        "grse_from_helpful_only": (0.5, 0.9),
    }
    answers = answered(**teams)
    reported = load_reported("grse_robustness")
    found = planted_outcomes.end_differences(answers, rng=np.random.default_rng(0), reported=reported)
    points = {(r["method"], r["minus"]): round(r["points"], 6) for r in rows(found)}
    assert points == {
        ("helpful skills only", "perturbed start"): 30.0,
        ("GRSE", "perturbed start"): 40.0,
        ("GRSE", "helpful skills only"): 10.0,
        ("GRSE", "GRSE from the helpful skills"): -20.0,
    }


def test_the_assumptions_read_as_measured():
    table = planted_outcomes.assumptions_table(robustness.load_assumptions())
    assert len(table.drop_duplicates(["method", "runs compared", "blame by wording"])) == len(table) == 6
    assert set(table["method"]) == {"GRSE", "MASkills"}


# A whole run


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    sizes = {"n_train": 12, "n_validation": 4, "n_test": 8, "iterations": 2}
    grid = robustness.planted_grid(seeds=[0], overrides=sizes)
    root = tmp_path_factory.mktemp("runs")
    train_all([config for configs in grid.values() for config in configs], processes=1, root=root)
    return grid, root


def test_a_followed_utility_is_the_one_in_the_library(trained: tuple[Any, Path]):
    grid, root = trained
    for method in ("grse", "maskills"):
        followed = robustness.follow(grid[method], robustness.load_truth(), root=root)
        folder = run_folder(grid[method][0], root=root)
        compared = 0
        for row in rows(followed.query("fate in ['kept', 'repaired']")):
            library = load_library(folder / "iterations" / str(row["iteration"]) / "libraries" / row["agent"], "x")
            kept = library.get(row["skill"])
            assert kept is not None
            assert kept.utility == pytest.approx(row["utility"])
            compared += 1
        assert compared >= 6


def test_answers_after_the_last_iteration_are_the_final_ones_and_the_start_is_iteration_0(trained: tuple[Any, Path]):
    grid, root = trained
    by_iteration = robustness.answers_by_iteration(grid["grse"], root=root)
    last = by_iteration[by_iteration["iteration"] == 2]
    assert last["f1"].tolist() == predictions(grid["grse"], root=root)["f1"].tolist()
    answers = robustness.final_answers(grid, root=root)
    assert answers["method"].unique().tolist() == ["perturbed", "helpful_only", "maskills", "grse"]
    start = where(answers, answers["method"] == "perturbed")
    curves = planted_outcomes.f1_curves(start, by_iteration, rng=np.random.default_rng(0))
    assert curves["iteration"].tolist() == [0, 1, 2]
    assert curves["mean"].iloc[0] == pytest.approx(100 * start["f1"].mean())
