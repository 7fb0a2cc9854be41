"""Evaluations on a server, for policies that this process couldn't hold."""

import asyncio
import json
from pathlib import Path

import pytest
from stub_server import Received, Reply, StubServer
from toy_world import toy_policy

from skill_evolution.models.base import ModelError
from skill_evolution.sage.config import load_sage_config
from skill_evolution.sage.policies.loading import save_policy
from skill_evolution.sage.stages.evaluation import Evaluation, evaluate
from skill_evolution.sage.stages.stage import Stage

pytestmark = pytest.mark.filterwarnings("ignore")
EVALUATION = Evaluation("test", temperature=0.5, scenarios=1)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_policy(toy_policy(), tmp_path_factory.mktemp("weights"))


def stage(url: str, weights: Path) -> Stage:
    rollout = {"engine": "vllm", "base_url": url.removesuffix("/v1")}
    return Stage("base", load_sage_config("demo", policy={"kind": "folder", "weights": str(weights)}, rollout=rollout))


def trained(start: Stage, weights: Path, root: Path) -> Stage:
    """A stage that was trained elsewhere."""
    made = Stage("sft", start.config, start)
    save_policy(toy_policy(), made.folder(root) / "policy")
    return made


def serving(name: str):
    ids = toy_policy().turn_ids("no code")

    def answer(request: Received) -> Reply:
        if request.path.endswith("/models"):
            return Reply(json.dumps({"object": "list", "data": [{"id": name, "object": "model"}]}).encode())
        choice = {"index": 0, "text": "", "token_ids": ids, "logprobs": {"token_logprobs": [-0.5] * len(ids)}}
        return Reply(json.dumps({"choices": [choice]}).encode())

    return answer


@pytest.mark.parametrize("kind", ["base", "sft"])
async def test_the_server_s_model_is_tested(kind: str, weights: Path, tmp_path: Path) -> None:
    name = [""]
    async with StubServer(lambda request: serving(name[0])(request)) as server:
        asked = stage(server.url, weights)
        asked = asked if kind == "base" else trained(asked, weights, tmp_path)
        name[0] = str(weights) if kind == "base" else asked.name
        await asyncio.to_thread(evaluate, asked, [EVALUATION], root=tmp_path)
    rows = EVALUATION.rows(asked, tmp_path)
    assert len(rows) == 3
    assert set(rows["ended"]) == {"no_code"}
    bodies = [request.body for request in server.requests if request.path.endswith("/completions")]
    assert {(body["model"], body["temperature"]) for body in bodies} == {(name[0], 0.5)}


async def test_a_server_with_another_model_is_said(weights: Path, tmp_path: Path) -> None:
    async with StubServer(serving("another")) as server:
        with pytest.raises(ModelError, match="it serves: another"):
            await asyncio.to_thread(evaluate, stage(server.url, weights), [EVALUATION], root=tmp_path)
