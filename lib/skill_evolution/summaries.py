"""What a run leaves: one row a test question in `predictions.jsonl`, and `summary.json`; the same for every method."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from skill_evolution.benchmarks.base import Benchmark, DataError, Split
from skill_evolution.config import Config
from skill_evolution.rollouts import Trajectory
from skill_evolution.runs import Run, write_json, write_jsonl
from skill_evolution.teams import Libraries

_NO_METRICS = frozenset(
    "question_id category question gold answer declined evidence used problems lines_cut error".split()  # noqa: SIM905
)


def check_splits(benchmark: Benchmark, needed: Sequence[Split]) -> None:
    """DataError for a split that a method needs and that has no questions."""
    empty = [split for split in needed if not benchmark.splits[split]]
    if empty:
        raise DataError(f"{benchmark.name}: no questions in the split {', '.join(empty)}")


def write_predictions(folder: Path, benchmark: Benchmark, trajectories: Iterable[Trajectory]) -> list[dict[str, Any]]:
    """The rows of a test, also written to `predictions.jsonl` in a folder."""
    rows = [prediction_row(benchmark, trajectory) for trajectory in trajectories]
    write_jsonl(folder / "predictions.jsonl", rows)
    return rows


def write_summary(
    run: Run,
    rows: Sequence[dict[str, Any]],
    *,
    iterations: Sequence[dict[str, Any]] = (),
    libraries: Libraries | None = None,
) -> dict[str, Any]:
    """The summary of a run that came to its end, also written to `summary.json` in its folder."""
    summary = {"run": run.folder.name, **make_summary(run.config, iterations, rows, libraries or {})}
    write_json(run.folder / "summary.json", summary)
    return summary


def counted(reasons: Iterable[str]) -> dict[str, int]:
    """How often each reason stands there, by name."""
    return dict(sorted(Counter(reasons).items()))


def prediction_row(benchmark: Benchmark, trajectory: Trajectory) -> dict[str, Any]:
    """One test question: answer, whether it was declined, cited evidence, metrics; or its error and no metrics.

    `problems` says what was off about the replies' form, `lines_cut` how many lines of the source did not fit.
    """
    question, execution = trajectory.question, trajectory.execution
    row: dict[str, Any] = {
        "question_id": question.id,
        "category": question.category,
        "question": question.text,
        "gold": question.answer,
        "answer": execution.answer if execution else None,
        "declined": execution is not None and execution.answer is None,
        "evidence": list(execution.evidence) if execution else [],
        "used": dict(execution.used) if execution else {},
        "problems": list(execution.problems) if execution else [],
        "lines_cut": execution.lines_cut if execution else 0,
        "error": trajectory.error,
    }
    if execution:
        row |= benchmark.metrics(question, execution.answer or "", execution.evidence)
    return row


def test_summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The mean of each metric over the rows that finished, and how many did not."""
    done = [row for row in rows if row["error"] is None]
    metrics = dict.fromkeys(key for row in done for key in row if key not in _NO_METRICS)
    means = {name: sum(row[name] for row in done) / len(done) for name in metrics}
    return {"test": means, "failed_test_rows": len(rows) - len(done)}


def make_summary(
    config: Config, iterations: Sequence[dict[str, Any]], rows: Sequence[dict[str, Any]], libraries: Libraries
) -> dict[str, Any]:
    """What a run came to. Means are over the rows that finished; `failures` counts the others."""
    tested = test_summary(rows)
    rollouts = sum(i["failed_rollouts"] for i in iterations)
    critic = sum(i["critic_rejected"].get("call_failed", 0) for i in iterations)
    refused = sum(n for i in iterations for reason, n in i["changes_refused"].items() if reason.endswith("call_failed"))
    validation = sum(i["validation"]["failed"] for i in iterations)
    failures = {
        "rollouts": rollouts,
        "critic_calls": critic,
        "optimizer_calls": refused,
        "validation_rows": validation,
        "test_rows": tested["failed_test_rows"] + sum(i.get("failed_test_rows", 0) for i in iterations),
    }
    return {
        "method": config.method,
        "benchmark": config.benchmark,
        "category": config.category,
        "seed": config.seed,
        "label": config.label,
        "test": tested["test"],
        "test_rows": len(rows),
        "declined": sum(row["declined"] for row in rows),
        "test_problems": counted(problem for row in rows for problem in row["problems"]),
        "failures": {**failures, "total": sum(failures.values())},
        "libraries": {agent: list(library.names()) for agent, library in libraries.items()},
        "iterations": list(iterations),
    }
