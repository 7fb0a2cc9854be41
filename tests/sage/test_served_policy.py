"""A policy sampled by a server: what is asked, what is taken, and TRL's correction of the log-probabilities."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from stub_server import Received, Reply, StubServer
from toy_world import ToyWorld, code, toy_config, toy_policy, varied
from trl.trainer import grpo_trainer

from skill_evolution.base import aio
from skill_evolution.base.settings import ConfigError
from skill_evolution.models.base import ModelError
from skill_evolution.models.server import ServerModel
from skill_evolution.sage.agent.episode import PolicySampling
from skill_evolution.sage.config import load_sage_config
from skill_evolution.sage.policies.served_policy import ServedPolicy, server_of
from skill_evolution.sage.training import grpo as grpo_module
from skill_evolution.sage.training.grpo_arguments import trl_arguments

pytestmark = pytest.mark.filterwarnings("ignore")
LOCAL = toy_policy()


def reply(ids: list[int], logprobs: list[float] | None = None) -> Reply:
    """A completion as `vllm serve` gives it with return_token_ids."""
    logprobs = [-0.5] * len(ids) if logprobs is None else logprobs
    choice = {"index": 0, "text": "", "token_ids": ids, "logprobs": {"token_logprobs": logprobs}}
    return Reply(json.dumps({"id": "c", "choices": [choice]}).encode())


def policy(url: str) -> ServedPolicy:
    server = ServerModel(model="m", base_url=url, max_attempts=2, backoff_base=0.0)
    return ServedPolicy(LOCAL.tokenizer, LOCAL.model.generation_config, server=server)


async def test_ids_go_out_and_ids_come_back() -> None:
    ids = LOCAL.turn_ids(code("full"))
    async with StubServer([reply([*ids, 7])]) as server:  # what stands after the end token isn't part of the turn
        served = policy(server.url)
        sample = await served.sample([5, 6], key="a/0", sampling=PolicySampling(0.7, 30))
        again = await served.sample([5, 6], key="a/0", sampling=PolicySampling(0.7, 30))
        await served.sample([5, 6], key="a/1", sampling=PolicySampling(0.7, 30))
    assert sample == again
    assert (sample.ids, sample.text, sample.cut) == (tuple(ids), code("full"), False)
    assert sample.logprobs == (-0.5,) * len(ids)
    first, second, third = (request.body for request in server.requests)
    assert (first["prompt"], first["temperature"], first["max_tokens"]) == ([5, 6], 0.7, 30)
    assert first["stop_token_ids"] == LOCAL.stop
    assert first["seed"] == second["seed"] != third["seed"]
    assert served.seconds > 0


async def test_a_turn_at_its_limit_is_cut() -> None:
    async with StubServer([reply([9, 9, 9])]) as server:
        sample = await policy(server.url).sample([5], key="a/0", sampling=PolicySampling(1.0, 3))
    assert (sample.ids, sample.cut) == ((9, 9, 9), True)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (reply([1, 2], [-0.5]), "2 ids and 1 log-probabilities"),
        (Reply(b'{"choices": [{"text": "hello"}]}'), "no ids with log-probabilities"),
        (Reply(b"<html>"), "no ids with log-probabilities"),
        (Reply(b'{"message": "This model\'s maximum context length is 8"}', status=400), "context length"),
    ],
)
async def test_a_reply_that_cannot_be_used_names_the_sample(bad: Reply, message: str) -> None:
    async with StubServer([bad]) as server:
        with pytest.raises(ModelError, match=f"(?s){message}") as caught:
            await policy(server.url).sample([1], key="0/train/3/a/1/0/2", sampling=PolicySampling(1.0, 5))
    assert "0/train/3/a/1/0/2" in str(caught.value)
    assert len(server.requests) == 1  # another attempt wouldn't help


def test_settings_reach_trl(tmp_path: Path) -> None:
    config = load_sage_config("paper", rollout={"base_url": "http://node7:9000"})
    arguments = trl_arguments(config, tmp_path)
    assert (arguments.use_vllm, arguments.vllm_mode) == (True, "server")
    assert arguments.vllm_server_base_url == "http://node7:9000"
    assert arguments.vllm_importance_sampling_mode == "token_truncate"
    assert not trl_arguments(load_sage_config("demo"), tmp_path).use_vllm


@pytest.mark.parametrize("wrong", [{"engine": "vllm"}, {"base_url": "http://a/v1"}])
def test_settings_that_cannot_be(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="rollout"):
        load_sage_config("demo", rollout=wrong)


class NoSync:
    """TRL's side of the server, without CUDA: counts the syncs."""

    def __init__(self, **_: Any) -> None:
        self.synced = 0
        self.vllm_client = self

    def get_server_info(self) -> dict[str, Any]:
        return {"model_config": {"logprobs_mode": "processed_logprobs"}}

    def sync_weights(self) -> None:
        self.synced += 1


def test_the_engine_s_drift_is_corrected_token_by_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One step through TRL. The server's log-probabilities are off by log 2, and by log 8 for each first token."""
    batches: list[dict[str, Any]] = []
    trainers: list[Any] = []
    original = grpo_module._Trainer._generate_and_score_completions

    def spy(trainer: Any, inputs: Any) -> Any:
        trainers.append(trainer)
        batches.append(original(trainer, inputs))
        return batches[-1]

    local = toy_policy()
    turns = iter(range(10_000))

    def answer(request: Received) -> Reply:
        ids = local.turn_ids(varied(f"chain {next(turns)}"))[: request.body["max_tokens"]]
        whole = torch.tensor([[*request.body["prompt"], *ids]])
        with torch.no_grad():
            logits = local.model(input_ids=whole).logits[0, -len(ids) - 1 : -1]
        exact = torch.log_softmax(logits, dim=-1).gather(1, torch.tensor(ids)[:, None])[:, 0]
        return reply(ids, [value - (3 if not place else 1) * 0.6931472 for place, value in enumerate(exact.tolist())])

    monkeypatch.setattr(grpo_module._Trainer, "_generate_and_score_completions", spy)
    monkeypatch.setattr(grpo_trainer, "VLLMGeneration", NoSync)
    config = toy_config(
        grpo={"steps": 1, "evaluate_every": 1, "chain_length": 1},
        policy={"kind": "folder", "weights": "m"},
        rollout={"engine": "vllm"},
    )

    async def run() -> list[dict[str, Any]]:
        async with StubServer(answer) as server:
            own = config.model_copy(update={"rollout": config.rollout.model_copy(update={"base_url": server.url[:-3]})})
            return await asyncio.to_thread(grpo_module.train_grpo, local, ToyWorld(), own, tmp_path)

    rows = aio.run_sync(run())
    assert "dev_tgc" in rows[-1]
    assert trainers[0].vllm_generation.synced == 3  # before and after the step for dev, and before its rollouts
    [batch] = batches
    ratio, mask = batch["importance_sampling_ratio"], (batch["completion_mask"] * batch["tool_mask"]).bool()
    assert ratio[:, 0].tolist() == pytest.approx([3.0] * len(ratio), abs=1e-3)  # 8, cut at 3
    second = ratio[:, 1][mask[:, 1]]
    assert second.tolist() == pytest.approx([2.0] * len(second), abs=1e-2)


def test_the_config_s_server_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str, Any] = {}
    monkeypatch.setattr(
        "skill_evolution.sage.policies.served_policy.ServerModel", lambda **settings: made.update(settings)
    )
    server_of(load_sage_config("paper"))
    assert made["base_url"] == "http://127.0.0.1:8000/v1"
    assert made["model"] == "Qwen/Qwen2.5-32B-Instruct"
