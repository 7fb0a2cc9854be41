"""Stages, arms, and their runs in and out of worker processes, with a small world and few steps."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from skill_evolution.base.settings import ConfigError
from skill_evolution.sage.config import SageConfig, load_sage_config
from skill_evolution.sage.stages import arms, study
from skill_evolution.sage.stages.arms import Arm, Lineup, ablation_arms, lineup, training_arms
from skill_evolution.sage.stages.evaluation import Evaluation
from skill_evolution.sage.stages.stage import Stage, changed
from skill_evolution.testbed.world import MiniWorld

pytestmark = pytest.mark.filterwarnings("ignore")
SMALL = {
    "agent": {"turns": 2, "tokens_per_turn": 12},
    "sft": {"attempts": 1, "steps": 2, "evaluate_every": 1, "evaluate_from": 0, "batch_size": 4},
    "grpo": {"scenarios": 2, "group": 2, "steps": 2, "evaluate_every": 1, "warmup_steps": 0},
}


SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}


def config(**parts: Any) -> SageConfig:
    return changed(load_sage_config("demo"), **parts)


def test_a_stage_is_decided_by_what_concerns_it() -> None:
    base = Stage("base", config())
    sft = Stage("sft", config(), base)
    other_rl = load_sage_config("demo", seed=5, grpo={"steps": 3})
    assert Stage("sft", other_rl, Stage("base", other_rl)).digest == sft.digest
    assert Stage("sft", config(sft={"steps": 3}), base).digest != sft.digest
    sage = Stage("grpo", config(), sft)
    assert Stage("grpo", config(grpo={"save_every": 1}), sft).digest == sage.digest
    assert Stage("grpo", other_rl, sft).digest != sage.digest
    assert Stage("grpo", config(), base).digest != sage.digest
    assert sage.name.startswith("sage-k2-skill_integrated-from-sft")
    assert "-sft0-seed0-" in sage.name
    with pytest.raises(ValueError, match="every stage but 'base' starts from another one"):
        Stage("sft", config())


def by_name(lines: list[Arm]) -> dict[str, Arm]:
    return {arm.name: arm for arm in lines}


def test_the_arms_of_the_main_table() -> None:
    made = by_name(training_arms(lineup("demo")))
    assert list(made) == list(arms.MAIN)
    assert made["sage"].stage.start == made["sft_grpo"].stage.start == made["sft"].stage
    assert made["grpo"].stage.start == made["prompted"].stage
    grpo = made["sft_grpo"].stage.config
    # the paper: 36 scenarios a step against SAGE's 24, chains of one task, no library
    assert (grpo.grpo.scenarios, grpo.grpo.chain_length, grpo.agent.library) == (
        made["sage"].stage.config.grpo.scenarios * 3 // 2,
        1,
        False,
    )
    asked = {(one.split, one.decoding, one.retrieval) for one in made["grpo"].evaluations}
    assert asked == {(s, d, None) for s in ("dev", "test", "challenge") for d in ("greedy", "T = 1")}
    assert made["sage"].evaluations[0].retrieval == "same_scenario"
    with pytest.raises(ConfigError, match="did you mean 'sage'"):
        training_arms(lineup("demo"), names=["saeg"])


def test_without_a_stand_in_the_base_is_random_and_has_nothing_to_distil() -> None:
    bare = lineup("demo", light=None)
    assert bare.base.kind == "base"
    assert "start_self_distillation" not in by_name(ablation_arms(bare))
    assert "start_self_distillation" in by_name(ablation_arms(lineup("demo")))


def test_a_small_chat_model_does_two_steps_from_itself() -> None:
    made = training_arms(lineup("cpu"))
    assert [(arm.name, arm.stage.title) for arm in made] == [
        ("prompted", "base"),
        ("start_base_model", "sage-k2-skill_integrated"),
    ]
    assert made[1].stage.config.grpo.steps == 2


def test_shared_stages_are_planned_once_and_in_order(tmp_path: Path) -> None:
    made = by_name(training_arms(lineup("demo")))
    jobs, order = study.plan(made.values(), root=tmp_path)
    # by hand: two SFTs (the base's stand-in and the arm), three trainings from them, and the five arms' evaluations
    assert sorted(name.split()[0] for name in jobs) == ["evaluate"] * 5 + ["train"] * 5
    names = {arm: line.stage.name for arm, line in made.items()}
    assert order[f"train {names['sage']}"] == order[f"train {names['sft_grpo']}"] == {f"train {names['sft']}"}
    assert order[f"train {names['grpo']}"] == {f"train {names['prompted']}"}
    assert order[f"train {names['sft']}"] == set()
    assert all(order[f"evaluate {name}"] == {f"train {name}"} for name in names.values())


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """SFT and SAGE, trained and tested in this process."""
    root = tmp_path_factory.mktemp("a place") / "sage"
    small = lineup("demo", overrides=SMALL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("skill_evolution.sage.stages.training.open_world", small_world)
        patch.setattr("skill_evolution.sage.policies.tiny.SIZES", SIZES)
        lines = some_arms(small)
        study.run(lines, processes=1, root=root)
        yield lines, root


def small_world(_: SageConfig) -> Any:
    return contextlib.nullcontext(MiniWorld(train=3, dev=1, test=2, challenge=1))


def some_arms(small: Lineup) -> list[Arm]:
    one_chain = Evaluation("test", 1.0, "query_ngram", whole_split=True)
    return [
        *training_arms(small, names=["sft", "sage"], splits=["test"], scenarios=1),
        Arm("retrieval_query_ngram", small.sage(small.sft), (one_chain,), "retrieval at test"),
    ]


def test_every_arm_leaves_a_row_a_task(ran: Any) -> None:
    lines, root = ran
    rows = study.rows(lines, root=root)
    # one scenario of three tasks in each of two decodings, and a chain over both scenarios of the split
    assert rows.groupby("arm").size().to_dict() == {"sft": 6, "sage": 6, "retrieval_query_ngram": 6}
    assert rows.query("arm == 'sage'")["decoding"].tolist() == ["greedy"] * 3 + ["T = 1"] * 3
    assert rows.query("arm == 'retrieval_query_ngram'")["position"].tolist() == [0, 1, 2, 3, 4, 5]
    assert not [text for text in rows["error"] if pd.notna(text)]
    figures = study.figures(lines, root=root)
    assert figures["tasks"].tolist() == [3, 3, 3, 3, 6]
    assert study.training(lines, root=root).query("arm == 'sage'")["step"].tolist() == [0, 1, 2]
    table = study.stages(lines, root=root)
    assert table["stages"].str.count("→").tolist() == [1, 2, 2]
    assert table["updates"].tolist() == ["2", "2 + 2", "2 + 2"]


def test_a_stage_says_what_it_was_run_with(ran: Any) -> None:
    lines, root = ran
    record = json.loads((lines[1].stage.folder(root) / "config.json").read_text(encoding="utf-8"))
    assert record["start"] == lines[0].stage.name
    assert record["config"]["grpo"]["steps"] == 2
    assert SageConfig.model_validate(record["config"]) == lines[1].stage.config


def test_what_is_finished_is_not_done_again_and_failed_rows_are(ran: Any) -> None:
    lines, root = ran
    assert study.plan(lines, root=root) == ({}, {})
    summary = lines[0].evaluations[0].file(lines[0].stage, root).with_suffix(".json")
    before = summary.read_text(encoding="utf-8")
    summary.write_text(json.dumps(json.loads(before) | {"failed": 1.0}), encoding="utf-8")
    jobs, _ = study.plan(lines, root=root)
    assert [job.args for job in jobs.values()] == [(lines[0].stage, [lines[0].evaluations[0]])]
    study.run(lines, processes=1, root=root)
    assert summary.read_text(encoding="utf-8") == before


def test_a_stopped_stage_begins_again_and_ends_the_same(ran: Any) -> None:
    lines, root = ran
    folder = lines[1].stage.folder(root)
    training = pd.read_csv(folder / "training.csv")
    (folder / "policy").rename(folder / "policy.partial")  # as if it was stopped while it was saved
    study.run(lines, processes=1, root=root)
    assert (folder / "policy").is_dir()
    again = pd.read_csv(folder / "training.csv")
    timeless = [column for column in training if not column.startswith("seconds")]
    pd.testing.assert_frame_equal(again.filter(timeless), training.filter(timeless))


def test_a_workers_error_names_the_stage_and_keeps_its_traceback(tmp_path: Path) -> None:
    base = lineup("demo").untrained
    arm = Arm("prompted", base, (Evaluation("tset"),))
    with pytest.raises(study.ExperimentError, match=r"evaluate base-sft0-\w+ failed\n(?s:.*)split: 'tset'"):
        study.run([arm], processes=2, root=tmp_path)
