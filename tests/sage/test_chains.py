import asyncio
import hashlib
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest
from scripted import FakeWorld, ScriptedPolicy, block, run_chains, task

from skill_evolution.sage.agent.chains import run_chain
from skill_evolution.sage.agent.code_skills import CodeLibrary
from skill_evolution.sage.agent.episode import PolicySampling, Sample
from skill_evolution.sage.agent.rewards import REWARDS, group_advantages, outcomes
from skill_evolution.sage.agent.world import Task
from skill_evolution.sage.config import AgentConfig
from skill_evolution.testbed.world import MiniWorld, expert_turns

COMPACT = AgentConfig(layout="compact")
one = partial(run_chain, agent=COMPACT, key="0/7", temperature=1.0)
TASKS = [task(1), task(2), task(3)]


def writes(key: str) -> str:
    """Each task defines a skill named after its chain and position, and succeeds."""
    _, _, scenario, g, position, _ = key.split("/")
    return block(f"def {scenario}_{g}_{position}(): pass\nscore(1.0)\ncomplete_task()")


async def test_a_chains_skills_accumulate_and_are_offered_to_its_later_tasks():
    chain = await one(ScriptedPolicy(writes), FakeWorld(), TASKS)
    assert [episode.offered for episode in chain.episodes] == [(), ("a_0_0",), ("a_0_0", "a_0_1")]
    assert chain.library.names == ("a_0_0", "a_0_1", "a_0_2")
    assert (chain.scenario, chain.index) == ("a", 0)
    assert [s.task_id for s in chain.library] == ["a_1", "a_2", "a_3"]


async def test_chain_g_never_sees_chain_hs_skills():
    policy = ScriptedPolicy(writes)
    chains = await run_chains(policy, FakeWorld(), [TASKS, [task(1, "b"), task(2, "b")]], group=3)
    assert [(c.scenario, c.index) for c in chains] == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1), ("b", 2)]
    for chain in chains:
        for position, episode in enumerate(chain.episodes):
            own = tuple(f"{chain.scenario}_{chain.index}_{p}" for p in range(position))
            assert episode.offered == own
            shown = policy.prompt(episode.key)
            assert [name for name in _all_names() if f"def {name}()" in shown] == list(own)


def _all_names() -> list[str]:
    return [f"{scenario}_{g}_{p}" for scenario in "ab" for g in range(3) for p in range(3)]


async def test_keys_name_seed_step_scenario_chain_position_and_turn():
    policy = ScriptedPolicy(writes)
    await run_chains(policy, FakeWorld(), [TASKS[:2]], group=2)
    assert sorted(policy.fed) == ["0/7/a/0/0/0", "0/7/a/0/1/0", "0/7/a/1/0/0", "0/7/a/1/1/0"]


def drawn(key: str) -> str:
    number = int(hashlib.sha256(key.encode()).hexdigest()[:6], 16)
    return block(f"def f{number % 7}(): return {number}\nscore({number % 5} / 4)\ncomplete_task()")


async def test_rollouts_differ_and_the_same_seed_gives_the_same():
    first, second = [await run_chains(ScriptedPolicy(drawn), FakeWorld(), [TASKS], group=4) for _ in range(2)]
    assert first == second
    assert len({chain.episodes[0].completion_ids for chain in first}) == 4
    other = await run_chains(ScriptedPolicy(drawn), FakeWorld(), [TASKS], key="1/7", group=4)
    assert [c.episodes[0].completion_ids for c in other] != [c.episodes[0].completion_ids for c in first]


async def test_chains_run_side_by_side_and_are_live_meanwhile():
    class Together(ScriptedPolicy):
        """Answers no first sample before all six chains have asked for theirs."""

        waiting, alive, most = 0, 0, 0
        everybody = asyncio.Event()

        async def sample(self, ids: Sequence[int], *, key: str, sampling: PolicySampling) -> Sample:
            self.waiting += 1
            if self.waiting == 6:
                self.everybody.set()
            await self.everybody.wait()
            return await super().sample(ids, key=key, sampling=sampling)

        def __enter__(self) -> None:
            self.alive += 1
            self.most = max(self.most, self.alive)

        def __exit__(self, *error: object) -> None:
            self.alive -= 1

        def live(self):
            return self

    policy = Together(writes)
    async with asyncio.timeout(20):
        chains = await run_chains(policy, FakeWorld(), [TASKS, [task(1, "b")]], group=3)
    assert len(chains) == 6
    assert (policy.most, policy.alive) == (6, 0)


@pytest.mark.parametrize("fault", ["world", "policy", "open"])
async def test_a_fault_in_task_2_costs_that_row_only(fault: str):
    def script(key: str) -> str | Exception:
        if not key.startswith("0/7/a/1/1/") or fault == "open":
            return writes(key)
        if key.endswith("/0"):
            return block("def lost(): pass")
        return RuntimeError("out of memory") if fault == "policy" else block("crash()")

    world = FakeWorld(unopenable="a_2" if fault == "open" else "")
    chains = await run_chains(ScriptedPolicy(script), world, [TASKS], group=4)
    errors = [[episode.error is not None for episode in chain.episodes] for chain in chains]
    fine = [False, fault == "open", False]
    assert errors == [fine, [False, True, False], fine, fine]
    # the next task finds what task 2 would have found: nothing of a failed row enters the library
    assert chains[1].episodes[2].offered == ("a_1_0",)
    assert all(episode.success for chain in chains for episode in (chain.episodes[0], chain.episodes[2]))
    rewards = [None if o.failed else o.score for chain in chains for o in outcomes(chain)[1:2]]
    expected = [None] * 4 if fault == "open" else [0.0, None, 0.0, 0.0]
    assert group_advantages(rewards, ["a"] * 4) == expected


async def test_a_skill_that_fails_to_load_is_dropped_from_the_library():
    def script(key: str) -> str:
        return block("import nowhere\ndef bad(): nowhere\n" if key.endswith("/0/0") else "complete_task()")

    def says(key: str) -> str:
        return script(key) if not key.endswith("/0/1") else block("complete_task()")

    chain = await one(ScriptedPolicy(says), FakeWorld(), TASKS)
    assert [episode.dropped for episode in chain.episodes] == [(), ("bad",), ()]
    assert chain.library == CodeLibrary()


async def test_a_skill_is_kept_also_where_its_task_failed():
    chain = await one(ScriptedPolicy(lambda key: block("def f(): pass\ncomplete_task()")), FakeWorld(), TASKS[:1])
    assert (chain.episodes[0].success, chain.library.names) == (False, ("f",))


async def test_the_agent_without_library_has_none():
    agent = COMPACT.model_copy(update={"library": False})
    chain = await one(ScriptedPolicy(writes), FakeWorld(), TASKS, agent=agent)
    assert [episode.offered for episode in chain.episodes] == [(), (), ()]
    assert chain.library == CodeLibrary()


async def test_a_chain_over_a_split_keeps_one_library_for_its_scenarios():
    tasks = [task(1, "a"), task(2, "a"), replace(task(1, "b"), instruction="Pay Bo 5 dollars")]
    ngram = COMPACT.model_copy(update={"retrieval": "query_ngram"})
    chain = await one(ScriptedPolicy(writes), FakeWorld(), tasks, agent=ngram)
    assert chain.episodes[2].offered == ("a_0_0", "a_0_1")
    assert chain.library.names == ("a_0_0", "a_0_1", "b_0_2")


@pytest.mark.parametrize("tasks", [[], [task(1), task(2), task(1)]])
async def test_a_chain_has_tasks_each_once(tasks: list[Task]):
    with pytest.raises(ValueError, match="each once"):
        await one(ScriptedPolicy(writes), FakeWorld(), tasks)


async def test_the_experts_skill_is_written_once_and_reused_in_the_bundled_world():
    world = MiniWorld()
    [scenario] = {task.scenario for task in world.tasks("dev")[:3]}
    cases = {str(position): world.case(task) for position, task in enumerate(world.tasks("dev")[:3])}

    def expert(key: str) -> str:
        *_, position, turn = key.split("/")
        turns = expert_turns(cases[position], style="reuse" if position != "0" else "skill")
        return block(turns[int(turn)])

    chain = await one(ScriptedPolicy(expert), world, world.tasks("dev")[:3])
    assert (chain.scenario, [episode.success for episode in chain.episodes]) == (scenario, [True] * 3)
    assert [episode.dropped for episode in chain.episodes] == [()] * 3
    # 1 + reused later; 1 + used; 1 + used
    assert REWARDS["skill_integrated"](outcomes(chain)) == [2, 2, 2]


def test_importing_the_agent_loads_no_torch():
    code = "import sys, skill_evolution.sage; print({'torch', 'transformers', 'trl'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
