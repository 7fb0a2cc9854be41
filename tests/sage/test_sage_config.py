import pytest

from skill_evolution.base import paths
from skill_evolution.base.settings import ConfigError
from skill_evolution.sage.agent.retrieval import RETRIEVERS
from skill_evolution.sage.agent.rewards import REWARDS
from skill_evolution.sage.config import load_sage_config, recorded_config

PROFILES = sorted(path.stem for path in (paths.PROFILES / "sage").glob("*.yaml"))


def test_there_are_three_profiles_and_all_load() -> None:
    assert PROFILES == ["cpu", "demo", "paper"]
    assert [load_sage_config(name).profile for name in PROFILES] == PROFILES


def test_the_papers_values() -> None:
    """FACTS B, "training" and "reward"."""
    config = load_sage_config("paper")
    grpo, agent = config.grpo, config.agent
    assert (grpo.scenarios, grpo.chain_length, grpo.group, grpo.rows) == (24, 2, 8, 384)
    assert (grpo.learning_rate, grpo.schedule, grpo.max_grad_norm, grpo.reward) == (
        1e-6,
        "constant",
        1.0,
        "skill_integrated",
    )
    assert (agent.turns, agent.tokens_per_turn, agent.context, agent.retrieval) == (40, 1500, 28_048, "same_scenario")
    assert config.policy.weights == "Qwen/Qwen2.5-32B-Instruct"
    assert config.policy.lora_rank is None


def test_part_of_a_nested_field_leaves_the_rest() -> None:
    config = load_sage_config("demo", grpo={"steps": 2})
    assert config.grpo.steps == 2
    assert config.grpo.learning_rate == load_sage_config("demo").grpo.learning_rate


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"sead": 1}, "unknown key 'sead'; did you mean 'seed'"),
        ({"grpo": {"learning_rat": 1}}, "unknown key 'learning_rat'; did you mean 'learning_rate'"),
        ({"grpo": {"group": 1}}, "grpo.group"),
        ({"policy": {"weights": "x"}}, "of kind 'folder'"),
    ],
)
def test_errors_name_what_is_wrong(overrides: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_sage_config("demo", **overrides)


def test_a_record_of_older_code_can_be_read() -> None:
    config = load_sage_config("demo", grpo={"steps": 3})
    values = config.model_dump(mode="json")
    values["policy"]["tiny"] = {"width": 64}
    values["gone"] = 1
    assert recorded_config(values) == config


def test_an_unknown_profile_names_those_there_are() -> None:
    with pytest.raises(ConfigError, match="cpu, demo, paper"):
        load_sage_config("papr")


def test_names_are_those_of_the_code() -> None:
    from typing import get_args

    from skill_evolution.sage.config import Retrieval, RewardName

    assert set(get_args(RewardName)) == set(REWARDS)
    assert set(get_args(Retrieval)) == set(RETRIEVERS)
