"""Wall clock: unions of intervals, phases and list schedules by hand."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_evolution.analysis import wallclock
from skill_evolution.analysis.reported import load_reported
from skill_evolution.analysis.runtime import reported_ranges
from skill_evolution.models.base import Completion, Message, Request, Sampling
from skill_evolution.models.ledger import Ledger, Timing, call_key

SPEED = wallclock.Speed(per_prompt_token=0.5, per_completion_token=2.0)
KEYS = {"task": "HotpotQA", "seed": 0}


def call(sample_id: str, *, started: float = 0, latency: float = 0, size: tuple[int, int] = (0, 0), purpose: str = ""):
    stage = sample_id.split("/")[0]
    return Timing(stage, purpose or stage, sample_id, started, latency, *size)


def test_ledger_tells_calls_in_the_order_in_which_they_ended(tmp_path: Path):
    ledger = Ledger(tmp_path / "calls.sqlite")
    for sample_id, started in (("train/q1/0/a/0", 5.0), ("critic/q1", 3.0)):
        request = Request((Message("system", "s"),), Sampling(), "purpose", sample_id)
        completion = Completion("text", prompt_tokens=7, completion_tokens=3, latency=0.5)
        ledger.record(call_key("model", request), "model", request, completion, started)
    assert ledger.timeline() == [
        Timing("train", "purpose", "train/q1/0/a/0", 5.0, 0.5, 7, 3),
        Timing("critic", "purpose", "critic/q1", 3.0, 0.5, 7, 3),
    ]
    ledger.close()


def test_covered_is_the_union_and_span_goes_from_end_to_end():
    calls = [call("a", started=s, latency=latency) for s, latency in ((10, 4), (12, 1), (13, 3), (20, 2))]
    assert wallclock.covered(calls) == 6 + 2  # 10 to 16, 20 to 22
    assert wallclock.span(calls) == 12
    assert wallclock.covered([]) == 0


def test_phases_are_cut_where_the_stage_changes_and_after_aggregation():
    ids = ["train/s/i1/a", "train/s/i1/b", "critic/s/i1/a", "optimizer/s/i1/a", "optimizer/s/i1/b", "validation/s/a",
           "validation/s/b", "train/s/i2/a", "train/s/i3/a"]  # fmt: skip
    purposes = ["", "", "", "optimizer/aggregate", "optimizer/refine", "", "", "", ""]
    cut = wallclock.phases([call(i, purpose=p) for i, p in zip(ids, purposes, strict=True)])
    assert [(stage, [c.sample_id for c in part]) for stage, part in cut] == [
        ("train", ids[:2]), ("critic", ids[2:3]), ("optimizer", ids[3:4]), ("optimizer", ids[4:5]),
        ("validation", ids[5:7]), ("train", ids[7:8]), ("train", ids[8:]),
    ]  # fmt: skip


def test_turns_of_a_trajectory_wait_and_teams_on_one_question_run_side_by_side():
    rollouts = ["train/s/i/q/0/a1/0", "train/s/i/q/1/a1/0", "train/s/i/q/0/a1/1", "train/s/i/q/0/a2/0"]
    phase = [call(i, size=(2, n)) for n, i in enumerate(rollouts)]
    assert wallclock.chains(phase, SPEED) == [[[1.0], [5.0], [7.0]], [[3.0]]]
    validated = [call(i, size=(2, 0)) for i in ("validation/s/q/0/a1/0", "validation/s/q/0/a2/0") * 2]
    assert wallclock.chains(validated, SPEED) == [[[1.0, 1.0], [1.0, 1.0]]]


def test_an_agents_operators_wait_for_one_another_and_critic_calls_for_nobody():
    operators = ["a1/refine/x", "a2/refine/y", "a1/induce/z"]
    phase = [call(f"optimizer/seed0/iteration1/{i}", size=(2, 0), purpose="optimizer/refine") for i in operators]
    assert wallclock.chains(phase, SPEED) == [[[1.0], [1.0]], [[1.0]]]
    critic = [call(f"critic/seed0/iteration1/q{n}", size=(2, 0)) for n in range(3)]
    assert wallclock.chains(critic, SPEED) == [[[1.0]]] * 3


@pytest.mark.parametrize(
    ("limit", "seconds"),
    [
        (1, 11),
        (2, 6),  # 0: a1 (3) and b (4); 3: c (2) takes the free place; 4: a2 (2) after c was first; 6
        (3, 5),  # all three at once, a2 from 3 to 5
    ],
)
def test_makespan_serves_who_is_ready_first(limit: int, seconds: float):
    chains = [[[3.0], [2.0]], [[4.0]], [[2.0]]]
    assert wallclock.makespan(chains, limit) == seconds


def test_a_level_ends_with_its_longest_call():
    assert wallclock.makespan([[[1.0, 5.0], [2.0]]], 2) == 7
    assert wallclock.makespan([], 2) == 0


@given(
    st.lists(st.lists(st.lists(st.integers(0, 9).map(float), min_size=1, max_size=3), min_size=1, max_size=3)),
    st.integers(1, 6),
)
def test_makespan_lies_between_its_bounds(chains, limit):
    total = sum(seconds for chain in chains for level in chain for seconds in level)
    longest = max((sum(map(max, chain)) for chain in chains), default=0)
    assert max(longest, total / limit) <= wallclock.makespan(chains, limit) <= total
    assert wallclock.makespan(chains, 1) == total
    assert wallclock.makespan(chains, 10_000) == longest


@pytest.fixture
def runs() -> list[tuple[dict, list[Timing]]]:
    """Two iterations: MASkills has one rollout of two turns each time, GRSE two rollouts of one turn."""
    maskills = [
        call("train/s/i1/q/0/a/0", started=0, latency=2, size=(2, 0)),
        call("train/s/i1/q/0/a/1", started=2, latency=2, size=(2, 0)),
        call("critic/s/i1/q", started=5, latency=1, size=(4, 0)),
        call("train/s/i2/q/0/a/0", started=10, latency=2, size=(2, 0)),
    ]
    grse = [call(f"train/s/i{i}/q/{g}/a/0", started=10 * i, latency=3, size=(2, 0)) for i in (1, 2) for g in (0, 1)]
    return [({**KEYS, "method": "maskills"}, maskills), ({**KEYS, "method": "grse"}, grse)]


def test_measured_times_leave_out_what_lies_between_phases(runs):
    rows = {(r["method"], r["part"]): r for r in wallclock.measured(runs).to_dict("records")}
    columns = ("calls", "span", "covered", "latency")
    assert [rows["maskills", "training rollouts"][c] for c in columns] == [3, 4 + 2, 6, 6]
    assert [rows["grse", "training rollouts"][c] for c in columns] == [4, 6, 6, 12]
    assert [rows["grse", "validation"][c] for c in columns] == [0, 0, 0, 0]


def test_modelled_times_and_ratios(runs):
    model = wallclock.modelled(runs, SPEED, limits=[1, 2])
    seconds = {(r["method"], r["limit"], r["part"]): r["seconds"] for r in model.to_dict("records")}
    assert seconds["maskills", 2, "training rollouts"] == 2 + 1
    assert (seconds["grse", 1, "training rollouts"], seconds["grse", 2, "training rollouts"]) == (4, 2)
    assert seconds["maskills", 1, "critic"] == 2
    ratios = wallclock.clock_ratios(model, "seconds")
    assert dict(zip(ratios["limit"], ratios["ratio"], strict=True)) == {1: 4 / 5, 2: 2 / 5}


def test_tables_show_the_overlap_and_the_papers_ranges(runs):
    times, model = wallclock.measured(runs), wallclock.modelled(runs, SPEED, limits=[2])
    table = wallclock.time_table(times, model).set_index(["benchmark", "method"])
    assert list(table.index.unique(0)) == ["maskills", "grse"]
    assert table.loc[("grse", "training rollouts"), ["overlap", "modelled overlap"]].tolist() == [2, 2]
    assert table.loc[("maskills", "all of training"), ["calls", "calls under way [s]"]].tolist() == [4, 7]
    view = wallclock.clock_view(
        times, wallclock.clock_ratios(model, "seconds"), reported_ranges(load_reported("grse_cost"))
    )
    assert view["calls under way"].tolist() == ["0.86 [0.86, 0.86]", "1.2 to 1.5", "1.3 to 1.8"]
    assert view["modelled"].tolist()[1:] == ["1.2 to 1.5", "1.3 to 1.8"]


def test_a_model_that_answers_at_once_has_no_overlap_and_no_measured_ratio(runs):
    at_once = [(keys, [c._replace(latency=0.0) for c in calls]) for keys, calls in runs]
    times, model = wallclock.measured(at_once), wallclock.modelled(at_once, SPEED, limits=[2])
    assert wallclock.time_table(times, model)["overlap"].isna().tolist() == [True] * 10
    clock = wallclock.clock_ratios(model, "seconds")
    ratios = pd.DataFrame({"task": ["HotpotQA"], "quantity": ["training rollouts"], "ratio": [np.nan]})
    view = wallclock.clock_view(times, clock, reported_ranges(load_reported("grse_cost")))
    assert "calls under way" not in view
    assert view["modelled"].tolist()[1:] == ["1.2 to 1.5", "1.3 to 1.8"]
    there = wallclock.with_clock(ratios, times, clock)
    assert there["quantity"].tolist() == ["training rollouts", "modelled wall clock"]
    timed = wallclock.with_clock(ratios, wallclock.measured(runs), clock)
    assert timed["quantity"].tolist()[-1] == "measured wall clock"
