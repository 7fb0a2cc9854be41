"""Files for `accelerate launch` and whether they fit a SAGE profile; profiles/accelerate holds two."""

from dataclasses import fields
from typing import Any

import yaml
from accelerate.commands.config.config_args import ClusterConfig
from accelerate.utils import FullyShardedDataParallelPlugin

from skill_evolution.base.profiles import profile_path
from skill_evolution.base.settings import ConfigError, check_keys
from skill_evolution.sage.config import SageConfig
from skill_evolution.sage.training.grpo_arguments import divide

_PRECISION = {"bfloat16": "bf16", "float32": "no"}
_RENAMED = {"transformer_layer_cls_to_wrap", "forward_prefetch", "min_num_params"}  # launch calls them otherwise
_FSDP = {f"fsdp_{name}" for name in {field.name for field in fields(FullyShardedDataParallelPlugin)} | _RENAMED} | {
    "fsdp_version",
    "fsdp_offload_params",
}
_DEEPSPEED = {
    "zero_stage",
    "zero3_init_flag",
    "zero3_save_16bit_model",
    "offload_optimizer_device",
    "offload_param_device",
    "deepspeed_config_file",
    "deepspeed_hostfile",
    "deepspeed_multinode_launcher",
    "gradient_accumulation_steps",
    "gradient_clipping",
}


def check_launch(name: str, config: SageConfig) -> ClusterConfig:
    """Read a launch file as accelerate does, and hold it against a run's config.

    Raises:
        ConfigError: No such file, an unknown key, or a combination that can't be; names the file and what's wrong.
    """
    path = profile_path(name, kind="accelerate")
    try:
        launch: Any = ClusterConfig.from_yaml_file(str(path))
    except (ValueError, TypeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: {error}") from error
    kind = getattr(launch.distributed_type, "value", str(launch.distributed_type))
    check_keys(launch.fsdp_config, _FSDP, where=f"{path}: fsdp_config")
    check_keys(launch.deepspeed_config, _DEEPSPEED, where=f"{path}: deepspeed_config")
    sharded = kind == "FSDP" or launch.deepspeed_config.get("zero_stage") == 3
    problems = [*_processes(launch, config), *_plugins(launch, kind, config)]
    if problems := [*problems, *(_sharded(launch, config) if sharded else [])]:
        raise ConfigError(f"{path}: " + "; ".join(problems))
    return launch


def _processes(launch: Any, config: SageConfig) -> list[str]:
    found = []
    wanted = _PRECISION[config.policy.dtype]
    if launch.mixed_precision != wanted:
        own = f"policy.dtype {config.policy.dtype!r}"
        found.append(f"mixed_precision is {launch.mixed_precision!r}, for {own} it must be {wanted!r}")
    if launch.num_processes % launch.num_machines:
        found.append(f"{launch.num_processes} processes can't be shared by {launch.num_machines} machines")
    if launch.num_processes > config.grpo.rows:
        found.append(f"{launch.num_processes} processes for {config.grpo.rows} rows a step: some would only pad")
    return found


def _plugins(launch: Any, kind: str, config: SageConfig) -> list[str]:
    found, fsdp, deepspeed = [], launch.fsdp_config, launch.deepspeed_config
    if fsdp and kind != "FSDP":
        found.append(f"fsdp_config with distributed_type {kind}")
    if deepspeed and kind != "DEEPSPEED":
        found.append(f"deepspeed_config with distributed_type {kind}")
    if fsdp.get("fsdp_activation_checkpointing") and config.grpo.gradient_checkpointing:
        found.append("fsdp_activation_checkpointing and grpo.gradient_checkpointing: activations recomputed twice")
    if kind == "FSDP" and fsdp.get("fsdp_version") != 2:
        found.append("fsdp_version must be 2: the first can't be sampled from between steps")
    ours = {
        "gradient_accumulation_steps": divide(config.grpo, processes=launch.num_processes).accumulation,
        "gradient_clipping": config.grpo.max_grad_norm,
    }
    for name, value in ours.items():
        if (given := deepspeed.get(name, "auto")) not in ("auto", value):
            found.append(f"{name} is {given}, the profile's is {value}; leave it out")
    return found


def _sharded(launch: Any, config: SageConfig) -> list[str]:
    found = []
    if launch.use_cpu:
        found.append("use_cpu: accelerate shards nothing on CPUs")
    if launch.deepspeed_config.get("zero_stage") == 3 and not launch.deepspeed_config.get("zero3_save_16bit_model"):
        found.append("zero3_save_16bit_model must be true, or no whole weights can be saved")
    if config.policy.lora_rank:
        found.append("policy.lora_rank: adapters can't be merged into a sharded model; they fit without sharding")
    if config.rollout.engine == "transformers":
        found.append("rollout.engine 'transformers' gathers the whole model on each GPU to sample: take 'vllm'")
    if config.sft.evaluate_every:
        found.append("sft.evaluate_every samples from the model that is trained, which a sharded one can't be")
    return found
