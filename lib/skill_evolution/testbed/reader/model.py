"""The simulated reader behind the ChatModel protocol."""

import importlib
from collections.abc import Callable
from functools import cache

from skill_evolution.models.base import Completion, ModelError, Request
from skill_evolution.testbed.reader import actor, alone
from skill_evolution.testbed.reader.chance import Chance

CONTEXT_LENGTH = 65_536
"""Tokens, as the paper's models (FACTS A "models")."""
_TASK = "# Task:"
_TASK_MODULES = ("critic", "optimizer")

TaskFunction = Callable[[str, str, Chance], str]


class SimulatedReader:
    """A rule-following reader: text in, text out, a function of (messages, sampling, sample_id) only.

    It sees no `purpose`, no file and no gold answer outside the messages. A system message that starts with
    "# Task: TITLE" goes to the critic or the optimizer, any other one to the acting agents. A user message alone is
    answered if it states a form of reply (the single-model baselines). Tokens are counted as a quarter of the
    characters (our choice; it has no tokenizer).

    Args:
        name: Enters the ledger's key.
    """

    def __init__(self, *, name: str = "simulated-reader-1") -> None:
        self._name = name

    @property
    def name(self) -> str:
        """The model's name."""
        return self._name

    @property
    def context_length(self) -> int:
        """The longest prompt plus completion, in tokens."""
        return CONTEXT_LENGTH

    async def connect(self) -> None:
        """Nothing to get ready."""

    async def generate(self, request: Request) -> Completion:
        """A completion; cut at `max_tokens` with finish_reason "length".

        Raises:
            ModelError: Without a system message, for an unknown task, or for a prompt beyond the context length.
        """
        prompt = sum(len(message.content) for message in request.messages) // 4
        if prompt > CONTEXT_LENGTH:
            raise ModelError(f"{self.name}: a prompt of {prompt} tokens does not fit the context of {CONTEXT_LENGTH}")
        text = _reply(request)
        limit = 4 * request.sampling.max_tokens
        return Completion(
            text=text[:limit],
            finish_reason="length" if len(text) > limit else "stop",
            prompt_tokens=prompt,
            completion_tokens=min(len(text), limit) // 4,
        )

    async def close(self) -> None:
        """Nothing to close."""


def _reply(request: Request) -> str:
    messages = request.messages
    chance = Chance(request.sample_id, request.sampling.temperature)
    if alone.offered(messages):
        return alone.reply(messages[0].content, chance)
    if not messages or messages[0].role != "system":
        first = messages[0].role if messages else "nothing"
        raise ModelError(f"simulated reader: the first message must be a system message, got {first}")
    system = messages[0].content
    if not system.startswith(_TASK):
        return actor.reply(messages, chance)
    title = system.split("\n", 1)[0].removeprefix(_TASK).strip()
    tasks = _tasks()
    if title not in tasks:
        raise ModelError(f"simulated reader: unknown task {title!r}; known tasks: {', '.join(sorted(tasks)) or 'none'}")
    user = "\n\n".join(message.content for message in messages[1:] if message.role == "user")
    return tasks[title](system, user, chance)


@cache
def _tasks() -> dict[str, TaskFunction]:
    """The critic's and the optimizer's tasks by title; imported on first use, for they need this package's parts."""
    tasks: dict[str, TaskFunction] = {}
    for name in _TASK_MODULES:
        tasks |= importlib.import_module(f"skill_evolution.testbed.reader.{name}").TASKS
    return tasks
