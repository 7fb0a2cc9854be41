"""Stages of training: each makes a policy out of another one, in a folder of its own, once for all that start from it.

A folder's name ends in a hash of what decides the result: the stage's part of the config, the stage that it starts
from, this package's code and its prompts. So a finished stage is found again, and any change starts a new one. Stages
that are alike in all of that are one stage, whatever they were made for.
"""

import hashlib
import json
import logging
import os
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd
from filelock import FileLock

from skill_evolution.base import paths
from skill_evolution.base.profiles import merged
from skill_evolution.runs.folder import git_revision, write_json, write_text
from skill_evolution.sage.agent.world import World
from skill_evolution.sage.config import SCHEMA_VERSION, SageConfig

if TYPE_CHECKING:
    from skill_evolution.sage.policies.policy import LocalPolicy  # imports torch

logger = logging.getLogger(__name__)

Kind = Literal["base", "sft", "self_distillation", "grpo"]
PACKAGES = ("skill-evolution", "torch", "transformers", "trl", "accelerate", "pydantic-monty", "numpy")
_EVERY = {"policy": True, "world": True, "agent": True, "sft_seed": True, "eval_temperature": True}
# The temperature of reinforcement learning is also that at which supervised training is stopped.
_SUPERVISED = {**_EVERY, "sft": True, "grpo": {"temperature"}}
_DECIDES: dict[str, dict[str, Any]] = {
    "base": _EVERY,
    "sft": _SUPERVISED,
    "self_distillation": _SUPERVISED,
    "grpo": {**_EVERY, "seed": True, "grpo": True, "rollout": {"engine", "correction", "correction_max"}},
}


@dataclass(frozen=True)
class Stage:
    """One stage.

    Attributes:
        kind: base: the policy that a config names, untrained. sft: on expert traces. self_distillation: SFT on the
            starting policy's own successes. grpo: reinforcement learning; that is SAGE where the agent has its library
            and chains have several tasks.
        config: What decides it. The parts that don't concern its kind are ignored.
        start: The stage whose policy it trains; None for "base" alone.
    """

    kind: Kind
    config: SageConfig
    start: "Stage | None" = None

    def __post_init__(self) -> None:
        if (self.start is None) != (self.kind == "base"):
            raise ValueError(f"stage {self.kind!r}: every stage but 'base' starts from another one")

    @cached_property
    def digest(self) -> str:
        """A hash of all that decides its policy."""
        parts = self.config.model_dump(mode="json", include=_DECIDES[self.kind])
        if self.kind == "grpo":
            parts["grpo"] = {name: value for name, value in parts["grpo"].items() if name not in _ASIDE}
        inputs = [self.kind, parts, self.start.digest if self.start else None, code_version()]
        return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:8]

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seed of supervised training, and that of reinforcement learning if there was any."""
        return (self.config.sft_seed, self.config.seed) if self.kind == "grpo" else (self.config.sft_seed,)

    @property
    def title(self) -> str:
        """What was trained, in a word or two."""
        grpo, target = self.config.grpo, self.config.sft.target_tgc
        if self.kind == "grpo":
            chains = f"k{grpo.chain_length}"
            return f"sage-{chains}-{grpo.reward}" if self.config.agent.library else f"grpo-{chains}"
        return f"sft-to-{target:g}" if self.kind == "sft" and target else self.kind

    @property
    def name(self) -> str:
        """The name of its folder."""
        seeds = "-".join(f"{what}{seed}" for what, seed in zip(("sft", "seed"), self.seeds, strict=False))
        start = [f"from-{self.start.title}"] if self.start and self.start.start else []
        return "-".join([self.title, *start, seeds, self.digest])

    def folder(self, root: Path | None = None) -> Path:
        """Where it lies: below `root`, by default `results/<profile>/sage`."""
        return (root or paths.RESULTS / self.config.profile / "sage") / self.name

    def trained(self, root: Path | None = None) -> bool:
        """Whether there is nothing left to train."""
        return self.kind == "base" or (self.folder(root) / "policy").is_dir()

    def lineage(self) -> Iterator["Stage"]:
        """The stages that lead to this one, in order, itself the last."""
        if self.start:
            yield from self.start.lineage()
        yield self


_ASIDE = {"report_to", "save_every"}  # decide nothing about the policy


_TRAINING = (
    *("sage/config.py", "sage/agent", "sage/policies", "sage/training", "sage/appworld", "sage/stages/stage.py"),
    *("testbed/world", "prompts/sage"),
)


@cache
def code_version() -> str:
    """A hash of the code and the prompts that a trained policy rests on; what only evaluates isn't among them."""
    places = [paths.PACKAGE / place for place in _TRAINING]
    files = sorted(f for place in places for f in (place.rglob("*.*") if place.is_dir() else [place]))
    digests = (
        f"{file.relative_to(paths.PACKAGE)} {hashlib.sha256(file.read_bytes()).hexdigest()}"
        for file in files
        if file.suffix in (".py", ".md", ".j2")
    )
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def changed(config: SageConfig, **parts: Mapping[str, Any]) -> SageConfig:
    """The config with some fields of its parts changed: `changed(config, grpo={"chain_length": 1})`."""
    return SageConfig.model_validate(merged(config.model_dump(), parts))


def open_world(config: SageConfig) -> AbstractContextManager[World]:
    """The world that a config names; what it has started ends with the block."""
    if config.world.name == "appworld":
        from skill_evolution.sage.appworld.pool import PoolSettings
        from skill_evolution.sage.appworld.world import AppWorld

        return AppWorld(pool=PoolSettings(size=config.world.servers))
    from skill_evolution.testbed.world import MiniWorld

    return nullcontext(MiniWorld(seed=config.world.seed))


def load(stage: Stage, world: World, *, root: Path | None = None) -> "LocalPolicy":
    """The policy of a stage that is trained."""
    from skill_evolution.sage.policies.loading import load_policy

    if stage.kind == "base":
        return load_policy(stage.config, texts=_texts(world))
    return load_policy(stage.config, folder=stage.folder(root) / "policy")


def _texts(world: World) -> list[str]:
    from skill_evolution.testbed.world import MiniWorld
    from skill_evolution.testbed.world.expert_data import world_text

    return world_text(world) if isinstance(world, MiniWorld) else []


def train(stage: Stage, *, root: Path | None = None) -> None:
    """Train a stage whose start is trained; one that is trained already is left as it is.

    The folder gets `config.json`, `training.csv` (one row an update) and, once all is done, `policy/`. A stage that was
    stopped goes on from its last checkpoint where there is one, else it begins again.

    Under `accelerate launch` all processes call it, with a folder that all of them see; the first one writes.
    """
    folder = stage.folder(root)
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".lock") if _first_process() else nullcontext():
        if stage.start is None or _agreed(stage.trained(root)):
            return
        if _first_process():
            write_json(folder / "config.json", record(stage))
        with open_world(stage.config) as world:
            policy = load(stage.start, world, root=root)
            _TRAINERS[stage.kind](stage.config, policy, world, folder)
        if _first_process():
            _keep(policy, folder)
        _wait_for_others()
        logger.info("%s is trained", folder.name)


def _first_process() -> bool:
    """Whether this is the process that writes; told by what launches several, so that torch needn't be loaded."""
    return os.environ.get("RANK", "0") == "0"


def _agreed(value: bool) -> bool:
    """What the first process says, which may have waited for the lock meanwhile; the processes meet here.

    They meet before a model is loaded: only then is it loaded in shards, where the launch file asks for them.
    """
    if os.environ.get("WORLD_SIZE", "1") == "1":
        return value
    from accelerate.utils import broadcast_object_list

    from skill_evolution.sage.policies.loading import process_count

    process_count()
    return bool(broadcast_object_list([value])[0])


def _wait_for_others() -> None:
    """A process that ended now would take the others with it."""
    if os.environ.get("WORLD_SIZE", "1") != "1":
        from accelerate import PartialState

        PartialState().wait_for_everyone()


def _keep(policy: "LocalPolicy", folder: Path) -> None:
    """Save the policy under its name once it's whole, and drop the checkpoints on the way."""
    from skill_evolution.sage.policies.loading import save_policy

    save_policy(policy, folder / "policy.partial").replace(folder / "policy")
    for checkpoint in folder.glob("checkpoint-*"):
        shutil.rmtree(checkpoint)


def record(stage: Stage) -> dict[str, Any]:
    """What a stage's `config.json` says: the resolved config, where it starts, and what it was run with."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": stage.kind,
        "start": stage.start.name if stage.start else None,
        "config": stage.config.model_dump(mode="json"),
        "git_revision": git_revision(),
        "code_version": code_version(),
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in PACKAGES},
    }


def _train_sft(config: SageConfig, policy: "LocalPolicy", world: World, folder: Path) -> None:
    """On traces of the scripted expert; a world without one (AppWorld) gives the policy's own successes instead."""
    from skill_evolution.testbed.world import MiniWorld
    from skill_evolution.testbed.world.expert_data import expert_traces

    if not isinstance(world, MiniWorld):
        return _self_distil(config, policy, world, folder)
    _fine_tune(config, policy, world, folder, [e for c in expert_traces(policy, world, config) for e in c.episodes])


def _self_distil(config: SageConfig, policy: "LocalPolicy", world: World, folder: Path) -> None:
    from accelerate.utils import gather_object

    from skill_evolution.sage.agent.runner import Runner
    from skill_evolution.sage.policies.loading import process_count, process_index
    from skill_evolution.sage.policies.served_policy import served
    from skill_evolution.sage.training.sft import rejection_sampled

    key = f"{config.sft_seed}/self-distillation"
    sampler = served(policy.model, policy.tokenizer, config) if config.rollout.engine == "vllm" else policy
    runner = Runner(sampler, world, config.agent, process_index(), process_count(), gather_object)
    _fine_tune(config, policy, world, folder, rejection_sampled(runner, world.tasks("train"), config.sft, key=key))


def _fine_tune(config: SageConfig, policy: "LocalPolicy", world: World, folder: Path, episodes: list[Any]) -> None:
    from skill_evolution.sage.agent.metrics import metrics
    from skill_evolution.sage.agent.runner import Runner
    from skill_evolution.sage.training.sft import examples, train_sft
    from skill_evolution.testbed.world.expert_data import permuted_values

    def dev_tgc() -> float:
        # Sampled as in reinforcement learning: what counts is what that will have to learn from.
        runner, temperature = Runner(policy, world, config.agent), config.grpo.temperature
        chains = runner.evaluate(world.tasks("dev"), temperature=temperature, key=f"{config.sft_seed}/dev")
        return metrics(chains)["tgc"]

    vary = permuted_values(policy) if config.policy.kind == "tiny" else None
    rows = train_sft(policy, examples(episodes), config, folder, evaluate=dev_tgc, vary=vary)
    if _first_process():
        write_text(folder / "training.csv", pd.DataFrame(rows).to_csv(index=False, lineterminator="\n"))


def _train_grpo(config: SageConfig, policy: "LocalPolicy", world: World, folder: Path) -> None:
    from skill_evolution.sage.training.grpo import train_grpo

    train_grpo(policy, world, config, folder, resume=True)


_TRAINERS: dict[str, Callable[[SageConfig, "LocalPolicy", World, Path], None]] = {
    "sft": _train_sft,
    "self_distillation": _self_distil,
    "grpo": _train_grpo,
}
