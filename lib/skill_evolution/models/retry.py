"""When a call to a model server is tried again, how long it waits in between and how it ends."""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TypeVar

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    stop_before_delay,
    wait_random_exponential,
)

from skill_evolution.models.base import ModelError

logger = logging.getLogger(__name__)

T = TypeVar("T")


class AttemptError(Exception):
    """One attempt that gave nothing usable.

    `cause` says why, `retry` whether another attempt may help, `retry_after` how many seconds the server asks for.
    """

    def __init__(self, cause: str, *, retry: bool, retry_after: float | None = None) -> None:
        super().__init__(cause)
        self.cause, self.retry, self.retry_after = cause, retry, retry_after


@dataclass(frozen=True)
class RetryPolicy:
    """At most `max_attempts` attempts of at most `timeout` seconds each; all together, waits included, never take
    longer than the product of the two.

    Waits between attempts: what the server asks for in Retry-After, else a random time below a bound that starts at
    `backoff_base` seconds and doubles each time ("full jitter"); neither is longer than `backoff_cap` seconds.
    """

    max_attempts: int
    timeout: float
    backoff_base: float
    backoff_cap: float

    async def run(self, attempt: Callable[[], Awaitable[T]], *, what: str) -> T:
        """The result of the first attempt that succeeds. `attempt` raises AttemptError where it has none.

        Args:
            attempt: Makes one attempt.
            what: Names the call in logs and errors.

        Raises:
            ModelError: The last attempt allowed failed, or one that can't be mended by another; names its cause.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.max_attempts * self.timeout

        async def bounded() -> T:
            try:
                # One timer over the whole attempt: a client's own time-outs bound each read, so that a reply that
                # trickles in would never end.
                async with asyncio.timeout_at(min(loop.time() + self.timeout, deadline)):
                    return await attempt()
            except TimeoutError:
                raise AttemptError(f"no complete reply within {self.timeout:g} s", retry=True) from None

        # A new object for each call: tenacity keeps the state of a run in it, one to a thread.
        retrying = AsyncRetrying(
            stop=stop_after_attempt(self.max_attempts) | stop_before_delay(self.max_attempts * self.timeout),
            wait=self._wait,
            retry=retry_if_exception(lambda error: isinstance(error, AttemptError) and error.retry),
            before_sleep=partial(_log, what),
            reraise=True,
        )
        try:
            return await retrying(bounded)
        except AttemptError as error:
            number = retrying.statistics["attempt_number"]
            raise ModelError(f"{what}: {error.cause} (attempt {number} of {self.max_attempts})") from None

    def _wait(self, state: RetryCallState) -> float:
        asked = _failure(state).retry_after
        if asked is not None:
            return min(asked, self.backoff_cap)
        return wait_random_exponential(multiplier=self.backoff_base, max=self.backoff_cap)(state)


def _failure(state: RetryCallState) -> AttemptError:
    """What an attempt ended with; others than AttemptError are not tried again."""
    error = state.outcome and state.outcome.exception()
    assert isinstance(error, AttemptError)
    return error


def _log(what: str, state: RetryCallState) -> None:
    number, seconds = state.attempt_number, state.upcoming_sleep
    logger.warning("%s: %s; attempt %d failed, the next in %.1f s", what, _failure(state).cause, number, seconds)


def failure_of(error: Exception) -> AttemptError | None:
    """What an exception of the client says about the attempt; None where it isn't one that a call may raise.

    Tried again: 408, 409, 429, 5xx and whatever happens to the connection. Other refusals would only come again.
    """
    import aiohttp
    import openai

    if isinstance(error, AttemptError):
        return error
    if isinstance(error, openai.APIStatusError):
        status, headers = error.status_code, error.response.headers
        cause = f"HTTP {status}: {excerpt(error.response.text)}"
        asked = retry_after_seconds(headers.get("retry-after"))
        return AttemptError(cause, retry=status in (408, 409, 429) or status >= 500, retry_after=asked)
    # aiohttp.ClientError: what openai's aiohttp transport doesn't translate, e.g. a status line that isn't HTTP.
    if isinstance(error, (openai.APIConnectionError, aiohttp.ClientError, OSError)):
        root: BaseException = error
        while root.__cause__ is not None:  # the client calls a lost connection a time-out; the first cause tells
            root = root.__cause__
        return AttemptError(f"the connection failed ({type(root).__name__}: {excerpt(str(root))})", retry=True)
    if isinstance(error, UnicodeEncodeError):
        return AttemptError(f"the request holds text that isn't valid Unicode ({error.reason})", retry=False)
    return None


def retry_after_seconds(header: str | None) -> float | None:
    """A Retry-After header in seconds; it is a number or a date (RFC 9110, 10.2.3). None where it is neither."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            date = parsedate_to_datetime(header)
        except ValueError:
            return None
        seconds = ((date if date.tzinfo else date.replace(tzinfo=UTC)) - datetime.now(UTC)).total_seconds()
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def excerpt(text: str, length: int = 500) -> str:
    """The start of a server's answer, on one line, for an error's text."""
    line = " ".join(text[: 4 * length].split())
    return line if len(line) <= length else f"{line[:length]} ..."
