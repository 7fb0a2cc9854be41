"""Killed at any moment and started again, at any concurrency, a run comes to the same results and pays once."""

import asyncio
import multiprocessing
import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import toy

from skill_evolution.base import paths
from skill_evolution.grse.loop import Models
from skill_evolution.models.ledger import Ledger
from skill_evolution.runs.experiments import atrain
from skill_evolution.testbed.reader import SimulatedReader

KILLS = 5


@pytest.fixture(scope="module")
def processes() -> Any:
    """Processes that need not import everything again."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["skill_evolution.runs.experiments", "toy"])
    return context


def calls_so_far(root: Path) -> int:
    """Calls that the ledger of the one run under a folder holds, 0 before there is one."""
    found = list(root.glob("*/calls.sqlite"))
    if not found:
        return 0
    try:
        database = sqlite3.connect(f"file:{found[0]}?mode=ro", uri=True)
        try:
            return database.execute("SELECT count(*) FROM calls").fetchone()[0]
        finally:
            database.close()
    except sqlite3.OperationalError:  # the writer is just making it
        return 0


def kill_at(processes: Any, target: Callable[..., None], folder: Path, root: Path, calls: int, pause: float) -> bool:
    """Start a run, kill it `pause` seconds after so many calls are recorded; whether it was under way."""
    process = processes.Process(target=target, args=(folder, root))
    process.start()
    while process.is_alive() and calls_so_far(root) < calls:
        process.join(0.001)
    process.join(pause)
    process.kill()
    process.join()
    return process.exitcode == -signal.SIGKILL


def finish(processes: Any, target: Callable[..., None], folder: Path, root: Path) -> None:
    process = processes.Process(target=target, args=(folder, root))
    process.start()
    process.join()
    assert process.exitcode == 0


def check_same_and_paid_once(killed: Path, undisturbed: Path) -> None:
    one, other = toy.only_folder(killed), toy.only_folder(undisturbed)
    assert (one / "summary.json").read_bytes() == (other / "summary.json").read_bytes()
    assert toy.results(one) == toy.results(other)
    ledgers = [Ledger(folder / "calls.sqlite") for folder in (one, other)]
    (calls, different), (expected, _) = [(ledger.count(), ledger.count(distinct=True)) for ledger in ledgers]
    for ledger in ledgers:
        ledger.close()
    assert calls == different == expected


def killed_often(processes: Any, target: Callable[..., None], folder: Path) -> int:
    """How many of the kills met a run under way; the results are checked."""
    rng = random.Random(7)
    undisturbed, killed = folder / "undisturbed", folder / "killed"
    finish(processes, target, folder, undisturbed)
    total = calls_so_far(undisturbed)
    moments = sorted(rng.sample(range(1, total - 4), KILLS))
    hits = [kill_at(processes, target, folder, killed, moment, rng.uniform(0, 0.01)) for moment in moments]
    finish(processes, target, folder, killed)
    check_same_and_paid_once(killed, undisturbed)
    return sum(hits)


def test_kills_change_nothing(tmp_path, processes):
    hits = killed_often(processes, toy.train_paced, tmp_path)
    assert hits >= KILLS - 2  # one that comes just before the end may come too late


def test_kills_of_the_simulated_reader_change_nothing(tmp_path, processes):
    toy.simulated_config(tmp_path, "hotpotqa")  # the data stands before the processes start
    assert killed_often(processes, toy.train_simulated, tmp_path) >= KILLS // 2  # it is fast


def test_a_kill_while_files_are_written_changes_nothing(tmp_path, processes):
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    finish(processes, toy.train_paced, tmp_path, undisturbed)
    codes = []
    for number in random.Random(7).sample(range(1, 27), KILLS):
        process = processes.Process(target=toy.train_until_rename, args=(tmp_path, killed, number))
        process.start()
        process.join()
        codes.append(process.exitcode)
    assert codes == [-signal.SIGKILL] * KILLS
    finish(processes, toy.train_paced, tmp_path, killed)
    check_same_and_paid_once(killed, undisturbed)


def test_the_seed_of_pythons_hashes_changes_nothing(tmp_path):
    found = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(paths.ROOT / "lib")}
        command = [sys.executable, toy.__file__, str(tmp_path), str(tmp_path / seed)]
        subprocess.run(command, env=environment, check=True, capture_output=True)
        found.append(toy.results(toy.only_folder(tmp_path / seed)))
    assert found[0] == found[1]


CONFIGS: dict[str, dict[str, Any]] = {
    "grse": {"iterations": 4},
    "grse greedy": {"iterations": 2, "validation_sampling": {"temperature": 0}, "label_conditioned": True},
    "maskills": {"method": "maskills", "group_size": 1},
}


@pytest.mark.parametrize("name", CONFIGS)
async def test_the_order_of_completions_changes_nothing(tmp_path, name: str):
    settings = toy.config(tmp_path, **CONFIGS[name])
    models = [
        toy.ToyModel(),
        toy.Reordered(toy.ToyModel(), seed=1),
        toy.Reordered(toy.ToyModel(), seed=2, at_once=5),
        toy.Reordered(toy.ToyModel(), seed=3, at_once=1),
    ]
    found = []
    for index, model in enumerate(models):
        await toy.run(settings, model, tmp_path / str(index), questions=toy.benchmark(train=6))
        found.append(toy.results(toy.only_folder(tmp_path / str(index))))
    assert {"predictions.jsonl", "summary.json", "iterations/1/gate.json"} <= set(found[0])
    assert all(other == found[0] for other in found[1:])


@pytest.mark.parametrize("name", ["hotpotqa", "locomo"])
async def test_the_order_of_completions_changes_nothing_for_the_simulated_reader(tmp_path, name: str):
    settings = toy.simulated_config(tmp_path, name, category="temporal" if name == "locomo" else None)
    found = []
    for index, at_once in enumerate((1000, 1)):
        model = toy.Reordered(SimulatedReader(), seed=index, at_once=at_once)
        await atrain(settings, models=Models(model, model, model), root=tmp_path / str(index))
        found.append(toy.results(toy.only_folder(tmp_path / str(index))))
    assert found[0] == found[1]


async def test_a_cancelled_run_goes_on_where_it_was(tmp_path):
    """As a notebook's interrupt does: what was under way is dropped, what was recorded stays."""
    settings, root = toy.config(tmp_path, iterations=3, group_size=3), tmp_path / "runs"
    task = asyncio.create_task(toy.run(settings, toy.Paced(), root))
    while calls_so_far(root) < 40:
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await toy.run(settings, toy.ToyModel(), root)
    await toy.run(settings, toy.ToyModel(), tmp_path / "undisturbed")
    check_same_and_paid_once(root, tmp_path / "undisturbed")
