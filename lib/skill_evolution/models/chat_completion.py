"""The chat completion format of OpenAI-compatible servers: a Request as its body, a body as a Completion."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from skill_evolution.models.base import Completion, Request
from skill_evolution.models.retry import AttemptError, excerpt

# A block of thinking in the text. Where it isn't closed, all the rest is thinking; where a chat template has put the
# opening tag into the prompt, the text begins in the middle of one.
THINKING = re.compile(r"<think>(.*?)(?:</think>|\Z)", re.DOTALL)
UNOPENED = re.compile(r"\A((?:(?!<think>).)*?)</think>", re.DOTALL)

# Servers' names for a reply that broke off by their own doing: vLLM's abort and error, hosted filters.
BROKEN_OFF = ("abort", "error", "content_filter")


def seed_of(sample_id: str) -> int:
    """The seed of a sample, 31 bits (some servers take a signed 32-bit integer)."""
    return int.from_bytes(hashlib.sha256(sample_id.encode()).digest()[:4], "big") >> 1


def request_body(request: Request, *, model: str, extra: Mapping[str, Any], send_schema: bool) -> dict[str, Any]:
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
    if request.schema is not None and send_schema:
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
    reply = parse_json(content)
    match reply:
        case {"choices": [{"message": {**message}} as choice, *_]}:
            pass
        case {"choices": []}:
            raise _unusable("choices is empty", content)
        case _:
            raise _unusable("it is no chat completion: it has no choices with a message", content)
    if choice.get("finish_reason") in BROKEN_OFF:
        raise _unusable(f"finish_reason is {choice['finish_reason']!r}", content)
    text, thinking = split_reasoning(_answer(message, content))
    # vLLM calls the field "reasoning" now and called it "reasoning_content" before.
    parts = [_text(message.get("reasoning")) or _text(message.get("reasoning_content")), thinking]
    usage = _mapping(reply.get("usage"))
    return Completion(
        text=text,
        finish_reason="length" if choice.get("finish_reason") == "length" else "stop",
        prompt_tokens=_count(usage.get("prompt_tokens")) or 0,
        completion_tokens=_count(usage.get("completion_tokens")) or 0,
        cached_tokens=_count(_mapping(usage.get("prompt_tokens_details")).get("cached_tokens")),
        reasoning="\n".join(part for part in parts if part) or None,
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
    match parse_json(content):
        case {"data": [*entries]} if all(isinstance(_mapping(entry).get("id"), str) for entry in entries):
            return {entry["id"]: _count(entry.get("max_model_len")) for entry in entries}
        case _:
            raise _unusable("it is no list of models", content)


def parse_json(content: bytes) -> Any:
    """A body as JSON.

    Raises:
        AttemptError: It is not UTF-8 or not JSON; another attempt may bring it whole.
    """
    try:
        return json.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise _unusable(f"it is not JSON in UTF-8 ({error})", content) from None


def _answer(message: dict[str, Any], content: bytes) -> str:
    """The message's text; "" where all that there is is reasoning."""
    text = message.get("content")
    if text is None and (_text(message.get("reasoning")) or _text(message.get("reasoning_content"))):
        return ""
    if not isinstance(text, str):
        raise _unusable(f"the message's content is {'null' if text is None else type(text).__name__}", content)
    if not _encodable(text):
        raise _unusable("the message's content holds half of a surrogate pair", content)
    return text


def _encodable(text: str) -> bool:
    """Whether the text can be stored: JSON may escape half a character, which no UTF-8 file takes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _unusable(why: str, content: bytes) -> AttemptError:
    body = excerpt(content.decode(errors="replace"))
    return AttemptError(f"the server's reply is of no use: {why}; it reads: {body}", retry=True)
