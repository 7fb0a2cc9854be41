"""Transitions of answers, rates, growth and the critic's items; expected values by hand."""

import numpy as np
import pandas as pd
import pytest

from skill_evolution.analysis import learned
from skill_evolution.analysis.frames import rows


def answer(question: str, f1: float, *, method: str = "grse", evidence: tuple = ("D1:1",), **fields) -> dict:
    row = {"method": method, "benchmark": "locomo", "trained_on": "temporal", "category": "temporal", "seed": 0}
    row |= {"question_id": question, "question": "When?", "gold": "May", "answer": "May", "declined": False}
    return {**row, "evidence": list(evidence), "error": None, "f1": f1, **fields}


@pytest.fixture
def answers() -> pd.DataFrame:
    declined = {"answer": None, "declined": True}
    return pd.DataFrame(
        [
            answer("a", 0.0, method="empty", evidence=(), **declined),
            answer("b", 0.0, method="empty", evidence=(), **declined),
            answer("c", 1.0, method="empty"),
            answer("d", 0.4, method="empty"),
            answer("e", 1.0, method="empty"),
            answer("a", 0.5),  # declined -> correct, with evidence: F1 of exactly 0.5 is correct
            answer("b", 0.9, evidence=()),  # declined -> correct, without
            answer("c", 0.49),  # broken
            answer("d", 0.5),  # repaired
            answer("e", np.nan, error="the call failed", evidence=(), answer=None),
        ]
    )


def test_states_are_by_declining_and_by_f1_of_a_half(answers):
    assert learned.answer_states(answers)[:5] == ["declined", "declined", "correct", "wrong", "correct"]
    assert learned.answer_states(answers)[5:] == ["correct", "correct", "wrong", "correct", "missing"]


def test_transitions_pair_an_answer_with_the_one_without_skills(answers):
    pairs = learned.transitions(answers).set_index("question_id")
    assert list(pairs["before"]) == ["declined", "declined", "correct", "wrong", "correct"]
    assert list(pairs["after"]) == ["correct", "correct", "wrong", "correct", "missing"]
    assert pd.isna(pairs.loc["a", "answer_before"])
    assert pairs.loc[["e"], list(learned.MEASURES)].isna().to_numpy().all()
    known = pairs.drop("e")
    assert list(known["broken_answers"]) == [0, 0, 1, 0]
    assert list(known["repaired_answers"]) == [1, 1, 0, 1]
    assert list(known["declined_to_correct"]) == [1, 1, 0, 0]
    assert list(known["declined_to_correct_with_evidence"]) == [1, 0, 0, 0]
    assert list(known["declined_to_correct_without_evidence"]) == [0, 1, 0, 0]
    assert list(known["no_cited_evidence_before"]) == [1, 1, 0, 0]
    assert list(known["no_cited_evidence"]) == [0, 1, 0, 0]
    assert list(known["error"].isna()) == [True] * 4
    assert pairs.loc["e", "error"] == "no answer after"


def test_an_answer_that_the_baseline_lacks_is_missing_and_no_transition(answers):
    pairs = learned.transitions(answers.drop(index=2)).set_index("question_id")
    assert pairs.loc["c", "error"] == "no answer before"
    assert 1.0 not in list(pairs["broken_answers"])


def test_transitions_need_the_baseline(answers):
    with pytest.raises(ValueError, match=r"no answers of 'empty'.*grse"):
        learned.transitions(answers[answers["method"] == "grse"])


def test_counts_leave_out_the_missing_and_name_how_many(answers):
    pairs = learned.transitions(answers)
    table = learned.transition_counts(pairs)
    assert len(table) == 9
    assert dict(zip(zip(table["before"], table["after"], strict=True), table["count"], strict=True)) == {
        (before, after): {("declined", "correct"): 2, ("correct", "wrong"): 1, ("wrong", "correct"): 1}.get(
            (before, after), 0
        )
        for before in learned.STATES
        for after in learned.STATES
    }
    assert table.set_index(["before", "after"]).loc[("declined", "correct"), "share"] == 50
    counts = learned.measure_counts(pairs).set_index(["category", "metric"])
    broken = counts.loc[("all", "broken_answers")]
    assert (broken["count"], broken["n"], broken["n_missing"], broken["share"]) == (1, 4, 1, 25)


def test_overview_has_the_papers_figures_beside_ours(answers):
    table = learned.overview(learned.measure_counts(learned.transitions(answers))).set_index("measure")
    broken = table.loc["broken: correct before, not correct after"]
    assert broken["grse"] == "1 (25.0 %)"
    assert broken["GRSE, reported"] == "-3.1 (Gemma-4-31B-it)"
    assert table.loc["no evidence cited after", "GRSE, reported"] == "14 % (Gemma-4-31B-it)"
    assert table.loc["– of these, with cited evidence", "GRSE, reported"] == "56 (Gemma-4-31B-it)"
    assert table.loc["answers missing", "grse"] == "1 of 5"


def test_categories_stand_in_rows_with_the_untrained_team_once(answers):
    table = learned.by_category(learned.measure_counts(learned.transitions(answers)))
    assert list(table["category"]) == ["temporal", "all"]
    assert list(table.columns) == [
        "benchmark", "category", "questions", "broken, GRSE", "declined → correct, GRSE", "no evidence before",
        "no evidence, GRSE",
    ]  # fmt: skip
    assert table.loc[0, "no evidence before"] == "2 (50 %)"


def test_rates_have_the_difference_of_the_two_methods_on_the_same_questions(answers):
    other = answers[answers["method"] == "grse"].assign(method="maskills", f1=0.0)  # breaks c, repairs nothing
    pairs = learned.transitions(pd.concat([answers, other]))
    rates = learned.rates(pairs, rng=np.random.default_rng(0))
    values = {(row["method"], row["metric"]): row["value"] for row in rows(rates)}
    assert values["grse", "repaired_answers"] == 75
    assert values["maskills", "repaired_answers"] == 0
    assert values[learned.DIFFERENCE, "repaired_answers"] == 75
    table = learned.rates_table(rates).set_index("measure")
    row = table.loc["repaired: not correct before, correct after"]
    assert row[learned.DIFFERENCE].startswith("+75.0 [")
    assert row["missing"] == 2
    assert 0 < row["p_value"] <= 1
    alone = learned.rates(learned.transitions(answers), rng=np.random.default_rng(0))
    assert set(alone["method"]) == {"grse"}


@pytest.fixture
def iterations() -> pd.DataFrame:
    run = {"benchmark": "locomo", "trained_on": "temporal", "method": "grse", "seed": 0}
    return pd.DataFrame(
        [
            {**run, "iteration": 1, "skills": {"agent_1": 1, "agent_2": 0}, "critic_accepted": 6}
            | {"critic_rejected": {"quotation": 2}},
            {
                **run,
                "iteration": 2,
                "skills": {"agent_1": 2, "agent_2": 1},
                "critic_accepted": 2,
                "critic_rejected": {},
            },
        ]
    )


def test_growth_starts_at_no_skills(iterations):
    sizes = learned.library_growth(iterations)
    assert sizes[sizes["agent"] == "agent_1"].set_index("iteration")["value"].to_dict() == {0: 0, 1: 1, 2: 2}
    assert sizes[sizes["agent"] == "agent_2"].set_index("iteration")["value"].to_dict() == {0: 0, 1: 0, 2: 1}


def test_critics_items_by_reason_with_their_share(iterations):
    items = learned.critic_items(iterations)
    assert [(row["outcome"], row["count"], row["share"]) for row in rows(items)] == [
        ("accepted", 8, 80.0),
        ("quotation", 2, 20.0),
    ]
    other = items.iloc[:1].assign(method="maskills", share=100.0)
    table = learned.critic_table(pd.concat([items, other])).set_index("outcome")
    assert table.loc["accepted"].to_dict() == {"benchmark": "locomo", "grse": "8 (80.0 %)", "maskills": "8 (100.0 %)"}
    assert table.loc["quotation", "maskills"] == "0"
