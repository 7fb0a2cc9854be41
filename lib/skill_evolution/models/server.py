"""A model behind any OpenAI-compatible endpoint: vLLM, Ollama, LM Studio, a hosted API, a cluster."""

import asyncio
import json
import logging
import os
import re
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from skill_evolution.models.base import Completion, ModelError, Request
from skill_evolution.models.chat_completion import parse_completion, request_body, served_models
from skill_evolution.models.config import ModelConfig
from skill_evolution.models.retry import RetryPolicy, failure_of

if TYPE_CHECKING:
    from openai import AsyncOpenAI

logger = logging.getLogger(__name__)

T = TypeVar("T")

# Taken where neither the caller nor the server tells. Our choice: what Ollama serves by default, which cuts a longer
# prompt in silence instead of refusing it.
DEFAULT_CONTEXT_LENGTH = 4096
# How servers say that a prompt is too long: OpenAI and vLLM, vLLM's encoder check, llama.cpp.
TOO_LONG = re.compile(r"context[ _]?(length|size|window)|maximum model length|max_model_len", re.IGNORECASE)


@dataclass(frozen=True)
class _Session:
    """What belongs to one event loop: the client, the generator that closes it, and the concurrency limit."""

    client: "AsyncOpenAI"
    keeper: "AsyncGenerator[AsyncOpenAI, None]"
    slots: asyncio.Semaphore


class ServerModel:
    """A ChatModel (models/base.py) on the chat completions of a server.

    Each event loop gets its own client and its own concurrency limit, so that one object serves several
    `asyncio.run` in turn; a client is closed with its loop at the latest, or by `close`, after which a further call
    opens another. A call keeps its place under the limit while it waits for another attempt: a server that asks for
    less gets less.

    Args:
        backoff_base: Seconds that bound the first random wait between attempts; doubled each time.
        backoff_cap: Seconds that no wait exceeds, also where Retry-After asks for more.
        **settings: Fields of ModelConfig. The key that `api_key_env` names is in no attribute, file, log or error.

    Raises:
        ValueError: A setting can't be, or the key's variable is not set.
    """

    def __init__(self, *, backoff_base: float = 1.0, backoff_cap: float = 60.0, **settings: Any) -> None:
        self._config = config = ModelConfig(kind="server", **settings)
        self._place = f"{config.model} at {config.base_url}"
        self._policy = RetryPolicy(config.max_attempts, config.timeout, backoff_base, backoff_cap)
        self._context_length = config.context_length
        self._sessions: dict[asyncio.AbstractEventLoop, _Session] = {}
        self._usage_missed = False
        self._key()

    @property
    def name(self) -> str:
        """The model and what else changes its answers; where it is served doesn't."""
        model, extra = self._config.model, self._config.extra
        return f"{model} {json.dumps(extra, sort_keys=True)}" if extra else model

    @property
    def context_length(self) -> int:
        """Longest prompt plus completion in tokens.

        Raises:
            RuntimeError: It was not given and `connect` was not awaited yet.
        """
        if self._context_length is None:
            raise RuntimeError(f"{self._place}: `await model.connect()` tells the context length; or give it")
        return self._context_length

    async def connect(self) -> None:
        """Ask the server which models it has: ours must be among them, and its context length is taken over.

        A context length that was given stays, unless the server's is smaller. Where neither is known it is
        DEFAULT_CONTEXT_LENGTH, and a warning says so.

        Raises:
            ModelError: The server doesn't answer, or not with a list of models, or has other models only.
        """
        served = await self.call("/models", None, lambda content, _: served_models(content), what="list of models")
        if self._config.model not in served:
            there = ", ".join(served) or "none"
            raise ModelError(f"{self._config.base_url} serves no model {self._config.model!r}; it serves: {there}")
        told, given = served[self._config.model], self._context_length
        if not (told or given):
            assumed = "%s doesn't tell its context length; %d tokens are assumed (setting context_length)"
            logger.warning(assumed, self._place, DEFAULT_CONTEXT_LENGTH)
        if told and given and told < given:
            logger.warning("%s serves %d tokens, not %d", self._place, told, given)
        self._context_length = min((n for n in (told, given) if n), default=DEFAULT_CONTEXT_LENGTH)

    async def generate(self, request: Request) -> Completion:
        """Send the request and return the reply. `latency` is that of the attempt that gave it.

        Raises:
            ModelError: No attempt gave a completion; the text names the cause, the server and the call.
        """
        body = request_body(request, model=self._config.model, extra=self._config.extra)
        completion = await self.call(
            "/chat/completions", body, parse_completion, what=f"{request.purpose}, sample {request.sample_id}"
        )
        if not completion.prompt_tokens and not self._usage_missed:
            self._usage_missed = True
            logger.warning("%s doesn't count tokens: they are recorded as 0", self._place)
        return completion

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        if session := self._sessions.pop(asyncio.get_running_loop(), None):
            await session.keeper.aclose()

    async def call(self, path: str, body: dict[str, Any] | None, read: Callable[[bytes, float], T], *, what: str) -> T:
        """GET (without a body) or POST, with retries and under the limit; `read` gets a reply's body and latency."""
        session = await self._session()
        async with session.slots:
            attempt = partial(self._attempt, session.client, path, body, read)
            return await self._policy.run(attempt, what=f"{self._place} ({what})")

    async def _attempt(
        self, client: "AsyncOpenAI", path: str, body: dict[str, Any] | None, read: Callable[[bytes, float], T]
    ) -> T:
        from openai import HttpxBinaryResponseContent as RawReply

        start = time.perf_counter()
        try:
            # The client's own way to a raw reply: against `chat.completions.create` this saves half the CPU time,
            # which there goes into converting the body by its types and the reply into pydantic models.
            if body is None:
                response = await client.get(path, cast_to=RawReply)
            else:
                response = await client.post(path, body=body, cast_to=RawReply)
            return read(response.content, time.perf_counter() - start)
        except Exception as error:
            failure = failure_of(error)
            if failure is None:
                raise
            if TOO_LONG.search(failure.cause) and not failure.retry:
                failure.cause = f"the prompt does not fit the model's context length: {failure.cause}"
            if self._config.api_key_env:  # servers echo a wrong key in their refusal
                failure.cause = failure.cause.replace(client.api_key, "***")
            raise failure from None

    async def _session(self) -> _Session:
        """The running loop's session. Opening it never waits, so two calls can't both open one."""
        loop = asyncio.get_running_loop()
        if (session := self._sessions.get(loop)) is None:
            for closed in [other for other in self._sessions if other.is_closed()]:
                del self._sessions[closed]
            keeper = self._open()
            session = _Session(await anext(keeper), keeper, asyncio.Semaphore(self._config.max_concurrency))
            self._sessions[loop] = session
        return session

    async def _open(self) -> "AsyncGenerator[AsyncOpenAI, None]":
        """Yield a client and close it when the generator is closed.

        A generator because an event loop closes those left open before it ends (`shutdown_asyncgens`, part of
        asyncio.run): the only moment at which connections of a loop about to end can be closed.
        """
        from openai import AsyncOpenAI, DefaultAioHttpClient

        client = AsyncOpenAI(
            api_key=self._key() or "none",  # the client insists on one
            base_url=self._config.base_url,
            timeout=None,  # RetryPolicy bounds each attempt and counts them
            max_retries=0,
            http_client=DefaultAioHttpClient(timeout=None),
        )
        try:
            yield client
        finally:
            await client.close()

    def _key(self) -> str | None:
        name = self._config.api_key_env
        key = os.environ.get(name, "").strip() if name else None
        if key == "":
            raise ValueError(f"the environment variable {name} (api_key_env) is not set")
        return key
