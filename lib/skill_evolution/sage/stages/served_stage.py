"""A trained stage's policy as a server has it, for evaluations of models that this process couldn't hold."""

from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GenerationConfig

from skill_evolution.models.server import ServerModel
from skill_evolution.sage.policies.served_policy import ServedPolicy
from skill_evolution.sage.stages.stage import Stage


async def served_stage(stage: Stage, *, root: Path | None = None) -> ServedPolicy:
    """The stage's policy on the server of `rollout`, which must call it by the stage's name:

        vllm serve results/paper/sage/STAGE/policy --served-model-name STAGE --logprobs-mode processed_logprobs

    A stage "base" is served under its weights' name. Only tokenizer and settings are loaded here.

    Raises:
        ModelError: The server has no model of that name, or doesn't answer.
    """
    config, base = stage.config, stage.kind == "base"
    source = str(config.policy.weights) if base else str(stage.folder(root) / "policy")
    server = ServerModel(
        model=source if base else stage.name,
        base_url=f"{config.rollout.base_url}/v1",
        max_concurrency=config.rollout.max_concurrency,
        timeout=config.rollout.timeout,
        context_length=config.agent.context,
    )
    await server.connect()
    with torch.device("meta"):  # its shape alone
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(source))
    model.generation_config = GenerationConfig.from_pretrained(source)
    return ServedPolicy(model, AutoTokenizer.from_pretrained(source), server=server)
