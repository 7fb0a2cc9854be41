"""What TRL's GRPOTrainer is told: one update a batch on our rows, no KL term, advantages that are means only."""

from pathlib import Path

import torch
from trl import GRPOConfig  # pyright: ignore[reportPrivateImportUsage]

from skill_evolution.sage.config import GrpoConfig, SageConfig
from skill_evolution.sage.loading import process_count


def trl_arguments(config: SageConfig, folder: Path) -> GRPOConfig:
    """TRL's settings for a run; its checkpoints go to `folder`.

    Raises:
        ValueError: The rows of a step can't be divided among the processes or into micro-batches.
    """
    grpo = config.grpo
    micro, accumulation = _division(grpo)
    return GRPOConfig(
        output_dir=str(folder),
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=accumulation,
        num_generations=grpo.group,
        max_completion_length=config.agent.context,
        temperature=grpo.temperature,  # the log-probabilities that are trained are those sampled from
        loss_type="grpo",
        scale_rewards="none",
        beta=0.0,
        num_iterations=1,
        epsilon=grpo.epsilon,
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
        report_to=list(grpo.report_to) or "none",
        disable_tqdm=True,
        remove_unused_columns=False,
        log_completions=False,
    )


def _division(grpo: GrpoConfig) -> tuple[int, int]:
    """Rows of one forward pass, and how many of these an update takes on each process."""
    processes = process_count()
    if grpo.rows % processes:
        raise ValueError(f"{grpo.rows} rows a step can't be divided among {processes} processes")
    own = grpo.rows // processes
    micro = grpo.micro_batch or own
    if own % micro:
        raise ValueError(f"grpo.micro_batch: {micro} is no divisor of the {own} rows that a process has")
    return micro, own // micro
