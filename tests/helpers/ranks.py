"""Run by test_grpo.py under accelerate: trains two steps and leaves rows, advantages and weights."""

import json
import sys
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from accelerate.utils import gather_object

sys.path.insert(0, str(Path(__file__).parent))
from toy_world import SayingPolicy, ToyWorld, toy_config, toy_policy, varied

from skill_evolution.sage.training import grpo as grpo_module

out, grpo = Path(sys.argv[1]), json.loads(sys.argv[2])
torch.set_num_threads(1)
advantages: list[float] = []
rows: list[Any] = []
original = grpo_module._Trainer._generate_and_score_completions


def spy(trainer: Any, inputs: Any) -> Any:
    batch = original(trainer, inputs)
    advantages.extend(gather_object(batch["advantages"].tolist()))
    rows.append(trainer.rollout_func.rows)
    return batch


grpo_module._Trainer._generate_and_score_completions = spy  # pyright: ignore[reportAttributeAccessIssue]
policy = toy_policy(cls=SayingPolicy)
hanging = grpo.pop("hanging", None)  # the index of the chains that never end
policy.say = lambda key: None if key.split("/")[-3] == hanging else varied(key)  # type: ignore[attr-defined]
config = toy_config(grpo={"steps": 2, "evaluate_every": 2, "learning_rate": 0.01} | grpo)
log = grpo_module.train_grpo(policy, ToyWorld(), config, out.with_suffix(""))
if PartialState().is_main_process:
    weights = torch.cat([parameter.detach().flatten() for parameter in policy.model.parameters()])
    found = {"rows": rows, "advantages": advantages, "weights": weights, "processes": PartialState().num_processes}
    found["log"] = [row for row in log if row["step"]]
    torch.save(found, out)
PartialState().wait_for_everyone()  # a rank that leaves early makes gloo abort the others
PartialState().destroy_process_group()
