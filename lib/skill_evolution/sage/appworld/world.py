"""AppWorld (Trivedi et al. 2024) as a World: its own HTTP server, in its own environment, one process a session.

`make appworld` makes the environment; the data are AppWorld's own download (appworld/environment.py). Agent code
looks API documentation up by its own calls; nothing of AppWorld's content stands in a prompt of ours.

TGC and SGC are computed as for every world (agent/metrics.py): a task's scenario is its id without the last `_<n>`.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import BaseModel, ValidationError

from skill_evolution.models.prompting import render
from skill_evolution.sage.agent.planning import by_scenario
from skill_evolution.sage.agent.world import Task, WorldError
from skill_evolution.sage.appworld.environment import AppWorldError, appworld_python, data_folder
from skill_evolution.sage.appworld.pool import ServerPool
from skill_evolution.sage.appworld.process import ServerError
from skill_evolution.sage.appworld.session import AppWorldSession

SPLITS = {"train": "train", "dev": "dev", "test": "test_normal", "challenge": "test_challenge"}
"""Our name of a split, and AppWorld's."""
TASK_ID = re.compile(r"[A-Za-z0-9]+_[1-9][0-9]*")


class _Specs(BaseModel):
    """data/tasks/<id>/specs.json, as far as it is used."""

    instruction: str
    supervisor: Mapping[str, str]


class AppWorld:
    """A World (agent/world.py) on the data of one folder.

    Servers start when sessions need them, and end with `close`, at the end of a `with` block, or with this process.

    Args:
        root: The folder that holds AppWorld's `data`; None looks where `data_folder` says.
        python: AppWorld's interpreter; None takes `.venv-appworld`, and makes it if need be.
        servers: How many of AppWorld's server processes, hence sessions at once.

    Raises:
        AppWorldError: The data aren't there, or the environment can't be made.
    """

    name = "appworld"

    def __init__(self, *, root: Path | None = None, python: Path | None = None, servers: int = 4) -> None:
        self.data = data_folder(root)
        self.splits = tuple(ours for ours, theirs in SPLITS.items() if (self.data / f"datasets/{theirs}.txt").is_file())
        self.pool = ServerPool(python or appworld_python(), self.data, servers)

    @property
    def overview(self) -> str:
        """How the apps are called and looked up; prompts/sage/appworld_overview.md."""
        return render("sage/appworld_overview.md")

    def tasks(self, split: str) -> list[Task]:
        """The tasks of a split: scenarios in the order of AppWorld's list, each one's tasks by number.

        Raises:
            ValueError: There is no such split.
            AppWorldError: A task of the list isn't there or can't be read.
        """
        if split not in self.splits:
            raise ValueError(f"AppWorld's split {split!r} isn't in {self.data}; there is {', '.join(self.splits)}")
        text = (self.data / "datasets" / f"{SPLITS[split]}.txt").read_text(encoding="utf-8")
        listed = by_scenario([self._task(task_id, split) for task_id in text.split()])
        return [task for own in listed for task in sorted(own, key=lambda task: int(task.task_id.rpartition("_")[2]))]

    def _task(self, task_id: str, split: str) -> Task:
        file = self._folder(task_id) / "specs.json"
        try:
            specs = _Specs.model_validate_json(file.read_bytes())
        except (OSError, ValidationError) as error:
            raise AppWorldError(f"task {task_id}: {file} can't be read: {error}") from error
        return Task(
            task_id=task_id,
            scenario=task_id.rpartition("_")[0],
            split=split,
            instruction=specs.instruction,
            user=dict(specs.supervisor),
        )

    def _folder(self, task_id: str) -> Path:
        folder = self.data / "tasks" / task_id
        if not TASK_ID.fullmatch(task_id) or not folder.is_dir():
            raise AppWorldError(f"task {task_id}: AppWorld has no such task in {folder.parent}")
        return folder

    async def open(self, task: Task) -> AppWorldSession:
        """A fresh session, once a server is free.

        Raises:
            WorldError: There is no such task, or no server comes up or can start it.
        """
        self._folder(task.task_id)
        try:
            server = await self.pool.acquire()
        except ServerError as error:
            raise WorldError(f"task {task.task_id}: {error}") from error
        session = AppWorldSession(task, server, self.pool)
        await session.initialize()
        return session

    def close(self) -> None:
        """End all servers; the world can be used again."""
        self.pool.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()
