"""Wall clock of training from the ledgers: as measured, and as modelled under a stated speed of the model.

Training goes in phases that wait for one another: rollouts, critic, aggregation, operators, validation. The simulated
reader's calls take no time to speak of, so what is measured with it is our own code; the model puts the recorded calls
on a server that reads and writes at a constant speed and answers so many at once.
"""

import contextlib
import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import pandas as pd

from skill_evolution.analysis.runtime import KEYS, PARTS, TRAINING, range_texts, ratio_by_task, ratio_texts, task_names
from skill_evolution.models.ledger import Ledger, Timing
from skill_evolution.runs.config import Config
from skill_evolution.runs.folder import run_columns, run_folder

Level = list[float]
Chain = list[Level]


@dataclass(frozen=True)
class Speed:
    """Seconds that a call takes for each token it reads and writes, whatever else is under way."""

    per_prompt_token: float
    per_completion_token: float

    def seconds(self, call: Timing) -> float:
        """The modelled latency of a call. Tokens that a server would have cached are not taken off."""
        return call.prompt_tokens * self.per_prompt_token + call.completion_tokens * self.per_completion_token


def timelines(configs: Iterable[Config], *, root: Path | None = None) -> Iterator[tuple[dict, list[Timing]]]:
    """Each run's task, method and seed, and its calls of training in order."""
    for config in configs:
        with contextlib.closing(Ledger(run_folder(config, root=root) / "calls.sqlite")) as ledger:
            calls = [call for call in ledger.timeline() if call.stage in TRAINING]
        task = task_names(pd.DataFrame([run_columns(config)])).iloc[0]
        yield {"task": task, "method": config.method, "seed": config.seed}, calls


def phases(calls: Iterable[Timing]) -> list[tuple[str, list[Timing]]]:
    """Calls in order, cut where the loop waits for all calls of a phase; each with its stage.

    A stage's calls that follow one another are a phase, but for the optimizer's, which aggregates first, then writes.
    """
    return [(place[0], list(part)) for place, part in groupby(calls, key=_place)]


def _place(call: Timing) -> tuple[str, Sequence[str], bool]:
    # Where no group is left for the critic, an iteration's rollouts follow the last one's. Greedy validation carries
    # no iteration, but there are always rollouts between two.
    iteration = () if call.stage == "validation" else call.sample_id.split("/")[2:3]
    return call.stage, iteration, call.purpose == "optimizer/aggregate"


def covered(calls: Iterable[Timing]) -> float:
    """Seconds in which at least one call was under way: the length of the union of their intervals."""
    total, end = 0.0, -np.inf
    for start, stop in sorted((call.started, call.started + call.latency) for call in calls):
        total += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return total


def span(calls: Sequence[Timing]) -> float:
    """Seconds from the first call's start to the last one's end."""
    return max(call.started + call.latency for call in calls) - min(call.started for call in calls)


def measured(runs: Iterable[tuple[dict, list[Timing]]]) -> pd.DataFrame:
    """Measured times by run and part of training.

    Returns:
        task, method, seed, part, calls; span (sum over the part's phases, our own code included; a pause between two
        starts of a run falls into it), covered (calls under way), latency (sum over calls), all in seconds. For a
        server, covered is the wall clock and latency / covered the overlap that concurrency achieved.
    """
    rows = []
    for keys, calls in runs:
        cut = phases(calls)
        for stage, part in PARTS.items():
            own = [phase for name, phase in cut if name == stage]
            every = [call for phase in own for call in phase]
            times = {"span": sum(map(span, own)), "covered": covered(every), "latency": sum(c.latency for c in every)}
            rows.append({**keys, "part": part, "calls": len(every), **times})
    return pd.DataFrame(rows)


def modelled(runs: Iterable[tuple[dict, list[Timing]]], speed: Speed, *, limits: Sequence[int]) -> pd.DataFrame:
    """Modelled times by run, part of training and concurrency limit.

    Returns:
        task, method, seed, limit, part, seconds (phases one after the other) and latency (sum over calls).
    """
    rows = []
    for keys, calls in runs:
        for limit in limits:
            seconds: dict[str, float] = dict.fromkeys(TRAINING, 0.0)
            latency = seconds.copy()
            for stage, phase in phases(calls):
                seconds[stage] += makespan(chains(phase, speed), limit)
                latency[stage] += sum(map(speed.seconds, phase))
            rows += [
                {**keys, "limit": limit, "part": PARTS[stage], "seconds": seconds[stage], "latency": latency[stage]}
                for stage in TRAINING
            ]
    return pd.DataFrame(rows)


def chains(phase: Sequence[Timing], speed: Speed) -> list[Chain]:
    """The calls of a phase as chains of levels, in modelled seconds: a level starts when the one before has ended.

    A trajectory is a chain with a level for each agent's turn; where several teams were validated on one question,
    their calls of one turn are one level. An agent's operators are a chain, one call after the other. Critic and
    aggregation calls stand alone.
    """
    found: dict[str, dict[str, Level]] = {}
    for number, call in enumerate(phase):
        chain, level = call.sample_id, ""
        if call.stage in ("train", "validation"):
            chain, agent, turn = call.sample_id.rsplit("/", 2)
            level = f"{agent}/{turn}"
        elif call.stage == "optimizer" and call.purpose != "optimizer/aggregate":
            chain, level = "/".join(call.sample_id.split("/")[:4]), str(number)  # optimizer/seed/iteration/agent
        found.setdefault(chain, {}).setdefault(level, []).append(speed.seconds(call))
    return [list(levels.values()) for levels in found.values()]


def makespan(chains: Sequence[Chain], limit: int) -> float:
    """Seconds until all chains have ended with `limit` calls at once, first ready first served."""
    ready = [(0.0, number, 0) for number in range(len(chains))]
    free: list[float] = []  # when the calls that hold a place will end
    last = 0.0
    while ready:
        now, number, level = heapq.heappop(ready)
        end = now
        for seconds in chains[number][level]:
            start = max(now, heapq.heappop(free)) if len(free) >= limit else now
            heapq.heappush(free, start + seconds)
            end = max(end, start + seconds)
        last = max(last, end)
        if level + 1 < len(chains[number]):
            heapq.heappush(ready, (end, number, level + 1))
    return last


def clock_ratios(times: pd.DataFrame, column: str) -> pd.DataFrame:
    """GRSE's wall clock over MASkills', by task (and limit): sums over the seeds, range over single seeds.

    Args:
        times: from `measured` or `modelled`.
        column: what to compare, "covered", "span" or "seconds"; where MASkills' is 0 the ratio is missing.
    """
    parts = times.groupby("limit", sort=False) if "limit" in times else [(None, times)]
    return pd.concat([ratio_by_task(part, column).assign(limit=limit) for limit, part in parts], ignore_index=True)


def time_table(times: pd.DataFrame, model: pd.DataFrame) -> pd.DataFrame:
    """Measured beside modelled seconds of a run by method and part, averaged over all runs, with the overlap of each.

    Args:
        times: from `measured`.
        model: from `modelled`, of one limit.
    """
    both = times.merge(model.rename(columns={"latency": "modelled latency"}), on=[*KEYS, "part"])
    columns = ["calls", "span", "covered", "latency", "seconds", "modelled latency"]
    table = both.groupby(["method", "part"], sort=False, as_index=False)[columns].agg("mean")
    whole = table.groupby("method", sort=False, as_index=False)[columns].agg("sum").assign(part="all of training")
    table = pd.DataFrame(pd.concat([table, whole], ignore_index=True))
    methods = list(dict.fromkeys(table["method"]))
    table = table.sort_values("method", key=lambda m: m.map(methods.index), kind="stable", ignore_index=True)
    return pd.DataFrame(
        {
            "benchmark": table["method"],
            "method": table["part"],
            "calls": table["calls"],
            "first start to last end [s]": table["span"],
            "calls under way [s]": table["covered"],
            "overlap": table["latency"] / table["covered"].where(table["covered"] > 0),
            "modelled [s]": table["seconds"],
            "modelled overlap": table["modelled latency"] / table["seconds"].where(table["seconds"] > 0),
        }
    )


def clock_view(times: pd.DataFrame, model: pd.DataFrame, reported: pd.DataFrame) -> pd.DataFrame:
    """Ratios of wall clocks for reading: a row a task, measured and modelled; the paper's two ranges below.

    The ranges stand under what they can be held against: the time of the calls, modelled and, where calls took time,
    measured. Where they took none that column is left out.

    Args:
        times: from `measured`.
        model: from `clock_ratios` of modelled times, of one limit.
        reported: from `runtime.reported_ranges`.
    """
    columns = {
        "first start to last end": clock_ratios(times, "span"),
        "calls under way": clock_ratios(times, "covered"),
        "modelled": model,
    }
    cells = {name: pd.Series(list(ratio_texts(r)), r["task"]) for name, r in columns.items()}
    view = pd.DataFrame(cells).reindex(model["task"]).dropna(axis="columns", how="all")
    ours = view.rename_axis("method").reset_index()
    said = reported.query("metric == 'wall_clock'")
    comparable = [name for name in ("calls under way", "modelled") if name in view]
    theirs = {"method": "reported, " + said["source"], **dict.fromkeys(comparable, range_texts(said))}
    return pd.concat([ours, pd.DataFrame(theirs)], ignore_index=True)


def with_clock(ratios: pd.DataFrame, times: pd.DataFrame, model: pd.DataFrame) -> pd.DataFrame:
    """`runtime.token_ratios` and the ratios of wall clocks in one frame, for a figure; arguments as in `clock_view`.

    The measured ratio is there where calls took time.
    """
    clocks = {"modelled wall clock": model, "measured wall clock": clock_ratios(times, "covered")}
    there = [clock.assign(quantity=name) for name, clock in clocks.items() if clock["ratio"].notna().to_numpy().any()]
    return pd.concat([ratios, *there], ignore_index=True).drop(columns="limit")
