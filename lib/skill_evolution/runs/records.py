"""A method's run in its folder: the loop step by step, and the files that it leaves; every method leaves the same."""

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from skill_evolution.benchmarks.base import SPLITS, Benchmark
from skill_evolution.grse.loop import Evolution, Iteration
from skill_evolution.grse.rollouts import Group, Trajectory
from skill_evolution.grse.summaries import check_splits, counted, iteration_summary, prediction_row, test_summary
from skill_evolution.runs.config import Config
from skill_evolution.runs.folder import Run, write_json, write_jsonl
from skill_evolution.skills import load_library, save_library
from skill_evolution.teams.team import Libraries, Team

logger = logging.getLogger(__name__)


def start_libraries(config: Config, team: Team) -> Libraries:
    """Empty libraries, or those of the config's `start_libraries` (one folder an agent)."""
    folder = config.start_libraries
    if folder is None:
        return team.empty_libraries()
    return {agent: load_library(folder / agent, agent) for agent in team.agents}


async def run_evolution(run: Run, evolution: Evolution) -> dict[str, Any]:
    """Run the loop to its end in a run folder and return the summary. What the ledger knows is not asked again."""
    check_splits(evolution.benchmark, SPLITS if evolution.settings.iterations else ("test",))
    libraries = start_libraries(run.config, evolution.team)
    iterations = []
    async for iteration in evolution.run(libraries):
        libraries = iteration.libraries
        write_iteration(run, iteration)
        iterations.append(iteration_summary(iteration))
        if run.config.test_every_iteration:
            tested = await _tested(evolution, libraries, run.iteration(iteration.number))
            iterations[-1] |= test_summary(tested)
        logger.info("%s iteration %d: %s", run.folder.name, iteration.number, iterations[-1]["validation"])
    rows = await _tested(evolution, libraries, run.folder)
    for agent, library in libraries.items():
        save_library(library, run.folder / "libraries" / agent)
    return write_summary(run, rows, iterations=iterations, libraries=libraries)


async def _tested(evolution: Evolution, libraries: Libraries, folder: Path) -> list[dict[str, Any]]:
    """The test's rows, also written to `predictions.jsonl` in a folder."""
    return write_predictions(folder, evolution.benchmark, await evolution.test(libraries))


def write_iteration(run: Run, iteration: Iteration) -> None:
    """Trajectories, feedback, aggregation, edits, gate and the libraries of an iteration, as files."""
    folder = run.iteration(iteration.number)
    write_jsonl(
        folder / "trajectories.jsonl",
        (_trajectory_row(g, i) for g in iteration.groups for i in range(len(g.trajectories))),
    )
    write_jsonl(folder / "feedback.jsonl", iteration.feedbacks)
    write_json(folder / "aggregation.json", iteration.aggregate)
    write_jsonl(folder / "edits.jsonl", (change for shop in iteration.workshops for change in shop.changes))
    write_json(folder / "gate.json", iteration.gate.record())
    for agent, library in iteration.libraries.items():
        save_library(library, folder / "libraries" / agent)


def _trajectory_row(group: Group, index: int) -> dict[str, Any]:
    trajectory = group.trajectories[index]
    return {
        "question_id": group.question.id,
        "rollout": index + 1,
        "reward": trajectory.reward,
        "advantage": group.advantages[index],
        "error": trajectory.error,
        "execution": trajectory.execution,
    }


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
    """What a run came to, also written to `summary.json` in its folder.

    Means are over the rows that finished; `failures` counts the others.
    """
    config, tested = run.config, test_summary(rows)
    refused = sum(n for i in iterations for reason, n in i["changes_refused"].items() if reason.endswith("call_failed"))
    failures = {
        "rollouts": sum(i["failed_rollouts"] for i in iterations),
        "critic_calls": sum(i["critic_rejected"].get("call_failed", 0) for i in iterations),
        "optimizer_calls": refused,
        "validation_rows": sum(i["validation"]["failed"] for i in iterations),
        "test_rows": tested["failed_test_rows"] + sum(i.get("failed_test_rows", 0) for i in iterations),
    }
    summary = {
        "run": run.folder.name,
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
        "libraries": {agent: list(library.names()) for agent, library in (libraries or {}).items()},
        "iterations": list(iterations),
    }
    write_json(run.folder / "summary.json", summary)
    return summary
