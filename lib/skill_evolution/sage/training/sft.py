"""Supervised fine-tuning on traces: of a scripted expert, or of the policy's own successes (self-distillation).

A trace is an Episode, run in the world with the agent's own prompt, so that the policy is trained on exactly the ids
that it will meet. Each turn becomes one example: everything before it is the prompt, and the loss is on it alone
(FACTS B, "expert data": loss on the last turn of each example).
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from trl import SFTConfig as TrlSftConfig  # pyright: ignore[reportPrivateImportUsage]
from trl import SFTTrainer  # pyright: ignore[reportPrivateImportUsage]

from skill_evolution.sage.agent.episode import Episode
from skill_evolution.sage.agent.runner import Runner
from skill_evolution.sage.agent.world import Task
from skill_evolution.sage.config import SageConfig, SftConfig
from skill_evolution.sage.policies.loading import process_count, take_trained
from skill_evolution.sage.policies.policy import LocalPolicy

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Example:
    """Token ids: what comes before a turn, and the turn, which alone is trained on."""

    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]


Vary = Callable[[Example, np.random.Generator], Example]


def examples(episodes: Iterable[Episode]) -> list[Example]:
    """One example a turn, in order; turns that a token limit cut are left out, as they'd teach not to stop."""
    found: list[Example] = []
    for episode in episodes:
        before = episode.prompt_ids
        for turn in episode.turns:
            before += turn.observation_ids
            if not turn.sample.cut:
                found.append(Example(before, turn.sample.ids))
            before += turn.sample.ids
    return found


def rejection_sampled(runner: Runner, tasks: Sequence[Task], config: SftConfig, *, key: str) -> list[Episode]:
    """Self-distillation: the policy's own episodes that succeed, over `attempts` chains a scenario.

    The temperatures take turns over the attempts (FACTS B, "expert data": rejection sampling over a temperature sweep;
    there with a stronger model).
    """
    kept: list[Episode] = []
    for attempt in range(config.attempts):
        temperature = config.temperatures[attempt % len(config.temperatures)]
        for chain in runner.evaluate(tasks, temperature=temperature, key=f"{key}/{attempt}"):
            kept += [episode for episode in chain.episodes if episode.success]
    return kept


def train_sft(
    policy: LocalPolicy,
    traces: Sequence[Example],
    config: SageConfig,
    folder: Path,
    *,
    evaluate: Callable[[], float] | None = None,
    vary: Vary | None = None,
) -> list[dict[str, Any]]:
    """Train the policy in place on examples with TRL's SFTTrainer.

    Args:
        policy: What is trained.
        traces: The examples.
        config: Its `sft` and `sft_seed`.
        folder: For TRL's output.
        evaluate: Gives dev TGC (0 to 100) of the policy as it is; called every `sft.evaluate_every` updates, and
            training ends once it reaches `sft.target_tgc`.
        vary: Changes an example each time that it's used.

    Returns:
        One row an update: step, loss, learning_rate and, where it was evaluated, dev_tgc.

    Raises:
        ValueError: There are no examples.
    """
    if not traces:
        raise ValueError("no examples to fine-tune on: not one trace succeeded")
    stop = _DevStop(config.sft, evaluate)
    trainer = SFTTrainer(
        model=policy.model,
        args=_arguments(config, folder),
        train_dataset=_dataset(_ordered(traces, config, vary)),
        processing_class=policy.tokenizer,
        callbacks=[stop],
    )
    trainer.remove_callback(PrinterCallback)  # the library doesn't print
    trainer.train()
    take_trained(policy, trainer)
    taken = ("step", "loss", "learning_rate", "grad_norm")
    rows = [{name: log[name] for name in taken if name in log} for log in trainer.state.log_history if "loss" in log]
    return [row | stop.seen.get(int(row["step"]), {}) for row in rows]


class _DevStop(TrainerCallback):
    """Evaluates now and then, and ends training at the target."""

    def __init__(self, config: SftConfig, evaluate: Callable[[], float] | None) -> None:
        self.config, self.evaluate = config, evaluate
        self.seen: dict[int, dict[str, float]] = {}

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        every, step = self.config.evaluate_every, state.global_step
        if self.evaluate is None or every is None or step % every or step < self.config.evaluate_from:
            return
        tgc = self.evaluate()
        self.seen[step] = {"dev_tgc": tgc}
        logger.info("SFT step %d: dev TGC %.1f", step, tgc)
        if self.config.target_tgc is not None and tgc >= self.config.target_tgc:
            control.should_training_stop = True


def _ordered(traces: Sequence[Example], config: SageConfig, vary: Vary | None) -> list[Example]:
    """The examples of all updates, in order: epochs, each in a random order and, where they vary, drawn afresh."""
    rng = np.random.default_rng(config.sft_seed)
    size = config.sft.batch_size * config.sft.steps
    order = islice((place for _ in count() for place in rng.permutation(len(traces))), size)
    return [vary(traces[place], rng) if vary else traces[place] for place in order]


def _dataset(traces: Sequence[Example]) -> Dataset:
    return Dataset.from_dict(
        {
            "input_ids": [[*one.prompt_ids, *one.completion_ids] for one in traces],
            "labels": [[-100] * len(one.prompt_ids) + list(one.completion_ids) for one in traces],
        }
    )


def _arguments(config: SageConfig, folder: Path) -> TrlSftConfig:
    sft, processes = config.sft, process_count()
    micro = sft.micro_batch or max(sft.batch_size // processes, 1)
    accumulation, rest = divmod(sft.batch_size, micro * processes)
    if rest:
        raise ValueError(
            f"sft.batch_size: {sft.batch_size} isn't a multiple of {micro} examples x {processes} processes"
        )
    return TrlSftConfig(
        output_dir=str(folder),
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=accumulation,
        learning_rate=sft.learning_rate,
        lr_scheduler_type="linear",
        train_sampling_strategy="sequential",
        max_steps=sft.steps,
        max_length=None,
        packing=False,
        gradient_checkpointing=config.grpo.gradient_checkpointing,
        bf16=config.policy.dtype == "bfloat16",
        use_cpu=not torch.cuda.is_available(),
        seed=config.sft_seed,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        dataset_num_proc=None,
    )
