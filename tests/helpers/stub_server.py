"""A scripted HTTP server on a real socket: it answers each request as a test tells it to, faults included.

As a program it is the stand-in for a model server in benchmarks, in a process of its own; it prints its URL:
    python tests/helpers/stub_server.py --delay 0.5
"""

import argparse
import asyncio
import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


def chat_body(text: str | None = "ok", *, finish_reason: str = "stop", **message: Any) -> bytes:
    """The body of a chat completion; `message` adds fields to the message."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish_reason}
    usage = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}
    body = {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}
    return json.dumps(body).encode()


@dataclass(frozen=True)
class Reply:
    """One answer.

    `cut` closes the connection after that many bytes of the body, None sends all.

    `hold` waits for an event first, or where the body is cut, at the cut."""

    body: bytes = field(default_factory=chat_body)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    delay: float = 0.0
    hold: asyncio.Event | None = None
    protocol: str = "HTTP/1.1"

    def head(self) -> bytes:
        """Status line and headers; the length promised is the whole body's, also where the body is cut."""
        fields = {"Content-Type": "application/json", "Content-Length": str(len(self.body)), **self.headers}
        lines = [f"{self.protocol} {self.status} Scripted", *(f"{key}: {value}" for key, value in fields.items())]
        return "\r\n".join([*lines, "", ""]).encode()


@dataclass(frozen=True)
class Received:
    """One request as it arrived; `raw` is the body's text, `body` the same parsed (None where there is none)."""

    method: str
    path: str
    headers: dict[str, str]
    raw: str

    @property
    def body(self) -> Any:
        return json.loads(self.raw) if self.raw else None


class StubServer:
    """Answers by script: a list, each reply once and the last one for ever, or a function of the request.

    `requests` holds what arrived, `peak` the most requests that were open at once, `gone` is set when a client
    closes its connection before its answer.
    """

    def __init__(self, script: Sequence[Reply] | Callable[[Received], Reply], *, port: int = 0) -> None:
        self._script = script
        self.port = port
        self._handlers: set[asyncio.Task[None]] = set()
        self.requests: list[Received] = []
        self.active = self.peak = 0
        self.gone = asyncio.Event()
        self.url = ""

    async def __aenter__(self) -> "StubServer":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for handler in self._handlers:
            handler.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                while await self._answer(reader, writer):
                    pass
        finally:
            self._handlers.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Read one request and answer it; whether the connection stays open."""
        received = await self._read(reader)
        self.requests.append(received)
        self.active += 1
        self.peak = max(self.peak, self.active)
        try:
            reply = self._next(received)
            if reply.delay:
                await asyncio.sleep(reply.delay)
            if reply.cut is not None:
                writer.write(reply.head() + reply.body[: reply.cut])
                await writer.drain()
            if reply.hold is not None:
                await self._held(reply.hold, reader)
        finally:
            self.active -= 1
        if reply.cut is None:
            writer.write(reply.head() + reply.body)
            await writer.drain()
        return reply.cut is None

    async def _held(self, hold: asyncio.Event, reader: asyncio.StreamReader) -> None:
        """Wait for the event or for the client's leaving, whichever is first."""
        waits = [asyncio.ensure_future(hold.wait()), asyncio.ensure_future(reader.read(1))]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if not hold.is_set():
            self.gone.set()
            raise ConnectionAbortedError("the client left")

    async def _read(self, reader: asyncio.StreamReader) -> Received:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").splitlines()
        method, path, _ = head[0].split(" ")
        headers = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in head[1:] if line)}
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        return Received(method, path, headers, raw.decode())

    def _next(self, received: Received) -> Reply:
        if callable(self._script):
            return self._script(received)
        return self._script[min(len(self.requests), len(self._script)) - 1]


async def _main(delay: float) -> None:
    async with StubServer([Reply(delay=delay)]) as server:
        print(server.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A model server that answers every call the same after a delay")
    parser.add_argument("--delay", type=float, default=0.5, help="seconds before each answer")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_main(parser.parse_args().delay))
