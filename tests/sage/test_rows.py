"""Rows against values worked out by hand."""

from dataclasses import replace

import pytest
from scripted import skill, task

from skill_evolution.sage.agent.chains import Chain
from skill_evolution.sage.agent.code_skills import CodeLibrary
from skill_evolution.sage.agent.episode import Episode, Sample, Turn
from skill_evolution.sage.agent.rewards import group_advantages, outcome, skill_integrated
from skill_evolution.sage.agent.rows import training_rows
from skill_evolution.sage.agent.world import Execution

PAD = 0
RAN = Execution("1", None, 0, False)


def turn(observation: tuple[int, ...], ids: tuple[int, ...], *, cut: bool = False) -> Turn:
    return Turn(observation, Sample(ids, tuple(-token / 10 for token in ids), "", cut), "print(1)", RAN)


def episode(n: int, score: float, *turns: Turn, **fields) -> Episode:
    done = {"completed": True, "ended": "completed", "prompt_ids": (7, n)}
    return Episode(task(n), f"k/{n}", turns=turns, score=score, **(done | fields))


def chain(*episodes: Episode, index: int = 0) -> Chain:
    return Chain("a", index, episodes, CodeLibrary())


def rewards(chains: list[Chain], group: int, reward=outcome) -> list[float | None]:
    return [row.reward for row in training_rows(chains, group=group, reward=reward, pad=PAD)]


def test_the_mask_covers_exactly_the_sampled_tokens_over_three_turns() -> None:
    three = episode(1, 1.0, turn((), (11, 12)), turn((21, 22, 23), (13,)), turn((24,), (14, 15)))
    [row] = training_rows([chain(three)], group=1, reward=outcome, pad=PAD)
    assert row.prompt_ids == (7, 1)
    assert row.completion_ids == (11, 12, 21, 22, 23, 13, 24, 14, 15)
    assert row.env_mask == (1, 1, 0, 0, 0, 1, 0, 1, 1)
    assert row.logprobs == (-1.1, -1.2, 0.0, 0.0, 0.0, -1.3, 0.0, -1.4, -1.5)


def test_rows_are_ordered_by_scenario_position_and_chain() -> None:
    lengths = {(1, 0): (11,), (2, 0): (12, 13), (1, 1): (14, 15, 16), (2, 1): (17,)}
    chains = [chain(*(episode(n, 0.0, turn((), lengths[n, g])) for n in (1, 2)), index=g) for g in (0, 1)]
    rows = training_rows(chains, group=2, reward=outcome, pad=PAD)
    # position 0 of chains 0 and 1, then position 1; the completions are of unequal lengths
    assert [row.completion_ids for row in rows] == [(11,), (14, 15, 16), (12, 13), (17,)]
    assert [row.prompt_ids for row in rows] == [(7, 1), (7, 1), (7, 2), (7, 2)]


def test_four_rewards_of_1_0_1_0_have_advantages_of_plus_and_minus_half() -> None:
    chains = [chain(episode(1, score, turn((), (11,))), index=g) for g, score in enumerate((1.0, 0.0, 1.0, 0.0))]
    assert rewards(chains, 4) == [1.0, 0.0, 1.0, 0.0]
    assert group_advantages(rewards(chains, 4), ["g"] * 4) == [0.5, -0.5, 0.5, -0.5]


def test_a_reused_skill_rewards_its_maker_and_its_user() -> None:
    made = skill("def pay(x):\n    return x")
    maker = episode(1, 1.0, turn((), (11,)), defined=(made,))
    user = episode(2, 1.0, turn((), (12,)), offered=("pay",), used=frozenset({"pay"}))
    idle = replace(user, used=frozenset())
    # chain 0 uses the skill: 1 + 1 and 1 + 1; chain 1 doesn't: 1 and 1
    assert rewards([chain(maker, user), chain(maker, idle, index=1)], 2, skill_integrated) == [2.0, 1.0, 2.0, 1.0]


def test_no_code_earns_minus_one_and_is_trained_on() -> None:
    silent = episode(1, 0.5, turn((), (11, 12)), completed=False, ended="no_code")
    [row] = training_rows([chain(silent)], group=1, reward=outcome, pad=PAD)
    assert (row.reward, row.env_mask) == (-1.0, (1, 1))


def test_a_failed_row_has_no_reward_and_is_masked() -> None:
    failed = episode(1, 0.0, turn((), (11,)), turn((21,), (12,)), error="WorldError: gone", ended="error")
    fine = episode(1, 1.0, turn((), (13,)))
    rows = training_rows([chain(failed), chain(fine, index=1)], group=2, reward=outcome, pad=PAD)
    assert [row.reward for row in rows] == [None, 1.0]
    assert [row.env_mask for row in rows] == [(0, 0, 0), (1,)]
    assert group_advantages([row.reward for row in rows], "gg") == [None, 0.0]


def test_a_row_that_sampled_nothing_has_one_token_that_is_not_trained_on() -> None:
    for empty in (episode(1, 0.0, ended="context"), episode(1, 0.0, prompt_ids=(), error="x", ended="error")):
        [row] = training_rows([chain(empty)], group=1, reward=outcome, pad=PAD)
        assert (row.completion_ids, row.env_mask, row.logprobs) == ((PAD,), (0,), (0.0,))
        assert row.prompt_ids


def test_an_end_by_the_turn_limit_ends_with_sampled_tokens() -> None:
    limit = episode(1, 0.0, turn((), (11,)), turn((21,), (12,), cut=True), completed=False, ended="turns")
    [row] = training_rows([chain(limit)], group=1, reward=outcome, pad=PAD)
    assert (row.completion_ids[-1], row.env_mask[-1]) == (12, 1)


def test_chains_that_are_no_groups_raise() -> None:
    one = chain(episode(1, 1.0, turn((), (11,))))
    with pytest.raises(ValueError, match="3 chains are no whole groups of 2"):
        training_rows([one, one, one], group=2, reward=outcome, pad=PAD)
    with pytest.raises(ValueError, match="different tasks"):
        training_rows([one, chain(episode(2, 1.0, turn((), (11,))))], group=2, reward=outcome, pad=PAD)
