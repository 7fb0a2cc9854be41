"""From chains to what is trained on: one row a (scenario, position, chain), its tokens as they were sampled."""

from collections.abc import Sequence
from dataclasses import dataclass

from skill_evolution.sage.agent.chains import Chain
from skill_evolution.sage.agent.episode import Episode
from skill_evolution.sage.agent.rewards import Reward, outcomes


@dataclass(frozen=True)
class Row:
    """One task of one chain.

    Attributes:
        prompt_ids: What the policy was shown first.
        completion_ids: Sampled tokens and the observations between them. Never empty: TRL reads the last token of
            each row, so a row that sampled nothing has one padding token that isn't trained on.
        logprobs: Of each completion token; 0 for observations.
        env_mask: 1 for each sampled token that is trained on, else 0.
        reward: None where the world or the policy failed: such a row is in no mean and trains nothing.
    """

    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    env_mask: tuple[int, ...]
    reward: float | None


def training_rows(chains: Sequence[Chain], *, group: int, reward: Reward, pad: int) -> list[Row]:
    """The rows of a step, ordered by scenario, position, chain: each `group` of them in a row form one group.

    Args:
        chains: G for each scenario, next to each other, all of the same length.
        group: G.
        reward: What a chain's tasks earn.
        pad: The padding token's id.

    Raises:
        ValueError: The chains are no whole groups, or differ in length or scenario within one.
    """
    if len(chains) % group:
        raise ValueError(f"{len(chains)} chains are no whole groups of {group}")
    rewarded = [list(zip(chain.episodes, reward(outcomes(chain)), strict=True)) for chain in chains]
    rows: list[Row] = []
    for start in range(0, len(chains), group):
        _check_group(chains[start : start + group])
        by_position = zip(*rewarded[start : start + group], strict=True)
        rows += [_row(episode, earned, pad) for position in by_position for episode, earned in position]
    return rows


def padding_row(pad: int) -> Row:
    """A row that trains nothing, where a step's rows don't divide among the processes."""
    return Row((pad,), (pad,), (0.0,), (0,), None)


def _row(episode: Episode, reward: float | None, pad: int) -> Row:
    prompt = episode.prompt_ids or (pad,)
    if not episode.completion_ids:
        return Row(prompt, (pad,), (0.0,), (0,), reward)
    mask = episode.env_mask if reward is not None else (0,) * len(episode.env_mask)
    return Row(prompt, episode.completion_ids, episode.logprobs, mask, reward)


def _check_group(chains: Sequence[Chain]) -> None:
    if len({tuple(episode.task.task_id for episode in chain.episodes) for chain in chains}) > 1:
        raise ValueError(f"chains of one group work on different tasks, in scenarios {[c.scenario for c in chains]}")
