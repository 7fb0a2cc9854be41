"""Frames behind the main results, and the views of one iteration."""

import pandas as pd
import toy

from skill_evolution.analysis import gallery, results, views
from skill_evolution.benchmarks.base import DataIssue
from skill_evolution.gate import GateOutcome, GateResult, Score
from skill_evolution.operators import Change
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


def test_figures_are_redrawn_byte_for_byte_from_their_tables(tmp_path):
    curves = pd.DataFrame(
        [{**RUN, "benchmark": "LoCoMo", "method": "GRSE", "iteration": i, "value": 10.0 * i} for i in (0, 1)]
    )
    gallery.save_table(curves, tmp_path, "01_validation", made_with="simulated reader")
    gallery.draw("01_validation", tmp_path)
    files = sorted((tmp_path / "figures").iterdir())
    before = {path.name: path.read_bytes() for path in files}
    for path in files:
        path.unlink()
    assert "01_validation" in gallery.redraw(tmp_path)
    assert {path.name: path.read_bytes() for path in sorted((tmp_path / "figures").iterdir())} == before
