"""ServerModel against a server that fails, on real sockets: retries, refusals, time-outs (issue 3, "Shows" 4)."""

import asyncio
import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from server_calls import ask, model_at, reply_of
from stub_server import Reply, StubServer, chat_body

from skill_evolution.models.base import Message, ModelError, Request, Sampling
from skill_evolution.models.retry import retry_after_seconds

FAULTS = {
    "429": (Reply(b'{"error": {"message": "slow down"}}', 429), "HTTP 429: .*slow down"),
    "408": (Reply(b"", 408), "HTTP 408"),
    "409": (Reply(b"", 409), "HTTP 409"),
    "500": (Reply(b"engine died", 500), "HTTP 500: engine died"),
    "503": (Reply(b"<html>loading</html>", 503), "HTTP 503: <html>loading"),
    "connection cut in mid-reply": (Reply(cut=25), "Not enough data .*received 25 of 247 bytes"),
    "connection cut before the body": (Reply(cut=0), "connection failed .*received 0 of"),
    "not HTTP": (Reply(protocol="GOPHER/1.0"), "connection failed .*Bad status line"),
    "empty choices": (Reply(b'{"choices": []}'), "choices: List should have at least 1 item"),
    "no choices": (Reply(b'{"error": "overloaded"}'), "no chat completion: choices: Field required.*overloaded"),
    "content null": (Reply(chat_body(None)), "content is null"),
    "half a character": (Reply(chat_body("\ud83d")), "no chat completion: Invalid JSON: .*hex escape"),
    "aborted": (Reply(chat_body("half", finish_reason="abort")), "finish_reason is 'abort'"),
    "invalid UTF-8": (Reply(chat_body().replace(b"ok", b"\xff\xfe")), "Invalid JSON: invalid unicode"),
    "invalid JSON": (Reply(chat_body()[:-1]), "Invalid JSON: EOF"),
    "empty body": (Reply(b""), "Invalid JSON: EOF"),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_fault_is_mended_by_another_attempt(fault: str):
    completion, server = await reply_of(FAULTS[fault][0], FAULTS[fault][0], Reply())
    assert completion.text == "ok"
    assert len(server.requests) == 3
    assert server.requests[0].body == server.requests[2].body


@pytest.mark.parametrize("fault", FAULTS)
async def test_fault_that_stays_is_one_failure_that_names_its_cause(fault: str):
    reply, cause = FAULTS[fault]
    async with StubServer([reply]) as server:
        model = model_at(server)
        with pytest.raises(
            ModelError, match=rf"m at {server.url} \(actor/agent_1, sample s1\): .*{cause}.*attempt 3 of 3"
        ):
            await model.generate(ask())
        await model.close()
    assert len(server.requests) == 3


async def test_retries_are_logged(caplog: pytest.LogCaptureFixture):
    await reply_of(Reply(b"engine died", 500), Reply())
    assert "HTTP 500: engine died; attempt 1 failed" in caplog.text


async def test_nobody_listens():
    async with StubServer([Reply()]) as server:
        pass
    model = model_at(server)
    with pytest.raises(ModelError, match=r"connection failed .*attempt 3 of 3"):
        await model.generate(ask())
    await model.close()


@pytest.mark.parametrize("cut", [None, 25], ids=["silence", "stops in mid-reply"])
async def test_time_out(cut: int | None):
    async with StubServer([Reply(hold=asyncio.Event(), cut=cut)]) as server:
        model = model_at(server, timeout=0.05, max_attempts=2)
        start = time.monotonic()
        with pytest.raises(ModelError, match=r"no complete reply within 0\.05 s \(attempt [12] of 2\)"):
            await model.generate(ask())
        assert time.monotonic() - start < 1
        await model.close()


async def test_time_out_is_mended_by_another_attempt():
    completion, server = await reply_of(Reply(hold=asyncio.Event()), Reply(), timeout=0.2)
    assert completion.text == "ok"
    assert server.gone.is_set(), "the server must see that its first reply isn't wanted any more"


async def test_retry_after_is_waited_for():
    start = time.monotonic()
    await reply_of(Reply(b"", 429, {"Retry-After": "0.1"}), Reply())
    assert time.monotonic() - start >= 0.1


async def test_retry_after_is_capped():
    start = time.monotonic()
    await reply_of(Reply(b"", 429, {"Retry-After": "3600"}), Reply(), backoff_cap=0.01)
    assert time.monotonic() - start < 2


async def test_retry_after_beyond_the_deadline_fails_at_once():
    start = time.monotonic()
    with pytest.raises(ModelError, match=r"HTTP 429.*attempt 1 of 3"):
        await reply_of(Reply(b"", 429, {"Retry-After": "50"}))  # 3 attempts of 5 s
    assert time.monotonic() - start < 2


@pytest.mark.parametrize(
    ("header", "seconds"),
    [(None, None), ("2", 2.0), ("-1", 0.0), ("soon", None), ("nan", None), ("inf", None), ("", None)],
)
def test_retry_after_header(header: str | None, seconds: float | None):
    assert retry_after_seconds(header) == seconds


def test_retry_after_as_a_date():
    later = datetime.now(UTC) + timedelta(seconds=60)
    assert retry_after_seconds(format_datetime(later, usegmt=True)) == pytest.approx(60, abs=2)
    assert retry_after_seconds("Sun, 06 Nov 1994 08:49:37 GMT") == 0


# Refusals


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_refusal_fails_at_once(status: int):
    async with StubServer([Reply(b'{"error": {"message": "no such thing"}}', status)]) as server:
        model = model_at(server)
        with pytest.raises(ModelError, match=f"HTTP {status}: .*no such thing.*attempt 1 of 3"):
            await model.generate(ask())
        await model.close()
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "message",
    ["This model's maximum context length is 8192 tokens.", "The prompt is longer than the maximum model length of 9."],
)
async def test_prompt_that_does_not_fit(message: str):
    with pytest.raises(ModelError, match=f"does not fit .*{message}"):
        await reply_of(Reply(json.dumps({"error": {"message": message}}).encode(), 400))


async def test_prompt_that_is_not_unicode():
    async with StubServer([Reply()]) as server:
        model = model_at(server)
        with pytest.raises(ModelError, match="valid Unicode"):
            await model.generate(Request((Message("user", "\ud83d"),), Sampling(), "critic", "s"))
        await model.close()
