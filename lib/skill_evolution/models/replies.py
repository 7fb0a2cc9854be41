"""Structured calls: one request under a JSON schema, its reply validated item by item, faults named and counted."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from skill_evolution.models.base import ChatModel, Message, ModelError, Request, Sampling
from skill_evolution.models.reply_schemas import Names, fitted_schema


@dataclass(frozen=True)
class Rejection:
    """An item of a reply, or a whole reply, that did not pass a check."""

    reason: str
    item: str


class Reply(BaseModel):
    """Base of reply schemas. Every string and list has a maximum length: a small model repeats itself otherwise."""

    model_config = ConfigDict(extra="forbid")


R = TypeVar("R", bound=Reply)
T = TypeVar("T")


@dataclass(frozen=True)
class Caller:
    """How a structured call is made: the model with its sampling, and the run's stage in the sample_id.

    `fit` narrows each schema so that the longest reply fits the completion limit (reply_schemas.py).
    """

    model: ChatModel
    sampling: Sampling
    sample_id: str
    fit: bool = False

    async def ask(
        self, *, system: str, user: str, schema: type[R], purpose: str, name: str, names: Names | None = None
    ) -> dict[str, Any] | str:
        """The reply as a JSON object, or the reason why there is none: call_failed, cut_off, not_json.

        Args:
            system: what calls of this kind share.
            user: what is asked this time.
            schema: the reply's model; its JSON schema is sent along.
            purpose: for accounting.
            name: extends the sample_id to this very call.
            names: what can be named in this reply, by property; used where schemas are fitted.

        Raises:
            ValueError: `fit` is set and the shortest reply doesn't fit the completion limit.
        """
        messages = (Message("system", system), Message("user", user))
        sent = json_schema(schema)
        if self.fit:
            sent = fitted_schema(sent, tokens=self.sampling.max_tokens, names=names)
        request = Request(messages, self.sampling, purpose, f"{self.sample_id}/{name}", sent)
        try:
            completion = await self.model.generate(request)
        except ModelError:
            return "call_failed"
        if completion.finish_reason == "length":
            return "cut_off"
        try:
            reply = json.loads(completion.text)
        except (ValueError, RecursionError):  # also for a number of thousands of digits
            return "not_json"
        return reply if isinstance(reply, dict) else "not_json"

    async def ask_whole(
        self, *, system: str, user: str, schema: type[R], purpose: str, name: str, names: Names | None = None
    ) -> R | Rejection:
        """The reply validated as a whole, or the rejection; arguments and errors as `ask`."""
        reply = await self.ask(system=system, user=user, schema=schema, purpose=purpose, name=name, names=names)
        if isinstance(reply, str):
            return Rejection(reply, "")
        try:
            return schema.model_validate(reply)
        except ValidationError as error:
            return Rejection("schema", _first_fault(error))


@cache
def json_schema(schema: type[Reply]) -> dict[str, Any]:
    """The JSON schema of a reply model; made once."""
    return schema.model_json_schema()


def valid_items(reply: dict[str, Any], field: str, item: type[R], rejections: list[Rejection]) -> list[R]:
    """The items of a list in a reply that fit their schema; the others go to `rejections` as "schema"."""
    values = reply.get(field, [])
    if not isinstance(values, list):
        rejections.append(Rejection("schema", f"{field} is not a list"))
        return []
    valid = []
    for value in values:
        try:
            valid.append(item.model_validate(value))
        except ValidationError as error:
            rejections.append(Rejection("schema", f"{field}: {_first_fault(error)}"))
    return valid


def unknown_fields(reply: dict[str, Any], schema: type[Reply]) -> list[Rejection]:
    """Top-level fields of a reply that its schema does not have."""
    return [Rejection("schema", f"unknown field {key}") for key in reply if key not in schema.model_fields]


def checked(items: list[R], check: Callable[[R], str | None], rejections: list[Rejection]) -> list[R]:
    """The items for which `check` finds nothing; the others go to `rejections` under the reason it gives."""
    passed = []
    for item in items:
        reason = check(item)
        if reason is None:
            passed.append(item)
        else:
            rejections.append(Rejection(reason, item.model_dump_json()))
    return passed


def _first_fault(error: ValidationError) -> str:
    fault = error.errors()[0]
    return f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}"
