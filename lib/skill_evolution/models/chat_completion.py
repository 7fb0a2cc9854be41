"""The chat completion format of OpenAI-compatible servers: a Request as its body, a body as a Completion."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, Field, ValidationError

from skill_evolution.models.base import Completion, Request
from skill_evolution.models.retry import AttemptError, excerpt

M = TypeVar("M", bound=BaseModel)

# A block of thinking in the text. Where it isn't closed, all the rest is thinking; where a chat template has put the
# opening tag into the prompt, the text begins in the middle of one.
THINKING = re.compile(r"<think>(.*?)(?:</think>|\Z)", re.DOTALL)
UNOPENED = re.compile(r"\A((?:(?!<think>).)*?)</think>", re.DOTALL)

# Servers' names for a reply that broke off by their own doing: vLLM's abort and error, hosted filters.
BROKEN_OFF = ("abort", "error", "content_filter")


class _Message(BaseModel):
    content: str | None
    reasoning: object = None
    reasoning_content: object = None  # vLLM's name for it before


class _Choice(BaseModel):
    message: _Message
    finish_reason: object = None


class _Details(BaseModel):
    cached_tokens: int | None = None


class _Usage(BaseModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None


class _Reply(BaseModel):
    choices: list[_Choice] = Field(min_length=1)
    usage: _Usage | None = None


class _Model(BaseModel):
    id: str
    max_model_len: int | None = None  # vLLM's; others don't tell


class _Models(BaseModel):
    data: list[_Model]


def seed_of(sample_id: str) -> int:
    """The seed of a sample, 31 bits (some servers take a signed 32-bit integer)."""
    return int.from_bytes(hashlib.sha256(sample_id.encode()).digest()[:4], "big") >> 1


def request_body(request: Request, *, model: str, extra: Mapping[str, Any]) -> dict[str, Any]:
    """The body of POST /chat/completions.

    What the sampling leaves open isn't sent; a greedy request needs no seed. Fields of `extra` come last and win,
    and None removes a field that a server doesn't take.
    """
    sampling = request.sampling
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": None if sampling.greedy else seed_of(request.sample_id),
    }
    if request.schema is not None:
        json_schema = {"name": "reply", "strict": True, "schema": request.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": json_schema}
    return {key: value for key, value in {**body, **extra}.items() if value is not None}


def parse_completion(content: bytes, latency: float) -> Completion:
    """The completion in the body of a reply. Any text is a completion, also an empty or an endless one.

    Args:
        content: The body as it came.
        latency: Seconds from the request to the body's end.

    Raises:
        AttemptError: The body is no chat completion, or one without an answer; another attempt may give one.
    """
    reply = _parsed(_Reply, content, "chat completion")
    choice, usage = reply.choices[0], reply.usage or _Usage()
    message = choice.message
    given = next((r for r in (message.reasoning, message.reasoning_content) if r and isinstance(r, str)), "")
    if choice.finish_reason in BROKEN_OFF:
        raise _unusable(f"finish_reason is {choice.finish_reason!r}", content)
    if message.content is None and not given:
        raise _unusable("the message's content is null", content)
    text, thinking = split_reasoning(message.content or "")
    return Completion(
        text=text,
        finish_reason="length" if choice.finish_reason == "length" else "stop",
        prompt_tokens=usage.prompt_tokens or 0,
        completion_tokens=usage.completion_tokens or 0,
        cached_tokens=usage.prompt_tokens_details and usage.prompt_tokens_details.cached_tokens,
        reasoning="\n".join(part for part in (given, thinking) if part) or None,
        latency=latency,
    )


def split_reasoning(text: str) -> tuple[str, str]:
    """A reply's answer and its reasoning ("" where it has none). A text without a `think` tag stays as it is."""
    if "think>" not in text:
        return text, ""
    parts: list[str] = []

    def take(match: re.Match[str]) -> str:
        parts.append(match[1].strip())
        return ""

    answer = THINKING.sub(take, UNOPENED.sub(take, text, count=1))
    return (answer.strip() if parts else text), "\n".join(part for part in parts if part)


def served_models(content: bytes) -> dict[str, int | None]:
    """The models in the body of GET /models with their context length in tokens (vLLM's `max_model_len`), or None.

    Raises:
        AttemptError: The body is no list of models.
    """
    return {model.id: model.max_model_len for model in _parsed(_Models, content, "list of models").data}


def _parsed(form: type[M], content: bytes, what: str) -> M:
    try:
        return form.model_validate_json(content)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in fault["loc"])
        raise _unusable(f"it is no {what}: {f'{place}: ' if place else ''}{fault['msg']}", content) from None


def _unusable(why: str, content: bytes) -> AttemptError:
    body = excerpt(content.decode(errors="replace"))
    return AttemptError(f"the server's reply is of no use: {why}; it reads: {body}", retry=True)
