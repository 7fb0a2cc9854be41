"""The policy sampled by a server that holds a copy of its weights (vLLM), where `generate` in the trainer is too slow.

TRL sends the trained weights to the server before each step's rollouts (NCCL, so both need CUDA). The log-probabilities
come from the server as well: what they lack against the trainer's is made up for token by token
(training/grpo_arguments.py). The server must give them at the sampling temperature: `vllm serve --logprobs-mode
processed_logprobs`.
"""

import json
import time
from collections.abc import Sequence

from transformers import GenerationConfig, PreTrainedTokenizerBase

from skill_evolution.models.retry import AttemptError
from skill_evolution.models.server import ServerModel
from skill_evolution.sage.agent.episode import PolicySampling, Sample
from skill_evolution.sage.config import SageConfig
from skill_evolution.sage.policies.chat_tokens import ChatTokens, seed_of


class ServedPolicy(ChatTokens):
    """A model that is sampled on a server, behind the agent's Policy protocol.

    A seed from the key goes with each request, but batches on a server vary, so samples repeat only as far as its
    arithmetic doesn't depend on them (with vLLM: in float32).

    Attributes:
        tokenizer: With a chat template.
        seconds: Time so far in which the server owed an answer.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, generation: GenerationConfig | None, *, server: ServerModel
    ) -> None:
        """As ChatTokens, for the model that the server has."""
        super().__init__(tokenizer, generation)
        self.seconds = 0.0
        self._server = server
        self._open = 0
        self._since = 0.0

    async def sample(self, ids: Sequence[int], *, key: str, sampling: PolicySampling) -> Sample:
        """One turn after `ids`.

        Raises:
            ModelError: The server gave none, or one without its ids or their log-probabilities; names both.
        """
        body = {
            "model": self._server.name,
            "prompt": list(ids),
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": 1.0,
            "top_k": 0,
            "min_p": 0.0,
            "repetition_penalty": 1.0,
            "seed": seed_of(key),
            "stop_token_ids": self.stop,
            "logprobs": 0,  # those of the sampled tokens alone
            "return_token_ids": True,
        }
        self._clock(1)
        try:
            found = await self._server.call("/completions", body, _read, what=f"sample {key}")
        finally:
            self._clock(-1)
        return self.sampled(*found, sampling.max_tokens)

    def _clock(self, change: int) -> None:
        now = time.perf_counter()
        if self._open:
            self.seconds += now - self._since
        self._open, self._since = self._open + change, now


def server_of(config: SageConfig, *, model: str | None = None) -> ServerModel:
    """The server of a config's `rollout`, asked for the config's weights or for a model of another name."""
    rollout = config.rollout
    return ServerModel(
        model=model or str(config.policy.weights),
        base_url=f"{rollout.base_url}/v1",
        max_concurrency=rollout.max_concurrency,
        timeout=rollout.timeout,
        context_length=config.agent.context,
    )


def _read(content: bytes, latency: float) -> tuple[list[int], list[float]]:
    """The sampled ids and their log-probabilities in a reply."""
    try:
        [choice] = json.loads(content)["choices"]
        ids, logprobs = choice["token_ids"], choice["logprobs"]["token_logprobs"]
        whole = [int(token) for token in ids], [float(value) for value in logprobs]
    except (ValueError, KeyError, TypeError) as error:
        raise AttemptError(f"no ids with log-probabilities in the reply: {error!r}", retry=False) from None
    if len(whole[0]) != len(whole[1]):
        raise AttemptError(f"{len(whole[0])} ids and {len(whole[1])} log-probabilities in the reply", retry=False)
    return whole
