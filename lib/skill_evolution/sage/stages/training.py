"""What makes the policy of a stage: trained here from the stage before, loaded again, or as a server has it."""

import logging
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pandas as pd
import torch
from accelerate import PartialState
from accelerate.utils import broadcast_object_list, gather_object
from filelock import FileLock
from transformers import AutoTokenizer, GenerationConfig

from skill_evolution.runs.folder import write_json, write_text
from skill_evolution.sage.agent.episode import Episode, Policy
from skill_evolution.sage.agent.metrics import metrics
from skill_evolution.sage.agent.runner import Runner
from skill_evolution.sage.agent.world import World
from skill_evolution.sage.appworld.world import AppWorld
from skill_evolution.sage.config import SageConfig
from skill_evolution.sage.policies.loading import load_policy, process_count, process_index, save_policy
from skill_evolution.sage.policies.policy import LocalPolicy
from skill_evolution.sage.policies.served_policy import ServedPolicy, server_of
from skill_evolution.sage.stages.stage import Stage, record
from skill_evolution.sage.training.grpo import sampler_of, train_grpo
from skill_evolution.sage.training.sft import examples, rejection_sampled, train_sft
from skill_evolution.testbed.world import MiniWorld
from skill_evolution.testbed.world.expert_data import expert_traces, permuted_values, world_text

logger = logging.getLogger(__name__)


def open_world(config: SageConfig) -> AbstractContextManager[World]:
    """The world that a config names; what it has started ends with the block."""
    if config.world.name == "appworld":
        return AppWorld(servers=config.world.servers)
    return nullcontext(MiniWorld(seed=config.world.seed))


def load(stage: Stage, world: World, *, root: Path | None = None) -> LocalPolicy:
    """The policy of a stage that is trained."""
    if stage.kind == "base":
        return load_policy(stage.config, texts=world_text(world) if isinstance(world, MiniWorld) else [])
    return load_policy(stage.config, folder=stage.folder(root) / "policy")


async def policy_to_test(stage: Stage, world: World, *, root: Path | None = None) -> Policy:
    """The policy of a stage for its evaluation: loaded, on a GPU where there is one, or as a server has it.

    With `rollout.engine` "vllm" that server must call it by the stage's name, a stage "base" by its weights' name:

        vllm serve results/paper/sage/STAGE/policy --served-model-name STAGE --logprobs-mode processed_logprobs

    Raises:
        ModelError: The server has no model of that name, or doesn't answer.
    """
    if stage.config.rollout.engine == "transformers":
        policy = load(stage, world, root=root)
        policy.model.to("cuda" if torch.cuda.is_available() else "cpu")  # pyright: ignore[reportArgumentType]
        return policy
    base = stage.kind == "base"
    source = str(stage.config.policy.weights) if base else str(stage.folder(root) / "policy")
    server = server_of(stage.config, model=source if base else stage.name)
    await server.connect()
    generation = GenerationConfig.from_pretrained(source)
    return ServedPolicy(AutoTokenizer.from_pretrained(source), generation, server=server)


def train(stage: Stage, *, root: Path | None = None) -> None:
    """Train a stage whose start is trained; one that is trained already is left as it is.

    The folder gets `config.json`, `training.csv` (one row an update) and, once all is done, `policy/`. A stage that was
    stopped goes on from its last checkpoint where there is one, else it begins again.

    Under `accelerate launch` all processes call it, with a folder that all of them see; the first one writes.
    """
    folder = stage.folder(root)
    folder.mkdir(parents=True, exist_ok=True)
    first, several = process_index() == 0, process_count() > 1
    with FileLock(folder / ".lock") if first else nullcontext():
        # What the first process says, which may have waited for the lock meanwhile. The processes meet before a model
        # is loaded: only then is it loaded in shards, where the launch file asks for them.
        done = stage.trained(root)
        if stage.start is None or (broadcast_object_list([done])[0] if several else done):
            return
        if first:
            write_json(folder / "config.json", record(stage))
        with open_world(stage.config) as world:
            policy = load(stage.start, world, root=root)
            _TRAINERS[stage.kind](stage.config, policy, world, folder)
        if first:
            save_policy(policy, folder / "policy.partial").replace(folder / "policy")  # under its name once it's whole
            for checkpoint in folder.glob("checkpoint-*"):
                shutil.rmtree(checkpoint)
        if several:
            PartialState().wait_for_everyone()  # a process that ended now would take the others with it
        logger.info("%s is trained", folder.name)


def _train_sft(config: SageConfig, policy: LocalPolicy, world: World, folder: Path) -> None:
    """On traces of the scripted expert; a world without one (AppWorld) gives the policy's own successes instead."""
    if not isinstance(world, MiniWorld):
        return _self_distil(config, policy, world, folder)
    _fine_tune(config, policy, world, folder, [e for c in expert_traces(policy, world, config) for e in c.episodes])


def _self_distil(config: SageConfig, policy: LocalPolicy, world: World, folder: Path) -> None:
    key, sampler = f"{config.sft_seed}/self-distillation", sampler_of(policy, config)
    runner = Runner(sampler, world, config.agent, process_index(), process_count(), gather_object)
    _fine_tune(config, policy, world, folder, rejection_sampled(runner, world.tasks("train"), config.sft, key=key))


def _fine_tune(config: SageConfig, policy: LocalPolicy, world: World, folder: Path, episodes: list[Episode]) -> None:
    def dev_tgc() -> float:
        # Sampled as in reinforcement learning: what counts is what that will have to learn from.
        runner, temperature = Runner(policy, world, config.agent), config.grpo.temperature
        chains = runner.evaluate(world.tasks("dev"), temperature=temperature, key=f"{config.sft_seed}/dev")
        return metrics(chains)["tgc"]

    vary = permuted_values(policy) if config.policy.kind == "tiny" else None
    rows = train_sft(policy, examples(episodes), config, folder, evaluate=dev_tgc, vary=vary)
    if process_index() == 0:
        write_text(folder / "training.csv", pd.DataFrame(rows).to_csv(index=False, lineterminator="\n"))


def _train_grpo(config: SageConfig, policy: LocalPolicy, world: World, folder: Path) -> None:
    train_grpo(policy, world, config, folder)


_TRAINERS: dict[str, Callable[[SageConfig, LocalPolicy, World, Path], None]] = {
    "sft": _train_sft,
    "self_distillation": _self_distil,
    "grpo": _train_grpo,
}
