"""The batch runner with SAGE's notebooks: their profile and overrides are SageConfig's, and no model is served."""

from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from skill_evolution.base.paths import NOTEBOOKS
from skill_evolution.runs import notebooks

OWN = ["profile", "overrides", "seed"]


def test_a_notebook_is_sages_by_its_name() -> None:
    assert [path.stem for path in sorted(NOTEBOOKS.glob("*.ipynb")) if notebooks.is_sage(path.stem)] == [
        "07_sage_training",
        "08_sage_ablations",
    ]
    assert not notebooks.is_sage("03_message")


def test_parameters_go_by_the_configuration_of_each_notebook() -> None:
    """By hand: `grpo` is SageConfig's alone, `group_size` Config's alone, `seed` both notebooks' own parameter."""
    declared = {"01_main": OWN, "07_sage": OWN}
    values = {"seed": 2, "group_size": 3, "grpo": {"steps": 5}}
    assert notebooks.assign_parameters(declared, values, profile="demo") == {
        "01_main": {"profile": "demo", "seed": 2, "overrides": {"group_size": 3}},
        "07_sage": {"profile": "demo", "seed": 2, "overrides": {"grpo": {"steps": 5}}},
    }


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"gropo": {}}, "parameters of 07_sage or SageConfig.*did you mean 'grpo'"),
        ({"grpo": {"stesp": 5}}, "did you mean 'steps'"),
        ({"grpo": {"steps": 0}}, "grpo.steps"),
        ({"overrides": {"group_size": 2}}, "group_size"),
    ],
)
def test_a_wrong_override_is_refused_before_anything_runs(values: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        notebooks.assign_parameters({"07_sage": OWN}, values, profile="demo")


@pytest.mark.parametrize("profile", ["cpu", "paper"])
def test_nothing_is_served_for_a_sage_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str) -> None:
    source = 'profile: str = "demo"\noverrides: dict = {}'
    cells = [new_code_cell(source, metadata={"tags": ["parameters"]})]
    nbformat.write(new_notebook(cells=cells), tmp_path / "07_sage.ipynb")
    monkeypatch.setattr(notebooks, "execute", lambda *job: None)
    monkeypatch.setattr("skill_evolution.models.serve.ensure", lambda model: pytest.fail(f"{model} was started"))
    outcomes = notebooks.run_notebooks(profile=profile, results=tmp_path / "results", folder=tmp_path)
    assert [outcome.error for outcome in outcomes] == [None]


def test_a_profile_that_only_sage_has_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = 'profile: str = "demo"\noverrides: dict = {}'
    cells = [new_code_cell(source, metadata={"tags": ["parameters"]})]
    nbformat.write(new_notebook(cells=cells), tmp_path / "07_sage.ipynb")
    (tmp_path / "own.yaml").write_text("grpo:\n  steps: 3\n", encoding="utf-8")
    monkeypatch.setattr(notebooks, "execute", lambda *job: None)
    outcomes = notebooks.run_notebooks(profile=str(tmp_path / "own.yaml"), results=tmp_path, folder=tmp_path)
    assert outcomes[0].output == tmp_path / "own" / "07_sage.ipynb"


FEW = {
    "sft": {"steps": 4, "attempts": 1, "evaluate_every": None, "target_tgc": None},
    "grpo": {"steps": 1, "scenarios": 2, "group": 2, "evaluate_every": None},
    "agent": {"turns": 6, "tokens_per_turn": 72},
}


@pytest.mark.parametrize("name", ["07_sage_training", pytest.param("08_sage_ablations", marks=pytest.mark.slow)])
def test_the_notebook_runs_with_a_few_steps(tmp_path: Path, name: str) -> None:
    parameters = {"overrides": FEW, "scenarios": 1, "light": None}
    (outcome,) = notebooks.run_notebooks([name], profile="demo", parameters=parameters, results=tmp_path)
    assert outcome.error is None
    cells = nbformat.read(outcome.output, as_version=4).cells
    assert all(cell.execution_count for cell in cells if cell.cell_type == "code")
