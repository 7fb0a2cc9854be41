"""Evaluation of a stage's policy: all that is asked of it runs side by side, and each part leaves a CSV file."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from skill_evolution.base import aio
from skill_evolution.runs.folder import write_json, write_text
from skill_evolution.sage.agent.chains import Chain, run_chain
from skill_evolution.sage.agent.metrics import episode_frame, metrics
from skill_evolution.sage.agent.planning import by_scenario
from skill_evolution.sage.agent.world import Task, World
from skill_evolution.sage.config import AgentConfig, Retrieval
from skill_evolution.sage.stages.stage import Stage

GREEDY = "greedy"


@dataclass(frozen=True)
class Evaluation:
    """One evaluation of a policy.

    Attributes:
        split: dev, test or challenge.
        temperature: Of sampling; 0 is greedy.
        retrieval: Which skills are offered; None is the agent without library.
        whole_split: One chain over all tasks of the split, so that skills of other scenarios can be retrieved, in place
            of one chain a scenario.
        scenarios: The first so many of the split; None takes all.
    """

    split: str
    temperature: float = 0.0
    retrieval: Retrieval | None = "same_scenario"
    whole_split: bool = False
    scenarios: int | None = None

    @property
    def decoding(self) -> str:
        """ "greedy", or the temperature in words."""
        return f"T = {self.temperature:g}" if self.temperature else GREEDY

    @property
    def name(self) -> str:
        """The name of its files."""
        parts = [self.split, self.decoding.replace(" = ", ""), self.retrieval or "no_library"]
        parts += ["one_chain"] if self.whole_split else []
        return "-".join([*parts, *([f"first{self.scenarios}"] if self.scenarios else [])])

    def file(self, stage: Stage, root: Path | None = None) -> Path:
        """Its rows; the figures over all of them lie beside, as JSON."""
        return stage.folder(root) / "evaluation" / f"{self.name}.csv"

    def finished(self, stage: Stage, root: Path | None = None) -> bool:
        """Whether its files are there and no row failed: failures are tried again."""
        return self.file(stage, root).is_file() and not self.figures(stage, root)["failed"]

    def rows(self, stage: Stage, root: Path | None = None) -> pd.DataFrame:
        """One row a task: split, decoding, and the columns of `metrics.episode_frame`."""
        return pd.read_csv(self.file(stage, root), dtype={"error": "str"})

    def figures(self, stage: Stage, root: Path | None = None) -> dict[str, Any]:
        """The figures of `metrics.metrics` over all its chains, after its split and decoding."""
        found = json.loads(self.file(stage, root).with_suffix(".json").read_text(encoding="utf-8"))
        return {"split": self.split, "decoding": self.decoding, **found}

    def agent(self, trained: AgentConfig) -> AgentConfig:
        """The agent that is tested, given the one that was trained."""
        own = {"library": False} if self.retrieval is None else {"library": True, "retrieval": self.retrieval}
        return trained.model_copy(update=own)

    def chains(self, world: World) -> list[tuple[Task, ...]]:
        """The tasks of each chain."""
        own = by_scenario(world.tasks(self.split))[: self.scenarios]
        return [tuple(task for tasks in own for task in tasks)] if self.whole_split else [tuple(tasks) for tasks in own]


def evaluate(stage: Stage, evaluations: Sequence[Evaluation], *, root: Path | None = None) -> None:
    """Run those evaluations of a trained stage that aren't finished.

    With `rollout.engine` "vllm" the server must serve the stage's policy under the stage's name (docs/scale.md).

    Raises:
        ModelError: It serves something else, or doesn't answer.
    """
    from skill_evolution.sage.stages.training import open_world  # imports torch, as what it is used for does

    pending = [evaluation for evaluation in evaluations if not evaluation.finished(stage, root)]
    if not pending:
        return
    with open_world(stage.config) as world:
        work = [(evaluation, tasks) for evaluation in pending for tasks in evaluation.chains(world)]
        chains = aio.run_sync(_chains(stage, world, work, root))
    for evaluation in pending:
        own = [chain for chain, (one, _) in zip(chains, work, strict=True) if one == evaluation]
        _write(own, evaluation.file(stage, root), evaluation)


async def _chains(
    stage: Stage, world: World, work: Sequence[tuple[Evaluation, Sequence[Task]]], root: Path | None
) -> list[Chain]:
    from skill_evolution.sage.stages.training import policy_to_test

    policy = await policy_to_test(stage, world, root=root)
    return await aio.gather(
        run_chain(
            policy,
            world,
            tasks,
            one.agent(stage.config.agent),
            key="/".join(["evaluation", *map(str, stage.seeds), one.split]),
            temperature=one.temperature,
        )
        for one, tasks in work
    )


def _write(chains: Sequence[Chain], file: Path, evaluation: Evaluation) -> None:
    rows = episode_frame(chains)
    rows.insert(0, "split", evaluation.split)
    rows.insert(1, "decoding", evaluation.decoding)
    write_json(file.with_suffix(".json"), metrics(chains))
    write_text(file, rows.to_csv(index=False, lineterminator="\n"))
