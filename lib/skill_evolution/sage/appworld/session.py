"""One task being worked on over AppWorld's HTTP server: its calls, and how its replies are read."""

import re
import uuid
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from skill_evolution.sage.agent.prompt import shorten
from skill_evolution.sage.agent.world import Execution, Task, WorldError
from skill_evolution.sage.appworld import pool
from skill_evolution.sage.appworld.pool import ServerPool
from skill_evolution.sage.appworld.process import Server, ServerError

FAILED = "Execution failed. Traceback:\n"

CALL_SECONDS = 100
"""AppWorld's own limit on one call of agent code, in whole seconds (its default). It acts only while Python code runs
that lets exceptions through."""
GRACE_SECONDS = 20.0
"""Beyond it, until the call counts as hung and its server is killed."""
OUTPUT_CHARS = 20_000
"""Longest output that is handed on. Our choice: about 5,000 tokens, a sixth of the paper's context; the agent cuts
further."""

Output = TypeVar("Output")


class _Reply(BaseModel, Generic[Output]):
    # Strict, for a reply comes from a process that runs agent code.
    model_config = ConfigDict(strict=True)
    output: Output


class _Tests(BaseModel):
    model_config = ConfigDict(strict=True)
    num_tests: int
    passes: list[Any]


class AppWorldSession:
    """One task on one server; made by `AppWorld.open`.

    Whatever goes wrong with the server, a cancelled call included, ends it and this session: no later session meets a
    server in an unknown state. Further calls raise WorldError.
    """

    def __init__(self, task: Task, server: Server, servers: ServerPool) -> None:
        self._task = task
        self._pool = servers
        self._server: Server | None = server
        self._folder = server.folder
        self._experiment = f"session-{uuid.uuid4().hex}"
        self._calls = 0

    async def initialize(self) -> None:
        """Set the world up; WorldError as in `AppWorld.open`."""
        await self._post(
            "/initialize",
            object,
            # A server's first world takes seconds, for it loads every app.
            deadline=pool.START_SECONDS,
            experiment_name=self._experiment,
            timeout_seconds=CALL_SECONDS,
        )

    async def execute(self, code: str) -> Execution:
        """Run agent code; see agent/world.py.

        AppWorld's reply is one text: after a failure what the code had printed is lost, and code that prints AppWorld's
        own words for one looks as if it had failed. Code that AppWorld refuses counts no API calls.

        Raises:
            WorldError: The server was lost, or the call went on beyond its limits.
        """
        code = code.encode("utf-8", "replace").decode()
        output = await self._post("/execute", str, code=code)
        completed = await self._post("/task_completed", bool)
        before, self._calls = self._calls, max(self._calls, self._logged_calls())
        return Execution(
            output=shorten(output.rstrip("\n"), OUTPUT_CHARS),
            error=error_of(output),
            api_calls=self._calls - before,
            completed=completed,
        )

    async def score(self) -> float:
        """The share of the task's tests that pass, from AppWorld's own evaluation.

        Some of a task's tests ask that nothing else was changed and pass before any action, so an untouched task
        scores above 0. It isn't solved by that: success takes all tests and a call of complete_task, whichever status
        that call gave.

        Raises:
            WorldError: The server was lost, or the task has no tests.
        """
        tests = await self._post("/evaluate", _Tests, suppress_errors=True, report=False)
        if tests.num_tests < 1:  # AppWorld would call this a success
            raise WorldError(f"task {self._task.task_id}: it has no tests, so it can't be scored")
        return len(tests.passes) / tests.num_tests

    async def close(self) -> None:
        """Give the server back; closing twice is fine."""
        if self._server is not None:
            try:
                await self._post("/close", object)
            except WorldError:
                return  # the server has been ended, which is as good
            self._give_back(usable=True)

    async def _post(self, path: str, kind: type[Output], *, deadline: float | None = None, **body: object) -> Output:
        if self._server is None:
            raise WorldError(f"task {self._task.task_id}: the session is closed, or has lost its server")
        seconds = deadline or CALL_SECONDS + GRACE_SECONDS
        body = {"task_id": self._task.task_id, **body}
        try:
            reply = await self._server.request("POST", path, seconds=seconds, body=body)
            return _Reply[kind].model_validate(reply).output
        except BaseException as error:
            self._give_back(usable=False)
            if isinstance(error, ServerError):
                raise WorldError(f"task {self._task.task_id}: {error}") from error
            if isinstance(error, ValidationError):
                what = f"AppWorld's reply to {path} isn't as it should be: {error}"
                raise WorldError(f"task {self._task.task_id}: {what}") from error
            raise

    def _give_back(self, *, usable: bool) -> None:
        server, self._server = self._server, None
        if server is not None:
            self._pool.release(server, usable=usable)

    def _logged_calls(self) -> int:
        """API calls of the session so far: lines of the log that AppWorld writes after each call of agent code."""
        log = self._folder.joinpath(
            "experiments", "outputs", self._experiment, "tasks", self._task.task_id, "logs", "api_calls.jsonl"
        )
        return log.read_bytes().count(b"\n") if log.is_file() else 0


def error_of(output: str) -> str | None:
    """The error in an output of AppWorld's in one line, "TypeName: message"; None if the code ran to its end."""
    if not output.startswith(FAILED):
        return None
    lines = output.removeprefix(FAILED).splitlines()
    if lines[:1] == ["Syntax error in line:"]:
        return "SyntaxError: " + lines[-1].removeprefix("Message: ")
    named = (line for line in lines if re.match(r"[A-Za-z_][\w.]*(: |$)", line))
    return next(named, lines[-1] if lines else "Error: AppWorld gives no reason")
