"""What a training run leaves of each step: figures of its chains, of the update, of dev, and where the time went."""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
from transformers import TrainerCallback, TrainerControl, TrainerState
from trl.models.utils import unwrap_model_for_generation

from skill_evolution.runs.folder import write_text
from skill_evolution.sage.agent.chains import Chain
from skill_evolution.sage.agent.episode import TimedPolicy
from skill_evolution.sage.agent.metrics import metrics
from skill_evolution.sage.agent.rows import Row
from skill_evolution.sage.agent.runner import Runner
from skill_evolution.sage.config import GrpoConfig, SageConfig
from skill_evolution.sage.policies.policy import LocalPolicy

logger = logging.getLogger(__name__)


def figures(chains: Sequence[Chain], rows: Sequence[Row], *, config: GrpoConfig) -> dict[str, float]:
    """A step's figures: the metrics of its chains, the run's reward among them, and of its rows

    - failed: rows whose world or policy failed;
    - stopped: rows of chains that were stopped early;
    - equal_groups: share of groups that train nothing, because all their rewards are the same;
    - trained_tokens: sampled tokens that are trained on.
    """
    size = config.group
    groups = [{row.reward for row in rows[at : at + size]} - {None} for at in range(0, len(rows), size)]
    found = metrics(chains, reward=config.reward)
    stopped = sum(episode.ended == "stopped" for chain in chains for episode in chain.episodes)
    return {
        **found,
        "failed": found["failed"] - stopped,
        "stopped": float(stopped),
        "equal_groups": sum(len(found) < 2 for found in groups) / len(groups),
        "trained_tokens": float(sum(sum(row.env_mask) for row in rows)),
    }


class Recorder(TrainerCallback):
    """Writes one row a step into a CSV file, and evaluates on dev.

    Columns: step, those of `figures`, loss, grad_norm, learning_rate, entropy, seconds_sampling (in the model),
    seconds_world (the rest of the rollouts), seconds_training (the rest of the step), and at evaluated steps the dev
    metrics as dev_*. Step 0 holds the evaluation before training.
    """

    def __init__(self, runner: Runner, file: Path, config: SageConfig) -> None:
        """A recorder of a run whose chains `runner` runs."""
        self.runner, self.file, self.config = runner, file, config
        self.rows: list[dict[str, Any]] = []
        self.row: dict[str, Any] = {}

    def attach(self, trainer: Any, rollouts: Any) -> None:
        """Name the trainer and the rollouts that are recorded; to be called before training."""
        self.trainer, self.rollouts = trainer, rollouts

    def on_train_begin(self, args: Any, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Go on with the rows of the steps that a resumed run has done; evaluate before the first."""
        if state.global_step and self.file.is_file():
            there = pd.read_csv(self.file, float_precision="round_trip")
            self.rows = there.query("step <= @state.global_step").to_dict(orient="records")
        if state.global_step == 0 and self.config.grpo.evaluate_every:
            self._write({"step": 0, **self._dev(0)})

    def on_step_begin(self, args: Any, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Start the clocks."""
        self.clock = (time.perf_counter(), self.runner.seconds, self.runner.policy.seconds)

    def on_step_end(self, args: Any, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Take the step's figures, and evaluate where it is time."""
        step, grpo = state.global_step, self.config.grpo
        chains, rows = self.rollouts.chains, self.rollouts.rows
        self.row = {"step": step, **figures(chains, rows, config=grpo), **self._times()}
        if self.row["failed"]:
            logger.warning("step %d: %d rows failed and are not trained on", step, self.row["failed"])
        if grpo.evaluate_every and step % grpo.evaluate_every == 0:
            self.row |= self._dev(step)

    def on_log(self, args: Any, state: TrainerState, control: TrainerControl, logs: Any = None, **_: Any) -> None:
        """Write the row, with what TRL knows of the update."""
        if logs and "loss" in logs and self.row.get("step") == state.global_step:
            taken = ("loss", "grad_norm", "learning_rate", "entropy")
            self._write(self.row | {name: logs[name] for name in taken if name in logs})

    def _times(self) -> dict[str, float]:
        wall, rollouts, sampling = self.clock
        whole = time.perf_counter() - wall
        rolled, sampled = self.runner.seconds - rollouts, self.runner.policy.seconds - sampling
        return {"seconds_sampling": sampled, "seconds_world": rolled - sampled, "seconds_training": whole - rolled}

    def _dev(self, step: int) -> dict[str, float]:
        config = self.config
        if self.trainer.use_vllm:  # the server has the weights of before the step
            self.trainer.vllm_generation.sync_weights()
        with sampling(self.runner.policy, self.trainer):
            chains = self.runner.evaluate(
                self.runner.world.tasks("dev"), temperature=config.eval_temperature, key=f"{config.seed}/dev/{step}"
            )
        return {f"dev_{name}": value for name, value in metrics(chains).items()}

    def _write(self, row: dict[str, Any]) -> None:
        if self.trainer.is_world_process_zero():
            self.rows.append(row)  # written whole each time: a killed run leaves a file that can be read
            write_text(self.file, pd.DataFrame(self.rows).to_csv(index=False, lineterminator="\n"))


@contextmanager
def sampling(policy: TimedPolicy, trainer: Any) -> Iterator[None]:
    """Around sampling while a trainer holds the model: unwrapped, its parameters gathered where they're sharded.

    Nothing where a server samples.
    """
    if not isinstance(policy, LocalPolicy):
        yield
        return
    with unwrap_model_for_generation(trainer.model_wrapped, trainer.accelerator) as model:
        policy.model = model  # pyright: ignore[reportAttributeAccessIssue]
        yield
