"""The arms of the SAGE experiments: what is compared, under names, as stages and their evaluations.

The paper's base model is prompted, and all its trainings start from it. The embedded policy has no such model: a random
Llama says nothing that is code. What stands in for the base is the same Llama after a short supervised training
(`LIGHT`), so that prompting, GRPO, self-distillation and RL warm-up have something to start from. The SFT arm starts
from the random weights, with its own, longer training.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

from skill_evolution.base.settings import check_keys
from skill_evolution.sage.config import Retrieval, SageConfig, load_sage_config
from skill_evolution.sage.stages.evaluation import Evaluation
from skill_evolution.sage.stages.stage import Stage, changed

LIGHT: Mapping[str, Any] = {"target_tgc": 12.0, "evaluate_every": 25, "evaluate_from": 200}
"""Fields of `sft` for the stand-in of the base model: it stops early. Ours."""
SELF_DISTILLATION: Mapping[str, Any] = {
    "attempts": 2,
    "steps": 60,
    "evaluate_from": 0,
    "learning_rate": 0.001,
}
"""Fields of `sft` for the embedded policy's self-distillation: fewer samples, and a rate that keeps what it knows.
Ours."""
BASELINE_SCENARIOS = 36 / 24
"""Scenarios of a step, GRPO without library against SAGE (FACTS B, "training"): its chains are shorter."""
DECODINGS = (0.0, 1.0)
MAIN = ("prompted", "sft", "grpo", "sft_grpo", "sage")
"""Arms of the main table."""


@dataclass(frozen=True)
class Arm:
    """One line of a table.

    Attributes:
        name: Its name; where the paper reports the same, that of data/reported/sage*.csv.
        stage: Where its policy comes from.
        evaluations: What is asked of the policy.
        group: The part of a table that it stands in.
    """

    name: str
    stage: Stage
    evaluations: tuple[Evaluation, ...]
    group: str = ""


@dataclass(frozen=True)
class Lineup:
    """The stages of one pair of seeds.

    Attributes:
        config: The run; its agent and its `grpo` are SAGE's.
        light: Fields of `sft` for the base's stand-in, over `LIGHT`; None starts from the random weights. Other
            policies than the embedded one are pretrained, and it's ignored.
    """

    config: SageConfig
    light: Mapping[str, Any] | None

    @property
    def untrained(self) -> Stage:
        """The policy that the config names."""
        return Stage("base", self.config)

    @property
    def base(self) -> Stage:
        """What stands where the paper has its base model."""
        if self.light is None or self.config.policy.kind != "tiny":
            return self.untrained
        return Stage("sft", changed(self.config, sft={**LIGHT, **self.light}), self.untrained)

    @property
    def sft(self) -> Stage:
        """Supervised on expert traces."""
        return Stage("sft", self.config, self.untrained)

    @property
    def self_distilled(self) -> Stage:
        """Supervised on the base's own successes."""
        tiny = self.config.policy.kind == "tiny"
        return Stage(
            "self_distillation", changed(self.config, sft=SELF_DISTILLATION) if tiny else self.config, self.base
        )

    def sage(self, start: Stage, **grpo: Any) -> Stage:
        """SAGE from a stage, with other fields of `grpo` than the config's."""
        return Stage("grpo", changed(self.config, grpo=grpo), start)

    def grpo(self, start: Stage) -> Stage:
        """GRPO without library, on single tasks."""
        scenarios = round(BASELINE_SCENARIOS * self.config.grpo.scenarios)
        own = {"chain_length": 1, "reward": "outcome", "scenarios": scenarios}
        return Stage("grpo", changed(self.config, agent={"library": False}, grpo=own), start)

    def evaluations(self, *splits: str, **options: Any) -> tuple[Evaluation, ...]:
        """Both decodings on each split, with the run's retrieval; `options` are other fields of Evaluation."""
        own = {"retrieval": self.config.agent.retrieval, **options}
        return tuple(Evaluation(split, temperature, **own) for split in splits for temperature in DECODINGS)


def lineup(
    profile: str = "demo",
    *,
    seed: int = 0,
    sft_seed: int = 0,
    light: Mapping[str, Any] | None = LIGHT,
    overrides: Mapping[str, Any] | None = None,
) -> Lineup:
    """The stages of a profile.

    Args:
        profile: A SAGE profile's name or file.
        seed: Of reinforcement learning.
        sft_seed: Of the tiny policy's weights and supervised training.
        light: As in `Lineup`.
        overrides: Fields of SageConfig for all stages.

    Raises:
        ConfigError: An unknown profile, or a field or value that can't be.
    """
    return Lineup(load_sage_config(profile, **{"seed": seed, "sft_seed": sft_seed, **(overrides or {})}), light)


def training_arms(
    stages: Lineup,
    *,
    names: Sequence[str] | None = None,
    splits: Sequence[str] = ("dev", "test", "challenge"),
    scenarios: int | None = None,
) -> list[Arm]:
    """The arms of the main table, each with both decodings on each split.

    Args:
        stages: The stages of one pair of seeds.
        names: Which of `MAIN`; None takes all, with a pretrained small policy (SmolLM2) the untrained one and SAGE
            from it: two steps that show that everything fits together, no result.
        splits: Which splits.
        scenarios: The first so many of each split; None takes all, with SmolLM2 two.

    Raises:
        ConfigError: There is no arm of such a name.
    """
    small = stages.config.policy.kind == "smollm2"
    scenarios = 2 if small and scenarios is None else scenarios
    if small and names is None:
        asked = (Evaluation("test", scenarios=scenarios),)
        base = stages.untrained
        return [Arm("prompted", base, asked), Arm("start_base_model", stages.sage(base), asked)]
    check_keys(names or (), MAIN, where="arms of the main table")
    tested = partial(stages.evaluations, *splits, scenarios=scenarios)
    made = [
        Arm("prompted", stages.base, tested()),
        Arm("sft", stages.sft, tested()),
        Arm("grpo", stages.grpo(stages.base), tested(retrieval=None)),
        Arm("sft_grpo", stages.grpo(stages.sft), tested(retrieval=None)),
        Arm("sage", stages.sage(stages.sft), tested()),
    ]
    return [arm for arm in made if arm.name in (names or MAIN)]


def ablation_arms(stages: Lineup, *, split: str = "test", scenarios: int | None = None) -> list[Arm]:
    """The arms of the ablations; SAGE itself stands in each group as what the others are compared with.

    Args:
        stages: The stages of one pair of seeds.
        split: Where they are tested.
        scenarios: The first so many of the split; None takes all.
    """
    sft, base, sage = stages.sft, stages.base, stages.sage(stages.sft)

    def trained(start: Stage, **grpo: Any) -> Stage:
        return stages.sage(start, **grpo, evaluate_every=None)  # nobody looks at their curves on dev

    tested = partial(stages.evaluations, split, scenarios=scenarios)
    starts = {"sage": sage, "start_base_model": trained(base), "start_rl_warm_up": trained(stages.grpo(base))}
    if base.kind != "base" or stages.config.policy.kind != "tiny":  # random weights have no successes to learn from
        starts["start_self_distillation"] = trained(stages.self_distilled)
    groups = {
        "reward": {"sage": sage} | {f"reward_{name}": trained(sft, reward=name) for name in ("outcome", "chain")},
        "chain length": {
            "chain_of_one": trained(sft, chain_length=1),
            "sage": sage,
            "chain_of_three": trained(sft, chain_length=3),
        },
        "start": starts,
    }
    arms = [Arm(name, stage, tested(), group) for group, own in groups.items() for name, stage in own.items()]
    for name, stage in {"sage": sage, "sft": sft, "prompted": base}.items():
        arms.append(Arm(name, stage, tested(), "library at test"))
        arms.append(Arm(f"{name}_empty_library", stage, tested(retrieval=None), "library at test"))
    for name in get_args(Retrieval):
        whole = tested(retrieval=name, whole_split=True)
        arms.append(Arm(f"retrieval_{name}", sage, whole, "retrieval at test"))
    return arms
