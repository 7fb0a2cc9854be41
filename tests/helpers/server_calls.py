"""What the tests of ServerModel share: a request, a model that never waits between attempts, one call."""

from typing import Any

from stub_server import Reply, StubServer

from skill_evolution.models.base import Completion, Message, Request, Sampling
from skill_evolution.models.server import ServerModel


def ask(sample_id: str = "s1", **options: Any) -> Request:
    sampling = Sampling(temperature=options.pop("temperature", None), top_p=options.pop("top_p", None), max_tokens=20)
    messages = (Message("system", "Be brief."), Message("user", "Wie heißt der Fluss?"))
    return Request(messages, sampling, "actor/agent_1", sample_id, **options)


def model_at(server: StubServer, **options: Any) -> ServerModel:
    """A model that never waits between attempts."""
    quick = {"model": "m", "base_url": server.url, "max_attempts": 3, "backoff_base": 0.0, "timeout": 5.0}
    return ServerModel(**{**quick, **options})


async def reply_of(*script: Reply, **options: Any) -> tuple[Completion, StubServer]:
    async with StubServer(script) as server:
        model = model_at(server, **options)
        try:
            return await model.generate(ask()), server
        finally:
            await model.close()
