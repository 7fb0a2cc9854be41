"""Frames behind the main results, and the views of one iteration."""

import asyncio
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import toy

from skill_evolution.analysis import results, views
from skill_evolution.benchmarks.base import DataIssue
from skill_evolution.grse.gate import GateOutcome, GateResult, Score
from skill_evolution.grse.operators import Change
from skill_evolution.skills import EditRecord

RUN = {"benchmark": "locomo", "trained_on": "all", "method": "grse", "seed": 0}
COUNTS = {
    "critic_accepted": 3,
    "critic_rejected": {"unknown_step": 2},
    "changes": {"induce": 1},
    "changes_refused": {},
    "rollouts": 8,
    "failed_rollouts": 1,
    "problems": {},
}


def iteration(number: int, base: float | None, assembled: float | None) -> dict:
    return {**RUN, **COUNTS, "iteration": number, "validation": {"base": base, "assembled": assembled}}


def test_validation_curves_start_with_the_team_before_any_update():
    curves = results.validation_curves(pd.DataFrame([iteration(1, 0.2, 0.5), iteration(2, 0.5, None)]))
    assert list(curves["iteration"]) == [0, 1, 2]
    assert list(curves["value"][:2]) == [20.0, 50.0]
    assert list(curves["value"].isna()) == [False, False, True]  # nothing finished: missing, not 0


def test_counts_are_summed_by_reason_and_method():
    counts = results.reason_counts(pd.DataFrame([iteration(1, 0, 0), iteration(2, 0, 0)]))
    by_reason = {(row["what"], row["reason"]): row["grse"] for row in counts.to_dict("records")}
    assert by_reason[("critic's items", "unknown_step")] == 4
    assert by_reason[("rollouts", "finished")] == 14
    assert by_reason[("rollouts", "failed")] == 2


def test_usage_keeps_untold_cached_tokens_apart_from_0_and_shows_the_share_of_cut_replies():
    call = {"method": "grse", "stage": "test", "purpose": "actor/a", "prompt_tokens": 5, "completion_tokens": 1}
    usage = pd.DataFrame(
        [
            {**call, "cached_tokens": None, "calls": 3, "cut": 1, "failures": 0},
            {**call, "cached_tokens": None, "calls": 1, "cut": 0, "failures": 2},
        ]
    )
    (row,) = results.usage_table(usage).to_dict("records")
    assert (row["calls"], row["failures"], row["cut [%]"]) == (4, 2, 25.0)
    assert pd.isna(row["cached_tokens"])


def difference(method: str, baseline: str, *, qwen: float = np.nan) -> dict:
    row = {"benchmark": "LoCoMo", "method": method, "baseline": baseline, "category": "multi-hop", "metric": "f1"}
    row |= {"difference": 2.0, "low": 1.0, "high": 3.0, "p_value": 0.5, "n": 4, "n_unpaired": 0, "n_missing": 1}
    return row | {"interval": "95 %", "reported (Gemma)": np.nan, "reported (Qwen)": qwen}


def test_grse_differences_show_reported_figures_only_where_there_are_some():
    ours = [difference("GRSE", "MASkills", qwen=6.7), difference("x", "MASkills"), difference("GRSE", "no skills")]
    table = results.grse_differences(pd.DataFrame(ours[:2]), pd.DataFrame(ours[2:]))
    assert list(table["method"]) == ["minus MASkills", "minus no skills"]
    assert list(table["points"]) == ["+2.0 [+1.0, +3.0]"] * 2
    assert list(table["reported"].fillna("none")) == ["+6.7 (Qwen)", "none"]
    assert list(table["missing"]) == [1, 1]
    assert "reported" not in results.grse_differences(pd.DataFrame(ours[2:]))


def test_a_group_shows_failed_rollouts_with_their_error():
    table = views.group_table(toy.group(1.0, None))
    assert list(table["answer"]) == ["blue", "the call failed"]
    assert list(table["reward"].isna()) == [False, True]


def test_changes_are_escaped_diffs():
    record = EditRecord("refine", 2, ("q1", "q2"), "Use <b>it</b>.\n\nOld.", "Use <b>it</b>.\n\nNew.")
    page = str(views.show_changes([Change("agent_1", "refine", "look", record)]).data)
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
    assert "-Old." in page
    assert "+New." in page
    assert "2 questions" in page


def test_no_text_of_a_skill_is_taken_for_a_formula_and_colours_let_the_page_through():
    record = EditRecord("refine", 2, ("q1",), "Old.", r"grep \[D3:(6|8)\]")
    page = str(views.show_changes([Change("agent_1", "refine", "look", record)]).data)
    assert page.startswith('<div class="mathjax_ignore tex2jax_ignore">')
    assert "background:rgba(" in page
    assert "background:#" not in page


def evolution(*rewards: tuple[float, ...]) -> Any:
    """Stands in for an evolution: its training questions get these rewards, whoever asks."""
    questions = list(range(len(rewards)))

    async def group(number: int, question: int, libraries: Any) -> Any:
        return toy.group(*rewards[question])

    return SimpleNamespace(benchmark=SimpleNamespace(splits={"train": questions}), group=group)


@pytest.mark.parametrize(
    ("rewards", "question", "expected"),
    [
        (((1.0, 1.0), (0.7, 1.0), (0.0, 1.0)), None, [0.0, 1.0]),  # the first with rewards 0.5 apart
        (((1.0, 1.0), (0.7, 1.0), (0.0, 1.0)), 1, [0.7, 1.0]),
        (((1.0, 1.0), (0.0, 0.0)), None, [1.0, 1.0]),  # there is none
    ],
)
def test_the_group_to_follow_is_the_first_with_a_right_and_a_wrong_rollout(rewards, question, expected):
    group = asyncio.run(views.follow_group(evolution(*rewards), {}, question=question))
    assert [t.reward for t in group.trajectories] == expected


def test_the_gate_shows_what_was_needed():
    outcomes = {"agent_1": GateOutcome(True, False, Score(0.4)), "agent_2": GateOutcome(False, False)}
    table = views.gate_table(GateResult(Score(0.5), Score(0.5), outcomes, toy.libraries()), 0.03)
    assert list(table["outcome"])[1:] == ["rejected", "goes on"]
    assert list(table["needed"])[1] == 0.47


def test_data_faults_are_listed_once():
    fault = DataIssue("line 3", "no id", "reported")
    benchmark = toy.benchmark()
    object.__setattr__(benchmark, "issues", (fault, fault))
    assert views.issues_table([benchmark, benchmark]).to_dict("records") == [
        {"benchmark": "toy", "where": "line 3", "problem": "no id", "action": "reported"}
    ]


def test_no_faults_are_a_sentence_and_versions_have_no_row_numbers():
    assert "No fault was found" in str(views.show_issues([toy.benchmark()]).data)
    benchmark = toy.benchmark()
    object.__setattr__(benchmark, "issues", (DataIssue("line 3", "no id", "reported"),))
    assert "Faults found in the data files: 1" in str(views.show_issues([benchmark]).data)
    title, *cells = re.findall(r"<td[^>]*>([^<]*)</td>", str(views.versions().data))
    assert (title, cells[0]) == ("Versions", "python")
    assert "numpy" in cells[0::2]
