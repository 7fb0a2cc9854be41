"""Entry points: one run or many, from plain code, from a notebook's cell or from the command line."""

import contextlib
import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm.auto import tqdm

from skill_evolution.base.aio import gather, run_sync
from skill_evolution.base.settings import check_keys
from skill_evolution.benchmarks import load_benchmark
from skill_evolution.benchmarks.base import Benchmark
from skill_evolution.grse.loop import Evolution, Models
from skill_evolution.models.base import ChatModel
from skill_evolution.models.config import ModelConfig
from skill_evolution.models.ledger import Ledger, RecordedModel
from skill_evolution.runs.config import Config, load_config
from skill_evolution.runs.folder import Run, finished_summary, read_jsonl, read_summary, run_columns, run_folder
from skill_evolution.runs.methods import METHODS, make_evolution
from skill_evolution.teams.single import BASELINES, applicable
from skill_evolution.teams.team import TEAMS, Team

logger = logging.getLogger(__name__)


def benchmark_of(config: Config) -> Benchmark:
    """The benchmark that a config asks for."""
    which = config.model_dump(include={"category", "n_train", "n_validation", "n_test"})
    return load_benchmark(config.benchmark, config.data_path, **which)


def team_of(config: Config) -> Team:
    """The team of the config's benchmark; ConfigError if there is none of that name."""
    check_keys([config.benchmark], TEAMS, where="benchmark without a team of its own")
    return TEAMS[config.benchmark]()


def make_model(config: ModelConfig) -> ChatModel:
    """The model that a config asks for. Nothing is connected to before the first call."""
    if config.kind == "simulated":
        from skill_evolution.testbed.reader import SimulatedReader

        return SimulatedReader(name=config.model)
    from skill_evolution.models.server import ServerModel

    options = config.model_dump(exclude={"kind", "serve"})
    return ServerModel(**options)


def _models(config: Config) -> Models:
    """The three roles' models; roles with one config share one model and its concurrency limit."""
    made = {model.model_dump_json(): make_model(model) for model in config.models}
    return Models(*(made[model.model_dump_json()] for model in config.models))


def _recorded(models: Models, ledger: Ledger) -> Models:
    recorded = {id(model): RecordedModel(model, ledger) for model in vars(models).values()}
    return Models(*(recorded[id(model)] for model in vars(models).values()))


def open_evolution(config: Config, *, ledger: Ledger) -> Evolution:
    """The loop of a config without a run folder, to be taken step by step; calls go through the given ledger."""
    return make_evolution(config, benchmark_of(config), team_of(config), _recorded(_models(config), ledger))


def _own_parts(benchmark: Benchmark | None, team: Team | None, models: Models | None) -> str:
    """A description of what a run uses in place of the config's, to be part of its identity; "" if it is nothing."""
    parts: list[Any] = []
    if benchmark is not None:
        splits = {name: [asdict(question) for question in part] for name, part in benchmark.splits.items()}
        parts += [benchmark.name, splits]
    if team is not None:
        parts.append(asdict(team))
    if models is not None:
        parts.append([model.name for model in vars(models).values()])
    return json.dumps(parts) if parts else ""


async def atrain(
    config: Config,
    *,
    benchmark: Benchmark | None = None,
    team: Team | None = None,
    models: Models | None = None,
    root: Path | None = None,
) -> dict[str, Any]:
    """Run a config to its end and return the summary; a run that was stopped goes on where it was.

    Args:
        config: what to run.
        benchmark: one's own benchmark; default the config's.
        team: one's own team; default the benchmark's.
        models: one's own models (they are recorded into the run's ledger); default the config's.
        root: folder of run folders; default `results/<profile>/runs`.

    Raises:
        ConfigError, DataError, RunError: naming what is wrong and where.
    """
    with Run(config, root=root, own=_own_parts(benchmark, team, models)) as run:
        if finished := finished_summary(run.folder):
            return finished
        made = models or _models(config)
        opened = [] if models else list({id(model): model for model in vars(made).values()}.values())
        parts = benchmark or benchmark_of(config), team or team_of(config), _recorded(made, run.ledger)
        try:
            await gather(model.connect() for model in opened)
            return await METHODS[config.method](run, *parts)
        finally:
            await gather(model.close() for model in opened)


def train(config: Config, **options: Any) -> dict[str, Any]:
    """`atrain`, synchronously; also inside a notebook's running event loop. Servers are started as in `train_all`."""
    with _served([config], root=options.get("root")):
        return run_sync(atrain(config, **options))


@contextlib.contextmanager
def _served(configs: Sequence[Config], *, root: Path | None) -> Iterator[None]:
    """Models that say `serve` are served while the block runs, unless all runs that want them are finished."""
    from skill_evolution.models.serve import serving, to_serve

    pending = [c for c in configs if to_serve(c.models) and not finished_summary(run_folder(c, root=root))]
    with serving(model for config in pending for model in config.models):
        yield


def main_grid(
    profile: str = "demo",
    *,
    methods: Sequence[str] = ("empty", "maskills", "grse"),
    seeds: Sequence[int] = (0, 1, 2),
    hotpotqa_path: Path | str | None = None,
    locomo_path: Path | str | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> list[Config]:
    """The configs of the main results: HotpotQA, LoCoMo with a library a category, and LoCoMo with a mixed one.

    Single-model baselines learn nothing: they run once, with the first seed (paper 4.2), and not for the mixed library,
    whose questions are the categories' together; full_context runs on LoCoMo alone.

    Args:
        profile: a profile's name or file.
        methods: names of methods.
        seeds: one run each.
        hotpotqa_path: a real HotpotQA file; None takes the bundled questions.
        locomo_path: a real LoCoMo file; None takes the bundled conversations.
        overrides: fields of Config for all runs.
    """
    from skill_evolution.benchmarks.locomo import CATEGORIES

    tasks = [("hotpotqa", hotpotqa_path, None)]
    tasks += [("locomo", locomo_path, category) for category in (*CATEGORIES, None)]
    configs = []
    for name, path, category in tasks:
        task = {"benchmark": name, "data_path": path, "category": category}
        for method in methods:
            alone = method in BASELINES
            if alone and (not applicable(method, name) or (name, category) == ("locomo", None)):
                continue
            for seed in seeds[:1] if alone else seeds:
                configs.append(load_config(profile, **{**task, "method": method, "seed": seed, **(overrides or {})}))
    return configs


def label(configs: Sequence[Config]) -> str:
    """What a title has to say about runs: whose model answered, and where the questions come from."""
    sources = [f"file {c.data_path.name}" if c.data_path else "synthetic questions" for c in configs]
    return "; ".join([", ".join(dict.fromkeys(c.label for c in configs)), ", ".join(dict.fromkeys(sources))])


def train_all(
    configs: Sequence[Config], *, processes: int | None = None, root: Path | None = None
) -> list[dict[str, Any]]:
    """Run many configs, each in a process of its own, and return their summaries in order.

    A model whose config says `serve` is served by vLLM while they run, unless it is already (models/serve.py).

    Args:
        configs: what to run; a run that is finished already is read, not run.
        processes: how many at once; default one a core for simulated models (they compute), else 1 (the server's
            batching does the rest, and one concurrency limit holds).
        root: folder of run folders.
    """
    summaries = [finished_summary(run_folder(config, root=root)) for config in configs]
    pending = [config for config, summary in zip(configs, summaries, strict=True) if summary is None]
    with _served(pending, root=root):
        trained = iter(_train_pending(pending, processes, root))
    return [next(trained) if summary is None else summary for summary in summaries]


def _train_pending(pending: Sequence[Config], processes: int | None, root: Path | None) -> list[dict[str, Any]]:
    if processes is None:
        simulated = all(c.actor.kind == "simulated" for c in pending)
        processes = min(len(pending), os.cpu_count() or 1) if simulated else 1
    if processes <= 1:
        return [train(config, root=root) for config in tqdm(pending, desc="runs", leave=False)]
    # spawn: a fork of a notebook's kernel would share its sockets and threads.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(train, config, root=root) for config in pending]
        return [future.result() for future in tqdm(futures, desc="runs", leave=False)]


def predictions(configs: Iterable[Config], *, root: Path | None = None) -> pd.DataFrame:
    """One row a test question of every run, with the columns method, benchmark, seed, run and the row's own.

    Raises:
        RunError: a run has not finished yet.
    """
    frames = []
    for config in configs:
        path = run_folder(config, root=root) / "predictions.jsonl"
        frames.append(pd.DataFrame(read_jsonl(path)).assign(**run_columns(config), run=path.parent.name))
    return pd.concat(frames, ignore_index=True)


def usage(configs: Iterable[Config], *, root: Path | None = None) -> pd.DataFrame:
    """Calls, tokens, latency and failures by run, stage and purpose, from the ledgers."""
    rows = []
    for config in configs:
        with contextlib.closing(Ledger(run_folder(config, root=root) / "calls.sqlite")) as ledger:
            rows += [{**run_columns(config), **row} for row in ledger.usage()]
    return pd.DataFrame(rows)


def iterations(configs: Iterable[Config], *, root: Path | None = None) -> pd.DataFrame:
    """One row a run and iteration: validation scores, counts of what was accepted, rejected, changed and refused.

    Raises:
        RunError: a run has not finished yet.
    """
    rows = [(run_columns(c), read_summary(run_folder(c, root=root))["iterations"]) for c in configs]
    return pd.DataFrame([{**columns, **iteration} for columns, steps in rows for iteration in steps])
