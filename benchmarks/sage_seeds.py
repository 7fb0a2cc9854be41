"""SFT, SFT+GRPO and SAGE over several seeds of both trainings; writes results/sage_seeds, which 07_sage_training shows.

    .venv/bin/python benchmarks/sage_seeds.py [--profile demo] [--sft-seeds 0 1 2] [--seeds 0 1 2] [--processes 2]

Every SFT seed (first weights, order of examples) with every seed of reinforcement learning. Settings are the profile's,
which were chosen on dev; nothing but the finished policies is run on test and challenge, each of them once for each
decoding. `runs/` holds the policies, so a stopped measurement goes on where it was; `config.json` the settings,
`evaluation.csv` one row a task, `summary.csv` the means over the seeds with intervals over scenarios and the lowest and
highest seed, `differences.csv` SAGE minus the others, paired by scenario. Takes about an hour on two quiet cores.
"""

import argparse
import json
import logging
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np

from skill_evolution.analysis import sage
from skill_evolution.runs.folder import write_json, write_text
from skill_evolution.sage.stages import arms, study
from skill_evolution.sage.stages.arms import Arm
from skill_evolution.sage.stages.stage import record

NAMES = ("sft", "sft_grpo", "sage")
SPLITS = ("test", "challenge")


def grid(
    profile: str, *, sft_seeds: Sequence[int], seeds: Sequence[int], overrides: dict, scenarios: int | None = None
) -> list[Arm]:
    """The arms of all pairs of seeds; SFT's, which has no seed of reinforcement learning, once an SFT seed."""
    found: dict[tuple[str, str], Arm] = {}
    for sft_seed in sft_seeds:
        for seed in seeds:
            lineup = arms.lineup(profile, seed=seed, sft_seed=sft_seed, overrides=overrides)
            for arm in arms.training_arms(lineup, names=NAMES, splits=SPLITS, scenarios=scenarios):
                found.setdefault((arm.name, arm.stage.name), arm)
    return list(found.values())


def write(lines: Sequence[Arm], folder: Path, *, sft_seeds: Sequence[int], seeds: Sequence[int]) -> None:
    """The files that are kept, from the finished runs."""
    rows = study.rows(lines, root=folder / "runs")
    rows = rows.reindex(columns=list(sage.ROW_COLUMNS))
    made = record(next(arm.stage for arm in lines if arm.name == "sage"))
    own = {name: value for name, value in made["config"].items() if name not in ("seed", "sft_seed")}
    digest = sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:8]
    rng = np.random.default_rng(0)
    write_json(
        folder / "config.json",
        made | {"sft_seeds": list(sft_seeds), "seeds": list(seeds), "arms": list(NAMES), "config_hash": digest},
    )
    for name, frame in (
        ("evaluation", rows),
        ("summary", sage.summary(rows, rng=rng)),
        ("differences", sage.differences(rows, rng=rng)),
    ):
        write_text(folder / f"{name}.csv", frame.to_csv(index=False, lineterminator="\n"))


def main() -> None:
    """Measure, and write the files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--profile", default="demo")
    parser.add_argument("--sft-seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=sage.SEEDS)
    parser.add_argument("--overrides", type=json.loads, default={}, help="fields of SageConfig as JSON, for a try")
    parser.add_argument("--scenarios", type=int, help="the first so many of each split, for a try")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    seeds = {"sft_seeds": arguments.sft_seeds, "seeds": arguments.seeds}
    lines = grid(arguments.profile, **seeds, overrides=arguments.overrides, scenarios=arguments.scenarios)
    study.run(lines, processes=arguments.processes, root=arguments.folder / "runs")
    write(lines, arguments.folder, **seeds)


if __name__ == "__main__":
    main()
