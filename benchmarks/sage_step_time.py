"""The time of a training step of ours against TRL's own GRPO with as many sampled and trained tokens, side by side.

    OMP_NUM_THREADS=1 python benchmarks/sage_step_time.py [--steps 6] [--rounds 3]

Both train the tiny policy on the same rows with the same settings. The end token is switched off, so that every row
samples exactly --tokens tokens in one turn; that is no code, so a task costs the world next to nothing, and what is
compared is the loop. K = 1 is the like-for-like figure (target: at most 1.15); K = 2 samples half the rows at a time,
twice, as the second task needs the skills of the first.
"""

import argparse
import logging
import statistics
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from trl.trainer.grpo_trainer import GRPOTrainer

from skill_evolution.sage.agent.prompt import messages
from skill_evolution.sage.config import SageConfig, load_sage_config
from skill_evolution.sage.policies.loading import load_policy
from skill_evolution.sage.policies.policy import LocalPolicy
from skill_evolution.sage.training.grpo import plan, train_grpo
from skill_evolution.sage.training.grpo_arguments import trl_arguments
from skill_evolution.testbed.world import MiniWorld
from skill_evolution.testbed.world.expert_data import world_text


class Clock(TrainerCallback):
    """Times each step."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def on_step_begin(self, *args: Any, **kwargs: Any) -> None:
        """Start."""
        self.started = time.perf_counter()

    def on_step_end(self, *args: Any, **kwargs: Any) -> None:
        """Stop."""
        self.seconds.append(time.perf_counter() - self.started)


def start(config: SageConfig, world: MiniWorld) -> LocalPolicy:
    """A policy that never ends its turn."""
    policy = load_policy(config, texts=world_text(world))
    policy.model.generation_config.suppress_tokens = [policy.tokenizer.eos_token_id]  # pyright: ignore
    return policy


def ours(config: SageConfig, world: MiniWorld, folder: Path) -> list[float]:
    """Seconds of each step of `train_grpo`."""
    rows = train_grpo(start(config, world), world, config, folder)
    assert all(row["trained_tokens"] == config.grpo.rows * config.agent.tokens_per_turn for row in rows), rows
    parts = ("sampling", "world", "training")
    return [sum(row[f"seconds_{part}"] for part in parts) for row in rows]


def plain(config: SageConfig, world: MiniWorld, folder: Path) -> list[float]:
    """Seconds of each step of TRL's GRPOTrainer, which samples the same prompts by itself."""
    policy, clock, lengths = start(config, world), Clock(), []
    arguments = trl_arguments(config, folder)
    arguments.max_completion_length = config.agent.tokens_per_turn
    arguments.generation_kwargs = {"suppress_tokens": [policy.tokenizer.eos_token_id]}
    steps = plan(world, config)
    prompts = [messages(config.agent, world, task, []) for step in steps for tasks in step for task in tasks]

    def reward(completion_ids: list[list[int]], **_: Any) -> list[float | None]:
        lengths.append(sum(map(len, completion_ids)))
        return [float(ids[0]) for ids in completion_ids]  # any that differ

    trainer = GRPOTrainer(
        model=policy.model,
        processing_class=policy.tokenizer,
        reward_funcs=reward,
        args=arguments,
        train_dataset=Dataset.from_dict({"prompt": prompts}),
        callbacks=[clock],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    assert set(lengths) == {config.grpo.rows * config.agent.tokens_per_turn}, lengths
    return clock.seconds


def main() -> None:
    """Prints the median step of both, and their ratio, for K = 1 and K = 2 with the same number of rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=48)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.getLogger("skill_evolution").setLevel(logging.ERROR)
    world = MiniWorld()
    for length in (1, 2):
        grpo = {"scenarios": 8 // length, "chain_length": length, "steps": options.steps, "evaluate_every": None}
        config = load_sage_config("demo", agent={"tokens_per_turn": options.tokens, "turns": 1}, grpo=grpo)
        seconds: dict[str, list[float]] = {"ours": [], "TRL": []}
        for _ in range(options.rounds):
            for name, run in (("ours", ours), ("TRL", plain)):
                with tempfile.TemporaryDirectory() as folder:
                    seconds[name] += run(config, world, Path(folder))[1:]  # the first step warms up
        medians = {name: statistics.median(times) for name, times in seconds.items()}
        ratio = medians["ours"] / medians["TRL"]
        print(f"K = {length}: ours {medians['ours']:.2f} s, TRL {medians['TRL']:.2f} s a step, ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
