"""The bundled world's expert as traces for supervised training, and the world's text for the tiny tokenizer."""

from collections.abc import Sequence

import numpy as np

from skill_evolution.sage.agent.chains import Chain
from skill_evolution.sage.agent.planning import by_scenario
from skill_evolution.sage.agent.world import Task
from skill_evolution.sage.config import SageConfig
from skill_evolution.sage.policies.policy import LocalPolicy
from skill_evolution.sage.training.sft import Example, Script, Vary, expert_chains
from skill_evolution.testbed.world import STYLES, VALUES, MiniWorld, expert_turns
from skill_evolution.testbed.world.scenarios import scenario_cases
from skill_evolution.testbed.world.values import IDENTIFIERS, KINDS, USERS


def fenced(code: str) -> str:
    """A turn that holds nothing but code."""
    return f"```python\n{code}\n```"


class VariedWorld(MiniWorld):
    """A world's training scenarios with other users, values and starting states: what the expert is traced in.

    A small policy that sees the same few values over and over learns them by heart instead of how to copy them.
    """

    def __init__(self, world: MiniWorld, *, seed: int) -> None:
        """The same scenarios, everything else from `seed`."""
        super().__init__(train=0, dev=0, test=0, challenge=0)
        chains = [[world.case(task) for task in own] for own in by_scenario(world.tasks("train"))]
        pairs = [(own[0].parts[0].primitive, own[0].parts[1].primitive) for own in chains]
        varied = [
            case
            for index, pair in enumerate(pairs)
            for case in scenario_cases(pair, split="train", seed=seed, index=index)
        ]
        self._cases = {case.task.task_id: case for case in varied}


def expert_traces(policy: LocalPolicy, world: MiniWorld, config: SageConfig) -> list[Chain]:
    """`sft.attempts` chains of the expert over each training scenario, its tasks in a random order, each with other
    values.

    A share `sft.skill_share` of the chains defines a function in the first task and calls it in the others; the rest
    solves every task step by step, unless one takes more steps than the agent has turns.

    Raises:
        ValueError: A trace doesn't solve its task: the agent's limits are too tight.
    """
    chains: list[Chain] = []
    for attempt in range(config.sft.attempts):
        rng = np.random.default_rng([config.sft_seed, attempt])
        varied = VariedWorld(world, seed=int(rng.integers(2**31)))
        scripts = [
            _script(
                varied,
                [own[place] for place in rng.permutation(len(own))],
                skill=rng.random() < config.sft.skill_share,
                turns=config.agent.turns,
            )
            for own in by_scenario(varied.tasks("train"))
        ]
        chains += expert_chains(policy, varied, scripts, config.agent)
    return chains


def permuted_values(policy: LocalPolicy) -> Vary:
    """Swaps an example's values for others of their kind, the same everywhere in it, so that copying is all that helps.

    A small policy that sees the same few values over and over learns them by heart instead. Works on token ids; a
    value that isn't one token stays as it is.
    """
    pools = [
        [policy.word_ids(word) for word in pool]
        for pool in (*(kind.pool for kind in KINDS.values()), USERS, IDENTIFIERS)
    ]
    single = [[ids[0] for ids in pool if len(ids) == 1] for pool in pools]

    def vary(example: Example, rng: np.random.Generator) -> Example:
        swaps = {old: int(new) for pool in single for old, new in zip(pool, rng.permutation(pool), strict=True)}
        swapped = (
            tuple(swaps.get(token, token) for token in ids) for ids in (example.prompt_ids, example.completion_ids)
        )
        return Example(*swapped)

    return vary


def _script(world: MiniWorld, tasks: Sequence[Task], *, skill: bool, turns: int) -> tuple[Sequence[Task], Script]:
    cases = [world.case(task) for task in tasks]
    script = [expert_turns(case, style="direct") for case in cases]
    if skill or any(len(codes) > turns for codes in script):
        styles = ["skill", *["reuse"] * (len(cases) - 1)]
        script = [expert_turns(case, style=style) for case, style in zip(cases, styles, strict=True)]
    return tasks, [[fenced(code) for code in codes] for codes in script]


def world_text(world: MiniWorld) -> list[str]:
    """Text in which every word of the world stands: values, instructions, overview, and the expert's code.

    Held-out instructions are among it: they bring no word that training hasn't, except the challenge split's app.
    """
    tasks = [task for split in world.splits for task in world.tasks(split)]
    code = [fenced(turn) for task in tasks for style in STYLES for turn in expert_turns(world.case(task), style=style)]
    return [world.overview, *VALUES, *(task.instruction for task in tasks), *code, "ok", "cut"]
