"""SAGE on verl (0.9, its V1 trainer): for models and contexts that TRL can't train (docs/scale.md).

To be named in verl's config; importing this module registers what it names:

    algorithm.adv_estimator=sage
    actor_rollout_ref.rollout.agent.agent_loop_manager_class=skill_evolution.sage.scale.verl_adapter.SageAgentLoopManager
    actor_rollout_ref.rollout.agent.agent_loop_config_path=<a file with the lines below>

    - name: sage
      _target_: skill_evolution.sage.scale.verl_adapter.SageAgentLoop
      profile: paper

An agent loop runs one chain and gives one output a position. The agent, the chains, the rewards, the rows and the
advantages are those of the TRL path. verl needs GPUs, so here it was read and its interfaces are tested with stand-ins;
it has not been run.
"""

# pyright: reportMissingImports=false

from collections.abc import Sequence
from functools import cache
from typing import Any

import ray
import torch
import transfer_queue as tq
from transformers import PreTrainedTokenizerBase
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput, register
from verl.trainer.ppo.core_algos import register_adv_est
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopManagerTQ, AgentLoopWorkerTQ
from verl.utils.tensordict_utils import list_of_dict_to_tensordict

from skill_evolution.sage.agent.chains import run_chain
from skill_evolution.sage.agent.episode import PolicySampling, Sample
from skill_evolution.sage.agent.rewards import REWARDS
from skill_evolution.sage.agent.world import Task, World
from skill_evolution.sage.config import SageConfig, load_sage_config
from skill_evolution.sage.policies.chat_tokens import ChatTokens
from skill_evolution.sage.scale.verl_rows import ESTIMATOR, advantages, chain_rows, group_of
from skill_evolution.sage.stages.training import open_world

register_adv_est(ESTIMATOR)(advantages)


class VerlPolicy(ChatTokens):
    """The agent's policy on verl's rollout servers: token ids in, token ids and log-probabilities out."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, server: Any, *, sampling: dict[str, Any]) -> None:
        """For verl's client and its sampling settings (top_p and the like); temperature and limits are the agent's."""
        super().__init__(tokenizer, None)
        self._server = server
        self._sampling = {**sampling, "logprobs": True}

    async def sample(self, ids: Sequence[int], *, key: str, sampling: PolicySampling) -> Sample:
        """One turn; all turns of a task go to the same server, which has their beginning in its cache."""
        own = {"temperature": sampling.temperature, "max_tokens": sampling.max_tokens}
        output = await self._server.generate(
            request_id=key.rpartition("/")[0], prompt_ids=list(ids), sampling_params=self._sampling | own
        )
        if output.log_probs is None or len(output.log_probs) != len(output.token_ids):
            raise ValueError(f"{key}: the rollout server gave no log-probabilities; rollout.calculate_log_probs=True")
        return self.sampled(output.token_ids, output.log_probs, sampling.max_tokens)


@register(ESTIMATOR)
class SageAgentLoop(AgentLoopBase):
    """One chain of tasks, as `run` outputs: a list, one a position that didn't fail."""

    def __init__(self, *args: Any, profile: str = "paper", **kwargs: Any) -> None:
        """verl's own arguments, and the SAGE profile with the world, the agent's limits, reward and retrieval."""
        super().__init__(*args, **kwargs)
        self._sage = load_sage_config(profile)

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> list[AgentLoopOutput]:
        """Run the chain that a row of `verl_rows.dataset` names."""
        config = self._sage
        world, tasks, _ = _world(config.model_dump_json())
        chain = await run_chain(
            VerlPolicy(self.tokenizer, self.server_manager, sampling=sampling_params),
            world,
            [tasks[task_id] for task_id in kwargs["extra_info"]["task_ids"]],
            config.agent,
            key=f"{config.seed}/{kwargs['uid']}",
            index=int(kwargs["session_id"]),
            temperature=float(sampling_params["temperature"]),
        )
        rows = chain_rows(chain, reward=REWARDS[config.grpo.reward], pad=int(self.tokenizer.pad_token_id))
        return [
            AgentLoopOutput(
                prompt_ids=list(row.prompt_ids),
                response_ids=list(row.completion_ids),
                response_mask=list(row.env_mask),
                response_logprobs=list(row.logprobs),
                reward_score=row.reward,
                num_turns=2 * chain.episodes[position].steps,
                metrics=AgentLoopMetrics(),
                extra_fields={"position": position},
            )
            for position, row in rows
        ]


@cache
def _world(config: str) -> tuple[World, dict[str, Task], object]:
    """The world of a worker process, its training tasks, and what keeps it open as long as the process lives."""
    context = open_world(SageConfig.model_validate_json(config))
    world = context.__enter__()
    return world, {task.task_id: task for task in world.tasks("train")}, context


class SageAgentLoopWorker(AgentLoopWorkerTQ.__ray_metadata__.modified_class):
    """verl's worker, but each output keeps its own reward and is in the group of its position.

    Stock post-processing gives the last output's reward and one group to all outputs of a loop.
    """

    async def _agent_loop_postprocess(self, output: list[AgentLoopOutput], validate: bool, **kwargs: Any) -> None:
        uid, session = kwargs["uid"], kwargs["session_id"]
        made = [self._record(one, uid, kwargs) for one in output]
        if not made:
            return  # all of its rows failed
        await tq.async_kv_batch_put(
            keys=[f"{uid}_{session}_{one.extra_fields['position']}" for one in output],
            fields=list_of_dict_to_tensordict([fields for fields, _ in made]),
            tags=[tag for _, tag in made],
            partition_id="val" if validate else "train",
        )

    def _record(self, output: AgentLoopOutput, uid: str, kwargs: dict[str, Any]) -> tuple[dict[str, Any], dict]:
        position = output.extra_fields["position"]
        fields = output.as_dict() | kwargs | {"uid": group_of(uid, position)}
        ids = torch.cat([fields["prompts"], fields["responses"]])
        fields |= {"loss_mask": fields["response_mask"], "input_ids": ids, "multi_modal_inputs": {}}
        fields["position_ids"] = torch.arange(len(ids))
        lengths = {"prompt_len": len(fields["prompts"]), "response_len": len(fields["responses"]), "seq_len": len(ids)}
        steps = {name: kwargs["global_steps"] for name in ("global_steps", "min_global_steps", "max_global_steps")}
        return fields, {"status": "success", **lengths, **steps}


class SageAgentLoopManager(AgentLoopManagerTQ):
    """verl's manager with SAGE's workers; naming it in the config is what makes verl import this module."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """verl's own arguments."""
        super().__init__(*args, **kwargs)
        self.agent_loop_workers_class = ray.remote(SageAgentLoopWorker)
