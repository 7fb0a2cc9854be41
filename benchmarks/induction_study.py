"""What GRSE's lead over MASkills on the simulated reader rests on, one assumption varied at a time.

    .venv/bin/python benchmarks/induction_study.py [--seeds 6] [--processes 2] [--runs FOLDER]

Prints the README's table: mean token F1 on test over the seeds. `overshoot 0.3` makes the simulated writer overshoot
with that probability whatever the number of questions that it has seen, in place of 1/(1 + questions). Runs are kept in
--runs and not repeated.
"""

import argparse
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Any

from skill_evolution.runs.config import Config
from skill_evolution.runs.experiments import main_grid, train
from skill_evolution.testbed.reader import optimizer


@dataclass(frozen=True)
class Variant:
    """A method with some of its settings changed; `overshoot` is the writer's constant probability."""

    name: str
    method: str
    overrides: dict[str, Any] = field(default_factory=dict)
    overshoot: float | None = None


BY_CATEGORY, MIXED = "one library a category", "mixed library"
COLUMNS = ("HotpotQA", BY_CATEGORY, MIXED)
VARIANTS = (
    Variant("no skills", "empty"),
    Variant("GRSE", "grse"),
    Variant("MASkills", "maskills"),
    Variant("MASkills with patterns and support 2", "maskills", {"group_patterns": True, "induction_support": 2}),
    Variant("GRSE without patterns, support 1", "grse", {"group_patterns": False, "induction_support": 1}),
    Variant("GRSE, overshoot probability 0.3", "grse", overshoot=0.3),
    Variant("MASkills, overshoot probability 0.3", "maskills", overshoot=0.3),
    Variant("GRSE without structured diagnosis", "grse", {"structured_diagnosis": False}),
    Variant("GRSE with G = 1", "grse", {"group_size": 1}),
)


def run(variant: Variant, config: Config, runs: Path) -> tuple[str, str, float]:
    """The variant, the column that a run belongs to, and its F1 in per cent."""
    if variant.overshoot is not None:
        optimizer.overshoot_risk = lambda questions: variant.overshoot or 0.0
    summary = train(config, root=runs / variant.name.replace(" ", "_"))
    column = "HotpotQA" if config.benchmark == "hotpotqa" else MIXED if config.category is None else BY_CATEGORY
    return variant.name, column, 100 * summary["test"]["f1"]


def main() -> None:
    """Run what isn't there, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--runs", type=Path, default=Path(tempfile.gettempdir()) / "induction-study")
    options = parser.parse_args()
    jobs = [
        (variant, config)
        for variant in VARIANTS
        for config in main_grid(methods=[variant.method], seeds=range(options.seeds), overrides=variant.overrides)
    ]
    found: dict[str, dict[str, list[float]]] = {variant.name: {} for variant in VARIANTS}
    # A process a run: a variant that changes the writer must not change the next one's.
    pool = ProcessPoolExecutor(options.processes, mp_context=get_context("spawn"), max_tasks_per_child=1)
    with pool:
        for future in [pool.submit(run, variant, config, options.runs) for variant, config in jobs]:
            name, column, f1 = future.result()
            found[name].setdefault(column, []).append(f1)
    print("| | " + " | ".join(COLUMNS) + " |")
    for name, own in found.items():
        print(f"| {name} | " + " | ".join(f"{fmean(own[column]):.1f}" for column in COLUMNS) + " |")


if __name__ == "__main__":
    main()
