"""Tools of an agent: `grep` over the lines of a document. Patterns come from a model and run in re2, in linear time."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import re2

MAX_PATTERN = 500  # characters; our choice: longer ones are a model repeating itself


@dataclass(frozen=True)
class GrepResult:
    """Lines that match, in order; `more` counts those beyond the limit; `error` says why a pattern was not accepted."""

    lines: tuple[str, ...] = ()
    more: int = 0
    error: str | None = None


@lru_cache(maxsize=256)
def _joined(document: tuple[str, ...]) -> bytes:
    return "\n".join(document).encode("utf-8", "replace")


@lru_cache(maxsize=4096)
def _compile(pattern: str) -> "re2._Regexp":
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    options.never_nl = True  # no pattern reaches over the end of a line
    re2.compile(pattern.encode("utf-8", "replace"), options)  # alone first: ")(" must not pass once wrapped
    return re2.compile(b"(?m)^.*(?:" + pattern.encode("utf-8", "replace") + b").*$", options)


def grep(pattern: str, document: tuple[str, ...], *, limit: int) -> GrepResult:
    """Lines of `document` that match `pattern`, case-insensitively, at most `limit` of them (FACTS A: 20).

    `document` holds lines without line breaks. A pattern that re2 refuses (bad syntax, look-around, too large)
    comes back as a result with `error`: it is a message to the agent, never an exception.
    """
    if not pattern.strip():
        return GrepResult(error="it is empty")
    if len(pattern) > MAX_PATTERN:
        return GrepResult(error=f"it has {len(pattern)} characters, at most {MAX_PATTERN} are allowed")
    try:
        compiled = _compile(pattern)
    except re2.error as error:
        reason = cast(Any, error).args[0]
        return GrepResult(error=reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason))
    lines = [match.group(0).decode("utf-8", "replace") for match in compiled.finditer(_joined(document))]
    return GrepResult(tuple(lines[:limit]), max(0, len(lines) - limit))
