"""The run folder: its name, its lock, what it records and what it refuses."""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from skill_evolution.base import paths
from skill_evolution.models.base import Completion, Message, Request, Sampling
from skill_evolution.models.ledger import call_key
from skill_evolution.runs.config import Config, load_config
from skill_evolution.runs.folder import (
    Run,
    RunError,
    finished_summary,
    read_jsonl,
    run_folder,
    run_name,
    write_json,
    write_jsonl,
    write_text,
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.json"
    path.write_text("[]", encoding="utf-8")
    return path


@pytest.fixture
def config(data: Path) -> Config:
    return Config(data_path=data)


# The name


def test_the_name_says_what_the_run_is(data: Path) -> None:
    name = run_name(load_config(benchmark="locomo", category="temporal", method="maskills", seed=7, data_path=data))
    assert name.startswith("locomo-temporal-maskills-seed7-")
    assert run_name(Config(data_path=data)).startswith("hotpotqa-all-grse-seed0-")


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1}, {"group_size": 5}, {"n_train": 3}, {"category": "bridge"}, {"structured_diagnosis": False},
        {"test_sampling": {"temperature": 0.1}}, {"test_sampling": {"temperature": None}},
        {"actor": {"model": "other"}}, {"actor": {"context_length": 4096}}, {"actor": {"extra": {"a": 1}}},
    ],
)  # fmt: skip
def test_what_decides_results_has_another_folder(config: Config, change: dict[str, object]) -> None:
    assert run_name(Config.model_validate(config.model_dump() | change)) != run_name(config)


@pytest.mark.parametrize(
    "change",
    [
        {"profile": "other"}, {"actor": {"base_url": "http://elsewhere/v1"}}, {"critic": {"max_concurrency": 2}},
        {"optimizer": {"timeout": 5.0, "max_attempts": 9, "api_key_env": "KEY"}},
    ],
)  # fmt: skip
def test_what_does_not_decide_results_has_the_same_name(config: Config, change: dict[str, object]) -> None:
    assert run_name(Config.model_validate(config.model_dump() | change)) == run_name(config)


def test_the_name_follows_the_content_of_the_data_not_its_place(config: Config, tmp_path: Path) -> None:
    moved, changed = tmp_path / "moved.json", tmp_path / "changed.json"
    moved.write_text("[]", encoding="utf-8")
    changed.write_text("[1]", encoding="utf-8")
    assert run_name(Config(data_path=moved)) == run_name(config)
    assert run_name(Config(data_path=changed)) != run_name(config)


def test_start_libraries_are_part_of_the_name(config: Config, data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "libraries" / "agent_1"
    folder.mkdir(parents=True)
    (folder / "a").write_text("1", encoding="utf-8")
    assert run_name(Config(data_path=data, start_libraries=folder.parent)) != run_name(config)


@pytest.mark.parametrize(
    ("method", "own", "others"),
    [
        ("grse", ["teams/agent_user.md.j2", "teams/hotpotqa/agent_1.md", "grse/critic/group.md.j2"],
         ["grse/critic/trajectory.md.j2", "teams/single/cot.md.j2", "teams/locomo/agent_1.md"]),
        ("maskills", ["grse/critic/trajectory.md.j2", "grse/optimizer/merge.md.j2"], ["grse/critic/group.md.j2"]),
        ("empty", ["teams/agent_system.md.j2", "teams/grep_result.md.j2"], ["grse/optimizer/merge.md.j2"]),
        ("self_refine", ["teams/single/revise.md.j2"], ["teams/agent_user.md.j2", "teams/hotpotqa/agent_2.md"]),
    ],
)  # fmt: skip
def test_only_the_prompts_that_a_run_can_use_are_part_of_its_name(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, own: list[str], others: list[str]
) -> None:
    shutil.copytree(paths.PROMPTS, tmp_path / "prompts")
    monkeypatch.setattr(paths, "PROMPTS", tmp_path / "prompts")
    config = Config.model_validate({**config.model_dump(), "method": method})
    name = run_name(config)
    for prompt in [*others, "analysis/skill_type.md.j2", "sage/full.md.j2", *own]:
        path = tmp_path / "prompts" / prompt
        text = path.read_text(encoding="utf-8")
        path.write_text(f"{text}!", encoding="utf-8")
        assert (run_name(config) != name) == (prompt in own), prompt
        path.write_text(text, encoding="utf-8")


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="nowhere"):
        run_name(Config(data_path=tmp_path / "nowhere.json"))


def test_no_name_leads_out_of_the_folder(data: Path, tmp_path: Path) -> None:
    odd = Config(benchmark="../my/bench", category="a b/c", data_path=data)
    assert run_folder(odd, root=tmp_path).parent == tmp_path


# The lock

SECOND = """
import json, sys
from pathlib import Path
from skill_evolution.runs.config import Config
from skill_evolution.runs.folder import Run, finished_summary

print("started", flush=True)
with Run(Config.model_validate_json(sys.argv[1]), root=Path(sys.argv[2])) as run:
    print(json.dumps([finished_summary(run.folder), run.ledger.count()]), flush=True)
"""


def test_a_second_process_waits_and_then_finds_the_work_done(config: Config, tmp_path: Path) -> None:
    with Run(config, root=tmp_path) as run:
        second = subprocess.Popen(
            [sys.executable, "-c", SECOND, config.model_dump_json(), str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert second.stdout is not None
        assert second.stdout.readline() == "started\n"
        with pytest.raises(subprocess.TimeoutExpired):
            second.wait(timeout=0.3)
        request = Request((Message("user", "u"),), Sampling(), "p", "s/1")
        run.ledger.record(call_key("m", request), "m", request, Completion("x"), 0.0)
        write_json(run.folder / "summary.json", {"failures": {"total": 0}, "by": "the first"})
    out, _ = second.communicate(timeout=60)
    assert json.loads(out) == [{"failures": {"total": 0}, "by": "the first"}, 1]


def test_a_folder_that_this_thread_has_open_is_not_waited_for(config: Config, tmp_path: Path) -> None:
    with Run(config, root=tmp_path), pytest.raises(RunError, match="open already"), Run(config, root=tmp_path):
        pass
    with Run(config, root=tmp_path):  # and is free afterwards
        pass


def test_a_run_that_can_not_open_lets_go_of_its_lock(config: Config, tmp_path: Path) -> None:
    folder = run_folder(config, root=tmp_path)
    folder.mkdir()
    for name, text, said in [
        ("config.json", "{oops", "not JSON"),
        ("config.json", "[]", "expected a JSON object"),
        ("config.json", '{"schema_version": 0}', "schema version 0"),
        ("calls.sqlite", "this is no database, but a text that is long enough to be looked at", "no usable ledger"),
    ]:
        (folder / name).write_text(text, encoding="utf-8")
        with pytest.raises(RunError, match=said) as caught, Run(config, root=tmp_path):
            pass
        assert str(folder / name) in str(caught.value)
        (folder / name).unlink()
    with Run(config, root=tmp_path):
        pass


# What is written


def test_the_config_is_recorded_with_what_it_ran_on(config: Config, tmp_path: Path) -> None:
    with Run(config, root=tmp_path) as run:
        record = json.loads((run.folder / "config.json").read_text(encoding="utf-8"))
    assert record["schema_version"] == 1
    assert Config.model_validate(record["config"]) == config
    assert record["python"].split(".")[0] == "3"
    assert record["packages"]["pydantic"]
    assert "teams/agent_system.md.j2" in record["prompts"]
    assert set(record) == {"schema_version", "config", "git_revision", "python", "packages", "prompts"}


def test_a_run_is_finished_where_nothing_failed(config: Config, tmp_path: Path) -> None:
    with Run(config, root=tmp_path) as run:
        assert finished_summary(run.folder) is None
        write_json(run.folder / "summary.json", {"failures": {"total": 1}})
        assert finished_summary(run.folder) is None
        write_json(run.folder / "summary.json", {"failures": {"total": 0}})
        assert finished_summary(run.folder) == {"failures": {"total": 0}}
        assert run.iteration(3) == run.folder / "iterations" / "3"


@dataclass(frozen=True)
class Row:
    """A row with an odd text."""

    text: str
    place: Path


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    texts = ["é\u2028\x0b\x1c", "\x00", "a\nb\r\n", ""]
    write_jsonl(tmp_path / "sub" / "rows.jsonl", [Row(text, Path("a") / "b") for text in texts])
    assert read_jsonl(tmp_path / "sub" / "rows.jsonl") == [{"text": text, "place": "a/b"} for text in texts]
    assert [path.name for path in (tmp_path / "sub").iterdir()] == ["rows.jsonl"]  # no temporary file is left


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "value.json"
    write_json(path, {"a": 1})
    with pytest.raises(ValueError, match="object"):
        write_json(path, {"a": object()})
    assert json.loads(path.read_text(encoding="utf-8")) == {"a": 1}
    write_text(path, "é")
    assert path.read_bytes() == "é".encode()


def test_a_broken_or_missing_file_of_rows_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with pytest.raises(RunError, match=r"rows\.jsonl: there is no such file"):
        read_jsonl(path)
    path.write_text('{"a": 1}\n{"a"', encoding="utf-8")
    with pytest.raises(RunError, match=r"rows\.jsonl, line 2"):
        read_jsonl(path)
