"""What the skill-library agent works in: tasks in scenarios of three, and sessions that run the agent's code.

Two worlds stand behind this protocol: the bundled `mini_world`, and `appworld`, which speaks to AppWorld's own server.
Agent code calls `apis.<app>.<api>(...)`, looks documentation up with `apis.api_docs...`, and says that it's done with
the world's completing call (`complete_task(...)` in the mini world, `apis.supervisor.complete_task(...)` in AppWorld).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


class WorldError(RuntimeError):
    """The world itself failed (a killed server, a broken worker). It costs the row that met it, not the step."""


@dataclass(frozen=True)
class Task:
    """One task: what is asked, and for whom.

    Attributes:
        task_id: `<scenario>_<n>`, n from 1.
        scenario: The scenario; its tasks ask for the same kind of thing with other users and values.
        split: `train`, `dev`, `test` or `challenge`.
        instruction: The user's request.
        user: Who it is for, shown in the prompt; empty if there is nothing to show.
    """

    task_id: str
    scenario: str
    split: str
    instruction: str
    user: Mapping[str, str]


@dataclass(frozen=True)
class Execution:
    """What one piece of agent code did.

    Attributes:
        output: What the code printed, followed by its error's text; already cut to the world's limit.
        error: None if the code ran to its end, else one line, "TypeName: message".
        api_calls: Calls of `apis...` that the code made.
        completed: The code made the completing call.
    """

    output: str
    error: str | None
    api_calls: int
    completed: bool


class Session(Protocol):
    """One task being worked on, independent of every other session, also of those of the same task."""

    async def execute(self, code: str) -> Execution:
        """Run agent code; the names it defines stay for later calls.

        Never raises for what the code does: errors and exceeded limits come back as an Execution.

        Raises:
            WorldError: The world itself failed.
        """
        ...

    async def score(self) -> float:
        """The share of the task's tests that pass now, in [0, 1].

        Raises:
            WorldError: The world itself failed.
        """
        ...

    async def close(self) -> None:
        """Free what the session holds; closing twice is fine."""
        ...


class World(Protocol):
    """Tasks by split, and sessions for them."""

    name: str
    splits: tuple[str, ...]

    def tasks(self, split: str) -> list[Task]:
        """The tasks of a split in a fixed order, the three of a scenario next to each other.

        Raises:
            ValueError: There is no such split.
        """
        ...

    async def open(self, task: Task) -> Session:
        """A fresh session for a task.

        Raises:
            WorldError: The world can't start one.
        """
        ...

    @property
    def overview(self) -> str:
        """The few lines about the apps, and how to look up their documentation, that stand in a prompt."""
        ...
