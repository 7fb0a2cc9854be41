"""The command, and the files for `accelerate launch`."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
import yaml
from safetensors.torch import load_file

from skill_evolution.base import paths
from skill_evolution.base.settings import ConfigError
from skill_evolution.sage.__main__ import main
from skill_evolution.sage.config import load_sage_config
from skill_evolution.sage.scale.launch import check_launch

PAPER = load_sage_config("paper")
SMALL = {  # seconds: a start of two updates and two steps of reinforcement learning on it
    "sft": {"steps": 2, "evaluate_every": None, "target_tgc": None, "batch_size": 4, "attempts": 1},
    "grpo": {"scenarios": 1, "group": 3, "steps": 2, "evaluate_every": 2},
    "agent": {"turns": 4, "tokens_per_turn": 64},
}


@pytest.mark.parametrize("name", ["fsdp", "zero3"])
def test_our_files_fit_the_paper_s_run(name: str) -> None:
    launch: Any = check_launch(name, PAPER)
    assert (launch.num_machines, launch.num_processes) == (4, 32)  # FACTS B: 4 x 8 H100


@pytest.mark.parametrize(
    ("base", "changes", "message"),
    [
        (
            "fsdp",
            {"mixed_precision": "fp16"},
            "mixed_precision is 'fp16', for policy.dtype 'bfloat16' it must be 'bf16'",
        ),
        ("fsdp", {"machines": 4}, r"unknown keys \(\['machines'\]\)"),
        ("fsdp", {"fsdp_config": {"fsdp_version": 2, "fsdp_reshard": True}}, "fsdp_reshard"),
        ("fsdp", {"fsdp_config": {"fsdp_version": 1}}, "fsdp_version must be 2"),
        ("fsdp", {"fsdp_config": {"fsdp_version": 2, "fsdp_activation_checkpointing": True}}, "recomputed twice"),
        ("fsdp", {"distributed_type": "MULTI_GPU"}, "fsdp_config with distributed_type MULTI_GPU"),
        ("fsdp", {"num_processes": 30}, "30 processes can't be shared by 4 machines"),
        ("fsdp", {"num_processes": 512}, "512 processes for 384 rows"),
        ("zero3", {"deepspeed_config": {"zero_stage": 3, "zero3_init": True}}, "zero3_init"),
        ("zero3", {"deepspeed_config": {"zero_stage": 3}}, "zero3_save_16bit_model must be true"),
        ("zero3", {"distributed_type": "FSDP"}, "deepspeed_config with distributed_type FSDP"),
        ("fsdp", {"use_cpu": True}, "accelerate shards nothing on CPUs"),
        (
            "zero3",
            {"deepspeed_config": {"zero_stage": 3, "zero3_save_16bit_model": True, "gradient_accumulation_steps": 4}},
            "gradient_accumulation_steps is 4, the profile's is 12",
        ),
        (
            "zero3",
            {"deepspeed_config": {"zero_stage": 3, "zero3_save_16bit_model": True, "gradient_clipping": 0.5}},
            "gradient_clipping is 0.5, the profile's is 1.0",
        ),
        ("zero3", {"mixed_precision": None, "distributed_type": [1]}, ""),
    ],
)
def test_what_cannot_be_is_said(tmp_path: Path, base: str, changes: dict[str, Any], message: str) -> None:
    file = tmp_path / "launch.yaml"
    file.write_text(
        yaml.safe_dump(yaml.safe_load((paths.PROFILES / "accelerate" / f"{base}.yaml").read_text()) | changes)
    )
    with pytest.raises(ConfigError, match=f"launch.yaml.*{message}"):
        check_launch(str(file), PAPER)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"rollout": {"engine": "transformers"}}, "gathers the whole model"),
        ({"policy": {"lora_rank": 8}}, "adapters"),
        ({"policy": {"dtype": "float32"}}, "must be 'no'"),
        ({"sft": {"evaluate_every": 5}}, "sft.evaluate_every"),
    ],
)
def test_a_profile_that_does_not_fit_is_said(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_launch("zero3", load_sage_config("paper", **overrides))


def test_the_command_s_errors_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    assert main(["check-launch", "--profile", "paper", "zero4"]) == 2
    assert "no launch file 'zero4': there are fsdp, zero3" in caplog.text
    assert main(["evaluate", "--arm", "sage", "--root", "/nowhere", "--overrides", '{"seed": 12345}']) == 2
    assert "not trained yet" in caplog.text


def test_the_dataset_for_verl_has_the_run_s_chains(tmp_path: Path) -> None:
    file = tmp_path / "chains.parquet"
    assert main(["verl-data", "--overrides", '{"grpo": {"steps": 3}}', str(file)]) == 0
    frame = pd.read_parquet(file)
    assert len(frame) == 3 * load_sage_config("demo").grpo.scenarios
    assert all(len(info["task_ids"]) == 2 for info in frame["extra_info"])


@pytest.mark.slow
def test_two_processes_leave_what_one_does(tmp_path: Path) -> None:
    """`train` launched until nothing is left; with two processes one stage at a time."""
    command = ["-m", "skill_evolution.sage", "train", "--arm", "sage", "--overrides", json.dumps(SMALL)]
    found: dict[int, dict[str, Any]] = {}
    for processes in (1, 2):
        root = tmp_path / str(processes)
        launch = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)]
        start = [sys.executable, *(launch if processes > 1 else []), *command, "--root", str(root)]
        for launched in range(processes):
            environment = os.environ | {"OMP_NUM_THREADS": "1"}
            done = subprocess.run(start, capture_output=True, text=True, check=False, env=environment, timeout=300)
            assert done.returncode == 0, done.stderr[-3000:]
            assert ("left to train: nothing" in done.stderr) == (launched == processes - 1)
        found[processes] = {
            folder.name: (sorted(file.name for file in folder.iterdir()), _weights(folder)) for folder in root.iterdir()
        }
    assert found[1].keys() == found[2].keys()
    for name, (files, weights) in found[1].items():
        assert found[2][name][0] == files
        assert torch.allclose(found[2][name][1], weights, atol=1e-4), name


def _weights(folder: Path) -> torch.Tensor:
    return torch.cat(
        [value.flatten() for _, value in sorted(load_file(folder / "policy" / "model.safetensors").items())]
    )
