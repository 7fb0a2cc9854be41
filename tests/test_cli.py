"""The command line: flags from the config's fields, errors as one message, statuses."""

import json
from pathlib import Path
from typing import Any

import pytest

from skill_evolution import cli, experiments
from skill_evolution.config import Config, ConfigError, ModelConfig, SamplingConfig, ServeConfig, load_config
from skill_evolution.runs import RunError


def configured(*arguments: str) -> Config:
    values = cli.config_flags(list(arguments))
    return load_config(values.pop("profile", "demo"), **values)


def folded(text: str) -> str:
    return " ".join(text.split())


def test_help_has_every_field_with_its_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "10000")  # argparse breaks words at hyphens otherwise
    with pytest.raises(SystemExit) as caught:
        cli.main(["train", "--help"])
    assert caught.value.code == 0
    shown = folded(capsys.readouterr().out)
    for name, field in Config.model_fields.items():
        assert folded(field.description or "missing") in shown, name
        parts = [part for model in {SamplingConfig, ModelConfig} & {field.annotation} for part in model.model_fields]
        parts += [f"serve.{part}" for part in ServeConfig.model_fields if "serve" in parts]
        flags = [f"--{name}.{part}" for part in parts if part != "serve"] or [f"--{name}"]
        for flag in flags:
            assert f" {flag.replace('_', '-')} " in shown
    for model in (SamplingConfig, ModelConfig, ServeConfig):
        for name, field in model.model_fields.items():
            assert folded(field.description or "missing") in shown, name


@pytest.mark.parametrize(
    ("arguments", "field", "value"),
    [
        (["--seed", "3"], "seed", 3),
        (["--seed=3"], "seed", 3),
        (["--prune-threshold", "-0.4"], "prune_threshold", -0.4),
        (["--n-train", "null"], "n_train", None),
        (["--n-train", "7"], "n_train", 7),
        (["--drop-equal-groups", "true"], "drop_equal_groups", True),
        (["--structured-diagnosis", "false"], "structured_diagnosis", False),
        (["--category", "temporal"], "category", "temporal"),
        (["--category", "1,2"], "category", "1,2"),
        (["--data-path", "a b.json"], "data_path", Path("a b.json")),
        (["--profile", "paper", "--benchmark", "locomo"], "library_cap", 4),
        ([], "seed", 0),
    ],
)
def test_a_flag_is_the_field_of_its_name(arguments: list[str], field: str, value: Any) -> None:
    assert getattr(configured(*arguments), field) == value


def test_parts_of_nested_fields_have_flags_and_leave_the_rest() -> None:
    config = configured("--test-sampling.max-tokens", "9", "--validation-sampling.temperature", "0")
    assert config.test_sampling == SamplingConfig(temperature=0, max_tokens=9)
    assert config.validation_sampling.sampling().greedy
    assert configured("--test-sampling.temperature", "null").test_sampling.temperature is None
    served = configured("--actor.kind", "server", "--actor.model", "Q", "--actor.extra", '{"a": {"b": false}}')
    assert served.actor == ModelConfig(kind="server", model="Q", extra={"a": {"b": False}})
    assert configured("--profile", "cpu", "--actor.serve.dtype", "bfloat16").actor.serve == ServeConfig(
        weights="qwen2.5-coder-1.5b-instruct", dtype="bfloat16"
    )


def test_flags_win_over_the_profile() -> None:
    arguments = ["--benchmark", "locomo", "--method", "maskills"]
    assert configured(*arguments).prune_every == 3
    assert configured(*arguments, "--prune-every", "5").prune_every == 5


@pytest.mark.parametrize(
    ("flag", "nearest"),
    [
        ("--sed", "--seed"),
        ("--groupsize", "--group-size"),
        ("--group_size", "--group-size"),
        ("--actor.modle", "--actor.model"),
        ("--test-sampling.temprature=0", "--test-sampling.temperature"),
        ("--seed.x", "--seed"),
        ("--benchmar", "--benchmark"),  # no abbreviations
    ],
)
def test_an_unknown_flag_is_refused_and_the_nearest_named(
    flag: str, nearest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["train", flag, "1"]) == 2
    said = capsys.readouterr().err
    assert f"unknown key {flag.split('=')[0]!r}; did you mean {nearest!r}?" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("arguments", [["--seed"], ["stray"], ["-s", "1"]])
def test_what_is_no_flag_at_all_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["train", *arguments])
    assert caught.value.code == 2
    assert "error:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "--group-size", "0"], "group_size"),
        (["train", "--seed", "x"], "seed"),
        (["train", "--method", "gsre"], "'grse', 'maskills', 'empty', 'direct'"),
        (["train", "--profile", "dmo"], "there are cpu, demo"),
        (["train", "--data-path", "nowhere.json"], "nowhere.json"),
        (["tain"], "did you mean 'train'"),
        (["data", "hotpot"], "did you mean 'hotpotqa'"),
    ],
)
def test_bad_input_is_one_message_and_status_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments) == 2
    assert said in capsys.readouterr().err


def test_train_prints_the_summary_and_tells_by_its_status_whether_something_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data.json"
    data.write_text("[]", encoding="utf-8")
    asked: list[Config] = []

    def train(config: Config) -> dict[str, Any]:
        asked.append(config)
        return {"failures": {"total": config.seed}}

    monkeypatch.setattr(experiments, "train", train)
    for seed in (0, 2):
        status = cli.main(["train", "--seed", str(seed), "--data-path", str(data)])
        assert status == (1 if seed else 0)
        assert json.loads(capsys.readouterr().out) == {"failures": {"total": seed}}
    assert asked[1] == load_config(seed=2, data_path=data)


def test_errors_of_the_library_are_one_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(config: Config) -> dict[str, Any]:
        raise RunError("folder/config.json: schema version 0")

    monkeypatch.setattr(experiments, "train", fail)
    assert cli.main(["train"]) == 2
    assert capsys.readouterr().err == "folder/config.json: schema version 0\n"


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_lists_the_commands(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 0
    shown = capsys.readouterr().out
    for name, text in cli.COMMANDS.items():
        assert name in shown
        assert text in shown


def test_flags_are_checked_before_anything_is_parsed() -> None:
    with pytest.raises(ConfigError, match="--sed"):
        cli.config_flags(["--help", "--sed", "1"])
