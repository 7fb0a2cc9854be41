"""What SAGE hands to verl and takes from it, without verl: rows of a chain, the advantages, the dataset.

verl's own GRPO knows one reward a prompt: of an agent loop's outputs it gives the last one's advantage to all of them.
SAGE's groups are the G chains at the same position, so each output gets a group of its own, `<uid>#<position>`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import torch

from skill_evolution.sage.agent.chains import Chain
from skill_evolution.sage.agent.planning import Step
from skill_evolution.sage.agent.rewards import Reward, group_advantages
from skill_evolution.sage.agent.rows import Row, training_rows

ESTIMATOR = "sage"
"""Name of the advantage estimator and of the agent loop."""


def chain_rows(chain: Chain, *, reward: Reward, pad: int) -> list[tuple[int, Row]]:
    """A chain's positions and rows, as on TRL; those whose world or policy failed are left out.

    Args:
        chain: One chain.
        reward: What its tasks earn.
        pad: The padding token's id.
    """
    rows = training_rows([chain], group=1, reward=reward, pad=pad)
    return [(position, row) for position, row in enumerate(rows) if row.reward is not None]


def group_of(uid: str, position: int) -> str:
    """The group of an output: verl's id of the prompt, and the position in the chain.

    Raises:
        ValueError: There is an underscore in the id, at which verl takes its keys apart.
    """
    if "_" in uid:
        raise ValueError(f"uid {uid!r}: verl splits its keys at underscores, so an id must have none")
    return f"{uid}#{position}"


def advantages(
    token_level_rewards: torch.Tensor, response_mask: torch.Tensor, index: Sequence[str], **_: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """Reward minus its group's mean, not divided by the standard deviation (FACTS B, "objective"), on each token.

    Args:
        token_level_rewards: (rows, tokens), each row's reward on one of its tokens.
        response_mask: (rows, tokens), 1 for sampled tokens.
        index: The group of each row.
        **_: verl's settings, of which none concerns this.

    Returns:
        (rows, tokens) twice: verl wants advantages and returns.
    """
    found = group_advantages(token_level_rewards.sum(dim=-1).tolist(), list(index))
    values = torch.tensor(found, dtype=torch.float32, device=response_mask.device)
    spread = values.unsqueeze(-1) * response_mask
    return spread, spread


def dataset(steps: Sequence[Step], *, name: str) -> pd.DataFrame:
    """verl's dataset: one row a chain of tasks, in the plan's order, to be written as parquet.

    verl repeats each G times (`rollout.n`). The prompt is a stand-in, since the agent makes its own for each task.

    Args:
        steps: The plan (`planning.plan_steps`).
        name: verl's `data_source`.
    """
    rows: list[Mapping[str, Any]] = [
        {
            "data_source": name,
            "agent_name": ESTIMATOR,
            "prompt": [{"role": "user", "content": tasks[0].instruction}],
            "extra_info": {"index": place, "step": number, "task_ids": [task.task_id for task in tasks]},
        }
        for number, step in enumerate(steps)
        for place, tasks in enumerate(step)
    ]
    return pd.DataFrame(rows)
