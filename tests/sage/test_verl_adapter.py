"""The verl path against hand values and against the TRL path. verl 0.9.1 is stood in for: it needs GPUs."""

import importlib
import sys
import types
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest
import torch
from pydantic import BaseModel
from toy_world import SayingPolicy, ToyWorld, code, toy_config, toy_policy

from skill_evolution.base import aio
from skill_evolution.sage.agent.chains import Chain
from skill_evolution.sage.agent.episode import Sample
from skill_evolution.sage.agent.planning import by_scenario
from skill_evolution.sage.agent.rewards import REWARDS, group_advantages
from skill_evolution.sage.agent.rows import training_rows
from skill_evolution.sage.agent.runner import Runner, Work
from skill_evolution.sage.scale.verl_rows import advantages, chain_rows, dataset, group_of

pytestmark = pytest.mark.filterwarnings("ignore")
G, PAD = 4, 3


def say(key: str) -> str | Exception:
    """Chains 0 and 2 solve their first task; the second task's rows are -1, 0.5, 1 and one that breaks."""
    index, position, turn = key.split("/")[-3:]
    if position == "0":
        return code("full" if index in "02" else "paint", "done()")
    if index == "1" and turn == "0":
        return code("half")  # a second turn follows, after an observation
    return {"0": "no code", "1": code("done()"), "2": code("full", "done()"), "3": RuntimeError("broken")}[index]


@pytest.fixture(scope="module")
def chains() -> list[Chain]:
    policy = toy_policy(cls=SayingPolicy)
    policy.say = say  # type: ignore[attr-defined]
    tasks = by_scenario(ToyWorld().tasks("train"))[0][:2]
    runner = Runner(policy, ToyWorld(), toy_config().agent)
    return runner.run([Work(tuple(tasks), "0/uid", index) for index in range(G)], temperature=1.0)


def table(rows: list[Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Rewards on the last token, and masks, padded: (rows, tokens) both."""
    width = max(len(row.completion_ids) for row in rows)
    rewards, masks = torch.zeros(len(rows), width), torch.zeros(len(rows), width)
    for place, row in enumerate(rows):
        rewards[place, len(row.completion_ids) - 1] = row.reward
        masks[place, : len(row.env_mask)] = torch.tensor(row.env_mask)
    return rewards, masks


@pytest.mark.parametrize(
    ("rewards", "groups", "expected"),
    [
        ([1.0, 0.0, 1.0, 0.0], "aaaa", [0.5, -0.5, 0.5, -0.5]),
        ([1.0, 0.0, 1.0], "aab", [0.5, -0.5, 0.0]),  # a group of one trains nothing
        ([0.3, 0.3, 0.3], "aaa", [0.0, 0.0, 0.0]),
        ([2.0, 0.0, -1.0, 1.0], "abab", [1.5, -0.5, -1.5, 0.5]),  # not divided by the standard deviation
    ],
)
def test_hand_values(rewards: list[float], groups: str, expected: list[float]) -> None:
    mask = torch.tensor([[1.0, 0.0, 1.0]]).repeat(len(rewards), 1)
    scores = torch.zeros_like(mask)
    scores[:, -1] = torch.tensor(rewards)
    got, returns = advantages(scores, mask, list(groups), config=None)
    assert torch.allclose(got, torch.tensor(expected).unsqueeze(-1) * mask)
    assert torch.equal(got, returns)


def test_both_paths_train_the_same(chains: list[Chain]) -> None:
    reward = REWARDS["skill_integrated"]
    on_trl = training_rows(chains, group=G, reward=reward, pad=PAD)
    by_hand = group_advantages([row.reward for row in on_trl], [place // G for place in range(len(on_trl))])
    assert by_hand == pytest.approx([0.5, -0.5, 0.5, -0.5, -7 / 6, 1 / 3, 5 / 6, None])

    outputs = [(position, row) for chain in chains for position, row in chain_rows(chain, reward=reward, pad=PAD)]
    rewards, masks = table([row for _, row in outputs])
    got, _ = advantages(rewards, masks, [group_of("u", position) for position, _ in outputs])
    expected = [  # verl's order is chain by chain, and the failed row isn't there
        (on_trl[position * G + index], by_hand[position * G + index])
        for index in range(G)
        for position in range(2)
        if by_hand[position * G + index] is not None
    ]
    assert [row for _, row in outputs] == [row for row, _ in expected]
    assert 0 in outputs[3][1].env_mask  # an observation between two turns
    for place, (row, advantage) in enumerate(expected):
        per_token = [advantage * one for one in row.env_mask]  # pyright: ignore[reportOptionalOperand]
        assert got[place, : len(per_token)].tolist() == pytest.approx(per_token)


def test_an_id_with_an_underscore_is_refused() -> None:
    with pytest.raises(ValueError, match="a_b"):
        group_of("a_b", 0)


def test_the_dataset_names_the_plan_s_tasks() -> None:
    tasks = by_scenario(ToyWorld(2).tasks("train"))
    frame = dataset([tuple(tuple(own[:2]) for own in tasks)], name="toy")
    assert [info["task_ids"] for info in frame["extra_info"]] == [["train0_1", "train0_2"], ["train1_1", "train1_2"]]
    assert isinstance(frame, pd.DataFrame)
    assert set(frame["agent_name"]) == {"sage"}


# --- the adapter itself, on stand-ins with the signatures of verl 0.9.1 ---


class Metrics(BaseModel):
    generate_sequences: float = 0.0


class Output(BaseModel):
    prompt_ids: list[int]
    response_ids: list[int]
    response_mask: list[int]
    response_logprobs: list[float] | None = None
    reward_score: float | None = None
    num_turns: int = 0
    metrics: Metrics
    extra_fields: dict[str, Any] = {}

    def as_dict(self) -> dict[str, Any]:
        rewards = torch.zeros(len(self.response_ids))
        rewards[-1] = self.reward_score or 0.0
        return {
            "prompts": torch.tensor(self.prompt_ids),
            "responses": torch.tensor(self.response_ids),
            "response_mask": torch.tensor(self.response_mask),
            "rm_scores": rewards,
        }


class Loop:
    def __init__(self, *, server_manager: Any, tokenizer: Any, **_: Any) -> None:
        self.server_manager, self.tokenizer = server_manager, tokenizer


class Worker:
    """What @ray.remote keeps of a class."""


class Manager:
    def __init__(self) -> None:
        self.agent_loop_workers_class: Any = Worker


class Server:
    """verl's client for rollout servers: says what `say` says for the request's id."""

    def __init__(self, policy: SayingPolicy) -> None:
        self.policy = policy
        self.asked: list[dict[str, Any]] = []
        self.turns: dict[str, int] = {}

    async def generate(self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any]) -> Any:
        turn = self.turns[request_id] = self.turns.get(request_id, -1) + 1
        self.asked.append(sampling_params)
        text = say(f"{request_id}/{turn}")
        if isinstance(text, Exception):
            raise text
        ids = self.policy.turn_ids(text)
        return types.SimpleNamespace(token_ids=ids, log_probs=[-1.0] * len(ids))


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module, imported over stand-ins; `registered` and `put` hold what reached verl."""
    registered: dict[tuple[str, bool], Any] = {}
    put: list[dict[str, Any]] = []

    def register(name: str) -> Any:
        return lambda what: registered.setdefault((name, isinstance(what, type)), what)

    async def async_kv_batch_put(**what: Any) -> None:
        put.append(what)

    remote = types.SimpleNamespace(__ray_metadata__=types.SimpleNamespace(modified_class=Worker))
    modules = {
        "ray": {"remote": lambda cls: ("remote", cls)},
        "transfer_queue": {"async_kv_batch_put": async_kv_batch_put},
        "verl.experimental.agent_loop.agent_loop": {
            "AgentLoopBase": Loop,
            "AgentLoopMetrics": Metrics,
            "AgentLoopOutput": Output,
            "register": register,
        },
        "verl.trainer.ppo.core_algos": {"register_adv_est": register},
        "verl.trainer.ppo.v1.agent_loop_tq": {"AgentLoopManagerTQ": Manager, "AgentLoopWorkerTQ": remote},
        "verl.utils.tensordict_utils": {"list_of_dict_to_tensordict": lambda rows: rows},
    }
    for name, content in modules.items():
        module = types.ModuleType(name)
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "skill_evolution.sage.scale.verl_adapter", raising=False)
    module: Any = importlib.import_module("skill_evolution.sage.scale.verl_adapter")
    config = toy_config()
    tasks = {task.task_id: task for task in ToyWorld().tasks("train")}
    monkeypatch.setattr(module, "load_sage_config", lambda profile: config)
    monkeypatch.setattr(module, "_world", lambda _: (ToyWorld(), tasks, None))
    module.registered, module.put = registered, put
    yield module
    sys.modules.pop("skill_evolution.sage.scale.verl_adapter")


def test_a_step_through_the_adapter_gives_the_trl_path_s_advantages(adapter: Any, chains: list[Chain]) -> None:
    policy = toy_policy(cls=SayingPolicy)
    server = Server(policy)  # type: ignore[arg-type]
    loop = adapter.SageAgentLoop(server_manager=server, tokenizer=policy.tokenizer)
    worker = adapter.SageAgentLoopWorker()
    prompt = {"uid": "uid", "global_steps": 7, "extra_info": {"task_ids": ["train0_1", "train0_2"]}}

    async def step() -> None:
        for index in range(G):
            outputs = await loop.run({"temperature": 0.9, "top_p": 1.0}, session_id=index, **prompt)
            await worker._agent_loop_postprocess(outputs, False, session_id=index, **prompt)

    aio.run_sync(step())
    assert [one for batch in adapter.put for one in batch["keys"]] == [
        *("uid_0_0", "uid_0_1", "uid_1_0", "uid_1_1", "uid_2_0", "uid_2_1", "uid_3_0")  # 3's second task broke
    ]
    fields = [one for batch in adapter.put for one in batch["fields"]]
    assert [one["uid"] for one in fields] == [f"uid#{position}" for position in (0, 1, 0, 1, 0, 1, 0)]
    assert {batch["partition_id"] for batch in adapter.put} == {"train"}
    assert adapter.put[0]["tags"][0]["seq_len"] == len(fields[0]["input_ids"])
    assert all(asked["temperature"] == 0.9 and asked["logprobs"] for asked in server.asked)

    pad = torch.nn.utils.rnn.pad_sequence
    rewards = pad([one["rm_scores"] for one in fields], batch_first=True)
    masks = pad([one["response_mask"] for one in fields], batch_first=True)
    estimator = adapter.registered["sage", False]
    got, _ = estimator(token_level_rewards=rewards, response_mask=masks, index=[one["uid"] for one in fields])
    rows = training_rows(chains, group=G, reward=REWARDS["skill_integrated"], pad=PAD)
    on_trl = [rows[position * G + index] for index in range(G) for position in range(2)][:-1]
    assert [one["responses"].tolist() for one in fields] == [list(row.completion_ids) for row in on_trl]
    assert [one["response_mask"].tolist() for one in fields] == [list(row.env_mask) for row in on_trl]
    peaks = [row[row.abs().argmax()].item() for row in got]
    assert peaks == pytest.approx([0.5, -7 / 6, -0.5, 1 / 3, 0.5, 5 / 6, -0.5])


def test_names_are_registered_and_the_manager_has_sage_s_workers(adapter: Any) -> None:
    assert adapter.registered["sage", True] is adapter.SageAgentLoop
    assert adapter.SageAgentLoopManager().agent_loop_workers_class == ("remote", adapter.SageAgentLoopWorker)


def test_a_server_without_log_probabilities_is_said(adapter: Any) -> None:
    class Silent:
        async def generate(self, **_: Any) -> Any:
            return types.SimpleNamespace(token_ids=[1, 2], log_probs=None)

    policy = adapter.VerlPolicy(toy_policy().tokenizer, Silent(), sampling={})
    with pytest.raises(ValueError, match="log-probabilities"):
        aio.run_sync(policy.sample([1], key="a/0", sampling=adapter.PolicySampling(1.0, 5)))
    assert isinstance(policy.sampled([1, 2], [-1.0, -1.0], 1), Sample)
