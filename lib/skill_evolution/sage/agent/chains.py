"""Sequential rollout: a chain of tasks worked on in turn, each with the skills that the chain's earlier tasks made.

A chain's library is a value of its own: what another chain writes can't reach it. Chains run side by side, and no
task waits for the slowest of a step.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from skill_evolution.base.aio import gather
from skill_evolution.sage.agent.code_skills import CodeLibrary, CodeSkill
from skill_evolution.sage.agent.episode import Episode, Limits, Policy, PolicySampling, Prompt, run_task
from skill_evolution.sage.agent.retrieval import Retriever
from skill_evolution.sage.agent.world import Task, World


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
    *,
    key: str,
    sampling: PolicySampling,
    limits: Limits | None = None,
    prompt: Prompt | None = None,
    retriever: Retriever | None = None,
    start: CodeLibrary | None = None,
    index: int = 0,
) -> Chain:
    """One chain over tasks of one scenario; or of many, a whole split in order, with one library that builds up.

    After each task the library gains the skills that its code defines, whether or not it succeeded, and loses those
    that failed to load (FACTS B, "skill"). A task that failed through the world's or the policy's fault changes
    nothing: the next one finds what it would have found.

    Args:
        policy: Samples the turns; entered with `policy.live()`.
        world: Where the code runs.
        tasks: What to work on, in order; none twice.
        key: Such as `<seed>/<step>`; task k's key is `<key>/<scenario>/<index>/<k>`, and that decides its samples.
        sampling: The policy's sampling.
        limits: What a task may take (default: the paper's).
        prompt: How a task is put (default: the full layout, skills with their bodies).
        retriever: Chooses among the library's skills; None offers none and keeps none: the agent without library.
        start: The library before the first task (default: empty). What these tasks themselves or later ones of the
            chain left in it isn't offered: a skill is never older than its task.
        index: g.

    Raises:
        ValueError: There are no tasks, or one stands twice.
    """
    ids = [task.task_id for task in tasks]
    if not ids or len(set(ids)) < len(ids):
        raise ValueError(f"chain {key}: needs one task or more, each once, got {', '.join(ids) or 'none'}")
    library, episodes = start or CodeLibrary(), []
    with policy.live():
        for position, task in enumerate(tasks):
            skills = _earlier(library, ids[position:], retriever, task)
            episode = await run_task(
                policy,
                world,
                task,
                skills=skills,
                key=f"{key}/{task.scenario}/{index}/{position}",
                sampling=sampling,
                limits=limits or Limits(),
                prompt=prompt or Prompt(),
            )
            episodes.append(episode)
            if retriever and episode.error is None:
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


def _earlier(library: CodeLibrary, not_done: Sequence[str], retriever: Retriever | None, task: Task) -> list[CodeSkill]:
    if retriever is None:
        return []
    return retriever(CodeLibrary(tuple(skill for skill in library if skill.task_id not in not_done)), task)


async def run_chains(
    policy: Policy,
    world: World,
    chains: Sequence[Sequence[Task]],
    *,
    key: str,
    sampling: PolicySampling,
    group: int = 1,
    limits: Limits | None = None,
    prompt: Prompt | None = None,
    retriever: Retriever | None = None,
    start: CodeLibrary | None = None,
) -> list[Chain]:
    """G chains over each sequence of tasks, all side by side.

    Args:
        policy: As in `run_chain`, like what isn't named here.
        world: As there.
        chains: The tasks of each.
        key: As there.
        sampling: As there.
        group: G, chains over the same tasks; they differ by their index in the keys.
        limits: As there.
        prompt: As there.
        retriever: As there.
        start: As there.

    Returns:
        len(chains) x G chains, those over the same tasks next to each other, in order of their index.

    Raises:
        ValueError: As there; no group; or two entries have the same scenario at the same position, so the same keys.
    """
    if group < 1:
        raise ValueError(f"chains {key}: a group is 1 chain or more, got {group}")
    keys = Counter((task.scenario, position) for tasks in chains for position, task in enumerate(tasks))
    if doubled := sorted(f"{scenario} at {position}" for (scenario, position), n in keys.items() if n > 1):
        raise ValueError(f"chains {key}: two would draw the same samples, as they share {', '.join(doubled)}")
    return await gather(
        run_chain(
            policy,
            world,
            tasks,
            key=key,
            sampling=sampling,
            limits=limits,
            prompt=prompt,
            retriever=retriever,
            start=start,
            index=index,
        )
        for tasks in chains
        for index in range(group)
    )
