"""What our own code costs beside the model: prints its figures and the budgets they are held to.

    .venv/bin/python benchmarks/cost_of_our_code.py [--part simulated|server|importing]

simulated: a whole run of the demo profile (GRSE on HotpotQA and on LoCoMo, run folder and ledger on disk). Everything
between the ends of two calls is the later call's own time: parsing and checking the earlier reply, aggregation,
files and the gate where they fall in between, building the prompt, the ledger. The reader's time is taken off.

server: 1,000 rollouts of two turns against tests/helpers/stub_server.py in a process of its own, 500 ms a call, 64
calls at once. Ideal: the 2,000 calls in whole waves of 64, 32 x 0.5 s = 16 s. Second turns wait behind the first turns
that are queued already, so every wave but the last is full, and the two turns cost no wave of their own.
The wall time needs an idle machine: client and stub fill a good part of two cores in bursts.

importing: what `import skill_evolution.runs.experiments` takes beside the interpreter's start, the quickest of five.
"""

import argparse
import asyncio
import gc
import logging
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from skill_evolution.base import paths
from skill_evolution.grse.loop import Models
from skill_evolution.grse.rollouts import run_group
from skill_evolution.models.base import ChatModel, Completion, Request, Sampling
from skill_evolution.models.ledger import Ledger, RecordedModel
from skill_evolution.models.server import ServerModel
from skill_evolution.runs.config import Config, load_config
from skill_evolution.runs.experiments import benchmark_of
from skill_evolution.runs.folder import Run
from skill_evolution.runs.methods import make_evolution
from skill_evolution.runs.records import run_evolution
from skill_evolution.teams.team import TEAMS, Call
from skill_evolution.testbed.reader import SimulatedReader

OWN_MS, WALL_FACTOR, CPU_MS, IMPORT_S = 0.5, 1.05, 2.5, 1.0  # the budgets
ROLLOUTS, TURNS, GROUP_SIZE, DELAY, AT_ONCE = 1000, 2, 4, 0.5, 64


@dataclass
class Clock:
    """Own time of each call by purpose: (wall, CPU of this process), in seconds.

    `reader` is what the reader took since the last call's end, `asked` how often it was asked.
    """

    reader: tuple[float, float] = (0.0, 0.0)
    last: tuple[float, float] = field(default_factory=lambda: _now())
    own: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    asked: int = 0

    def add_reader(self, start: tuple[float, float]) -> None:
        """Take the time since `start` for the reader's."""
        now = _now()
        self.reader = (self.reader[0] + now[0] - start[0], self.reader[1] + now[1] - start[1])
        self.asked += 1

    def end_call(self, purpose: str) -> None:
        """What passed since the last call's end, less the reader's part, is this call's."""
        now = _now()
        own = (now[0] - self.last[0] - self.reader[0], now[1] - self.last[1] - self.reader[1])
        self.own.setdefault(purpose.split("/")[0], []).append(own)
        self.reader, self.last = (0.0, 0.0), _now()


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


class TimedReader(SimulatedReader):
    """The simulated reader; what it takes is noted."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock

    async def generate(self, request: Request) -> Completion:
        """As the reader. It never waits, so nothing of ours runs within its time."""
        start = _now()
        try:
            return await super().generate(request)
        finally:
            self.clock.add_reader(start)


class TimedCalls(RecordedModel):
    """The recorded model as the method calls it; each call's end is noted."""

    def __init__(self, model: ChatModel, ledger: Ledger, clock: Clock) -> None:
        super().__init__(model, ledger)
        self.clock = clock

    async def generate(self, request: Request) -> Completion:
        """As the recorded model, replayed calls included."""
        try:
            return await super().generate(request)
        finally:
            self.clock.end_call(request.purpose)


async def _evolution(config: Config, root: Path) -> Clock:
    benchmark, team = benchmark_of(config), TEAMS[config.benchmark]()
    with Run(config, root=root) as run:
        clock = Clock()
        model = TimedCalls(TimedReader(clock), run.ledger, clock)
        await run_evolution(run, make_evolution(config, benchmark, team, Models(model, model, model)))
        clock.end_call("after the last call")
    return clock


def simulated() -> None:
    """Own time a call over whole runs with the simulated reader."""
    print(f"\nSimulated reader, demo profile, GRSE: own time a call; budget {OWN_MS} ms in the median")
    for name in ("hotpotqa", "locomo"):
        with tempfile.TemporaryDirectory() as folder:
            clock = asyncio.run(_evolution(load_config("demo", benchmark=name), Path(folder)))
        rest = clock.own.pop("after the last call")[0][0]
        every = [own for owns in clock.own.values() for own in owns]
        print(f"\n{name}: {len(every)} calls ({clock.asked} asked, the others replayed); final files {rest:.2f} s")
        print(f"{'':12}{'calls':>7}{'median':>9}{'mean':>8}{'95 %':>8} ms wall{'median':>9}{'mean':>8} ms CPU")
        for purpose, owns in {**dict(sorted(clock.own.items())), "all": every}.items():
            wall, cpu = ([1000 * own[i] for own in owns] for i in (0, 1))
            tail = statistics.quantiles(wall, n=20)[-1]
            print(f"{purpose:12}{len(owns):7}{statistics.median(wall):9.3f}{statistics.fmean(wall):8.3f}{tail:8.3f}"
                  f"{'':8}{statistics.median(cpu):9.3f}{statistics.fmean(cpu):8.3f}")  # fmt: skip
        median = statistics.median(1000 * own[0] for own in every)
        print(f"{name}: median {median:.3f} ms, {_verdict(median <= OWN_MS)}")


def _verdict(kept: bool) -> str:
    return "within the budget" if kept else "BEYOND the budget"


@contextmanager
def _stub() -> Iterator[str]:
    """The URL of a stub server in a process of its own."""
    command = [sys.executable, str(paths.ROOT / "tests" / "helpers" / "stub_server.py"), "--delay", str(DELAY)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


async def _rollouts(url: str, ledger: Ledger) -> tuple[float, float]:
    """Wall and CPU seconds of 1,000 rollouts, the client's imports and first connections apart."""
    config = load_config("demo", benchmark="hotpotqa")
    benchmark, team = benchmark_of(config), TEAMS["hotpotqa"]()
    questions = [q for split in benchmark.splits.values() for q in split]
    model = RecordedModel(ServerModel(model="stub", base_url=url, max_concurrency=AT_ONCE), ledger)
    call, libraries = Call(model, Sampling(), "warm-up"), team.empty_libraries()
    await run_group(team, benchmark, questions[0], libraries, call, group_size=AT_ONCE)
    call = replace(call, sample_id="train")
    repeated = [(r, q) for r in range(math.ceil(ROLLOUTS / GROUP_SIZE / len(questions))) for q in questions]
    gc.collect()  # what the imports left belongs to the warm-up
    start = _now()
    groups = await asyncio.gather(
        *(
            run_group(team, benchmark, q, libraries, replace(call, sample_id=f"train/{r}"), group_size=GROUP_SIZE)
            for r, q in repeated[: ROLLOUTS // GROUP_SIZE]
        )
    )
    end = _now()
    assert sum(len(group.finished) for group in groups) == ROLLOUTS
    await model.close()
    return end[0] - start[0], end[1] - start[1]


def server() -> None:
    """Wall and CPU time against a server that answers each call after 500 ms."""
    calls = ROLLOUTS * TURNS
    ideal = math.ceil(calls / AT_ONCE) * DELAY
    with _stub() as url, tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "calls.sqlite")
        wall, cpu = asyncio.run(_rollouts(url, ledger))
        assert ledger.count() == calls + AT_ONCE * TURNS
        ledger.close()
    print(f"\nServer, {ROLLOUTS} rollouts of {TURNS} turns, {DELAY:g} s a call, {AT_ONCE} at once")
    print(f"wall {wall:.2f} s = {wall / ideal:.3f} x the ideal {ideal:.2f} s (budget {WALL_FACTOR} x): "
          f"{_verdict(wall <= WALL_FACTOR * ideal)}")  # fmt: skip
    print(f"CPU {1000 * cpu / calls:.2f} ms a call (budget {CPU_MS} ms): {_verdict(1000 * cpu / calls <= CPU_MS)}")


def importing() -> None:
    """Print what importing the library takes."""
    bare, ours = (min(_seconds(code) for _ in range(5)) for code in ("pass", "import skill_evolution.runs.experiments"))
    print(f"import: {ours - bare:.2f} s (budget {IMPORT_S})")


def _seconds(code: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - began


def main() -> None:
    """Print the figures of one part or of all."""
    parser = argparse.ArgumentParser(description="What our own code costs beside the model")
    parser.add_argument("--part", choices=("simulated", "server", "importing"), help="default all")
    chosen = parser.parse_args().part
    logging.disable(logging.WARNING)
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start")
    for part in (simulated, server, importing):
        if chosen in (None, part.__name__):
            part()


if __name__ == "__main__":
    main()
