"""The expert's traces, and how their values are varied."""

import numpy as np
import pytest

from skill_evolution.sage.agent.chains import Chain
from skill_evolution.sage.config import SageConfig, load_sage_config
from skill_evolution.sage.policies.loading import load_policy
from skill_evolution.sage.policies.policy import LocalPolicy
from skill_evolution.sage.training.sft import Example, examples
from skill_evolution.testbed.world import MiniWorld
from skill_evolution.testbed.world.expert_data import VariedWorld, expert_traces, permuted_values, world_text
from skill_evolution.testbed.world.values import IDENTIFIERS, KINDS, USERS

POOLS = (*(kind.pool for kind in KINDS.values()), USERS, IDENTIFIERS)


@pytest.fixture(scope="module")
def world() -> MiniWorld:
    return MiniWorld(train=12)


@pytest.fixture(scope="module")
def policy(world: MiniWorld) -> LocalPolicy:
    return load_policy(load_sage_config("demo"), texts=world_text(world))


def config(**sft: object) -> SageConfig:
    return load_sage_config("demo", sft={"attempts": 4, **sft})


@pytest.fixture(scope="module")
def chains(policy: LocalPolicy, world: MiniWorld) -> list[Chain]:
    return expert_traces(policy, world, config())


def test_every_trace_solves_its_task(chains: list[Chain]) -> None:
    assert len(chains) == 4 * 12
    assert all(len(chain.episodes) == 3 for chain in chains)
    assert all(episode.success for chain in chains for episode in chain.episodes)


def test_most_chains_make_a_skill_and_reuse_it(policy: LocalPolicy, world: MiniWorld, chains: list[Chain]) -> None:
    with_skill = [chain for chain in chains if chain.episodes[0].defined]
    assert 0.7 < len(with_skill) / len(chains) < 0.98  # 0.85 of 48 are asked for
    for chain in with_skill:
        [skill] = chain.episodes[0].defined
        assert [episode.used for episode in chain.episodes[1:]] == [frozenset({skill.name})] * 2
    for chain in (chain for chain in chains if chain not in with_skill):
        assert not any(episode.defined or episode.used for episode in chain.episodes)


def test_turns_stay_within_the_agent_s_limit(policy: LocalPolicy, world: MiniWorld) -> None:
    """Step by step some tasks take four turns: with a limit of three their chains are written with a skill."""
    tight = load_sage_config("demo", agent={"turns": 3}, sft={"attempts": 2, "skill_share": 0.0})
    traces = expert_traces(policy, world, tight)
    assert max(episode.steps for chain in traces for episode in chain.episodes) == 3
    assert {bool(chain.episodes[0].defined) for chain in traces} == {False, True}
    free = expert_traces(policy, world, config(skill_share=0.0, attempts=2))
    assert not any(chain.episodes[0].defined for chain in free)
    assert max(episode.steps for chain in free for episode in chain.episodes) == 4


def test_attempts_differ_and_the_seed_decides(policy: LocalPolicy, world: MiniWorld, chains: list[Chain]) -> None:
    def texts(traces: list[Chain]) -> list[tuple[str, str]]:
        return [(e.task.task_id, e.task.instruction) for chain in traces for e in chain.episodes]

    assert texts(expert_traces(policy, world, config())) == texts(chains)
    first, second = texts(chains)[:36], texts(chains)[36:72]
    assert sorted(task for task, _ in first) == sorted(task for task, _ in second)
    assert first != second
    other = load_sage_config("demo", sft_seed=1, sft={"attempts": 4})
    assert texts(expert_traces(policy, world, other)) != texts(chains)


def test_varied_worlds_hold_the_training_scenarios(world: MiniWorld) -> None:
    varied = VariedWorld(world, seed=3)
    ids = [task.task_id for task in world.tasks("train")]
    assert [task.task_id for task in varied.tasks("train")] == ids
    assert [varied.case(task).parts[0].primitive for task in varied.tasks("train")] == [
        world.case(task).parts[0].primitive for task in world.tasks("train")
    ]
    assert [t.instruction for t in varied.tasks("train")] != [t.instruction for t in world.tasks("train")]


def test_values_are_swapped_within_their_kind_and_nothing_else(policy: LocalPolicy, chains: list[Chain]) -> None:
    kind = {policy.word_ids(word)[0]: place for place, pool in enumerate(POOLS) for word in pool}
    assert len(kind) == sum(map(len, POOLS))  # each value is one token of its own
    vary, rng = permuted_values(policy), np.random.default_rng(0)
    changed = 0
    for example in examples(chains[0].episodes + chains[1].episodes):
        varied = vary(example, rng)
        swaps: dict[int, int] = {}
        for before, after in zip(
            (*example.prompt_ids, *example.completion_ids), (*varied.prompt_ids, *varied.completion_ids), strict=True
        ):
            assert kind.get(before) == kind.get(after)
            assert before in kind or before == after
            assert swaps.setdefault(before, after) == after  # the same everywhere in the example
            changed += before != after
        assert len(set(swaps.values())) == len(swaps)  # different values stay different
        assert len(varied.prompt_ids) == len(example.prompt_ids)
    assert changed > 20


def test_the_same_draws_give_the_same_example(policy: LocalPolicy) -> None:
    ids = tuple(token for word in ("ada", "sunrise", "oak", "mia") for token in policy.word_ids(word))
    vary = permuted_values(policy)
    drawn = [vary(Example(ids, ids), np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[0].prompt_ids == drawn[0].completion_ids
