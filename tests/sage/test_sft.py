"""Examples, traces and supervised training on a toy world."""

from pathlib import Path
from typing import Any

import pytest
import torch
from scripted import task
from toy_world import COLOURS, SayingPolicy, ToyWorld, code, toy_config, toy_policy

from skill_evolution.sage.agent.episode import Episode, Sample, Turn
from skill_evolution.sage.agent.runner import Runner
from skill_evolution.sage.policies.loading import load_policy, save_policy
from skill_evolution.sage.training import sft as sft_module
from skill_evolution.sage.training.sft import Example, examples, rejection_sampled, train_sft
from skill_evolution.testbed.world.expert_data import expert_chains

pytestmark = pytest.mark.filterwarnings("ignore")


def turn(observation: tuple[int, ...], ids: tuple[int, ...], *, cut: bool = False) -> Turn:
    return Turn(observation, Sample(ids, (0.0,) * len(ids), "", cut))


def test_each_turn_is_an_example_after_all_that_came_before() -> None:
    episode = Episode(task(), "k", (1, 2), (turn((), (3, 4)), turn((5,), (6,), cut=True), turn((7, 8), (9,))))
    # the cut turn is context for the third, but no example of its own
    assert examples([episode]) == [Example((1, 2), (3, 4)), Example((1, 2, 3, 4, 5, 6, 7, 8), (9,))]


def scripts(world: ToyWorld, *lines: str) -> list[Any]:
    tasks = world.tasks("train")[:3]
    return [(tasks, [[code(f'paint("{colour}")', *lines)] for colour in COLOURS])]


def test_expert_traces_are_run_in_the_world() -> None:
    policy, world, agent = toy_policy(), ToyWorld(), toy_config().agent
    [chain] = expert_chains(policy, world, scripts(world, "full", "done()"), agent)
    assert [episode.success for episode in chain.episodes] == [True] * 3
    first = examples(chain.episodes)[0]
    text = policy.tokenizer.decode([*first.prompt_ids, *first.completion_ids])
    assert text == '<|user|>paint the wall red<|end|><|assistant|>```python\npaint("red")\nfull\ndone()\n```<|end|>'
    assert str(policy.tokenizer.decode(list(first.completion_ids))).startswith("```python")


def test_an_expert_that_fails_is_said() -> None:
    world = ToyWorld()
    with pytest.raises(ValueError, match=r"the expert fails train0_1: score 0.5, ended: completed"):
        expert_chains(toy_policy(), world, scripts(world, "half", "done()"), toy_config().agent)


def test_self_distillation_keeps_what_succeeds() -> None:
    world, config = ToyWorld(2), toy_config()
    policy = toy_policy(cls=SayingPolicy)
    seen: list[str] = []

    def say(key: str) -> str:
        seen.append(key)
        return code("full" if key.split("/")[-2] == "1" else "half", "done()")

    policy.say = say  # type: ignore[attr-defined]
    sft = config.sft.model_copy(update={"attempts": 2})
    kept = rejection_sampled(Runner(policy, world, config.agent), world.tasks("train"), sft, key="d")
    assert [episode.task.task_id for episode in kept] == ["train0_2", "train1_2"] * 2  # position 1 of each chain
    assert len(set(seen)) == len(seen) == 12


@pytest.fixture
def traces() -> list[Example]:
    world = ToyWorld()
    chains = expert_chains(toy_policy(), world, scripts(world, "full", "done()"), toy_config().agent)
    return examples(episode for chain in chains for episode in chain.episodes)


def config(**sft: Any) -> Any:
    return toy_config(sft={"batch_size": 3, "steps": 30, "learning_rate": 0.02, "evaluate_from": 0} | sft)


def test_only_the_turn_is_trained_on_and_the_expert_is_learnt(
    traces: list[Example], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels: list[torch.Tensor] = []
    original = sft_module.SFTTrainer.compute_loss

    def spy(trainer: Any, model: Any, inputs: Any, *rest: Any, **named: Any) -> Any:
        labels.append(inputs["labels"].clone())
        return original(trainer, model, inputs, *rest, **named)

    monkeypatch.setattr(sft_module.SFTTrainer, "compute_loss", spy)
    policy = toy_policy()
    rows = train_sft(policy, traces, config(), tmp_path)
    assert len(rows) == 30
    assert float(rows[-1]["loss"]) < float(rows[0]["loss"]) / 4
    trained = {tuple(row[row != -100].tolist()) for row in labels[0]}
    assert trained == {one.completion_ids for one in traces}


def test_training_ends_at_the_target_on_dev(traces: list[Example], tmp_path: Path) -> None:
    scores = iter([10.0, 45.0])
    rows = train_sft(
        toy_policy(),
        traces,
        config(evaluate_every=3, evaluate_from=4, target_tgc=40),
        tmp_path,
        evaluate=lambda: next(scores),
    )
    # evaluated at 6 and 9, where 45 reaches the target
    assert [(int(row["step"]), row.get("dev_tgc")) for row in rows if "dev_tgc" in row] == [(6, 10.0), (9, 45.0)]
    assert len(rows) == 9


def test_no_examples_are_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no examples"):
        train_sft(toy_policy(), [], config(), tmp_path)


def test_a_saved_policy_is_the_same_policy(tmp_path: Path) -> None:
    policy = toy_policy()
    loaded = load_policy(toy_config(), folder=save_policy(policy, tmp_path))
    messages = [{"role": "user", "content": "paint the wall red"}]
    assert loaded.prompt_ids(messages) == policy.prompt_ids(messages)
    assert loaded.turn_ids("done()") == policy.turn_ids("done()")
    for one, other in zip(loaded.model.parameters(), policy.model.parameters(), strict=True):
        assert torch.equal(one, other)
