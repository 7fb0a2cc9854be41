"""Sequential rollout: a chain of tasks worked on in turn, each with the skills that the chain's earlier tasks made.

A chain's library is a value of its own: what another chain writes can't reach it. Chains run side by side, and no
task waits for the slowest of a step.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from skill_evolution.sage.agent.code_skills import CodeLibrary
from skill_evolution.sage.agent.episode import Episode, Policy, run_task
from skill_evolution.sage.agent.retrieval import RETRIEVERS
from skill_evolution.sage.agent.world import Task, World
from skill_evolution.sage.config import AgentConfig


@dataclass(frozen=True)
class Chain:
    """Tasks worked on in turn.

    Attributes:
        scenario: The first task's scenario, which is that of all in training.
        index: g, which of the G chains over these tasks.
        episodes: One a task, in order.
        library: The skills at its end.
    """

    scenario: str
    index: int
    episodes: tuple[Episode, ...]
    library: CodeLibrary


async def run_chain(
    policy: Policy,
    world: World,
    tasks: Sequence[Task],
    agent: AgentConfig,
    *,
    key: str,
    temperature: float,
    index: int = 0,
) -> Chain:
    """One chain over tasks of one scenario; or of many, a whole split in order, with one library that builds up.

    After each task the library gains the skills that its code defines, whether or not it succeeded, and loses those
    that failed to load (FACTS B, "skill"). A task that failed through the world's or the policy's fault changes
    nothing: the next one finds what it would have found. The agent without library keeps none and is offered none.

    Args:
        policy: Samples the turns; entered with `policy.live()`.
        world: Where the code runs.
        tasks: What to work on, in order; none twice.
        agent: Prompt, limits, library and retrieval.
        key: Such as `<seed>/<step>`; task k's key is `<key>/<scenario>/<index>/<k>`, and that decides its samples.
        temperature: Of the policy's sampling; 0 is greedy.
        index: g.

    Raises:
        ValueError: There are no tasks, or one stands twice.
    """
    ids = [task.task_id for task in tasks]
    if not ids or len(set(ids)) < len(ids):
        raise ValueError(f"chain {key}: needs one task or more, each once, got {', '.join(ids) or 'none'}")
    library, episodes = CodeLibrary(), []
    with policy.live():
        for position, task in enumerate(tasks):
            episode = await run_task(
                policy,
                world,
                task,
                agent,
                skills=RETRIEVERS[agent.retrieval](library, task) if agent.library else [],
                key=f"{key}/{task.scenario}/{index}/{position}",
                temperature=temperature,
            )
            episodes.append(episode)
            if agent.library and episode.error is None:
                library = library.without(episode.dropped).with_(episode.defined)
    return Chain(tasks[0].scenario, index, tuple(episodes), library)


def stopped_chain(tasks: Sequence[Task], *, key: str, index: int) -> Chain:
    """What stands for a chain that was stopped before its end: as many episodes, none with a reward.

    All of them, also those that were done: what a task earns can depend on a later one.
    """
    scenario = tasks[0].scenario
    episodes = [
        Episode(task, f"{key}/{task.scenario}/{index}/{position}", ended="stopped", error="the chain was stopped")
        for position, task in enumerate(tasks)
    ]
    return Chain(scenario, index, tuple(episodes), CodeLibrary())
