"""What a language model is to this package: one coroutine from a request to a completion."""

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from pydantic import Field

from skill_evolution.base.settings import Strict

FinishReason = Literal["stop", "length"]


class ModelError(RuntimeError):
    """A call that gave no completion; its text names the cause. Never stored as an answer."""


@dataclass(frozen=True)
class Message:
    """One chat message; `role` is system, user or assistant."""

    role: Literal["system", "user", "assistant"]
    content: str


class Sampling(Strict):
    """How a completion is drawn; None leaves a setting to the model's own default (FACTS A "decoding")."""

    temperature: float | None = Field(default=None, ge=0)
    """0 is greedy, and not "unset"."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """Nucleus sampling."""
    max_tokens: int = Field(default=1024, ge=1)
    """Longest completion, in tokens."""

    @property
    def greedy(self) -> bool:
        """Whether the same messages are expected to give the same completion."""
        return self.temperature == 0


@dataclass(frozen=True)
class Request:
    """One call. `sample_id` names this very call: the same request with another sample_id is another sample.

    `purpose` says what the call is for ("actor/agent_1", "critic", "optimizer/refine" ...): it is used for
    accounting only and no model may look at it. `schema` is a JSON schema that the reply has to follow.
    """

    messages: tuple[Message, ...]
    sampling: Sampling
    purpose: str
    sample_id: str
    schema: dict[str, Any] | None = field(default=None, hash=False)


@dataclass(frozen=True)
class Completion:
    """A model's reply. Token counts are the model's own; `cached_tokens` is None where it doesn't tell.

    Texts are whole Unicode, without halves of a surrogate pair, so that they can be stored. `finish_reason`
    "length" marks a reply that was cut at `max_tokens`. `reasoning` is kept apart from `text`. `latency` is in seconds.
    """

    text: str
    finish_reason: FinishReason = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int | None = None
    reasoning: str | None = None
    latency: float = 0.0


class ChatModel(Protocol):
    """The seam between the method and any language model.

    `generate` returns a completion or raises ModelError; it never returns a placeholder for a failure. Many calls
    run at once: an implementation bounds its own concurrency. `name` enters the ledger's key, so two models that
    answer differently have different names. `context_length` is the longest prompt plus completion in tokens.
    """

    @property
    def name(self) -> str: ...

    @property
    def context_length(self) -> int: ...

    async def connect(self) -> None:
        """Get ready, once, before the first call: a server is asked what it serves. ModelError if it isn't there."""
        ...

    async def generate(self, request: Request) -> Completion: ...

    async def close(self) -> None: ...
