"""Methods under one interface: from an experiment to the summary of its run."""

from collections.abc import Mapping
from typing import Any, Protocol

from skill_evolution.base.settings import ConfigError
from skill_evolution.benchmarks.base import Benchmark
from skill_evolution.grse.critic import GroupCritic
from skill_evolution.grse.loop import Evolution, Models
from skill_evolution.grse.maskills import TrajectoryCritic
from skill_evolution.grse.rollouts import run_all
from skill_evolution.grse.summaries import check_splits
from skill_evolution.runs.config import Config
from skill_evolution.runs.folder import Run
from skill_evolution.runs.records import run_evolution, write_predictions, write_summary
from skill_evolution.teams.single import BASELINES, applicable
from skill_evolution.teams.team import Call, Team


class Method(Protocol):
    """The seam between an experiment and a way to answer its questions.

    Runs to the end, or from where an earlier attempt stopped, and leaves `predictions.jsonl` (one row a test
    question) and `summary.json` in the run's folder. `models` record into the run's ledger.
    """

    async def __call__(self, run: Run, benchmark: Benchmark, team: Team, models: Models) -> dict[str, Any]: ...


def make_evolution(config: Config, benchmark: Benchmark, team: Team, models: Models) -> Evolution:
    """The loop as a method runs it: the critic of groups, or MASkills' of trajectories.

    Raises:
        ConfigError: maskills with a group size other than 1.
    """
    if config.method == "maskills":
        if config.group_size != 1:
            raise ConfigError(f"maskills works on single trajectories: group_size must be 1, not {config.group_size}")
        return Evolution(config, benchmark, team, models, TrajectoryCritic(team))
    critic = GroupCritic(team, config.structured_diagnosis, config.label_conditioned)
    return Evolution(config, benchmark, team, models, critic)


async def evolving(run: Run, benchmark: Benchmark, team: Team, models: Models) -> dict[str, Any]:
    """A team that starts with the libraries it is given and evolves them, by the config's method.

    grse: group-relative skill evolution, its ablations are switches of the config. maskills: one rollout a question,
    credit from each trajectory on its own. empty: no iterations, what the others are measured against.
    """
    config = run.config
    if config.method == "empty":
        config = config.model_copy(update={"iterations": 0})
    return await run_evolution(run, make_evolution(config, benchmark, team, models))


async def single(run: Run, benchmark: Benchmark, team: Team, models: Models) -> dict[str, Any]:
    """A single-model baseline, by the config's method: no team and no training, only the test.

    Raises:
        ConfigError: full_context on HotpotQA.
        DataError: there are no test questions.
    """
    config = run.config
    if not applicable(config.method, config.benchmark):
        raise ConfigError(
            f"method: {config.method} is not applicable to {config.benchmark}: all baselines see all passages there; "
            "take direct, or the benchmark locomo"
        )
    check_splits(benchmark, ("test",))
    call = Call(models.actor, config.test_sampling, f"test/seed{config.seed}")
    trajectories = await run_all(BASELINES[config.method], benchmark, benchmark.splits["test"], {}, call)
    return write_summary(run, write_predictions(run.folder, benchmark, trajectories))


METHODS: Mapping[str, Method] = {
    **dict.fromkeys(("grse", "maskills", "empty"), evolving),
    **dict.fromkeys(BASELINES, single),
}
