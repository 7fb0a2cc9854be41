"""When the chains that are done are enough."""

import pytest

from skill_evolution.sage.running import Enough


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
