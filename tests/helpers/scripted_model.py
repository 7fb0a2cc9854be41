"""A model for tests: it answers the requests it knows and fails on any other."""

from collections.abc import Callable

from skill_evolution.models.base import Completion, Request

Rule = Callable[[Request], Completion | str | Exception | None]


class UnknownRequestError(AssertionError):
    """A request that no rule of the script answers: the test must not go on."""


class ScriptedModel:
    """Answers with the first rule that returns something; a returned exception is raised.

    `requests` keeps what was asked, in order. A request that no rule knows raises UnknownRequestError, which no
    part of the library catches.
    """

    def __init__(self, *rules: Rule, name: str = "scripted", context_length: int = 65_536) -> None:
        self.rules = rules
        self.name = name
        self.context_length = context_length
        self.requests: list[Request] = []

    async def connect(self) -> None:
        """Nothing to get ready."""

    async def generate(self, request: Request) -> Completion:
        """The scripted reply to a request."""
        self.requests.append(request)
        for rule in self.rules:
            reply = rule(request)
            if isinstance(reply, Exception):
                raise reply
            if reply is not None:
                return reply if isinstance(reply, Completion) else Completion(reply)
        last = request.messages[-1].content
        raise UnknownRequestError(f"no rule for {request.purpose} ({request.sample_id}): {last[:200]!r}")

    async def close(self) -> None:
        """Nothing to release."""
