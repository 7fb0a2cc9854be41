"""The trainer's rows, advantages, masks and losses, on a toy world."""

import csv
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from toy_world import SayingPolicy, ToyWorld, code, toy_config, toy_policy, varied

from skill_evolution.sage.agent.chains import Chain
from skill_evolution.sage.agent.rewards import REWARDS, group_advantages, outcomes
from skill_evolution.sage.config import SageConfig
from skill_evolution.sage.policies.policy import LocalPolicy
from skill_evolution.sage.training import grpo as grpo_module
from skill_evolution.sage.training.grpo import train_grpo
from skill_evolution.sage.training.grpo_arguments import Division, divide

pytestmark = pytest.mark.filterwarnings("ignore")
HERE = Path(__file__).parents[1] / "helpers"
COUNTS = ("failed", "equal_groups", "tokens", "trained_tokens")


class Run:
    """A training run with what TRL made of each step (before it shuffles the rows)."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.batches: list[dict[str, Any]] = []
        self.rows: list[list[Any]] = []
        self.chains: list[Chain] = []
        self.interrupted: int | None = None  # before which batch
        original = grpo_module._Trainer._generate_and_score_completions

        def spy(trainer: Any, inputs: Any) -> Any:
            if len(self.batches) == self.interrupted:
                raise InterruptedError
            batch = original(trainer, inputs)
            self.batches.append(batch)
            self.rows.append(trainer.rollout_func.rows)
            self.chains = trainer.rollout_func.chains
            return batch

        patch.setattr(grpo_module._Trainer, "_generate_and_score_completions", spy)

    def train(
        self, folder: Path, say: Callable[[str], str | Exception | None] | None, config: SageConfig
    ) -> tuple[LocalPolicy, list[dict[str, Any]]]:
        policy = toy_policy(cls=SayingPolicy if say else LocalPolicy)
        if say:
            policy.say = say  # type: ignore[attr-defined]
        return policy, train_grpo(policy, ToyWorld(), config, folder)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(monkeypatch)


def weights(policy: LocalPolicy) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in policy.model.parameters()])


def test_advantages_and_masks_are_ours(run: Run, tmp_path: Path) -> None:
    run.train(tmp_path, varied, toy_config(grpo={"group": 4, "steps": 2}))
    assert len(run.batches) == 2
    for batch, rows in zip(run.batches, run.rows, strict=True):
        groups = [place // 4 for place in range(len(rows))]
        expected = group_advantages([row.reward for row in rows], groups)
        assert batch["advantages"].tolist() == pytest.approx(expected, abs=1e-6)
        assert any(advantage for advantage in expected)
        for place, row in enumerate(rows):
            size = len(row.completion_ids)
            assert batch["completion_ids"][place, :size].tolist() == list(row.completion_ids)
            loss_mask = (batch["completion_mask"] * batch["tool_mask"])[place]
            assert loss_mask.tolist() == [*row.env_mask, *[0] * (len(loss_mask) - size)]
            prompt = batch["prompt_ids"][place][batch["prompt_mask"][place].bool()]
            assert prompt.tolist() == list(row.prompt_ids)


def test_the_log_has_a_row_a_step(run: Run, tmp_path: Path) -> None:
    config = toy_config(grpo={"evaluate_every": 2})
    _, rows = run.train(tmp_path, varied, config)
    with (tmp_path / "training.csv").open(encoding="utf-8", newline="") as file:
        assert [int(row["step"]) for row in csv.DictReader(file)] == [0, 1, 2, 3]
    first, *steps = rows
    assert {"dev_tgc", "dev_sgc"} <= first.keys()
    assert ["dev_tgc" in row for row in steps] == [False, True, False]
    expected = [reward for chain in run.chains for reward in REWARDS["skill_integrated"](outcomes(chain))]
    assert steps[-1]["reward"] == pytest.approx(sum(filter(None, expected)) / len(expected))
    for row in steps:
        assert all(math.isfinite(row[name]) for name in ("loss", "grad_norm", "tokens", "trained_tokens"))
        assert min(row[f"seconds_{part}"] for part in ("sampling", "world", "training")) >= 0


def test_equal_rewards_give_a_zero_loss_and_are_reported(run: Run, tmp_path: Path) -> None:
    policy, rows = run.train(tmp_path, lambda key: code("full", "done()"), toy_config(grpo={"steps": 1}))
    [row] = rows
    assert (float(row["loss"]), float(row["grad_norm"]), row["equal_groups"]) == (0.0, 0.0, 1.0)
    assert torch.equal(weights(policy), weights(toy_policy()))


def test_failed_rows_are_counted_and_train_nothing(run: Run, tmp_path: Path) -> None:
    def say(key: str) -> str | Exception:
        _, index, position = key.split("/")[-4:-1]
        if position == "0":
            return RuntimeError("the policy broke") if index == "0" else code("crash")
        return code("full" if index == "0" else "half", "done()")

    _, [row] = run.train(tmp_path, say, toy_config(grpo={"steps": 1}))
    assert row["failed"] == 4  # position 0 of 2 scenarios x 2 chains; the second tasks went on
    [batch] = run.batches
    # rows: scenario 0: two failed, two of scores 1 and 0.5; the same in scenario 1
    assert batch["advantages"].tolist() == pytest.approx([0, 0, 0.25, -0.25] * 2)
    assert batch["tool_mask"][:2].sum() == (batch["tool_mask"].shape[1] - len(run.rows[0][0].completion_ids)) + (
        batch["tool_mask"].shape[1] - len(run.rows[0][1].completion_ids)
    )  # TRL pads masks with 1, which completion_mask takes away again
    assert (batch["completion_mask"] * batch["tool_mask"])[:2].sum() == 0
    assert math.isfinite(float(row["loss"]))


def test_a_step_in_which_all_rows_fail_goes_by(run: Run, tmp_path: Path) -> None:
    policy, [row] = run.train(tmp_path, lambda key: RuntimeError("broken"), toy_config(grpo={"steps": 1}))
    assert (row["failed"], float(row["loss"])) == (8, 0.0)
    assert torch.equal(weights(policy), weights(toy_policy()))


def test_a_prompt_that_does_not_fit_gives_an_empty_completion(run: Run, tmp_path: Path) -> None:
    config = toy_config(grpo={"steps": 1})
    tight = config.agent.model_copy(update={"context": 3})  # less than any prompt; the config itself asks for more
    _, [row] = run.train(tmp_path, None, config.model_copy(update={"agent": tight}))
    assert {row.completion_ids for row in run.rows[0]} == {(toy_policy().tokenizer.pad_token_id,)}
    assert float(row["loss"]) == 0.0


def test_the_loss_and_the_update_are_those_computed_by_hand(run: Run, tmp_path: Path) -> None:
    """Two chains of one task: A = +-0.25, one update, loss = mean over rows of the mean over sampled tokens."""
    policy = toy_policy()
    grpo = {"scenarios": 1, "chain_length": 1, "steps": 1, "learning_rate": 1e-3, "max_grad_norm": 1e9}
    trained, [row] = run.train(
        tmp_path, lambda key: code("full" if key.split("/")[-3] == "0" else "half", "done()"), toy_config(grpo=grpo)
    )
    rows = run.rows[0]
    assert [one.reward for one in rows] == [1.0, 0.5]
    terms = []
    for one, advantage in zip(rows, (0.25, -0.25), strict=True):
        ids = torch.tensor([[*one.prompt_ids, *one.completion_ids]])
        logits = policy.model(input_ids=ids).logits[0, len(one.prompt_ids) - 1 : -1]
        logprobs = torch.log_softmax(logits, dim=-1).gather(1, torch.tensor(one.completion_ids)[:, None])[:, 0]
        terms.append(-(advantage * torch.exp(logprobs - logprobs.detach())).mean())
    loss = torch.stack(terms).mean()
    loss.backward()
    norm = torch.cat([p.grad.flatten() for p in policy.model.parameters() if p.grad is not None]).norm()
    assert float(row["loss"]) == pytest.approx(loss.item(), abs=1e-6)
    assert float(row["grad_norm"]) == pytest.approx(norm.item(), rel=1e-3)
    assert not torch.equal(weights(trained), weights(toy_policy()))


def test_what_is_trained_was_sampled_with_the_log_probabilities_that_trl_computes(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
    original = grpo_module._Trainer._get_per_token_logps_and_entropies

    def spy(trainer: Any, model: Any, input_ids: Any, attention_mask: Any, keep: int, **rest: Any) -> Any:
        result = original(trainer, model, input_ids, attention_mask, keep, **rest)
        seen.append((input_ids[:, -keep:], result[0].detach(), attention_mask[:, -keep:]))
        return result

    monkeypatch.setattr(grpo_module._Trainer, "_get_per_token_logps_and_entropies", spy)
    run.train(tmp_path, None, toy_config(grpo={"steps": 1, "temperature": 0.7}))
    [(ids, logprobs, mask)] = seen
    by_ids = {row.completion_ids: row for row in run.rows[0]}
    for row_ids, row_logprobs, row_mask in zip(ids, logprobs, mask, strict=True):
        kept = row_mask.bool()
        row = by_ids[tuple(row_ids[kept].tolist())]
        ours = torch.tensor(row.logprobs) * torch.tensor(row.env_mask)
        assert torch.allclose(row_logprobs[kept] * torch.tensor(row.env_mask), ours, atol=1e-3)


def test_the_same_seed_gives_the_same_rollouts_and_another_does_not(run: Run, tmp_path: Path) -> None:
    for place, seed in enumerate((0, 0, 1)):
        run.train(tmp_path / str(place), None, toy_config(seed=seed, grpo={"steps": 1}))
    assert run.rows[0] == run.rows[1] != run.rows[2]
    group = [row.completion_ids for row in run.rows[0][:2]]
    assert group[0] != group[1]  # G rollouts differ


@pytest.mark.slow
def test_an_interrupted_run_ends_like_an_undisturbed_one(run: Run, tmp_path: Path) -> None:
    config = toy_config(grpo={"steps": 4, "save_every": 1, "learning_rate": 0.01})
    whole, rows = run.train(tmp_path / "whole", varied, config)
    run.interrupted = 6
    with pytest.raises(InterruptedError):
        run.train(tmp_path / "parts", varied, config)
    done, run.interrupted = run.rows[4:], None
    resumed, again = run.train(tmp_path / "parts", varied, config)
    assert len(run.rows) == 8
    assert done + run.rows[6:] == run.rows[:4]
    assert torch.equal(weights(whole), weights(resumed))
    assert not torch.equal(weights(whole), weights(toy_policy()))
    assert [int(row["step"]) for row in again] == [int(row["step"]) for row in rows] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("grpo", "processes", "expected"),
    [
        ({"scenarios": 3, "chain_length": 2, "group": 4}, 1, (24, 1, 0)),
        ({"scenarios": 3, "chain_length": 2, "group": 4}, 4, (6, 1, 0)),  # a rank's rows are one group and a half
        ({"scenarios": 3, "chain_length": 1, "group": 3}, 2, (6, 1, 1)),  # 9 rows and 3 more
        ({"scenarios": 3, "chain_length": 2, "group": 4}, 5, (8, 1, 4)),  # 24 and 16: whole groups, and 5 equal parts
        ({"scenarios": 3, "chain_length": 2, "group": 4, "micro_batch": 5}, 2, (5, 4, 4)),
        ({"scenarios": 24, "chain_length": 2, "group": 8, "micro_batch": 1}, 32, (1, 12, 0)),  # the paper's
    ],
)
def test_rows_are_divided_among_any_number_of_processes(
    grpo: dict[str, int], processes: int, expected: tuple[int, int, int]
) -> None:
    assert divide(toy_config(grpo=grpo).grpo, processes=processes) == Division(*expected)


def test_padding_changes_neither_loss_nor_weights(run: Run, tmp_path: Path) -> None:
    grpo = {"learning_rate": 0.01, "steps": 2}
    plain, rows = run.train(tmp_path / "plain", varied, toy_config(grpo=grpo))
    padded, again = run.train(tmp_path / "padded", varied, toy_config(grpo=grpo | {"micro_batch": 3}))
    assert run.rows[:2] == run.rows[2:]
    assert [len(batch["advantages"]) for batch in run.batches] == [8, 8, 12, 12]
    for one, other in zip(rows, again, strict=True):
        assert float(other["grad_norm"]) == pytest.approx(float(one["grad_norm"]), rel=1e-4)
        assert [other[name] for name in COUNTS] == [one[name] for name in COUNTS]
    assert all(float(row["grad_norm"]) > 0 for row in rows)
    assert torch.allclose(weights(plain), weights(padded), atol=1e-5)
    assert not torch.equal(weights(plain), weights(toy_policy()))


def test_chains_that_others_needn_t_wait_for_train_nothing(run: Run, tmp_path: Path) -> None:
    def say(key: str) -> str | Exception | None:
        _, index, position = key.split("/")[-4:-1]
        if index == "3":
            return None if position == "1" else code("full", "done()")  # hangs in its second task
        return code("full" if index == "0" else "half", "done()")

    grpo = {"scenarios": 2, "group": 4, "steps": 1, "reward": "outcome", "stop_share": 0.75}
    _, [row] = run.train(tmp_path, say, toy_config(grpo=grpo))
    assert (row["stopped"], row["failed"], row["tasks"]) == (4, 0, 12)
    [batch] = run.batches
    # of each group the first has 1, the next two 0.5 (mean 2/3), the fourth was stopped
    assert batch["advantages"].tolist() == pytest.approx([1 / 3, -1 / 6, -1 / 6, 0] * 4)


def launch(out: Path, grpo: dict[str, Any], *, processes: int) -> dict[str, Any]:
    """What ranks.py leaves. `accelerate launch --cpu` starts several processes only through MPI; without it torchrun
    starts them, and where there is no GPU they speak over gloo."""
    start = [sys.executable, "-m", "accelerate.commands.launch", "--num_machines", "1", "--main_process_port", "0"]
    kind = ["--num_processes", str(processes), "--mixed_precision", "no", "--dynamo_backend", "no"]
    ranks = ["--multi_gpu"] if processes > 1 else ["--cpu"]
    command = [*start, *kind, *ranks, str(HERE / "ranks.py"), str(out), json.dumps(grpo)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return torch.load(out, weights_only=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "grpo",
    [
        {"scenarios": 3, "chain_length": 2, "group": 4},  # 24 rows: four ranks hold one group and a half each
        {"scenarios": 3, "chain_length": 1, "group": 3},  # 9 rows, filled up to 12
        {"scenarios": 1, "chain_length": 2, "group": 2},  # four rows: of two ranks each holds a position of all chains
    ],
    ids=["3x2x4", "3x1x3", "1x2x2"],
)
def test_two_and_four_processes_train_what_one_does(tmp_path: Path, grpo: dict[str, Any]) -> None:
    alone = launch(tmp_path / "1.pt", grpo, processes=1)
    for processes in (2, 4):
        together = launch(tmp_path / f"{processes}.pt", grpo, processes=processes)
        assert together["processes"] == processes
        assert together["rows"] == alone["rows"]
        size = grpo["scenarios"] * grpo["chain_length"] * grpo["group"]
        filled = len(together["advantages"]) // 2
        for step in range(2):
            real = together["advantages"][filled * step : filled * (step + 1)]
            assert real[:size] == pytest.approx(alone["advantages"][size * step : size * (step + 1)], abs=1e-6)
            assert set(real[size:]) <= {0.0}
        for one, other in zip(alone["log"], together["log"], strict=True):
            assert float(other["loss"]) == pytest.approx(float(one["loss"]), abs=1e-5)
            assert float(other["grad_norm"]) == pytest.approx(float(one["grad_norm"]), rel=1e-3)
            assert [other[name] for name in COUNTS] == [one[name] for name in COUNTS]
        assert torch.allclose(together["weights"], alone["weights"], atol=1e-5)
    assert any(float(row["grad_norm"]) > 0 for row in alone["log"])


@pytest.mark.slow
def test_two_processes_stop_together(tmp_path: Path) -> None:
    """Chain 3 of each scenario hangs: with two chains in four of its own a process has not enough by itself."""
    grpo = {"scenarios": 2, "chain_length": 1, "group": 4, "hanging": "3", "stop_share": 0.75, "evaluate_every": None}
    alone, together = (launch(tmp_path / f"{n}.pt", grpo, processes=n) for n in (1, 2))
    assert [row["stopped"] for row in together["log"]] == [2.0, 2.0]
    assert together["rows"] == alone["rows"]
    assert torch.allclose(together["weights"], alone["weights"], atol=1e-5)


@pytest.mark.slow
def test_two_hundred_chains_leave_memory_flat(tmp_path: Path) -> None:
    import psutil

    policy = toy_policy()
    config = toy_config(grpo={"scenarios": 2, "group": 10, "steps": 10, "chain_length": 2})
    sizes: list[int] = []
    original = grpo_module.Rollouts.__call__

    def measured(self: Any, prompts: Any, trainer: Any) -> Any:
        sizes.append(psutil.Process().memory_info().rss)
        return original(self, prompts, trainer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grpo_module.Rollouts, "__call__", measured)
        train_grpo(policy, ToyWorld(), config, tmp_path)
    assert len(sizes) == 10  # 20 chains a step
    assert sizes[-1] - sizes[3] < 20e6, sizes
