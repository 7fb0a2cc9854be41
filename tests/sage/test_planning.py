from collections import Counter

import numpy as np
import pytest
from toy_world import ToyWorld

from skill_evolution.sage.agent.planning import by_scenario, plan_steps


def planned(steps: int, *, scenarios: int = 2, length: int = 2, seed: int = 0, world: int = 5) -> list:
    rng = np.random.default_rng(seed)
    return plan_steps(ToyWorld(world).tasks("train"), steps=steps, scenarios=scenarios, chain_length=length, rng=rng)


def test_every_scenario_has_its_turn_before_any_comes_again() -> None:
    drawn = [tasks[0].scenario for step in planned(10) for tasks in step]
    assert [set(Counter(drawn[at : at + 5]).values()) for at in range(0, 20, 5)] == [{1}] * 4


def test_a_step_has_no_scenario_twice_and_a_chain_no_task_twice() -> None:
    for step in planned(40, scenarios=4, length=3):
        assert len({tasks[0].scenario for tasks in step}) == 4
        for tasks in step:
            assert len({task.task_id for task in tasks}) == 3
            assert len({task.scenario for task in tasks}) == 1


def test_the_seed_decides_and_more_steps_only_add() -> None:
    assert planned(3) == planned(6)[:3]
    assert planned(3) != planned(3, seed=1)
    orders = {tuple(task.task_id[-1] for task in tasks) for step in planned(60) for tasks in step}
    assert len(orders) == 6  # ordered pairs out of three tasks


def test_what_cannot_be_planned_is_said() -> None:
    with pytest.raises(ValueError, match="a step takes 6 scenarios, there are 5"):
        planned(1, scenarios=6)
    with pytest.raises(ValueError, match="a chain has 4 tasks, scenario 'train0' has 3"):
        planned(1, length=4)


def test_scenarios_keep_their_order() -> None:
    ids = [[task.task_id for task in own] for own in by_scenario(ToyWorld(2).tasks("dev"))]
    assert ids == [["dev0_1", "dev0_2", "dev0_3"], ["dev1_1", "dev1_2", "dev1_3"]]
