"""Tools of an agent: `grep` over the lines of a document. Patterns come from a model and run in re2, in linear time."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import re2

MAX_PATTERN = 500  # characters; our choice: longer ones are a model repeating itself
_LINE_MODE = b"(?m)"  # ^ and $ are a line's


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
    options.never_capture = True  # groups are not asked for, and re2 is faster without them
    # Only a prefix is added, so that what is no pattern by itself, like ")(", stays none.
    return re2.compile(_LINE_MODE + pattern.encode("utf-8", "replace"), options)


def grep(pattern: str, document: tuple[str, ...], *, limit: int) -> GrepResult:
    """Lines of `document` that match `pattern`, case-insensitively, at most `limit` of them (FACTS A: 20).

    `document` holds lines without line breaks. A pattern that is not accepted (bad syntax, look-around, line breaks,
    too long or too large) comes back as a result with `error`: it is a message to the agent, never an exception.
    """
    if reason := _refused(pattern):
        return GrepResult(error=reason)
    try:
        compiled = _compile(pattern)
    except re2.error as error:
        reason = cast(Any, error).args[0]
        reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        return GrepResult(error=reason.replace(_LINE_MODE.decode(), "", 1))
    lines = _matching(compiled, _joined(document)) if document else []
    return GrepResult(tuple(line.decode("utf-8", "replace") for line in lines[:limit]), max(0, len(lines) - limit))


def _refused(pattern: str) -> str | None:
    if not pattern.strip():
        return "it is empty"
    if len(pattern) > MAX_PATTERN:
        return f"it has {len(pattern)} characters, at most {MAX_PATTERN} are allowed"
    if "\n" in pattern:
        return "it has a line break, but is matched against one line at a time; write alternatives as a|b"
    return None


def _matching(compiled: "re2._Regexp", text: bytes) -> list[bytes]:
    """The lines of a text that hold a match, each once."""
    lines, position = [], 0
    while position <= len(text) and (match := compiled.search(text, position)):
        start = text.rfind(b"\n", 0, match.start()) + 1
        end = text.find(b"\n", match.start())
        position = (len(text) if end < 0 else end) + 1
        lines.append(text[start : position - 1])
    return lines
