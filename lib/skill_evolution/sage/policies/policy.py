"""A Hugging Face causal language model as the agent's policy, sampled in one batch for all chains side by side.

Each `sample` is a coroutine. It waits until every live chain waits too, and then one `generate` call answers them all.
A chain that is running code is waited for, one that has ended or raised isn't, so chains of different lengths never
block each other. What a row draws depends only on its key and its ids: its noise comes from a generator of its own.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import (
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from skill_evolution.sage.agent.episode import PolicySampling, Sample
from skill_evolution.sage.policies.chat_tokens import ChatTokens, seed_of


@dataclass(frozen=True, eq=False)
class _Request:
    ids: tuple[int, ...]
    key: str
    sampling: PolicySampling
    answer: asyncio.Future[Sample]


class LocalPolicy(ChatTokens):
    """A causal language model and its tokenizer behind the agent's Policy protocol.

    Samples repeat exactly (whatever the batch, the process or the order) in float32; bfloat16 logits depend on the
    batch they are computed in. How many threads torch uses is the caller's decision.

    Attributes:
        model: What is sampled from. A trainer may put another one here between two rollouts.
        tokenizer: With a chat template; the model stops at its end-of-sequence token, and at every further one that
            the model's generation config names.
        gathered: Its trained weights where training sharded them over processes, on the first of these; else None.
        seconds: Time spent in the model so far.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        max_batch: int = 512,
        autocast: torch.dtype | None = None,
    ) -> None:
        """A policy of a model as it is.

        Args:
            model: Any causal language model of transformers.
            tokenizer: Its tokenizer.
            max_batch: Most rows of one `generate` call; more waiting ones are answered in several, the short prompts
                first. Bounds memory.
            autocast: The type that float32 weights are computed in; None leaves it.

        Raises:
            ValueError: The tokenizer has no chat template, or one that ends a turn with another token than those at
                which sampling stops.
        """
        super().__init__(tokenizer, model.generation_config)
        self.model = model
        self.gathered: dict[str, torch.Tensor] | None = None
        self.seconds = 0.0
        self._max_batch = max_batch
        self._autocast = autocast
        self._live = 0
        self._waiting: list[_Request] = []

    @contextlib.contextmanager
    def live(self) -> Iterator[None]:
        """Around one chain's coroutine: while it runs code, the others' samples wait to share a batch with its next.

        Without it, what waits is answered as soon as nothing else in the event loop is ready to run.
        """
        self._live += 1
        try:
            yield
        finally:
            self._live -= 1
            self._flush_soon()

    async def sample(self, ids: Sequence[int], *, key: str, sampling: PolicySampling) -> Sample:
        """Sample one turn after `ids`; the same key and ids give the same turn.

        Raises:
            ValueError: `ids` is empty.
        """
        if not ids:
            raise ValueError(f"{key}: there is nothing to sample from: the prompt has no tokens")
        request = _Request(tuple(ids), key, sampling, asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        self._flush_soon()
        try:
            return await request.answer
        finally:
            if request in self._waiting:  # cancelled
                self._waiting.remove(request)

    def _flush_soon(self) -> None:
        if self._waiting and len(self._waiting) >= self._live:
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        if not self._waiting or len(self._waiting) < self._live:
            return  # meanwhile answered, or another chain has come to life
        requests, self._waiting = sorted(self._waiting, key=lambda request: len(request.ids)), []
        for start in range(0, len(requests), self._max_batch):
            self._answer(requests[start : start + self._max_batch])

    def _answer(self, requests: Sequence[_Request]) -> None:
        started = time.perf_counter()
        try:
            samples = self._generate(requests)
        except Exception as error:
            for request in requests:
                if not request.answer.done():
                    request.answer.set_exception(error)
        else:
            for request, sample in zip(requests, samples, strict=True):
                if not request.answer.done():
                    request.answer.set_result(sample)
        finally:
            self.seconds += time.perf_counter() - started

    def _generate(self, requests: Sequence[_Request]) -> list[Sample]:
        ids, mask = _left_padded([request.ids for request in requests], self.stop[0], self.model.device)
        limits = [request.sampling.max_tokens for request in requests]
        choice = _SeededChoice(requests)
        cast = torch.autocast(self.model.device.type, self._autocast, enabled=self._autocast is not None)
        with torch.no_grad(), _evaluating(self.model), cast:
            output: Any = self.model.generate(  # pyright: ignore[reportCallIssue]
                input_ids=ids,
                attention_mask=mask,
                generation_config=self._generation_config(max(limits)),
                logits_processor=LogitsProcessorList([choice]),
            )
        turns, logprobs = output[:, ids.shape[1] :].tolist(), torch.stack(choice.logprobs, dim=1).tolist()
        return [self.sampled(*row) for row in zip(turns, logprobs, limits, strict=True)]

    def _generation_config(self, max_tokens: int) -> GenerationConfig:
        # What is left out here comes from the model's own generation config: a repetition penalty would change the
        # distribution, so it's switched off. The noise makes greedy decoding a sample.
        return GenerationConfig(
            do_sample=False,
            max_new_tokens=max_tokens,
            eos_token_id=self.stop,
            pad_token_id=self.stop[0],
            repetition_penalty=1.0,
            use_cache=True,
        )


class _SeededChoice(LogitsProcessor):
    """Adds each row's own Gumbel noise to its scaled scores: their argmax is a sample of the softmax."""

    def __init__(self, requests: Sequence[_Request]) -> None:
        temperatures = torch.tensor([request.sampling.temperature for request in requests])
        self.greedy = (temperatures == 0).unsqueeze(1)
        self.temperatures = torch.where(temperatures == 0, 1.0, temperatures).unsqueeze(1)
        self.generators = [torch.Generator().manual_seed(seed_of(request.key)) for request in requests]
        self.logprobs: list[torch.Tensor] = []  # one (rows,) tensor a step

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        scaled = scores.float().cpu() / self.temperatures
        uniform = torch.empty_like(scaled)
        for row, generator in zip(uniform, self.generators, strict=True):
            row.uniform_(generator=generator)
        gumbel = -torch.log(-torch.log(uniform))
        noisy = scaled + gumbel.masked_fill(self.greedy, 0.0)
        chosen = noisy.argmax(dim=-1, keepdim=True)
        self.logprobs.append(torch.log_softmax(scaled, dim=-1).gather(1, chosen).squeeze(1))
        return noisy.to(scores.device)


def _left_padded(rows: Sequence[Sequence[int]], pad: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of token ids as one (rows, longest) tensor, and its attention mask."""
    width = max(len(row) for row in rows)
    ids = torch.tensor([[pad] * (width - len(row)) + list(row) for row in rows], device=device)
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows], device=device)
    return ids, mask


@contextlib.contextmanager
def _evaluating(model: PreTrainedModel) -> Iterator[None]:
    """No dropout, and a key-value cache also where training checkpoints its activations."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)
