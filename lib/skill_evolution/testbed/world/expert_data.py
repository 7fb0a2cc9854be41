"""The bundled world's expert as traces for supervised training, and the world's text for the tiny tokenizer."""

import asyncio
from collections.abc import Iterable, Sequence

import numpy as np

from skill_evolution.base import aio
from skill_evolution.sage.agent.chains import Chain, run_chain
from skill_evolution.sage.agent.episode import PolicySampling, Sample
from skill_evolution.sage.agent.planning import by_scenario
from skill_evolution.sage.agent.world import Task, World
from skill_evolution.sage.config import AgentConfig, SageConfig
from skill_evolution.sage.policies.chat_tokens import ChatTokens
from skill_evolution.sage.policies.policy import LocalPolicy
from skill_evolution.sage.training.sft import Example, Vary
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


class ScriptedPolicy(ChatTokens):
    """Says what a script holds, turn by turn, in the ids of another policy's tokenizer: runs an expert's trace."""

    def __init__(self, policy: LocalPolicy, turns: Iterable[str]) -> None:
        """For the text of each turn."""
        super().__init__(policy.tokenizer, policy.model.generation_config)
        self.turns = list(turns)

    async def sample(self, ids: Sequence[int], *, key: str, sampling: PolicySampling) -> Sample:
        """The script's next turn; the log-probabilities are 0.

        Raises:
            IndexError: The script is over.
        """
        await asyncio.sleep(0)
        text = self.turns.pop(0)
        turn = tuple(self.turn_ids(text))
        return Sample(turn, (0.0,) * len(turn), text, cut=False)


Script = Sequence[Sequence[str]]
"""An expert's chain: for each task the text of its turns, code in fences."""


def expert_chains(
    policy: LocalPolicy, world: World, scripts: Sequence[tuple[Sequence[Task], Script]], agent: AgentConfig
) -> list[Chain]:
    """Run scripted chains in the world, with the library that builds up and the agent's prompt.

    Args:
        policy: Whose tokenizer and chat template the traces are for.
        world: The world.
        scripts: For each chain its tasks, and for each of these its turns.
        agent: Prompt, limits and retrieval.

    Raises:
        ValueError: A task of a chain doesn't succeed: the expert is wrong, or a limit is too tight for it.
    """
    says = [ScriptedPolicy(policy, (turn for turns in script for turn in turns)) for _, script in scripts]
    chains = aio.run_sync(
        aio.gather(
            run_chain(one, world, tasks, agent, key="expert", temperature=0.0)
            for one, (tasks, _) in zip(says, scripts, strict=True)
        )
    )
    for episode in (episode for chain in chains for episode in chain.episodes):
        if not episode.success:
            what = episode.error or f"score {episode.score}, ended: {episode.ended}"
            raise ValueError(f"the expert fails {episode.task.task_id}: {what}")
    return chains


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
