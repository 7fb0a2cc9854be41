"""The policy and the world that a config names."""

import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import DistributedType
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainingArguments

from skill_evolution.base.settings import ConfigError
from skill_evolution.models.smollm2 import smollm2_folder
from skill_evolution.sage.config import SageConfig
from skill_evolution.sage.policies.policy import LocalPolicy
from skill_evolution.sage.policies.tiny import tiny_llama, train_tokenizer


def load_policy(config: SageConfig, *, texts: Iterable[str] = (), folder: Path | None = None) -> LocalPolicy:
    """The policy that a run starts from.

    Args:
        config: Its `policy`, and `sft_seed` for the initial weights.
        texts: The world's text, which the tiny policy's tokenizer is made from.
        folder: Where `save_policy` left a policy; it's loaded in place of the one that the config starts from.

    Raises:
        ConfigError: Kind "tiny" without any text.
    """
    if config.policy.threads:
        torch.set_num_threads(config.policy.threads)
    if folder is None and config.policy.kind == "tiny":
        if not (texts := list(texts)):
            raise ConfigError("policy.kind 'tiny' needs the world's text: its tokenizer is made from that")
        tokenizer = train_tokenizer(texts)
        model: Any = tiny_llama(tokenizer, seed=config.sft_seed)
    else:
        named = smollm2_folder(Path(sys.executable)) if config.policy.kind == "smollm2" else config.policy.weights
        source = str(folder or named)
        tokenizer = AutoTokenizer.from_pretrained(source)
        # Weights stay in float32 where they're trained (at 1e-6 a bfloat16 weight wouldn't move); bfloat16 is autocast.
        model = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32)
    if config.policy.lora_rank:
        model = _with_lora(model, config.policy.lora_rank, seed=config.sft_seed)
    autocast = torch.bfloat16 if config.policy.dtype == "bfloat16" else None
    return LocalPolicy(model, tokenizer, max_batch=config.policy.max_batch, autocast=autocast)


def take_trained(policy: LocalPolicy, trainer: Any) -> None:
    """The trainer's model becomes the policy's again, with its weights gathered where they are sharded.

    Every process must call it, as gathering takes all of them.
    """
    policy.model = trainer.accelerator.unwrap_model(trainer.model)
    sharded = trainer.accelerator.distributed_type in (DistributedType.FSDP, DistributedType.DEEPSPEED)
    policy.gathered = trainer.accelerator.get_state_dict(trainer.model_wrapped) if sharded else None


def save_policy(policy: LocalPolicy, folder: Path) -> Path:
    """Write a policy so that `load_policy` or any other program of the field can load it; adapters are merged in."""
    model: Any = policy.model
    merged = model.merge_and_unload() if hasattr(model, "merge_and_unload") else model
    merged.save_pretrained(folder, state_dict=policy.gathered)
    policy.tokenizer.save_pretrained(folder)
    return folder


def _with_lora(model: Any, rank: int, *, seed: int) -> Any:
    from peft import LoraConfig, get_peft_model

    lora = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return get_peft_model(model, lora)


def process_count() -> int:
    """How many processes train together."""
    return _process().world_size


def process_index() -> int:
    """Which of them this is, from 0."""
    return _process().process_index


@cache
def _process() -> TrainingArguments:
    """What knows of the others. Asked of transformers: accelerate's own state, made first and without being told that
    there is no GPU, would take each process for the only one. Kept, as DeepSpeed's settings live as long as it."""
    return TrainingArguments(output_dir="unused", use_cpu=not torch.cuda.is_available(), report_to="none")
