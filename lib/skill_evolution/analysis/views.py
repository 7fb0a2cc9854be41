"""Views of one iteration for the notebooks: the group, the critic's items, edits as diffs, the gate."""

import difflib
import html
import platform
from collections.abc import Iterable, Sequence
from importlib import metadata

import pandas as pd
from IPython.display import HTML

from skill_evolution.analysis.tables import render_table, verbatim
from skill_evolution.benchmarks.base import Benchmark
from skill_evolution.grse.feedback import Credit, Feedback
from skill_evolution.grse.gate import GateResult
from skill_evolution.grse.loop import Evolution
from skill_evolution.grse.operators import Change
from skill_evolution.grse.rollouts import Group
from skill_evolution.runs.config import Config
from skill_evolution.teams.team import NO_ANSWER, Libraries, Step

_PACKAGES = ("skill-evolution", "numpy", "scipy", "pandas", "matplotlib", "pydantic", "papermill")
TELLING = 0.5  # [ours] rewards this far apart: one rollout went right and another wrong
_COLOURS = {  # see-through, so that the text can be read on a dark page as well
    "+": "rgba(46, 160, 67, 0.2)",
    "-": "rgba(248, 81, 73, 0.2)",
    "@": "rgba(128, 128, 128, 0.15)",
}


def versions(config: Config | None = None) -> HTML:
    """Versions of Python and of the packages that figures depend on; with a config, its profile and models."""
    rows = {"python": platform.python_version(), **{name: metadata.version(name) for name in _PACKAGES}}
    if config is not None:
        rows |= {"profile": config.profile, "model": config.label}
    return render_table(pd.DataFrame(rows.items(), columns=["package", "version"]), title="Versions")


async def follow_group(evolution: Evolution, libraries: Libraries, *, question: int | None = None) -> Group:
    """The rollouts of one training question in the first iteration.

    Args:
        evolution: what asks; a call that its ledger holds is not made again.
        libraries: the skills that the rollouts have.
        question: the question's place in the training split; None takes the first on which one rollout got at least
            half of all reward more than another, or, where there is none, the first of all.
    """
    questions = evolution.benchmark.splits["train"]
    if question is not None:
        return await evolution.group(1, questions[question], libraries)
    for candidate in questions:
        group = await evolution.group(1, candidate, libraries)
        rewards = [t.reward for t in group.finished if t.reward is not None]
        if rewards and max(rewards) - min(rewards) >= TELLING:
            return group
    return await evolution.group(1, questions[0], libraries)


def group_table(group: Group) -> pd.DataFrame:
    """One row a rollout: what was searched and handed over, the answer, reward, advantage and recorded use."""
    return pd.DataFrame(
        [
            {
                "rollout": number,
                "searched": _texts(t.execution.steps, "call") if t.execution else None,
                "handed over": _texts(t.execution.steps, "handover") if t.execution else None,
                "answer": (t.execution.answer or NO_ANSWER) if t.execution else t.error,
                "reward": t.reward,
                "advantage": advantage,
                "skills used": ", ".join(n for names in t.execution.used.values() for n in names) or None
                if t.execution
                else None,
            }
            for number, (t, advantage) in enumerate(zip(group.trajectories, group.advantages, strict=True), start=1)
        ]
    )


def _texts(steps: Sequence[Step], kind: str) -> str:
    texts = [step.text for step in steps if step.kind == kind]
    return " · ".join(t.replace(f"<{tag}>", "").replace(f"</{tag}>", "") for t in texts for tag in [_TAGS[kind]])


_TAGS = {"call": "grep", "handover": "handover"}


def feedback_table(feedback: Feedback) -> pd.DataFrame:
    """One row an item of the critic's reply: what it says, and whether it passed the checks or why not."""
    credits = [("credit", c.agent, c.skill, _value(c)) for c in feedback.credits]
    diagnoses = [
        ("diagnosis", d.agent, d.skill, f"{d.failure_type} → {d.action}: {d.suggestion} “{d.quotes[0]}”")
        for d in feedback.diagnoses
    ]
    needs = [("induction evidence", n.agent, None, f"{n.failure_type}: {n.capability}") for n in feedback.needs]
    rows = [(*item, "passed") for item in (*credits, *diagnoses, *needs)]
    rows += [("rejected", None, None, r.item, r.reason) for r in feedback.rejections]
    return pd.DataFrame(rows, columns=["item", "agent", "skill", "what it says", "check"])


def _value(credit: Credit) -> str:
    return credit.contribution if credit.value is None else f"{credit.value:+.2f} ({credit.contribution})"


def gate_table(result: GateResult, delta: float) -> pd.DataFrame:
    """One row a team that was validated: its score, the score it had to reach, and what became of it."""
    bar = None if result.base.mean is None else result.base.mean - delta
    rows: list[tuple[str, float | None, float | None, str | None]] = [
        ("before the update", result.base.mean, None, None)
    ]
    for agent, outcome in result.outcomes.items():
        if outcome.score is not None:
            fate = "kept" if outcome.accepted else "rejected"
            rows.append((f"with the candidate of {agent}", outcome.score.mean, bar, fate))
    rows.append(("assembled", result.assembled.mean, None, "goes on"))
    return pd.DataFrame(rows, columns=["team", "mean reward", "needed", "outcome"])


def issues_table(benchmarks: Iterable[Benchmark]) -> pd.DataFrame:
    """One row a fault found in the data files: where, what is wrong, whether it was repaired or is only reported."""
    rows = [(b.name, i.where, i.problem, i.action) for b in benchmarks for i in getattr(b, "issues", ())]
    return pd.DataFrame(list(dict.fromkeys(rows)), columns=["benchmark", "where", "problem", "action"])


def show_issues(benchmarks: Iterable[Benchmark]) -> HTML:
    """`issues_table` to read; a sentence where there is nothing to list."""
    issues = issues_table(benchmarks)
    if issues.empty:
        return HTML("<p>No fault was found in the data files.</p>")
    return render_table(issues, title=f"Faults found in the data files: {len(issues)}")


def library_table(libraries: Libraries) -> pd.DataFrame:
    """One row a skill of every agent: what it says, who wrote it, its utility and how often its use was recorded."""
    rows = [
        {
            "agent": agent,
            "skill": skill.name,
            "description": skill.description,
            "body": skill.body,
            "provenance": skill.provenance,
            "utility": skill.utility,
            "uses": skill.invocations,
        }
        for agent, library in libraries.items()
        for skill in library
    ]
    return pd.DataFrame(rows, columns=["agent", "skill", "description", "body", "provenance", "utility", "uses"])


def show_changes(changes: Iterable[Change]) -> HTML:
    """Every change of a library as a coloured diff of the skill's text, with operator and evidence above it."""
    return verbatim("\n".join(_diff(change) for change in changes) or "<p>No library changed.</p>")


def _diff(change: Change) -> str:
    record = change.record
    lines = difflib.unified_diff(record.before.splitlines(), record.after.splitlines(), "before", "after", lineterm="")
    shown = "".join(
        f'<div style="background:{_COLOURS.get(line[:1], "none")};white-space:pre-wrap">{html.escape(line)}&nbsp;</div>'
        for line in lines
    )
    title = f"{change.agent}: {change.operator} <code>{html.escape(change.skill)}</code>"
    evidence = f"{len(record.evidence)} questions" if record.evidence else "no questions"
    return (
        f"<h4>{title} (iteration {record.iteration}, from {evidence})</h4>"
        f'<div style="font-family:monospace;font-size:90%;text-align:left">{shown}</div>'
    )
