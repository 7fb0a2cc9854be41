"""One config for profiles, overrides, papermill parameters and flags: what wins, and what is refused by name."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from skill_evolution import paths
from skill_evolution.benchmarks import BENCHMARKS
from skill_evolution.config import Config, ConfigError, ModelConfig, SamplingConfig, load_config, profile_seeds
from skill_evolution.methods import METHODS
from skill_evolution.models.base import Sampling
from skill_evolution.notebooks import assign_parameters

PROFILES = sorted(path.stem for path in paths.PROFILES.glob("*.yaml"))


def profile(tmp_path: Path, text: str) -> str:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


# The bundled profiles


@pytest.mark.parametrize(("name", "benchmark", "method"), list(itertools.product(PROFILES, BENCHMARKS, METHODS)))
def test_every_profile_loads_for_every_benchmark_and_method(name: str, benchmark: str, method: str) -> None:
    config = load_config(name, benchmark=benchmark, method=method)
    assert (config.profile, config.benchmark, config.method) == (name, benchmark, method)
    assert config.group_size == (1 if method == "maskills" else 4)  # FACTS A "group size"


@pytest.mark.parametrize("name", ["demo", "paper"])
def test_profiles_hold_the_papers_settings(name: str) -> None:
    """FACTS A: schedule, decoding, library cap, group size, gate."""
    hotpot, locomo = load_config(name, benchmark="hotpotqa"), load_config(name, benchmark="locomo")
    assert (hotpot.iterations, locomo.iterations) == (5, 5)
    assert (hotpot.library_cap, locomo.library_cap) == (8, 4)
    assert (hotpot.prune_every, locomo.prune_every) == (2, 3)
    assert (hotpot.consolidate_every, locomo.consolidate_every) == (2, 2)
    assert (hotpot.gate_delta, hotpot.hard_reward, hotpot.induction_support) == (0.03, 0.5, 2)
    assert hotpot.test_sampling.temperature == locomo.test_sampling.temperature == 0
    assert locomo.validation_sampling.temperature == 0
    assert hotpot.validation_sampling == hotpot.train_sampling
    assert locomo.train_sampling.temperature is None
    assert load_config(name, benchmark="locomo", method="maskills").train_sampling.temperature == 0
    assert load_config(name, benchmark="hotpotqa", method="maskills").train_sampling.temperature is None


def test_the_paper_profile_has_the_papers_models_and_sizes() -> None:
    config = load_config("paper", benchmark="hotpotqa")
    assert config.actor.kind == "server"
    assert config.actor.model == config.critic.model == config.optimizer.model == "Qwen/Qwen3.8-27B"
    assert config.actor.context_length == 65536
    assert (config.n_train, config.n_validation, config.n_test) == (500, 200, 800)
    assert load_config("paper", benchmark="locomo").n_train is None  # the split is given by conversation


def test_the_names_of_methods_are_those_that_there_are() -> None:
    for name in METHODS:
        assert load_config(method=name).method == name


# Layers


def test_later_layers_win(tmp_path: Path) -> None:
    path = profile(
        tmp_path,
        """
        group_size: 2
        iterations: 2
        library_cap: 2
        prune_every: 2
        per_benchmark:
          locomo: {iterations: 3, library_cap: 3, prune_every: 3}
        per_method:
          maskills:
            library_cap: 4
            prune_every: 4
            per_benchmark:
              locomo: {prune_every: 5}
        """,
    )

    def values(**overrides: Any) -> tuple[int, ...]:
        c = load_config(path, **overrides)
        return (c.seed, c.group_size, c.iterations, c.library_cap, c.prune_every)

    assert values() == (0, 2, 2, 2, 2)
    assert values(benchmark="locomo") == (0, 2, 3, 3, 3)
    assert values(method="maskills") == (0, 2, 2, 4, 4)
    assert values(benchmark="locomo", method="maskills") == (0, 2, 3, 4, 5)
    assert values(benchmark="locomo", method="maskills", prune_every=6, seed=1) == (1, 2, 3, 4, 6)


def test_a_profile_may_choose_benchmark_and_method(tmp_path: Path) -> None:
    path = profile(tmp_path, "benchmark: locomo\nmethod: maskills\nper_benchmark: {locomo: {iterations: 1}}")
    assert load_config(path).iterations == 1
    assert load_config(path, benchmark="hotpotqa").iterations == 5
    assert load_config(path).profile == "mine"


def test_ones_own_benchmark_may_have_a_layer(tmp_path: Path) -> None:
    path = profile(tmp_path, "per_benchmark: {mine: {iterations: 1}}")
    assert load_config(path, benchmark="mine").iterations == 1


def test_a_part_of_a_nested_field_leaves_the_rest_as_it_was(tmp_path: Path) -> None:
    path = profile(tmp_path, "validation_sampling: {temperature: 0, top_p: 0.9}\nactor: {extra: {a: {b: 1}}}")
    config = load_config(path, validation_sampling={"max_tokens": 7}, actor={"extra": {"a": {"c": 2}}})
    assert config.validation_sampling == SamplingConfig(temperature=0, top_p=0.9, max_tokens=7)
    assert config.actor.extra == {"a": {"b": 1, "c": 2}}
    # also where only the default has the rest: a test that is greedy stays greedy
    assert load_config(test_sampling={"max_tokens": 7}).test_sampling == SamplingConfig(temperature=0, max_tokens=7)
    assert Config.model_validate({"critic_sampling": {"temperature": 1}}).critic_sampling.max_tokens == 4096


@pytest.mark.parametrize("text", ["", "# nothing\n", "per_benchmark:\nper_method:\n", "per_benchmark: {locomo: }\n"])
def test_empty_layers_are_layers(tmp_path: Path, text: str) -> None:
    assert load_config(profile(tmp_path, text)).iterations == 5


def test_temperature_zero_is_zero_and_unset_is_unset() -> None:
    assert load_config().test_sampling.sampling() == Sampling(temperature=0.0, max_tokens=1024)
    assert load_config().test_sampling.sampling().greedy
    assert load_config(train_sampling={"temperature": 0}).train_sampling.sampling().greedy
    assert load_config(test_sampling={"temperature": None}).test_sampling.sampling().temperature is None
    assert load_config().train_sampling.sampling().temperature is None
    assert load_config(train_sampling={"temperature": "0"}).train_sampling.sampling().temperature == 0.0


# What is refused

UNKNOWN = [
    ("groupsize: 3", "groupsize", "group_size"),
    ("per_benchmarks: {}", "per_benchmarks", "per_benchmark"),
    ("per_benchmark: {locmo: {}}", "locmo", "locomo"),
    ("per_benchmark: {locomo: {librarycap: 3}}", "librarycap", "library_cap"),
    ("per_method: {maskill: {}}", "maskill", "maskills"),
    ("per_method: {maskills: {groupsize: 1}}", "groupsize", "group_size"),
    ("per_method: {maskills: {per_benchmark: {locmo: {}}}}", "locmo", "locomo"),
    ("per_method: {maskills: {per_benchmark: {locomo: {sed: 1}}}}", "sed", "seed"),
    ("test_sampling: {temprature: 0}", "temprature", "temperature"),
    ("actor: {modle: x}", "modle", "model"),
    ("per_benchmark: {locomo: {actor: {modle: x}}}", "modle", "model"),
    ("per_method: {maskills: {per_benchmark: {locomo: {test_sampling: {maxtokens: 1}}}}}", "maxtokens", "max_tokens"),
]


@pytest.mark.parametrize(("text", "key", "nearest"), UNKNOWN)
def test_an_unknown_key_of_a_profile_is_refused_wherever_it_stands(
    tmp_path: Path, text: str, key: str, nearest: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(profile(tmp_path, text))  # also in a layer that isn't the chosen one
    assert "mine.yaml" in str(caught.value)
    assert f"unknown key {key!r}; did you mean {nearest!r}?" in str(caught.value)


@pytest.mark.parametrize("layered", ["benchmark", "method", "profile"])
def test_a_layer_can_not_choose_the_layer(tmp_path: Path, layered: str) -> None:
    with pytest.raises(ConfigError, match=layered):
        load_config(profile(tmp_path, f"per_benchmark: {{locomo: {{{layered}: maskills}}}}"))


@pytest.mark.parametrize(
    ("overrides", "key", "nearest"),
    [
        ({"itterations": 1}, "itterations", "iterations"),
        ({"actor": {"base_ulr": "x"}}, "base_ulr", "base_url"),
        ({"train_sampling": {"temp": 0}}, "temp", "temperature"),
    ],
)
def test_an_unknown_override_is_refused(overrides: dict[str, Any], key: str, nearest: str) -> None:
    said = f"unknown key {key!r}; did you mean {nearest!r}?"
    with pytest.raises(ConfigError) as caught:
        load_config(**overrides)
    assert said in str(caught.value)
    with pytest.raises(ValidationError) as direct:
        Config(**overrides)
    assert said in str(direct.value)
    with pytest.raises(ConfigError) as parameter:
        assign_parameters({"01_main": ["profile", "overrides"]}, overrides, profile="demo")
    assert said in str(parameter.value)


def test_a_papermill_parameter_is_a_field_of_the_config() -> None:
    given = assign_parameters({"01_main": ["profile", "overrides"]}, {"group_size": 2}, profile="demo")
    assert given == {"01_main": {"profile": "demo", "overrides": {"group_size": 2}}}


def test_a_key_that_is_like_no_other_gets_the_list() -> None:
    with pytest.raises(ConfigError, match=r"unknown key 'qqqq'; known are actor, advantage_std"):
        load_config(qqqq=1)


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"group_size": 0}, "group_size"),
        ({"group_size": "four"}, "group_size"),
        ({"method": "gsre"}, "'grse', 'maskills', 'empty', 'direct'"),
        ({"test_sampling": {"temperature": -1}}, "test_sampling.temperature"),
        ({"test_sampling": {"temperature": float("inf")}}, "finite"),
        ({"test_sampling": {"max_tokens": 0}}, "test_sampling.max_tokens"),
        ({"test_sampling": None}, "test_sampling"),
        ({"prune_threshold": float("nan")}, "prune_threshold"),
        ({"actor": {"kind": "serve"}}, "actor.kind"),
        ({"actor": {"kind": "server"}}, "needs `model`"),
        ({"actor": "server"}, "actor"),
        ({"benchmark": None}, "benchmark"),
    ],
)
def test_a_value_that_can_not_be_is_named(overrides: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(**overrides)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "not valid YAML"),
        ("- a", "expected keys and values, found list"),
        ("just text", "found str"),
        ("per_benchmark: [locomo]", "per_benchmark: expected keys and values, found list"),
        ("per_method: {maskills: 3}", "per_method.maskills: expected keys and values, found int"),
        ("extends: nope", "extends: no profile 'nope'"),
    ],
)
def test_a_broken_profile_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(profile(tmp_path, text))
    assert said in str(caught.value)
    assert "mine.yaml" in str(caught.value)


def test_a_profile_extends_another(tmp_path: Path) -> None:
    """Nested fields are merged; layers for benchmarks and methods too."""
    text = """
        extends: demo
        per_benchmark: {locomo: {n_train: 3}}
        test_sampling: {max_tokens: 9}
        """
    path = profile(tmp_path, text)
    demo = load_config("demo", benchmark="locomo", method="maskills")
    config = load_config(path, benchmark="locomo", method="maskills")
    changes = {"profile": "mine", "n_train": 3, "test_sampling": {"temperature": 0, "max_tokens": 9, "top_p": None}}
    assert config.model_dump() == {**demo.model_dump(), **changes}


def test_a_profile_that_extends_itself_is_named(tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(f"extends: {tmp_path / 'mine.yaml'}", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"mine\.yaml: extends itself, by way of mine, other"):
        load_config(profile(tmp_path, f"extends: {other}"))


def test_the_cpu_profile_says_whose_replies_it_shows() -> None:
    assert load_config("cpu").label == "Qwen2.5-Coder-1.5B-Instruct"


def test_a_profile_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_bytes(b"category: caf\xe9")
    with pytest.raises(ConfigError, match=r"mine\.yaml: not valid YAML in UTF-8"):
        load_config(str(tmp_path / "mine.yaml"))


@pytest.mark.parametrize("name", ["nope", "nope.yaml", "../demo", ""])
def test_a_profile_that_is_not_there_gets_the_list(name: str) -> None:
    with pytest.raises(ConfigError, match=", ".join(PROFILES)):
        load_config(name)


def test_a_config_does_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Config().seed = 3  # type: ignore[misc]


# The label of tables and figures


@pytest.mark.parametrize(
    ("models", "label"),
    [
        ({}, "simulated reader"),
        ({"actor": {"model": "Qwen"}}, "simulated reader"),  # a name makes no model of it
        ({"actor": {"kind": "server", "model": "Q"}}, "Q + simulated reader"),
        ({"critic": {"kind": "server", "model": "simulated-not"}}, "simulated reader + simulated-not"),
        ({name: {"kind": "server", "model": "Q"} for name in ("actor", "critic", "optimizer")}, "Q"),
    ],
)
def test_the_label_says_whose_replies_they_are(models: dict[str, Any], label: str) -> None:
    assert load_config(**models).label == label


def test_every_field_is_described() -> None:
    for model in (Config, SamplingConfig, ModelConfig):
        assert [name for name, field in model.model_fields.items() if not field.description] == []


def test_a_profile_says_how_many_runs_there_are(tmp_path: Path) -> None:
    assert profile_seeds("demo") == [0, 1, 2]
    assert profile_seeds("cpu") == [0, 1, 2]
    (tmp_path / "mine.yaml").write_text("seeds: 3\n")
    with pytest.raises(ConfigError, match=r"mine.yaml: seeds: expected a list of integers from 0, found 3"):
        profile_seeds(str(tmp_path / "mine.yaml"))
