"""Robustness to planted skills: runs from perturbed libraries, credit signs, what became of each skill (paper 5.3, C).

A folder of planted libraries holds `truth.csv` (agent, skill, truth) and, for a benchmark, `<benchmark>/perturbed` and
`<benchmark>/helpful_only`, each with one library folder an agent. A planted skill is followed by its id.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from skill_evolution import paths
from skill_evolution.analysis.statistics import LEVEL
from skill_evolution.config import Config, load_config
from skill_evolution.feedback import Credit, collapse
from skill_evolution.runs import read_jsonl, run_folder
from skill_evolution.skills import Skill, SkillLibrary, load_library

PLANTED = paths.ROOT / "data" / "planted"
SIGNS = {"helpful": 1, "harmful": -1, "irrelevant": 0}
START, HELPFUL = "perturbed start", "helpful skills only"
FATES = ("kept", "repaired", "merged", "pruned")


def load_truth(folder: Path = PLANTED) -> pd.DataFrame:
    """What each planted skill is: the columns agent, skill, truth (helpful, harmful or irrelevant).

    Raises:
        ValueError: a truth is none of these, or a skill stands twice; names the file and the value.
    """
    path = folder / "truth.csv"
    truth = pd.read_csv(path)
    if unknown := sorted(set(truth["truth"]) - set(SIGNS)):
        raise ValueError(f"{path}: truth {unknown[0]!r}; it must be one of {', '.join(SIGNS)}")
    if truth.duplicated(["agent", "skill"]).any():
        twice = truth.loc[truth.duplicated(["agent", "skill"])].iloc[0]
        raise ValueError(f"{path}: {twice['agent']}'s skill {twice['skill']!r} stands twice")
    return truth


def planted_grid(
    profile: str = "demo",
    *,
    methods: Sequence[str] = ("maskills", "grse"),
    seeds: Sequence[int] = tuple(range(20)),
    category: str | None = "single_hop",
    locomo_path: Path | str | None = None,
    planted: Path | str | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> dict[str, list[Config]]:
    """The runs by name: the team as it is planted, with the helpful skills only, and each method from the planted.

    The two untrained teams are tested once where the test is greedy: no seed enters there.
    """
    folder = Path(planted or PLANTED) / "locomo"
    common = {"benchmark": "locomo", "category": category, "data_path": locomo_path, **(overrides or {})}

    def runs(method: str, library: str, some: Sequence[int], **fields: Any) -> list[Config]:
        fields = {**common, "method": method, "start_libraries": folder / library, **fields}
        return [load_config(profile, **fields, seed=seed) for seed in some]

    greedy = runs("empty", "perturbed", seeds[:1])[0].test_sampling.temperature == 0
    untrained = seeds[:1] if greedy else seeds
    trained = {name: runs(name, "perturbed", seeds, test_every_iteration=True) for name in methods}
    return {
        START: runs("empty", "perturbed", untrained),
        HELPFUL: runs("empty", "helpful_only", untrained),
        **trained,
    }


@dataclass(frozen=True)
class _Step:
    """One iteration: the libraries it ran with and ended with, what each skill was credited, the operators' changes."""

    number: int
    before: Mapping[str, SkillLibrary]
    after: Mapping[str, SkillLibrary]
    credits: Mapping[tuple[str, str], float]
    changes: Sequence[Mapping[str, Any]]


def follow(configs: Sequence[Config], truth: pd.DataFrame, *, root: Path | None = None) -> pd.DataFrame:
    """Each planted skill over the iterations of each run that it was in the library for.

    Returns:
        One row a run, skill and iteration: method, seed, agent, skill, truth, iteration; `credit` is the mean credit
        over the iteration's questions (NaN where there was none), `utility` the utility that the operators found;
        `as_planted` tells whether the iteration ran with the planted text, `fate` is what the skill had come to at
        the iteration's end: kept, repaired (its text was edited), merged or pruned.
    """
    rows = [
        {"method": config.method, "seed": config.seed, "agent": agent, "skill": name, "truth": kind, **row}
        for config in configs
        for steps in [list(_steps(config, run_folder(config, root=root)))]
        for agent, name, kind in truth[["agent", "skill", "truth"]].itertuples(index=False)
        for row in _followed(steps, agent, name, config.utility_momentum)
    ]
    return pd.DataFrame(rows)


def _steps(config: Config, folder: Path) -> Iterator[_Step]:
    assert config.start_libraries is not None
    agents = sorted(path.name for path in (folder / "libraries").iterdir())
    before = {agent: load_library(config.start_libraries / agent, agent) for agent in agents}
    for number in range(1, config.iterations + 1):
        place = folder / "iterations" / str(number)
        after = {agent: load_library(place / "libraries" / agent, agent) for agent in agents}
        feedback = read_jsonl(place / "feedback.jsonl")
        yield _Step(number, before, after, _mean_credits(feedback), read_jsonl(place / "edits.jsonl"))
        before = after


def _mean_credits(feedback: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], float]:
    """The mean over questions by agent and skill, as the utility takes it."""
    values: dict[tuple[str, str], list[float]] = {}
    for credit in collapse(Credit(**item) for row in feedback for item in row["credits"]):
        if credit.value is not None:
            values.setdefault((credit.agent, credit.skill), []).append(credit.value)
    return {place: fmean(found) for place, found in values.items()}


def _followed(steps: Sequence[_Step], agent: str, name: str, momentum: float) -> Iterator[dict[str, Any]]:
    planted = steps[0].before[agent].get(name) if steps else None
    if planted is None:
        return
    skill: Skill | None = planted
    for step in steps:
        credit = step.credits.get((agent, skill.name))
        utility = skill.utility if credit is None else momentum * skill.utility + (1 - momentum) * credit
        as_planted = skill.body == planted.body
        skill = next((s for s in step.after[agent] if s.id == planted.id), None)
        fate = _fate(step, agent, name) if skill is None else "kept" if skill.body == planted.body else "repaired"
        yield {
            "iteration": step.number,
            "credit": np.nan if credit is None else credit,
            "utility": utility,
            "as_planted": as_planted,
            "fate": fate,
        }
        if skill is None:
            return


def _fate(step: _Step, agent: str, name: str) -> str:
    """Why a skill is gone: nothing but these two operators takes one out of a library."""
    pruned = {change["skill"] for change in step.changes if (change["agent"], change["operator"]) == (agent, "prune")}
    return "pruned" if name in pruned else "merged"


def outcomes(followed: pd.DataFrame) -> pd.DataFrame:
    """One row a run and planted skill: its fate, the iteration of it, and the sign of its utility against the truth.

    The sign is that of the utility after the last iteration that ran with the planted text: what a repaired skill
    earns later is not the planted one's. A skill that was never credited has sign 0. An irrelevant skill has no right
    sign (`right` is null).
    """
    keys = ["method", "seed", "agent", "skill", "truth"]
    last = followed.groupby(keys, sort=False).last()[["fate", "iteration"]]
    planted = followed[followed["as_planted"]].groupby(keys, sort=False).last()["utility"]
    frame = last.join(planted).reset_index()
    wanted = frame["truth"].map(SIGNS)
    sign = np.sign(frame["utility"]).astype(int)
    right = (sign == wanted).astype("boolean").mask(wanted == 0)
    return frame.assign(sign=sign, right=right)


def share(successes: int, n: int) -> dict[str, Any]:
    """A share in percent with its exact (Clopper-Pearson) binomial interval."""
    interval = binomtest(successes, n).proportion_ci(LEVEL, method="exact")
    return {"share": 100 * successes / n, "low": 100 * interval.low, "high": 100 * interval.high, "n": n}


def sign_rates(found: pd.DataFrame) -> pd.DataFrame:
    """Share of runs in which a planted skill has the right sign, and in which all of a run's have ("all").

    Returns:
        The columns method, agent, skill, truth, share, low, high (percent), n (runs).
    """
    signed = found[found["right"].notna()].astype({"right": bool})
    rows = [
        {**dict(zip(["method", "agent", "skill", "truth"], key, strict=True)), **share(int(part.sum()), len(part))}
        for key, part in signed.groupby(["method", "agent", "skill", "truth"], sort=False)["right"]
    ]
    whole = signed.groupby(["method", "seed"], sort=False)["right"].all()
    for method, part in whole.groupby("method", sort=False):
        rows.append(
            {"method": method, "agent": "all", "skill": "all", "truth": "", **share(int(part.sum()), len(part))}
        )
    return pd.DataFrame(rows)
