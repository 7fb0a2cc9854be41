"""What the signs of `03_robustness` rest on, one assumption varied at a time; writes data/planted/assumptions.csv.

    .venv/bin/python benchmarks/planted_assumptions.py [--seeds 20] [--processes 2] [--runs FOLDER]

Two rules of the simulated critics are switched, on the planted libraries and with the notebook's seeds:

- occasion: the critic of groups leaves out runs in which a skill had no occasion (as it is), or compares all runs;
- blame: no credit rests on a skill's wording (as it is), or a used skill whose text narrows ("only", "unless") is
  credited -0.5 for a failure of its agent: by the critic of groups where the runs give no contrast, by the critic of
  single trajectories in place of a better credit. Neither method has that rule; it is here to show what it would do.

Test questions are never looked at. Runs are kept in --runs and not repeated.
"""

import argparse
import re
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd

from skill_evolution.analysis import planted_signs, robustness
from skill_evolution.analysis.frames import rows
from skill_evolution.base import paths
from skill_evolution.runs.config import Config
from skill_evolution.runs.experiments import train
from skill_evolution.testbed.reader import critic
from skill_evolution.testbed.reader.documents import AgentText, Case, SkillText
from skill_evolution.testbed.reader.judging import Failure

BLAME = -0.5
NARROWS = re.compile(
    r"(?<!not )\b(?:only|alone|unless|stop at|ignore|discard|skip|never|outdated|keep to|single)\b", re.IGNORECASE
)


@dataclass(frozen=True)
class Assumption:
    """A method with its critic's rules; `occasion` is nothing to a critic that compares nothing."""

    method: str
    blame: bool
    occasion: bool | None = None

    @property
    def name(self) -> str:
        """A folder's name."""
        return f"{self.method}-blame-{self.blame}-occasion-{self.occasion}".lower()


ASSUMPTIONS = (
    Assumption("grse", blame=False, occasion=True),
    Assumption("grse", blame=False, occasion=False),
    Assumption("grse", blame=True, occasion=True),
    Assumption("grse", blame=True, occasion=False),
    Assumption("maskills", blame=False),
    Assumption("maskills", blame=True),
)


def assume(assumption: Assumption) -> None:
    """Switch the simulated critics' rules in this process, for good: for processes that do nothing else."""
    if assumption.occasion is False:
        critic.given = lambda rollout, agent: True
    if assumption.blame:
        critic._contrasts = _blaming(critic._contrasts)
        critic._presence = _blaming_presence(critic._presence)


def _blaming(contrasts: Any) -> Any:
    """The contrasts of an agent's skills, and a credit for each skill without one that narrows what failed."""

    def both(agent: AgentText, case: Case, answering: str) -> list[dict[str, Any]]:
        credits = contrasts(agent, case, answering)
        known = {credit["skill"] for credit in credits}
        for failure in critic._failures(case, answering):
            for skill in agent.skills if failure.agent == agent.agent else ():
                if skill.name not in known and _narrows(failure, skill):
                    credits += critic._credit(agent.agent, skill.name, BLAME, [failure.rollout])
                    known.add(skill.name)
        return credits

    return both


def _blaming_presence(presence: Any) -> Any:
    """The credit for having been there, or the blame where that is less."""

    def lesser(agent: AgentText, skill: SkillText, reward: float, failure: Failure | None) -> dict[str, Any]:
        credit = presence(agent, skill, reward, failure)
        if failure and failure.agent == agent.agent and _narrows(failure, skill):
            credit["utility_delta"] = min(credit["utility_delta"], BLAME)
        return credit

    return lesser


def _narrows(failure: Failure, skill: SkillText) -> bool:
    return skill.name in failure.rollout.used.get(failure.agent, ()) and bool(NARROWS.search(skill.body))


def _train(config: Config, root: Path) -> None:
    train(config, root=root)


def measure(assumption: Assumption, *, seeds: Sequence[int], processes: int, root: Path) -> dict[str, Any]:
    """Percent of the runs with all signs right, as planted with its exact binomial interval, and after iteration 1."""
    grid = robustness.planted_grid(seeds=seeds, methods=[assumption.method], overrides={"n_test": 1})
    configs = grid[assumption.method]
    workers = {"mp_context": get_context("spawn"), "initializer": assume, "initargs": (assumption,)}
    with ProcessPoolExecutor(processes, **workers) as pool:
        list(pool.map(_train, configs, [root] * len(configs)))
    followed = robustness.follow(configs, robustness.load_truth(), root=root)
    found = rows(planted_signs.sign_rates(planted_signs.signs(followed)))
    whole = {r["reading"]: r for r in found if r["skill"] == planted_signs.ALL_SIGNS}
    planted, first = (whole[reading] for reading in planted_signs.READINGS[:2])
    shares = {key: planted[key] for key in ("mean", "low", "high")}
    return {**vars(assumption), **shares, "first": first["mean"], "runs": planted["n"]}


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--runs", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        runs = arguments.runs or Path(scratch)
        table = [
            measure(a, seeds=range(arguments.seeds), processes=arguments.processes, root=runs / a.name)
            for a in ASSUMPTIONS
        ]
    pd.DataFrame(table).round(2).to_csv(paths.PLANTED / "assumptions.csv", index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
