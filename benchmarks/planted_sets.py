"""How the result of `03_robustness` depends on which skills are planted; writes data/planted/sets.csv.

    .venv/bin/python benchmarks/planted_sets.py [--seeds 10] [--processes 2]

Every set of the shape that is planted (a helpful skill an agent; one harmful skill for one agent and two for the other;
the sixth is irrelevant and left out here) from the simulated reader's directives for LoCoMo. First the effect of each
skill is measured without any evolution, on training and validation questions: the reward with the whole set less the
reward without that skill. Where a planted skill does not do what its label says, or hardly so, the set has no truth to
be right about. Then both methods are trained from each set that is left, and the signs are read. Test questions are
never looked at. Takes about a quarter of an hour on two cores.
"""

import argparse
import asyncio
import itertools
import logging
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd

from skill_evolution.analysis import planted_signs, robustness
from skill_evolution.analysis.frames import rows
from skill_evolution.base import paths
from skill_evolution.grse.loop import Evolution
from skill_evolution.grse.rollouts import run_all
from skill_evolution.models.ledger import Ledger
from skill_evolution.runs.config import Config, load_config
from skill_evolution.runs.experiments import open_evolution, train_all
from skill_evolution.skills import Skill, SkillLibrary, save_library
from skill_evolution.teams.team import Libraries
from skill_evolution.testbed.reader.directives import DIRECTIVES

logger = logging.getLogger("planted_sets")
SEARCHES = ("widen_adjacent", "each_hop", "stem_search", "quote_all")  # tend to help agent 1
NARROWS = ("latest_session_only", "one_keyword_only", "first_match_only", "exact_phrase_only")  # tend to hurt it
ANSWER = "shortest_span"  # the one rule that tends to help agent 2 on single-hop questions
SPOILS = ("decline_unless_verbatim", "full_sentence")  # tend to hurt agent 2
EFFECT = 1.0  # points of reward; a smaller effect on either split is no truth to be right about
REPEATS = 8  # sampled runs of each question and library
FIRST_SEED = 100  # apart from the seeds of the notebook


@dataclass(frozen=True)
class PlantedSet:
    """Directives of the skills that either agent starts with."""

    agent_1: tuple[str, ...]
    agent_2: tuple[str, ...]

    def libraries(self, without: str = "") -> dict[str, SkillLibrary]:
        """A library an agent, less one skill."""
        return {
            agent: SkillLibrary(agent, tuple(_skill(key) for key in sorted(keys) if key != without))
            for agent, keys in vars(self).items()
        }


def _skill(key: str) -> Skill:
    name = f"skill-{list(DIRECTIVES).index(key)}"  # says nothing about what it does
    return Skill(name=name, description="Use it where it fits.", body=DIRECTIVES[key].text, id=name)


def _sign(key: str) -> int:
    return 1 if key in (*SEARCHES, ANSWER) else -1


def all_sets() -> Iterator[PlantedSet]:
    """Two harmful skills for agent 1 and one for agent 2, then the other way round."""
    for helpful in SEARCHES:
        for pair, spoils in itertools.product(itertools.combinations(NARROWS, 2), SPOILS):
            yield PlantedSet((helpful, *pair), (ANSWER, spoils))
        for narrow in NARROWS:
            yield PlantedSet((helpful, narrow), (ANSWER, *SPOILS))


async def _rewards(evolution: Evolution, libraries: Libraries) -> list[float]:
    """Mean reward in percent on training and on validation questions."""
    found = []
    for split in ("train", "validation"):
        rewards = []
        for repeat in range(REPEATS):
            call = replace(evolution.call("train", evolution.settings.train_sampling), sample_id=f"effects/{repeat}")
            answered = await run_all(
                evolution.team, evolution.benchmark, evolution.benchmark.splits[split], libraries, call
            )
            rewards += [t.reward for t in answered if t.reward is not None]
        found.append(100 * fmean(rewards))
    return found


async def effects(
    evolution: Evolution, planted: PlantedSet, known: dict[tuple[str, ...], list[float]]
) -> dict[str, float]:
    """What each skill of a set adds to the reward (points), the lesser of both splits in its direction."""

    async def rewards(without: str = "") -> list[float]:
        libraries = planted.libraries(without)
        place = tuple(library.fingerprint for library in libraries.values())
        if place not in known:
            known[place] = await _rewards(evolution, libraries)
        return known[place]

    whole = await rewards()
    return {
        key: min(_sign(key) * (w - o) for w, o in zip(whole, await rewards(key), strict=True))
        for key in (*planted.agent_1, *planted.agent_2)
    }


def write(planted: PlantedSet, folder: Path) -> None:
    """The set as a folder of planted libraries."""
    kinds = {key: "helpful" if _sign(key) > 0 else "harmful" for key in (*planted.agent_1, *planted.agent_2)}
    lines = [f"{agent},{_skill(key).name},{kinds[key]}" for agent, keys in vars(planted).items() for key in keys]
    (folder / "locomo").mkdir(parents=True)
    (folder / "truth.csv").write_text("\n".join(["agent,skill,truth", *lines]) + "\n", encoding="utf-8")
    for agent, library in planted.libraries().items():
        helpful = tuple(skill for skill in library if f"{agent},{skill.name},helpful" in lines)
        save_library(library, _made(folder / "locomo" / "perturbed" / agent))
        save_library(SkillLibrary(agent, helpful), _made(folder / "locomo" / "helpful_only" / agent))


def _made(folder: Path) -> Path:
    folder.parent.mkdir(parents=True, exist_ok=True)
    return folder


def rates(planted: PlantedSet, folder: Path, *, seeds: Sequence[int], processes: int) -> dict[str, Any]:
    """Percent of the runs with all signs right, by method and reading."""
    write(planted, folder / "planted")
    grid = robustness.planted_grid(seeds=seeds, planted=folder / "planted", overrides={"n_test": 1})
    configs: list[Config] = [*grid["maskills"], *grid["grse"]]
    train_all(configs, root=folder / "runs", processes=processes)
    followed = robustness.follow(configs, robustness.load_truth(folder / "planted"), root=folder / "runs")
    found = rows(planted_signs.sign_rates(planted_signs.signs(followed)))
    return {f"{r['method']}, {r['reading']}": r["mean"] for r in found if r["skill"] == planted_signs.ALL_SIGNS}


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    logger.setLevel(logging.INFO)
    config = load_config("demo", benchmark="locomo", category="single_hop")
    evolution = open_evolution(config, ledger=Ledger(":memory:"))
    found = asyncio.run(_measured(evolution))
    logger.info("%d of %d sets have five effects of at least %g points", len(found), len(list(all_sets())), EFFECT)
    seeds = range(FIRST_SEED, FIRST_SEED + arguments.seeds)
    table = []
    with tempfile.TemporaryDirectory() as scratch:
        for number, (planted, each) in enumerate(found):
            shares = rates(planted, Path(scratch) / str(number), seeds=seeds, processes=arguments.processes)
            table.append({**_described(planted, each), **shares, "runs": len(seeds)})
            logger.info("%s", table[-1])
    frame = pd.DataFrame(table).round(2)
    frame.to_csv(paths.PLANTED / "sets.csv", index=False, lineterminator="\n")


async def _measured(evolution: Evolution) -> list[tuple[PlantedSet, dict[str, float]]]:
    known: dict[tuple[str, ...], list[float]] = {}
    every = [(planted, await effects(evolution, planted, known)) for planted in all_sets()]
    left = [(planted, each) for planted, each in every if min(each.values()) >= EFFECT]
    return sorted(left, key=lambda item: -min(item[1].values()))


def _described(planted: PlantedSet, each: Mapping[str, float]) -> dict[str, Any]:
    return {
        **{agent: " ".join(keys) for agent, keys in vars(planted).items()},
        "smallest_effect": min(each.values()),
        "weakest_skill": min(each, key=lambda key: each[key]),
    }


if __name__ == "__main__":
    main()
