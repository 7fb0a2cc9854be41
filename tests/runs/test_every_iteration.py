"""The switch test_every_iteration: it adds test scores and changes nothing else; failed rows count."""

from pathlib import Path
from typing import Any

import pytest
import toy

from skill_evolution.models.base import Request
from skill_evolution.models.ledger import Ledger
from skill_evolution.runs.folder import read_jsonl


def calls(root: Path) -> int:
    ledger = Ledger(toy.only_folder(root) / "calls.sqlite")
    try:
        return ledger.count()
    finally:
        ledger.close()


async def test_it_adds_a_score_an_iteration_and_changes_nothing_else(tmp_path: Path):
    summaries: list[dict[str, Any]] = []
    for switch in (False, True):
        config = toy.config(tmp_path, test_every_iteration=switch)
        summaries.append(await toy.run(config, toy.ToyModel(), tmp_path / f"runs-{switch}"))
    plain, tested = summaries
    folder = toy.only_folder(tmp_path / "runs-True")
    rows, scores = [], {}
    for number, iteration in enumerate(tested["iterations"], start=1):
        rows = read_jsonl(folder / "iterations" / str(number) / "predictions.jsonl")
        scores, failed = iteration.pop("test"), iteration.pop("failed_test_rows")
        metric = next(iter(scores))
        assert scores[metric] == pytest.approx(sum(row[metric] for row in rows) / 4)
        assert failed == 0
    assert rows == read_jsonl(folder / "predictions.jsonl")
    assert scores == tested["test"]
    assert {**plain, "run": None} == {**tested, "run": None}


async def test_a_team_that_stays_is_asked_only_once(tmp_path: Path):
    """Nothing is learned where the critic says nothing: every later test is the first one, replayed."""
    counts = []
    for switch in (False, True):
        model = toy.ToyModel({"compare rollouts": lambda document, request: {}})
        root = tmp_path / f"runs-{switch}"
        await toy.run(toy.config(tmp_path, test_every_iteration=switch), model, root)
        counts.append(calls(root))
    assert counts[0] == counts[1]


async def test_a_failed_row_of_an_iteration_is_counted_and_tried_again(tmp_path: Path):
    broken = True

    def fail(request: Request) -> bool:
        return (
            broken
            and request.purpose == "actor/agent_2"
            and "test/" in request.sample_id
            and "test-1/" in request.sample_id
        )

    config, root, model = toy.config(tmp_path, test_every_iteration=True), tmp_path / "runs", toy.ToyModel(fail=fail)
    first = await toy.run(config, model, root)
    assert [iteration["failed_test_rows"] for iteration in first["iterations"]] == [1, 1]
    assert first["failures"]["test_rows"] == 3  # after either iteration and at the end
    broken = False
    second = await toy.run(config, model, root)
    assert second["failures"]["total"] == 0
    assert [iteration["failed_test_rows"] for iteration in second["iterations"]] == [0, 0]
