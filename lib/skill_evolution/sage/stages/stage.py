"""Stages of training: each makes a policy out of another one, in a folder of its own, once for all that start from it.

A folder's name ends in a hash of what decides the result: the stage's part of the config, the stage that it starts
from, this package's code and its prompts. So a finished stage is found again, and any change starts a new one. Stages
that are alike in all of that are one stage, whatever they were made for.
"""

import hashlib
import json
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from skill_evolution.base import paths
from skill_evolution.base.profiles import merged
from skill_evolution.runs.folder import git_revision
from skill_evolution.sage.config import SCHEMA_VERSION, SageConfig

Kind = Literal["base", "sft", "self_distillation", "grpo"]
PACKAGES = ("skill-evolution", "torch", "transformers", "trl", "accelerate", "pydantic-monty", "numpy")
_EVERY = {"policy": True, "world": True, "agent": True, "sft_seed": True, "eval_temperature": True}
# The temperature of reinforcement learning is also that at which supervised training is stopped.
_SUPERVISED = {**_EVERY, "sft": True, "grpo": {"temperature"}}
_DECIDES: dict[str, dict[str, Any]] = {
    "base": _EVERY,
    "sft": _SUPERVISED,
    "self_distillation": _SUPERVISED,
    "grpo": {**_EVERY, "seed": True, "grpo": True, "rollout": {"engine"}},
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
        parts = self.config.model_dump(mode="json", include=_DECIDES[self.kind], exclude={"grpo": {"save_every"}})
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


_TRAINING = (
    *("sage/config.py", "sage/agent", "sage/policies", "sage/training", "sage/appworld"),
    *("sage/stages/stage.py", "sage/stages/training.py", "testbed/world", "prompts/sage"),
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
