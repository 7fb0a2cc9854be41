"""Robustness to planted skills: runs from perturbed libraries, what each skill was credited and became (paper 5.3, C).

A folder of planted libraries holds `truth.csv` (agent, skill, truth) and, for a benchmark, `<benchmark>/perturbed` and
`<benchmark>/helpful_only`, each with one library folder an agent. A planted skill is followed by its id, so that it is
told apart from one that took over its name.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from skill_evolution.analysis.frames import answers_of
from skill_evolution.analysis.names import NAMES
from skill_evolution.base import paths
from skill_evolution.grse.feedback import Credit, collapse
from skill_evolution.runs.config import Config, load_config
from skill_evolution.runs.folder import read_jsonl, run_columns, run_folder
from skill_evolution.skills import Skill, load_library

TRUTHS = {"helpful": 1, "harmful": -1, "irrelevant": 0}
START, HELPFUL = "perturbed", "helpful_only"
COLUMNS = ["method", "seed", "agent", "skill", "truth", "iteration", "credit", "utility", "as_planted", "fate"]


def load_truth(folder: Path | str | None = None, *, benchmark: str = "locomo") -> pd.DataFrame:
    """What each planted skill is: the columns agent, skill, truth (helpful, harmful or irrelevant).

    Raises:
        ValueError: a truth is none of these, or the skills are not those of the libraries; names file and skill.
    """
    folder = Path(folder or paths.PLANTED)
    path = folder / "truth.csv"
    truth = pd.read_csv(path)
    if unknown := sorted(set(truth["truth"]) - set(TRUTHS)):
        raise ValueError(f"{path}: truth {unknown[0]!r}; it must be one of {', '.join(TRUTHS)}")
    helpful = truth.query("truth == 'helpful'")
    for library, wanted in ((START, truth), (HELPFUL, helpful)):
        named = sorted(f"{agent}/{skill}" for agent, skill in zip(wanted["agent"], wanted["skill"], strict=True))
        there = sorted("/".join(p.parts[-3:-1]) for p in (folder / benchmark / library).glob("*/*/SKILL.md"))
        if named != there:
            odd = sorted(set(named) ^ set(there)) or named
            raise ValueError(f"{path}: {odd[0]} must stand once there and in {folder / benchmark / library}")
    return truth


def load_sets(folder: Path = paths.PLANTED) -> pd.DataFrame:
    """Other sets of planted skills and how both methods did on them, as `benchmarks/planted_sets.py` measured them."""
    return pd.read_csv(folder / "sets.csv")


def load_assumptions(folder: Path = paths.PLANTED) -> pd.DataFrame:
    """What the signs rest on, one assumption varied at a time, as `benchmarks/planted_assumptions.py` measured it."""
    return pd.read_csv(folder / "assumptions.csv")


def other_reported(reported: pd.DataFrame) -> pd.DataFrame:
    """The paper's figures on its planted skills that have no counterpart in our tables, to read.

    `reported` is `load_reported("grse_robustness")`; its F1 and its credit signs stand beside ours.
    """
    rest = reported.query("metric not in ['f1', 'correct_credit_signs']")
    return pd.DataFrame(
        {
            "of": rest["category"].replace(NAMES),
            "what": rest["metric"].str.replace("_", " "),
            "value": rest["value"].map("{:g}".format),
            "source": rest["source"],
            "note": rest["note"].replace("", None),
        }
    )


def from_helpful(method: str) -> str:
    """The name of the runs in which a method starts from the helpful skills only."""
    return f"{method} from {HELPFUL}"


def planted_grid(
    profile: str = "demo",
    *,
    methods: Sequence[str] = ("maskills", "grse"),
    seeds: Sequence[int] = tuple(range(20)),
    helpful_seeds: Sequence[int] = (),
    locomo_path: Path | str | None = None,
    planted: Path | str | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> dict[str, list[Config]]:
    """The runs by name, on LoCoMo's single-hop questions (paper C).

    START is the team as it is planted, HELPFUL the one with the helpful skills only; neither is trained, and where the
    test is greedy one run of each is enough, for no seed enters it. Then each method, trained from the planted
    libraries and tested after every iteration; and trained from the helpful skills only (`from_helpful`), where there
    are `helpful_seeds`: what a method makes of a start that nobody spoilt.
    """
    folder = Path(planted or paths.PLANTED) / "locomo"
    common = {"benchmark": "locomo", "category": "single_hop", "data_path": locomo_path, **(overrides or {})}

    def runs(method: str, library: str, own: Sequence[int] = seeds, **fields: Any) -> list[Config]:
        fields = {**common, "method": method, "start_libraries": folder / library, **fields}
        return [load_config(profile, **fields, seed=seed) for seed in own]

    untrained = {library: runs("empty", library) for library in (START, HELPFUL)}
    return {
        **{name: configs[:1] if configs[0].test_sampling.temperature == 0 else configs
           for name, configs in untrained.items()},
        **({from_helpful(method): runs(method, HELPFUL, helpful_seeds) for method in methods} if helpful_seeds else {}),
        **{method: runs(method, START, test_every_iteration=True) for method in methods},
    }  # fmt: skip


def final_answers(grid: Mapping[str, Sequence[Config]], *, root: Path | None = None) -> pd.DataFrame:
    """Test answers at the end, one row an answer: `frames.answers_of`, all questions as one category."""
    return _one_category(answers_of(grid, root=root))


def answers_by_iteration(configs: Sequence[Config], *, root: Path | None = None) -> pd.DataFrame:
    """Test answers after every iteration, one row an answer, with the column iteration (from 1)."""
    parts = []
    for config in configs:
        for number in range(1, config.iterations + 1):
            path = run_folder(config, root=root) / "iterations" / str(number) / "predictions.jsonl"
            parts.append(pd.DataFrame(read_jsonl(path)).assign(**run_columns(config), iteration=number))
    return _one_category(pd.concat(parts, ignore_index=True))


def _one_category(answers: pd.DataFrame) -> pd.DataFrame:
    """All questions under the name of what was trained on: here they aren't looked at apart."""
    return answers.assign(category=answers["trained_on"])


def follow(configs: Sequence[Config], truth: pd.DataFrame, *, root: Path | None = None) -> pd.DataFrame:
    """Each planted skill of each run, over the iterations for which it was in the library.

    Args:
        configs: finished runs that started from planted libraries.
        truth: as `load_truth` gives it.
        root: folder of the run folders.

    Raises:
        ValueError: a run started without one of the skills.

    Returns:
        One row a run, skill and iteration: method, seed, agent, skill, truth, iteration; `credit` is the mean credit
        over the iteration's questions (NaN where there was none) and `utility` what the operators then found, so the
        iteration that removes a skill is included; `as_planted` tells whether the iteration ran with the planted text,
        and `fate` what the skill had come to at the iteration's end: kept, repaired (its body was edited), merged or
        pruned.
    """
    rows = []
    for config in configs:
        followed = _followed(config, run_folder(config, root=root), truth)
        rows += [{"method": config.method, "seed": config.seed, **row} for row in followed]
    return pd.DataFrame(rows, columns=COLUMNS)


def _followed(config: Config, folder: Path, truth: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of one run, a skill after the other."""
    if config.start_libraries is None:
        raise ValueError(f"{folder}: this run started empty; nothing was planted")
    agents = sorted(path.name for path in (folder / "libraries").iterdir())
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    planted = {agent: load_library(config.start_libraries / agent, agent) for agent in agents}
    living = {}
    for agent, name, kind in zip(truth["agent"], truth["skill"], truth["truth"], strict=True):
        if (skill := planted[agent].get(name)) is None:
            raise ValueError(f"{agent} has no skill {name!r} to start with; it has {', '.join(planted[agent].names())}")
        living[agent, name], found[agent, name] = (kind, skill, skill), []
    for number in range(1, config.iterations + 1):
        place = folder / "iterations" / str(number)
        after = {agent: load_library(place / "libraries" / agent, agent) for agent in agents}
        credits = _mean_credits(read_jsonl(place / "feedback.jsonl"))
        pruned = {(c["agent"], c["skill"]) for c in read_jsonl(place / "edits.jsonl") if c["operator"] == "prune"}
        for (agent, name), (kind, first, skill) in list(living.items()):
            credit, momentum = credits.get((agent, skill.name), np.nan), config.utility_momentum
            moved = momentum * skill.utility + (1 - momentum) * credit
            now = next((s for s in after[agent] if s.id == first.id), None)
            found[agent, name].append(
                {
                    "agent": agent, "skill": name, "truth": kind, "iteration": number, "credit": credit,
                    "utility": skill.utility if np.isnan(credit) else moved,
                    "as_planted": skill.body == first.body,
                    "fate": _fate(first, now, pruned=(agent, name) in pruned),
                }
            )  # fmt: skip
            if now is None:
                del living[agent, name]
            else:
                living[agent, name] = (kind, first, now)
    return [row for rows in found.values() for row in rows]


def _mean_credits(feedback: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], float]:
    """The mean over questions by agent and skill, as the utility takes it."""
    values: dict[tuple[str, str], list[float]] = {}
    for credit in collapse(Credit(**item) for row in feedback for item in row["credits"]):
        if credit.value is not None:
            values.setdefault((credit.agent, credit.skill), []).append(credit.value)
    return {place: fmean(found) for place, found in values.items()}


def _fate(planted: Skill, now: Skill | None, *, pruned: bool) -> str:
    """What a skill has come to. Nothing but pruning and consolidation takes one out of a library."""
    if now is None:
        return "pruned" if pruned else "merged"
    return "kept" if now.body == planted.body else "repaired"


def planted_table(config: Config, truth: pd.DataFrame) -> pd.DataFrame:
    """One row a planted skill: agent, truth, skill, and its text as the agent sees it."""
    if config.start_libraries is None:
        raise ValueError("a config without start_libraries has nothing planted")
    libraries = {agent: load_library(config.start_libraries / agent, agent) for agent in truth["agent"].unique()}
    found = []
    for agent, name, kind in zip(truth["agent"], truth["skill"], truth["truth"], strict=True):
        skill = next(s for s in libraries[agent] if s.name == name)
        line = {"agent": agent.removeprefix("agent_"), "truth": kind, "skill": name}
        found.append({**line, "description": skill.description, "body": skill.body})
    return pd.DataFrame(found)
