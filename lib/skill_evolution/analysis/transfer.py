"""Libraries learned on one multi-hop task, used on the other (paper 5.4).

Three teams answer the same test questions of a target: without skills, with the final libraries of the other task
("transferred"), and with those of its own ("in-domain"). Nothing is trained for it: the transferred team is the method
"empty" with the other run's libraries to start from.

The tasks are LoCoMo's multi-hop questions and HotpotQA's bridge questions. HotpotQA's library is the one of the main
results, trained on bridge and comparison questions alike, as the paper trains on the benchmark as a whole; LoCoMo's is
the one trained on multi-hop questions. [ours]: the summary doesn't say which HotpotQA questions the paper takes.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from skill_evolution.analysis.frames import groups, texts, where, wide
from skill_evolution.analysis.names import named
from skill_evolution.analysis.reported import load_reported
from skill_evolution.analysis.skill_types import final_skills
from skill_evolution.analysis.tables import difference_table, main_table
from skill_evolution.runs.config import Config
from skill_evolution.runs.experiments import predictions
from skill_evolution.runs.folder import run_folder

MULTI_HOP: Mapping[str, str] = {"hotpotqa": "bridge", "locomo": "multi_hop"}
"""The category of each benchmark's test questions that are compared."""
EMPTY, TRANSFERRED, IN_DOMAIN = "no skills", "transferred", "in-domain"
COMPARISONS = ((TRANSFERRED, EMPTY), (IN_DOMAIN, TRANSFERRED), (IN_DOMAIN, EMPTY))


@dataclass(frozen=True)
class Transfer:
    """A team of the target's, with the libraries that `source` ended with."""

    source: Config
    config: Config


def multi_hop_configs(grid: Sequence[Config]) -> list[Config]:
    """Of `experiments.main_grid`, the runs on HotpotQA and on LoCoMo's multi-hop questions."""
    return [c for c in grid if c.benchmark == "hotpotqa" or c.category == MULTI_HOP["locomo"]]


def transfers(configs: Sequence[Config], *, root: Path | None = None) -> list[Transfer]:
    """Every trained run of `configs`, brought to the other task with the same seed.

    Args:
        configs: finished runs of `multi_hop_configs`, those of the method "empty" among them.
        root: folder of the run folders.

    Raises:
        ValueError: there is no run without skills on the other task to take the target's settings from.
    """
    targets = {(c.benchmark, c.seed): c for c in configs if c.method == "empty"}
    found = []
    for source in configs:
        if source.method == "empty":
            continue
        other = next(name for name in MULTI_HOP if name != source.benchmark)
        if (other, source.seed) not in targets:
            raise ValueError(f"no run of the method 'empty' on {other} with seed {source.seed}")
        libraries = run_folder(source, root=root) / "libraries"
        target = targets[other, source.seed].model_copy(update={"start_libraries": libraries})
        found.append(Transfer(source, target))
    return found


def transfer_answers(
    configs: Sequence[Config], transferred: Sequence[Transfer], *, root: Path | None = None
) -> pd.DataFrame:
    """Test answers to the multi-hop questions of both targets, one row an answer, once for every learner.

    Returns:
        The columns of `experiments.predictions` with `method` one of EMPTY, TRANSFERRED and IN_DOMAIN, and `learner`,
        the method that the libraries come from (the team without skills stands under each).
    """
    frames = []
    for learner in dict.fromkeys(t.source.method for t in transferred):
        parts = {
            EMPTY: [c for c in configs if c.method == "empty"],
            TRANSFERRED: [t.config for t in transferred if t.source.method == learner],
            IN_DOMAIN: [c for c in configs if c.method == learner],
        }
        frames += [predictions(p, root=root).assign(method=m, learner=learner) for m, p in parts.items()]
    answers = pd.concat(frames, ignore_index=True)
    multi_hop = answers["category"] == answers["benchmark"].replace(dict(MULTI_HOP))
    return where(answers, multi_hop).sort_values("benchmark", kind="stable", ignore_index=True)


def transfer_means(answers: pd.DataFrame, *, rng: np.random.Generator) -> pd.DataFrame:
    """Token F1 in percent with its interval: `tables.main_table` with the columns target and learner.

    The team without skills is the same for every learner; its interval is drawn once.
    """
    learners = list(dict.fromkeys(answers["learner"]))
    empty, learned = (where(answers, (answers["method"] == EMPTY) == answer) for answer in (True, False))
    shared = main_table(where(empty, empty["learner"] == learners[0]), ["f1"], rng=rng)
    own = {name: main_table(where(learned, learned["learner"] == name), ["f1"], rng=rng) for name in learners}
    return _by_target([pd.concat([shared, table]).assign(learner=name) for name, table in own.items()])


def transfer_differences(answers: pd.DataFrame, *, rng: np.random.Generator) -> pd.DataFrame:
    """Paired differences in points for COMPARISONS: `tables.difference_table` with target, learner and comparison."""
    tables = []
    for (learner,), part in groups(answers, "learner"):
        for method, baseline in COMPARISONS:
            pair = where(part, part["method"].isin([method, baseline]))
            table = difference_table(pair, baseline, ["f1"], rng=rng)
            tables.append(table.assign(learner=learner, comparison=f"{method} minus {baseline}"))
    return _by_target(tables)


def _by_target(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    table = pd.concat(tables, ignore_index=True).sort_values("benchmark", kind="stable", ignore_index=True)
    return table.rename(columns={"benchmark": "target"})


def means_table(means: pd.DataFrame) -> pd.DataFrame:
    """`transfer_means` to read: a row a target and learner, "mean [low, high]" for each library."""
    counts = {"n": ("n", "first"), "missing": ("n_missing", "sum"), "interval": ("interval", "first")}
    return _headed(wide(means.assign(cell=texts(means)), ["target", "learner"], "method", "cell", **counts))


def differences_table(differences: pd.DataFrame) -> pd.DataFrame:
    """`transfer_differences` to read, with the paper's figures beside GRSE's rows.

    The paper has one figure a target, but the summary we have doesn't say which target is which: both stand there.
    """
    figures = load_reported("grse_transfer").groupby("method")["value"]
    beside = figures.agg(lambda values: " or ".join(f"{value:+.1f}" for value in values))
    reported = {
        f"{TRANSFERRED} minus {EMPTY}": beside["transferred"],
        f"{IN_DOMAIN} minus {TRANSFERRED}": beside["in_domain"],
    }
    view = differences.assign(
        points=texts(differences, "difference", sign="+"),
        reported=differences["comparison"].map(reported.get).where(differences["learner"] == "grse"),
    )
    view = view.rename(columns={"comparison": "F1 of", "n_missing": "missing"})
    return _headed(view).loc[
        :, ["benchmark", "method", "F1 of", "points", "p_value", "n", "missing", "reported", "interval"]
    ]


def recorded_use(answers: pd.DataFrame) -> pd.DataFrame:
    """How often an agent recorded the use of any of its skills: share of the answered test questions, in percent.

    Returns:
        The columns target, learner, method, agent, n (answers) and share.
    """
    known = where(answers, answers["error"].isna() & (answers["method"] != EMPTY))
    found = []
    for (target, learner, method), part in groups(known, "benchmark", "learner", "method"):
        uses = pd.DataFrame(list(part["used"]))
        place = {"target": target, "learner": learner, "method": method}
        shares = {agent: 100 * sum(map(bool, used)) / len(part) for agent, used in uses.items()}
        found += [{**place, "agent": agent, "n": len(part), "share": share} for agent, share in shares.items()]
    return pd.DataFrame(found, columns=["target", "learner", "method", "agent", "n", "share"])


def transferred_skills(transferred: Sequence[Transfer], *, root: Path | None = None) -> pd.DataFrame:
    """What each agent took along: a row a direction, learner and agent, with "skill (runs that ended with it)"."""
    skills = final_skills([t.source for t in transferred], root=root)
    found = []
    for (source, learner, agent), part in groups(skills, "benchmark", "method", "agent"):
        counts = Counter(skill.name for skill in part["skill"])
        names = ", ".join(f"{name} ({count})" for name, count in counts.most_common())
        line = {"benchmark": f"learned on {named(source)}", "method": named(learner)}
        found.append({**line, "agent": agent.replace("_", " "), "skills (in how many runs)": names})
    return pd.DataFrame(found, columns=["benchmark", "method", "agent", "skills (in how many runs)"])


def use_table(use: pd.DataFrame) -> pd.DataFrame:
    """`recorded_use` to read: a row a target and learner, a column a library and agent, in percent."""
    use = use.assign(head=use["method"] + ", " + use["agent"].str.replace("_", " ") + " [%]")
    return _headed(wide(use, ["target", "learner"], "head", "share"))


def _headed(table: pd.DataFrame) -> pd.DataFrame:
    """Targets as groups and learners as names of rows."""
    heads = {"benchmark": "target: " + table["target"].map(named), "method": table["learner"].map(named)}
    rest = table.drop(columns=["target", "learner", *heads], errors="ignore")
    return pd.concat([pd.DataFrame(heads, table.index), rest], axis=1)
