"""Two chains over scenario a, two tasks each, and one over b; every figure is computed by hand beside it."""

import math
from dataclasses import replace

import pytest
from scripted import skill, task

from skill_evolution.sage.agent.chains import Chain
from skill_evolution.sage.agent.code_skills import CodeLibrary
from skill_evolution.sage.agent.episode import Episode, Sample, Turn
from skill_evolution.sage.agent.metrics import episode_frame, metrics
from skill_evolution.sage.agent.world import Execution


def episode(
    n: int, scenario: str = "a", *, tokens: tuple[int, ...] = (4,), score: float = 1.0, **values: object
) -> Episode:
    """Turns of so many sampled tokens each; a success unless told otherwise."""
    turns = [Turn((9,), Sample((1,) * t, (0.0,) * t, "", False), "x", Execution("", None, 0, False)) for t in tokens]
    done = Episode(task(n, scenario), f"{scenario}/{n}", (0,), tuple(turns), score, score == 1.0)
    return replace(done, **{"ended": "completed", **values})  # pyright: ignore[reportArgumentType]


def chain(*episodes: Episode, index: int = 0, library: int = 0) -> Chain:
    skills = tuple(skill(f"def f{i}(): pass") for i in range(library))
    return Chain(episodes[0].task.scenario, index, episodes, CodeLibrary(skills))


F = skill("def f(): pass")
CUT = Turn((), Sample((1,) * 8, (0.0,) * 8, "", True))
CHAINS = [
    chain(
        episode(1, tokens=(10, 5), defined=(F,)),
        episode(2, tokens=(3,), offered=("f", "g"), used=frozenset({"f"})),
        library=2,
    ),
    chain(
        episode(1, tokens=(6,), score=0.5, ended="no_code", completed=False),
        episode(2, tokens=(2, 2, 2), offered=("f",), dropped=("h", "i"), score=0.0),
        index=1,
        library=1,
    ),
    chain(
        episode(1, "b", tokens=(1,), offered=("f", "g"), used=frozenset({"f", "g"}), score=0.25),
        episode(2, "b", error="WorldError: x", ended="error", used=frozenset({"h"}), offered=("h",), dropped=("k",)),
        episode(3, "b", offered=("g",), used=frozenset({"g"}), turns=(CUT,)),
        library=4,
    ),
]


def test_every_figure_by_hand():
    assert metrics(CHAINS) == pytest.approx(
        {
            "tgc": 100 * 3 / 6,  # both of chain 1, the third of chain 3; 6 rows count
            "sgc": 100 * 1 / 2,  # chain 1 yes, chain 2 no; b has a failed row
            "steps": (2 + 1 + 1 + 3 + 1 + 1) / 6,
            "tokens": (15 + 3 + 6 + 6 + 1 + 8) / 6,
            "score": (1 + 1 + 0.5 + 0 + 0.25 + 1) / 6,
            "reward": (1 + 1 - 1 + 0 + 0.25 + 1) / 6,
            "skill_usage_rate": 3 / 4,  # offered in 4 rows, used in 3 of them
            "successful_skill_usage_rate": 2 / 3,
            "library_size": 2 + 1 + 4,
            "skills_used": 1 + 0 + 2,  # f; none; f and g
            "dropped": 2,
            "no_code": 1 / 6,
            "cut": 1 / 6,
            "tasks": 6,
            "failed": 1,
        }
    )


def test_the_reward_is_a_choice():
    # chain 1: 1 + 1[f reused], 1 + 1[used]; chain 2: -1, 0; chain 3: .25, failed, 1 + 1[used]
    assert metrics(CHAINS, reward="skill_integrated")["reward"] == pytest.approx((2 + 2 - 1 + 0 + 0.25 + 2) / 6)


def test_g_chains_of_one_scenario_count_each_by_itself():
    good, bad = chain(episode(1), episode(2)), chain(episode(1), episode(2, score=0.5), index=1)
    assert metrics([good, bad, good])["sgc"] == pytest.approx(100 * 2 / 3)


def test_a_chain_over_several_scenarios():
    both = chain(episode(1), episode(2), episode(1, "b", score=0.0), episode(2, "b"))
    assert metrics([both])["sgc"] == 50.0


def test_rates_of_nothing_are_missing_not_zero():
    figures = metrics([chain(episode(1, error="WorldError: x"))])
    assert all(math.isnan(figures[name]) for name in ("tgc", "sgc", "steps", "skill_usage_rate", "reward"))
    assert (figures["failed"], figures["tasks"]) == (1, 0)
    with pytest.raises(ValueError, match="no chains"):
        metrics([])


def test_one_row_an_episode():
    frame = episode_frame(CHAINS)
    assert list(frame["scenario"]) == ["a"] * 4 + ["b"] * 3
    assert list(frame["chain"]) == [0, 0, 1, 1, 2, 2, 2]
    assert list(frame["position"]) == [0, 1, 0, 1, 0, 1, 2]
    assert list(frame["tokens"]) == [15, 3, 6, 6, 1, 4, 8]
    failed = frame.iloc[5]
    assert failed["error"] == "WorldError: x"
    assert math.isnan(failed["score"])
