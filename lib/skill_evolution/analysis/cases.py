"""One question before and after training, side by side, with the skills that made the difference (paper App. B).

Nothing is asked again: both executions are replayed from the ledgers of their runs.
"""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from IPython.display import HTML

from skill_evolution.analysis.frames import rows, where
from skill_evolution.analysis.names import NAMES
from skill_evolution.analysis.tables import verbatim
from skill_evolution.base.aio import run_sync
from skill_evolution.benchmarks.base import Question
from skill_evolution.grse.loop import Models
from skill_evolution.grse.operators import Change
from skill_evolution.grse.rollouts import run_all
from skill_evolution.models.base import Completion, Request
from skill_evolution.models.ledger import Ledger, RecordedModel
from skill_evolution.runs.config import Config
from skill_evolution.runs.experiments import benchmark_of, make_model, team_of
from skill_evolution.runs.folder import RunError, run_folder
from skill_evolution.runs.methods import make_evolution
from skill_evolution.skills import load_library
from skill_evolution.teams.team import NO_ANSWER, Execution, Libraries


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
) -> dict[str, Any]:
    """The row of `learned.transitions` to look at: the question asked for, or the first that became correct.

    Args:
        pairs: rows of `learned.transitions`, with ids and not names.
        method: the trained team.
        benchmark: only this one's questions; None takes any.
        question_id: the question; None takes the first that was declined or wrong before and is correct after, or,
            where none is, the first of all.

    Raises:
        ValueError: there is no such row; the text says what there is.
    """
    known = where(pairs, (pairs["method"] == method) & pairs["error"].isna())
    if benchmark is not None:
        known = where(known, known["benchmark"] == benchmark)
    place = f"{method} on {benchmark or 'any benchmark'}"
    if question_id is not None:
        found = where(known, known["question_id"] == question_id)
    else:
        better = where(known, (known["before"] != "correct") & (known["after"] == "correct"))
        found = known if better.empty else better
    if found.empty:
        some = ", ".join(known["question_id"][:3]) or "none"
        raise ValueError(f"no question {question_id or 'at all'} of {place}; there are: {some}")
    return rows(found)[0]


def open_case(row: Mapping[str, Any], configs: Sequence[Config], *, root: Path | None = None) -> Case:
    """The executions behind a row of `learned.transitions`, replayed from the runs of the configs.

    Raises:
        ValueError: no config, or no question, belongs to the row.
        RunError: a run is not there, or its ledger lacks a call.
    """
    run = (row["benchmark"], row["trained_on"], row["seed"])
    there = {c.method: c for c in configs if (c.benchmark, c.trained_on, c.seed) == run}
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
    ledger = Ledger(folder / "calls.sqlite")
    try:
        model = RecordedModel(_NoNewCalls(config), ledger)
        call = make_evolution(config, benchmark, team, Models(model, model, model)).call("test", config.test_sampling)
        [trajectory] = await run_all(team, benchmark, [question], libraries, call)
    finally:
        ledger.close()
    execution = trajectory.execution
    assert execution is not None, trajectory.error  # a call that the ledger lacks has raised
    f1 = benchmark.metrics(question, execution.answer or "", execution.evidence)["f1"]
    return question, Side(config.method, libraries, execution, f1)


def changed_skills(case: Case) -> list[Change]:
    """The history of the final skills that the trained team recorded as used here; of all, if it named none."""
    used = case.after.execution.used
    named = any(used.values())
    return [
        Change(agent, record.operator, skill.name, record)
        for agent, library in case.after.libraries.items()
        for skill in library
        if not named or skill.name in used.get(agent, ())
        for record in skill.history
    ]


def show_case(case: Case, *, made_with: str) -> HTML:
    """Question and gold answer, and below them the two executions side by side, step by step."""
    question = case.question
    gold = ", ".join(question.evidence) or "not given"
    sides = "".join(_side(side, question) for side in (case.before, case.after))
    return verbatim(
        f"<h4>One question before and after training ({html.escape(made_with)})</h4>"
        f"<p><b>Question</b> ({html.escape(NAMES.get(question.category, question.category))}): "
        f"{html.escape(question.text)}<br><b>Gold answer:</b> {html.escape(question.answer)} "
        f"<b>Gold evidence:</b> {html.escape(gold)}</p>"
        f'<div style="display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr);gap:1em;text-align:left">{sides}'
        "</div>"
    )


def _side(side: Side, question: Question) -> str:
    execution = side.execution
    steps = "".join(
        f'<div style="margin:.4em 0"><b>{step.number}. {step.agent}, {_KINDS[step.kind]}</b>'
        '<div style="font-family:monospace;font-size:85%;white-space:pre-wrap;overflow-wrap:anywhere;'
        'max-height:14em;overflow-y:auto;background:rgba(128, 128, 128, 0.12);padding:.4em">'
        f"{_marked(step.text, question)}</div></div>"
        for step in execution.steps
    )
    used = ", ".join(f"{name} ({agent})" for agent, names in execution.used.items() for name in names)
    facts = {
        "Answer": f"{execution.answer or NO_ANSWER} (F1 {100 * side.f1:.0f} %)",
        "Evidence cited": ", ".join(execution.evidence) or "none",
        "Skills recorded as used": used or "none",
    }
    lines = "<br>".join(f"<b>{name}:</b> {html.escape(text)}" for name, text in facts.items())
    return f"<div><h5>{html.escape(NAMES.get(side.method, side.method))}</h5>{steps}<p>{lines}</p></div>"


_KINDS = {"call": "search", "result": "found", "handover": "hand-over", "answer": "answer"}


def _marked(text: str, question: Question) -> str:
    """The text with the ids of gold evidence set off."""
    shown = html.escape(text)
    for name in question.evidence:
        shown = shown.replace(html.escape(f"[{name}]"), f"<mark>{html.escape(f'[{name}]')}</mark>")
    return shown
