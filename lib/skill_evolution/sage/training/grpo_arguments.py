"""What TRL's GRPOTrainer is told: one update a batch on our rows, no KL term, advantages that are means only."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from trl import GRPOConfig  # pyright: ignore[reportPrivateImportUsage]

from skill_evolution.sage.config import GrpoConfig, RolloutConfig, SageConfig
from skill_evolution.sage.policies.loading import process_count


def trl_arguments(config: SageConfig, folder: Path) -> GRPOConfig:
    """TRL's settings for a run; its checkpoints go to `folder`."""
    grpo = config.grpo
    division = divide(grpo, processes=process_count())
    return GRPOConfig(
        output_dir=str(folder),
        per_device_train_batch_size=division.micro,
        gradient_accumulation_steps=division.accumulation,
        num_generations=grpo.group,
        max_completion_length=config.agent.context,
        temperature=grpo.temperature,  # the log-probabilities that are trained are those sampled from
        loss_type="grpo",
        scale_rewards="none",
        beta=0.0,
        num_iterations=1,
        mask_truncated_completions=False,
        shuffle_dataset=False,  # the order is the plan's; shuffling would split chains
        learning_rate=grpo.learning_rate,
        lr_scheduler_type=grpo.schedule,
        warmup_steps=grpo.warmup_steps,
        max_grad_norm=grpo.max_grad_norm,
        max_steps=grpo.steps,
        gradient_checkpointing=grpo.gradient_checkpointing,
        bf16=config.policy.dtype == "bfloat16",
        use_cpu=not torch.cuda.is_available(),
        seed=config.seed,
        logging_steps=1,
        save_strategy="steps" if grpo.save_every else "no",
        save_steps=grpo.save_every or 500,
        report_to="none",
        disable_tqdm=True,
        remove_unused_columns=False,
        log_completions=False,
        **_engine(config.rollout),
    )


def _engine(rollout: RolloutConfig) -> dict[str, Any]:
    if rollout.engine == "transformers":
        return {}
    return {
        "use_vllm": True,
        "vllm_mode": "server",
        "vllm_server_base_url": rollout.base_url,
        "vllm_server_timeout": rollout.timeout,
        "vllm_importance_sampling_correction": True,
        # By token: by sequence, TRL's default, a tiny drift masks most long rows.
        "vllm_importance_sampling_mode": "token_truncate",
    }


@dataclass(frozen=True)
class Division:
    """How a step's rows are shared out.

    Attributes:
        micro: Rows of one forward pass.
        accumulation: Forward passes that an update takes on each process.
        padding: Groups of rows that train nothing, which fill up what would otherwise not divide.
    """

    micro: int
    accumulation: int
    padding: int


def divide(grpo: GrpoConfig, *, processes: int) -> Division:
    """Share a step's rows out among processes, each with the same number, in whole groups and micro-batches."""
    micro = grpo.micro_batch or 1
    filled = _up_to_multiple(grpo.rows, math.lcm(grpo.group, processes * micro))
    own = filled // processes
    micro = grpo.micro_batch or own
    return Division(micro, own // micro, (filled - grpo.rows) // grpo.group)


def _up_to_multiple(number: int, of: int) -> int:
    return -(-number // of) * of
