"""What came of an iteration and of a test, as plain rows and counts; the same for every method."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from skill_evolution.benchmarks.base import Benchmark, DataError, Split
from skill_evolution.grse.loop import Iteration
from skill_evolution.grse.rollouts import Trajectory

_NO_METRICS = frozenset(
    "question_id category question gold answer declined evidence used problems lines_cut error".split()  # noqa: SIM905
)


def check_splits(benchmark: Benchmark, needed: Sequence[Split]) -> None:
    """DataError for a split that a method needs and that has no questions."""
    empty = [split for split in needed if not benchmark.splits[split]]
    if empty:
        raise DataError(f"{benchmark.name}: no questions in the split {', '.join(empty)}")


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


def iteration_summary(iteration: Iteration) -> dict[str, Any]:
    """Counts and scores of an iteration; every kind of loss is counted by its reason."""
    trajectories = [t for g in iteration.groups for t in g.trajectories]
    executions = [t.execution for t in trajectories if t.execution]
    rewards = [t.reward for t in trajectories if t.reward is not None]
    rejected = [r.reason for f in iteration.feedbacks for r in f.rejections]
    refused = [r.reason for shop in iteration.workshops for r in shop.rejections]
    merges = [f"merge:{r.reason}" for r in iteration.aggregate.rejections]
    return {
        "iteration": iteration.number,
        "train_reward": sum(rewards) / len(rewards) if rewards else None,
        "rollouts": len(trajectories),
        "failed_rollouts": len(trajectories) - len(rewards),
        "equal_groups": sum(g.equal for g in iteration.groups if g.finished),
        "groups": len(iteration.groups),
        "problems": counted(p for e in executions for p in e.problems),
        "unknown_skills_named": sum(len(e.unknown_used) for e in executions),
        "critic_accepted": sum(f.accepted for f in iteration.feedbacks),
        "critic_rejected": counted(rejected),
        "payload_cuts": sum(f.cuts for f in iteration.feedbacks),
        "changes": counted(c.operator for shop in iteration.workshops for c in shop.changes),
        "changes_refused": counted([*merges, *refused]),
        "validation": iteration.gate.scores(),
        "accepted": {agent: outcome.accepted for agent, outcome in iteration.gate.outcomes.items()},
        "skills": {agent: len(library) for agent, library in iteration.libraries.items()},
        "utility": {a: {s.name: round(s.utility, 6) for s in library} for a, library in iteration.libraries.items()},
    }
