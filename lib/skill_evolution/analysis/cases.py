"""One question before and after training, side by side, with the skills that made the difference (paper App. B).

Nothing is asked again: both executions are replayed from the ledgers of their runs.
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
from IPython.display import HTML

from skill_evolution.aio import run_sync
from skill_evolution.analysis.names import NAMES
from skill_evolution.benchmarks.base import Question
from skill_evolution.config import Config
from skill_evolution.evolution import Models
from skill_evolution.experiments import benchmark_of, make_model, team_of
from skill_evolution.methods import make_evolution
from skill_evolution.models.base import Completion, Request
from skill_evolution.models.ledger import Ledger, RecordedModel
from skill_evolution.operators import Change
from skill_evolution.runs import RunError, run_folder
from skill_evolution.skills import load_library
from skill_evolution.teams import NO_ANSWER, Execution, Libraries


@dataclass(frozen=True)
class Side:
    """A run's answer to a question: the method, its libraries, what the team did and the answer's F1."""

    method: str
    libraries: Libraries
    execution: Execution
    f1: float


@dataclass(frozen=True)
class Case:
    """One test question, before and after training."""

    question: Question
    before: Side
    after: Side


class _NoNewCalls:
    """A model that only its ledger answers for; RunError, which no ledger records, for a call that isn't there."""

    def __init__(self, config: Config) -> None:
        model = make_model(config.actor)
        self.name, self.context_length = model.name, config.actor.context_length or 0

    async def connect(self) -> None:
        """Nothing to get ready."""

    async def generate(self, request: Request) -> Completion:
        """Never gives a completion."""
        raise RunError(f"{request.sample_id}: this call is not in the run's ledger; was the run made by other code?")

    async def close(self) -> None:
        """Nothing to release."""


def find_case(
    pairs: pd.DataFrame, *, method: str = "grse", benchmark: str | None = None, question_id: str | None = None
) -> pd.Series:
    """The row of `learned.transitions` to look at: the question asked for, or the first that became correct.

    Args:
        pairs: rows of `learned.transitions`, with ids and not names.
        method: the trained team.
        benchmark: only this one's questions; None takes any.
        question_id: the question; None takes the first that was declined or wrong before and is correct after.

    Raises:
        ValueError: there is no such row; the text says what there is.
    """
    rows = pairs[(pairs["method"] == method) & pairs["error"].isna()]
    rows = rows[rows["benchmark"] == benchmark] if benchmark else rows
    if question_id is not None:
        found = rows[rows["question_id"] == question_id]
        some = ", ".join(rows["question_id"].unique()[:3])
        wanted = f"no question {question_id!r} of {method} on {benchmark or 'any benchmark'}; there are {some} ..."
    else:
        found = rows[(rows["before"] != "correct") & (rows["after"] == "correct")]
        wanted = f"no question of {method} on {benchmark or 'any benchmark'} became correct, of {len(rows)}"
    if found.empty:
        raise ValueError(wanted)
    return found.iloc[0]


def open_case(row: pd.Series, configs: Sequence[Config], *, root: Path | None = None) -> Case:
    """The executions behind a row of `learned.transitions`, replayed from the runs of the configs.

    Raises:
        ValueError: no config, or no question, belongs to the row.
        RunError: a run is not there, or its ledger lacks a call.
    """
    run = tuple(row[["benchmark", "trained_on", "seed"]])
    there = {c.method: c for c in configs if (c.benchmark, c.category or "all", c.seed) == run}
    if missing := {"empty", row["method"]} - set(there):
        raise ValueError(f"no config of {', '.join(sorted(missing))} for {run}")
    (question, before), (_, after) = (
        run_sync(_replayed(there[method], row["question_id"], root)) for method in ("empty", row["method"])
    )
    return Case(question, before, after)


async def _replayed(config: Config, question_id: str, root: Path | None) -> tuple[Question, Side]:
    folder = run_folder(config, root=root)
    benchmark, team = benchmark_of(config), team_of(config)
    question = next((q for q in benchmark.splits["test"] if q.id == question_id), None)
    if question is None:
        raise ValueError(f"{benchmark.name}: no test question {question_id!r}")
    if not (folder / "calls.sqlite").is_file():
        raise RunError(f"{folder / 'calls.sqlite'}: there is no such ledger; has the run finished?")
    libraries = {agent: load_library(folder / "libraries" / agent, agent) for agent in team.agents}
