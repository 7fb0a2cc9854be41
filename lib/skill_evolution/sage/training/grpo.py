"""Reinforcement learning on chains of tasks with TRL's GRPOTrainer: SAGE with the agent's library, GRPO without.

TRL gets whole steps from us (`rollout_func`): one row a (scenario, position, chain), the tokens as they were sampled,
a mask over the observations, and each row's reward. Its dataset has one entry a (step, scenario, position) in our
order, which it repeats G times: G rows in a row are a group. TRL hands each process a slice of a step's rows; chains
are shared among processes independently of these slices, and every process then takes its slice of all rows.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from accelerate.utils import gather_object
from datasets import Dataset
from torch.distributed.distributed_c10d import PrefixStore, _get_default_store  # noqa: PLC2701 - torch names no public one
from transformers import PrinterCallback
from transformers.trainer_utils import get_last_checkpoint
from trl import GRPOTrainer  # pyright: ignore[reportPrivateImportUsage]

from skill_evolution.sage.agent.chains import Chain
from skill_evolution.sage.agent.episode import TimedPolicy
from skill_evolution.sage.agent.planning import Step, plan_steps
from skill_evolution.sage.agent.rewards import REWARDS
from skill_evolution.sage.agent.rows import Row, padding_row, training_rows
from skill_evolution.sage.agent.runner import Enough, Runner, Tally, Work
from skill_evolution.sage.agent.world import World
from skill_evolution.sage.config import SageConfig
from skill_evolution.sage.policies.loading import process_count, process_index, take_trained
from skill_evolution.sage.policies.policy import LocalPolicy
from skill_evolution.sage.policies.served_policy import ServedPolicy, server_of
from skill_evolution.sage.training.grpo_arguments import divide, trl_arguments
from skill_evolution.sage.training.recording import Recorder, sampling

_RUNS = itertools.count()  # of this process, and of all that train together: the store where they count outlives a run


def train_grpo(policy: LocalPolicy, world: World, config: SageConfig, folder: Path) -> list[dict[str, Any]]:
    """Train the policy in place on the world's train split.

    With `config.agent.library` and `config.grpo.chain_length` of at least 2 that is SAGE; without library and with
    chains of one task it is the GRPO baseline. One update a batch, no KL term, advantages not divided by the standard
    deviation, loss averaged over a row's sampled tokens and then over rows (FACTS B, "objective"). Rows whose world or
    policy failed are counted, logged and not trained on.

    Args:
        policy: What is trained.
        world: Tasks of its splits `train` and, for evaluation, `dev`.
        config: The run.
        folder: Gets `training.csv` (one row a step, see `Recorder`) and TRL's checkpoints. A run that was stopped goes
            on from the last one there.

    Returns:
        The rows of `training.csv`.
    """
    steps = plan(world, config)
    division = divide(config.grpo, processes=process_count())
    rollouts = Rollouts(sampler_of(policy, config), world, config, steps, padding=division.padding)
    recorder = Recorder(rollouts.runner, folder / "training.csv", config)
    trainer = _Trainer(
        model=policy.model,
        processing_class=policy.tokenizer,
        reward_funcs=_reward,
        args=trl_arguments(config, folder),
        train_dataset=_dataset(steps, padding=division.padding),
        rollout_func=rollouts,
        callbacks=[recorder],
    )
    trainer.remove_callback(PrinterCallback)  # the library doesn't print
    recorder.attach(trainer, rollouts)
    trainer.loss_factor = 1 + division.padding * config.grpo.group / config.grpo.rows
    trainer.train(resume_from_checkpoint=get_last_checkpoint(str(folder)) if folder.is_dir() else None)
    take_trained(policy, trainer)
    return recorder.rows


def sampler_of(policy: LocalPolicy, config: SageConfig) -> TimedPolicy:
    """What samples while a policy is trained: itself, or the server that is sent its weights."""
    if config.rollout.engine == "transformers":
        return policy
    return ServedPolicy(policy.tokenizer, policy.model.generation_config, server=server_of(config))


def plan(world: World, config: SageConfig) -> list[Step]:
    """The tasks of every step, from the run's seed."""
    grpo = config.grpo
    return plan_steps(
        world.tasks("train"),
        steps=grpo.steps,
        scenarios=grpo.scenarios,
        chain_length=grpo.chain_length,
        rng=np.random.default_rng(config.seed),
    )


@dataclass
class Rollouts:
    """TRL's `rollout_func`: runs a step's chains and returns this process's rows of them.

    Attributes:
        padding: Groups of rows that train nothing, at the end of each step's.
        chains: Those of the last step, of all processes.
        rows: Those of the last step, of all processes.
    """

    policy: TimedPolicy
    world: World
    config: SageConfig
    steps: Sequence[Step]
    padding: int = 0

    def __post_init__(self) -> None:
        self.runner = Runner(
            self.policy, self.world, self.config.agent, process_index(), process_count(), gather_object
        )
        self.run = next(_RUNS)
        self.chains: list[Chain] = []
        self.rows: list[Row] = []

    def __call__(self, prompts: list[str], trainer: Any) -> dict[str, list[Any]]:
        """The rows of `prompts`, which name a step's (scenario, position) G times each, a process's slice of them."""
        step = int(prompts[0].split("/")[0])
        everyone = gather_object(list(prompts))
        group = self.config.grpo.group
        expected = [name for name in _names(step, self.steps[step], padding=self.padding) for _ in range(group)]
        if everyone != expected:
            raise ValueError(f"step {step}: TRL asked for other rows than planned: {everyone[:3]} ...")
        self._roll(step, trainer)
        start = self.runner.rank * len(prompts)
        nothing = padding_row(int(trainer.processing_class.pad_token_id))
        rows = [*self.rows, *[nothing] * (self.padding * group)]
        return _columns(rows[start : start + len(prompts)])

    def _roll(self, step: int, trainer: Any) -> None:
        grpo = self.config.grpo
        with sampling(self.policy, trainer):
            self.chains = self.runner.run(
                self._work(step), temperature=grpo.temperature, enough=self._enough, tally=self._tally(step)
            )
        pad = int(trainer.processing_class.pad_token_id)
        self.rows = training_rows(self.chains, group=grpo.group, reward=REWARDS[grpo.reward], pad=pad)

    @property
    def _enough(self) -> Enough | None:
        grpo = self.config.grpo
        return Enough(grpo.stop_share, grpo.stop_share_scenario) if grpo.stop_share else None

    def _tally(self, step: int) -> Tally | None:
        """Counts in the store at which the processes met; the keys are the step's own."""
        if self._enough is None or self.runner.processes == 1:
            return None
        scenarios = [tasks[0].scenario for tasks in self.steps[step]]
        store = PrefixStore(f"run {self.run} step {step}", _get_default_store())

        def count(done: Iterable[str]) -> Mapping[str, int]:
            for scenario in done:
                store.add(scenario, 1)
            return {scenario: store.add(scenario, 0) for scenario in scenarios}

        return count

    def _work(self, step: int) -> list[Work]:
        return [
            Work(tasks, f"{self.config.seed}/train/{step}", index)
            for tasks in self.steps[step]
            for index in range(self.config.grpo.group)
        ]


class _Trainer(GRPOTrainer):
    """TRL's trainer; what differs is said at each method."""

    loss_factor = 1.0

    def compute_loss(self, *args: Any, **kwargs: Any) -> Any:
        """TRL's mean over a step's rows; padding rows add nothing to it, but count, which the factor makes up for."""
        return super().compute_loss(*args, **kwargs) * self.loss_factor

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """None: TRL's card cites papers and a dataset that aren't what was done here."""


def _reward(*, reward: list[float | None], **_: Any) -> list[float | None]:
    """The rewards that came with the rows (TRL calls a function for them); None keeps a failed row out of its group."""
    return reward


def _names(step: int, scenarios: Step, *, padding: int) -> list[str]:
    """What the dataset calls the (scenario, position)s of a step, and what fills it up."""
    names = [f"{step}/{slot}/{position}" for slot, tasks in enumerate(scenarios) for position in range(len(tasks))]
    return names + [f"{step}/padding/{place}" for place in range(padding)]


def _dataset(steps: Sequence[Step], *, padding: int = 0) -> Dataset:
    names = [name for step, tasks in enumerate(steps) for name in _names(step, tasks, padding=padding)]
    return Dataset.from_dict({"prompt": names})


def _columns(rows: Sequence[Row]) -> dict[str, list[Any]]:
    return {
        "prompt_ids": [list(row.prompt_ids) for row in rows],
        "completion_ids": [list(row.completion_ids) for row in rows],
        "logprobs": [list(row.logprobs) for row in rows],
        "env_mask": [list(row.env_mask) for row in rows],
        "reward": [row.reward for row in rows],
    }
