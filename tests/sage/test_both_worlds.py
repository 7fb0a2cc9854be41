"""One agent, its chains, rewards, rows and metrics, on the bundled world and on AppWorld itself: nothing differs."""

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import appworld_data
import pytest
from scripted import ScriptedPolicy, block, run_chains
from test_appworld_real import LOG_IN, WRITE_NOTE, solution

from skill_evolution.sage.agent.metrics import metrics
from skill_evolution.sage.agent.planning import by_scenario
from skill_evolution.sage.agent.rewards import REWARDS, group_advantages, outcomes
from skill_evolution.sage.agent.rows import training_rows
from skill_evolution.sage.agent.world import Task, World
from skill_evolution.sage.appworld.environment import AppWorldError, appworld_python
from skill_evolution.sage.appworld.world import AppWorld
from skill_evolution.testbed.world import MiniWorld, expert_turns

G = 3
Solve = Callable[[Task, str], Sequence[str]]
"""The code of each turn that solves a task: direct, skill (define a function and call it) or reuse (call it)."""


def in_mini_world(world: MiniWorld) -> Solve:
    return lambda task, style: expert_turns(world.case(task), style=style)


def in_appworld(task: Task, style: str) -> Sequence[str]:
    if style == "direct":
        return [LOG_IN + solution(task)]
    title, content = task.instruction.split('"')[1::2]
    use = f"write_note({title!r}, {content!r})\napis.supervisor.complete_task()"
    return [WRITE_NOTE + use if style == "skill" else use]


@pytest.fixture(params=["mini_world", pytest.param("appworld", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[World, Solve, str]]:
    """A world, what solves its tasks, and the code that says "done" without having done anything."""
    if request.param == "mini_world":
        world = MiniWorld()
        yield world, in_mini_world(world), "complete_task()"
        return
    try:
        python = appworld_python()
    except AppWorldError as error:
        pytest.skip(f"AppWorld's environment can't be made here: {error}")
    environment = {**os.environ, "APPWORLD_ROOT": str(tmp_path)}
    subprocess.run([python, appworld_data.__file__], cwd=tmp_path, env=environment, check=True)
    with AppWorld(root=tmp_path, python=python, servers=G) as world:
        yield world, in_appworld, "apis.supervisor.complete_task()"


async def test_the_agent_learns_the_same_from_both(place: tuple[World, Solve, str]) -> None:
    """Chain 0 makes a skill and reuses it, chain 1 makes one and doesn't, chain 2 gives no code, then does nothing."""
    world, solve, done = place
    tasks = by_scenario(world.tasks("train"))[0][:2]

    def script(key: str) -> str:
        index, position, turn = map(int, key.split("/")[-3:])
        if index == 2:
            return block(done) if position else "I don't know."
        style = "skill" if position == 0 else "reuse" if index == 0 else "direct"
        return block(solve(tasks[position], style)[turn])

    policy = ScriptedPolicy(script)
    chains = await run_chains(policy, world, [tasks], key="0", group=G)
    ended = [[episode.ended for episode in chain.episodes] for chain in chains]
    assert ended == [["completed"] * 2, ["completed"] * 2, ["no_code", "completed"]]
    assert [episode.error for chain in chains for episode in chain.episodes] == [None] * 6
    [name] = [skill.name for skill in chains[0].episodes[0].defined if skill.name != "log_in"]
    assert name in chains[0].episodes[1].used
    assert name in chains[1].episodes[1].offered
    assert name not in chains[1].episodes[1].used
    assert name in policy.prompt(chains[0].episodes[1].key)  # it stands in the next task's prompt

    idle = chains[2].episodes[1].score
    assert idle < 1
    by_name = {name: [reward(outcomes(chain)) for chain in chains] for name, reward in REWARDS.items()}
    assert by_name["skill_integrated"] == [[2.0, 2.0], [1.0, 1.0], [-1.0, idle]]
    assert by_name["chain"] == [[2.0, 2.0], [2.0, 2.0], [-1.0, idle]]
    assert by_name["outcome"] == [[1.0, 1.0], [1.0, 1.0], [-1.0, idle]]

    rows = training_rows(chains, group=G, reward=REWARDS["skill_integrated"], pad=0)
    assert [row.reward for row in rows] == [2.0, 1.0, -1.0, 2.0, 1.0, idle]
    mean = (3 + idle) / 3
    advantages = group_advantages([row.reward for row in rows], [0, 0, 0, 1, 1, 1])
    assert advantages == pytest.approx([4 / 3, 1 / 3, -5 / 3, 2 - mean, 1 - mean, idle - mean])
    for row in rows:
        assert len(row.completion_ids) == len(row.logprobs) == len(row.env_mask)
        assert row.env_mask[0] == row.env_mask[-1] == 1  # it begins and ends with sampled tokens

    found = metrics(chains, reward="skill_integrated")
    assert found["tgc"] == pytest.approx(100 * 4 / 6)
    assert found["sgc"] == pytest.approx(100 * 2 / 3)
    assert found["skill_usage_rate"] == pytest.approx(1 / 2)  # two tasks had skills on offer
    assert (found["successful_skill_usage_rate"], found["no_code"], found["failed"]) == (1.0, pytest.approx(1 / 6), 0)
