"""When the chains that are done are enough."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

import pytest
from scripted import FakeWorld, ScriptedPolicy, block

from skill_evolution.sage.agent.chains import Chain, stopped_chain
from skill_evolution.sage.agent.episode import PolicySampling, Sample
from skill_evolution.sage.agent.runner import Enough, Runner, Work, _counting, _until
from skill_evolution.sage.config import load_sage_config

DONE = block("score(1)\ncomplete_task()")


@pytest.mark.parametrize(
    ("done", "reached"),
    [
        ((4, 4), True),
        ((4, 3), True),  # 7 of 8
        ((3, 3), False),  # 6 of 8: of each scenario enough, of all too few
        ((4, 2), False),
        ((0, 0), False),
    ],
)
def test_both_shares_count(done: tuple[int, int], reached: bool) -> None:
    assert Enough(0.8, 0.75).reached({"a": 4, "b": 4}, dict(zip("ab", done, strict=True))) is reached


def test_a_scenario_can_hold_up_the_rest() -> None:
    assert not Enough(0.9, 0.75).reached({"a": 19, "b": 1}, {"a": 19, "b": 0})
    assert Enough(0.9, 0.75).reached({"a": 19, "b": 1}, {"a": 18, "b": 1})


class HangingPolicy(ScriptedPolicy):
    """Solves every task in one turn; chains that `hangs` names by their index wait in their second one for ever."""

    seconds = 0.0

    def __init__(self, hangs: Callable[[int], bool]) -> None:
        super().__init__(lambda key: DONE)
        self.hangs = hangs

    async def sample(self, ids: Sequence[int], *, key: str, sampling: PolicySampling) -> Sample:
        index, position = map(int, key.split("/")[-3:-1])
        if position and self.hangs(index):
            await asyncio.Event().wait()
        return await super().sample(ids, key=key, sampling=sampling)


def runner(hanging: int) -> tuple[Runner, FakeWorld, list[Work]]:
    policy, world = HangingPolicy(lambda index: index < hanging), FakeWorld()
    tasks = tuple(world.tasks("train")[:2])
    agent = load_sage_config("demo", agent={"context": 4096, "tokens_per_turn": 200}).agent
    return Runner(policy, world, agent), world, [Work(tasks, "0", index) for index in range(8)]


def test_what_hangs_is_stopped_and_its_session_closed() -> None:
    run, world, work = runner(hanging=2)
    chains = run.run(work, temperature=1.0, enough=Enough(0.75, 0.75))
    assert [chain.index for chain in chains] == list(range(8))
    assert [chain.episodes[0].ended for chain in chains] == ["stopped"] * 2 + ["completed"] * 6
    assert all(len(chain.episodes) == 2 for chain in chains)
    assert [episode.error is None for chain in chains for episode in chain.episodes] == [False] * 4 + [True] * 12
    assert [session.closed for session in world.sessions] == [1] * 16


async def test_too_few_are_waited_for() -> None:
    """Five of eight are done, six would be enough."""
    _, _, work = runner(hanging=0)

    async def chain(one: Work) -> Chain:
        if one.index < 3:
            await asyncio.Event().wait()
        return stopped_chain(one.tasks, key=one.key, index=one.index)

    def reached(done: Mapping[str, int]) -> bool:
        return Enough(0.75, 0.75).reached({"a": 8}, done)

    tally = _counting()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(_until(work, [chain(one) for one in work], reached, tally), 0.2)
    assert tally([]) == {"a": 5}
