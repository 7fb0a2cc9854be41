"""Methods under one interface: from an experiment to the summary of its run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from skill_evolution.benchmarks.base import Benchmark
from skill_evolution.config import Config, check_keys
from skill_evolution.critic import GroupCritic
from skill_evolution.evolution import Critic, Evolution, Models, evolve
from skill_evolution.methods.maskills import TrajectoryCritic
from skill_evolution.runs import Run
from skill_evolution.teams import Team


@dataclass(frozen=True)
class Experiment:
    """All that a method works on. `models` record into the run's ledger."""

    config: Config
    benchmark: Benchmark
    team: Team
    models: Models
    run: Run


class Method(Protocol):
    """The seam between an experiment and a way to answer its questions.

    Runs to the end, or from where an earlier attempt stopped, and leaves `predictions.jsonl` (one row a test
    question) and `summary.json` in the run's folder.
    """

    async def __call__(self, experiment: Experiment) -> dict[str, Any]: ...


async def grse(experiment: Experiment) -> dict[str, Any]:
    """Group-relative skill evolution; its ablations are switches of the config."""
    config = experiment.config
    critic = GroupCritic(
        experiment.team,
        structured_diagnosis=config.structured_diagnosis,
        label_conditioned=config.label_conditioned,
    )
    return await _evolve(experiment, critic, config)


async def maskills(experiment: Experiment) -> dict[str, Any]:
    """MASkills: one rollout a question, credit from each trajectory on its own."""
    if experiment.config.group_size != 1:
        raise ValueError(
            f"maskills works on single trajectories: group_size must be 1, not {experiment.config.group_size}"
        )
    return await _evolve(experiment, TrajectoryCritic(experiment.team), experiment.config)


async def empty(experiment: Experiment) -> dict[str, Any]:
    """The team as it starts, with the libraries it is given and no evolution: what the others are measured against."""
    config = experiment.config.model_copy(update={"iterations": 0})
    return await _evolve(experiment, GroupCritic(experiment.team), config)


async def _evolve(experiment: Experiment, critic: Critic, config: Config) -> dict[str, Any]:
    evolution = Evolution(config, experiment.benchmark, experiment.team, experiment.models, critic)
    return await evolve(experiment.run, evolution)


METHODS: Mapping[str, Method] = {"grse": grse, "maskills": maskills, "empty": empty}


def method_named(name: str) -> Method:
    """The method of a name; ConfigError names the nearest one there is."""
    check_keys([name], METHODS, where="method")
    return METHODS[name]
