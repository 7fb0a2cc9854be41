"""Runs of the SAGE experiments, in worker processes, and frames of what they left; what the notebooks call.

from skill_evolution.sage.stages import arms, study

lines = arms.training_arms(arms.lineup("demo", seed=0))
study.run(lines)
rows = study.rows(lines)
"""

import logging
import os
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import partial
from graphlib import TopologicalSorter
from multiprocessing import get_context
from pathlib import Path

import pandas as pd
from tqdm.auto import tqdm

from skill_evolution.sage.stages.arms import Arm
from skill_evolution.sage.stages.evaluation import Evaluation, evaluate
from skill_evolution.sage.stages.stage import Stage

logger = logging.getLogger(__name__)


class ExperimentError(RuntimeError):
    """A stage failed in a worker process; names the stage and holds the worker's traceback."""


Job = partial[None]
"""What one worker does at a time: train a stage, or, where there are some, run its evaluations."""


def run(arms: Sequence[Arm], *, processes: int | None = None, root: Path | None = None) -> None:
    """Train and evaluate what isn't finished yet: each stage once, as soon as the one that it starts from is trained.

    Args:
        arms: What to run.
        processes: How many worker processes. Where there are several each has one thread of torch (two of them would
            slow each other down). None: two for the embedded policy, else one with all threads; 1 works in this one.
        root: Folder of the stages' folders; default `results/<profile>/sage`.

    Raises:
        ExperimentError: A stage failed. What was finished by then stays, and a stopped stage goes on the next time.
    """
    jobs, order = plan(arms, root=root)
    if processes == 1:
        for name in tqdm(list(TopologicalSorter(order).static_order()), desc="stages", leave=False):
            jobs[name]()
        return
    if not jobs:
        return
    # spawn: a fork of a notebook's kernel would share its sockets and threads.
    several = processes or (2 if all(arm.stage.config.policy.kind == "tiny" for arm in arms) else 1)
    workers = min(several, len(jobs))
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_prepare, initargs=(several > 1,))
    with pool:
        try:
            _in_order(order, lambda name: pool.submit(_in_worker, name, jobs[name]))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def plan(arms: Iterable[Arm], *, root: Path | None = None) -> tuple[dict[str, Job], dict[str, set[str]]]:
    """The jobs that are left, by name, and for each name those that must be done before it."""
    asked: dict[str, tuple[Stage, dict[Evaluation, None]]] = {}
    for arm in arms:
        for stage in arm.stage.lineage():
            _, evaluations = asked.setdefault(stage.name, (stage, {}))
            if stage is arm.stage:
                evaluations.update(dict.fromkeys(arm.evaluations))
    jobs: dict[str, Job] = {}
    before: dict[str, set[str]] = {}
    for stage, evaluations in asked.values():
        if not stage.trained(root):
            jobs[f"train {stage.name}"] = partial(_train, stage, root)
            before[f"train {stage.name}"] = {f"train {stage.start.name}"} if stage.start else set()
        if pending := [one for one in evaluations if not one.finished(stage, root)]:
            jobs[f"evaluate {stage.name}"] = partial(evaluate, stage, pending, root=root)
            before[f"evaluate {stage.name}"] = {f"train {stage.name}"}
    return jobs, {name: needed & jobs.keys() for name, needed in before.items()}


def _train(stage: Stage, root: Path | None) -> None:
    from skill_evolution.sage.stages.training import train  # imports torch

    train(stage, root=root)


def _in_order(order: Mapping[str, set[str]], submit: Callable[[str], Future[None]]) -> None:
    sorter = TopologicalSorter(order)
    sorter.prepare()
    running: dict[Future[None], str] = {}
    with tqdm(total=len(order), desc="stages", leave=False) as bar:
        while sorter.is_active():
            running |= {submit(name): name for name in sorter.get_ready()}
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                future.result()
                sorter.done(running.pop(future))
                bar.update()


def _prepare(one_thread: bool) -> None:
    """Of a worker, before torch is imported: its threads, and no notebook shows what libraries tell developers."""
    if one_thread:
        os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"  # rollout_func is experimental
    warnings.simplefilter("ignore", FutureWarning)


def _in_worker(name: str, job: Job) -> None:
    try:
        job()
    except Exception:
        # As text: not every exception can be sent to another process, and one that can't would hide the others.
        raise ExperimentError(f"{name} failed\n{traceback.format_exc()}") from None


def rows(arms: Sequence[Arm], *, root: Path | None = None) -> pd.DataFrame:
    """One row a task of every arm's evaluations: group, arm, sft_seed, seed (0 where no reinforcement learning was),
    split, decoding, and the columns of `metrics.episode_frame`.
    """
    frames = [
        evaluation.rows(arm.stage, root).assign(**_columns(arm)) for arm in arms for evaluation in arm.evaluations
    ]
    return _first(pd.concat(frames, ignore_index=True))


def figures(arms: Sequence[Arm], *, root: Path | None = None) -> pd.DataFrame:
    """One row an arm and evaluation, with the figures of `metrics.metrics`."""
    found = [_columns(arm) | evaluation.figures(arm.stage, root) for arm in arms for evaluation in arm.evaluations]
    return _first(pd.DataFrame(found))


def training(arms: Sequence[Arm], *, root: Path | None = None) -> pd.DataFrame:
    """One row a step of every arm that reinforcement learning trained, with the columns of its `training.csv`."""
    frames = [
        pd.read_csv(arm.stage.folder(root) / "training.csv").assign(**_columns(arm))
        for arm in arms
        if arm.stage.kind == "grpo"
    ]
    return _first(pd.concat(frames, ignore_index=True))


def stages(arms: Sequence[Arm], *, root: Path | None = None) -> pd.DataFrame:
    """One row an arm: how its policy came about, stage by stage, and the folder of the last one."""
    return pd.DataFrame(
        [
            {
                "arm": arm.name,
                "stages": " → ".join(stage.title for stage in arm.stage.lineage()),
                "updates": " + ".join(_updates(stage, root) for stage in arm.stage.lineage() if stage.start) or "none",
                "folder": arm.stage.name,
            }
            for arm in {arm.name: arm for arm in arms}.values()
        ]
    )


def _updates(stage: Stage, root: Path | None) -> str:
    return str(pd.read_csv(stage.folder(root) / "training.csv")["step"].max())


def _columns(arm: Arm) -> dict[str, object]:
    sft_seed, *rest = arm.stage.seeds
    return {"group": arm.group, "arm": arm.name, "sft_seed": sft_seed, "seed": rest[0] if rest else 0}


def _first(frame: pd.DataFrame) -> pd.DataFrame:
    own = ["group", "arm", "sft_seed", "seed"]
    return frame.reindex(columns=[*own, *(column for column in frame.columns if column not in own)])
