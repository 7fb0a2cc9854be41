"""One question before and after training: found, replayed from the ledgers, shown."""

import pandas as pd
import pytest
from toy import skill

from skill_evolution.analysis import cases, learned
from skill_evolution.runs.config import load_config
from skill_evolution.runs.experiments import predictions, train
from skill_evolution.runs.folder import RunError, run_folder
from skill_evolution.skills import EditRecord


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The simulated reader, small: a team without skills and a trained one."""
    root = tmp_path_factory.mktemp("runs")
    sizes = {"n_train": 12, "n_validation": 4, "n_test": 30, "iterations": 1}
    configs = [
        load_config("demo", benchmark="locomo", category="single_hop", method=method, **sizes)
        for method in ("empty", "grse")
    ]
    for config in configs:
        train(config, root=root)
    return root, configs, learned.transitions(predictions(configs, root=root))


def test_a_case_is_replayed_as_it_was(runs):
    root, configs, pairs = runs
    for question in pairs["question_id"][:5]:
        row = cases.find_case(pairs, question_id=question)
        case = cases.open_case(row, configs, root=root)
        assert case.question.id == question
        for side, column in ((case.before, "answer_before"), (case.after, "answer")):
            assert side.execution.answer == (None if pd.isna(row[column]) else row[column])
        assert case.before.execution.steps[-1].kind == "answer"
        assert (case.after.f1 >= 0.5) == (row["after"] == "correct")


def test_nothing_new_is_asked(runs, tmp_path):
    root, configs, pairs = runs
    row = cases.find_case(pairs, question_id=pairs["question_id"][0])
    with pytest.raises(RunError, match=r"calls\.sqlite: there is no such ledger"):
        cases.open_case(row, configs, root=tmp_path)
    other = load_config("demo", **configs[1].model_dump(exclude={"profile", "seed"}), seed=7)
    path = run_folder(other, root=tmp_path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(run_folder(configs[1], root=root))
    run_folder(configs[0].model_copy(update={"seed": 7}), root=tmp_path).symlink_to(run_folder(configs[0], root=root))
    with pytest.raises(RunError, match=r"test/seed7/.* is not in the run's ledger"):
        cases.open_case({**row, "seed": 7}, [configs[0].model_copy(update={"seed": 7}), other], root=tmp_path)
    with pytest.raises(ValueError, match="no config of empty"):
        cases.open_case(row, configs[1:], root=root)


def test_the_case_shows_both_sides_and_marks_gold_evidence(runs):
    root, configs, pairs = runs
    case = cases.open_case(cases.find_case(pairs, question_id=pairs["question_id"][0]), configs, root=root)
    page = cases.show_case(case, made_with="simulated reader").data
    assert page is not None
    assert "no skills" in page
    assert "GRSE" in page
    assert "simulated reader" in page
    assert cases._marked("see [D1:2] & [D1:20]", case.question).count("&amp;") == 1


def pairs_of(*rows) -> pd.DataFrame:
    columns = ["question_id", "method", "benchmark", "before", "after", "error"]
    return pd.DataFrame([dict(zip(columns, row, strict=True)) for row in rows])


def test_the_first_question_that_became_correct_is_taken():
    pairs = pairs_of(
        ("a", "grse", "locomo", "correct", "correct", None),
        ("b", "maskills", "locomo", "declined", "correct", None),
        ("c", "grse", "hotpotqa", "wrong", "correct", None),
        ("d", "grse", "locomo", "declined", "correct", None),
    )
    assert cases.find_case(pairs)["question_id"] == "c"
    assert cases.find_case(pairs, benchmark="locomo")["question_id"] == "d"
    assert cases.find_case(pairs, question_id="a")["question_id"] == "a"
    assert cases.find_case(pairs.iloc[:1])["question_id"] == "a"  # none became correct
    with pytest.raises(ValueError, match="no question z of grse on locomo; there are: a, d"):
        cases.find_case(pairs, benchmark="locomo", question_id="z")
    with pytest.raises(ValueError, match="no question at all of maskills on hotpotqa; there are: none"):
        cases.find_case(pairs, method="maskills", benchmark="hotpotqa")


def test_changed_skills_are_those_recorded_as_used(runs):
    root, configs, pairs = runs
    case = cases.open_case(cases.find_case(pairs, question_id=pairs["question_id"][0]), configs, root=root)
    record = EditRecord("induce", 1, ("q",), "", "text")
    library = case.after.libraries["agent_1"]
    for old in library:
        library = library.without(old.name)
    for name in ("near", "far"):
        library = library.with_skill(skill(name, history=(record,)))
    libraries = {**case.after.libraries, "agent_1": library}
    empty = {"agent_1": (), "agent_2": ()}
    for used, expected in (({**empty, "agent_1": ("far",)}, {"far"}), (empty, {"near", "far"})):
        after = cases.Side("grse", libraries, _with_use(case.after.execution, used), 1.0)
        changes = cases.changed_skills(cases.Case(case.question, case.before, after))
        assert {change.skill for change in changes if change.agent == "agent_1"} == expected


def _with_use(execution, used):
    return type(execution)(execution.answer, execution.steps, used)
