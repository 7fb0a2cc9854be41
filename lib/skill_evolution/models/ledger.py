"""The ledger: every completed call recorded, and replayed instead of being made again.

A run is a deterministic function of its config and its ledger, so resuming is replaying. Failures stand in a table
of their own and are never replayed as answers. The ledger is the only source of token counts, latencies and costs.
"""

import asyncio
import hashlib
import json
import sqlite3
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from skill_evolution.models.base import ChatModel, Completion, Message, ModelError, Request, Sampling

_SCHEMA = """
CREATE TABLE IF NOT EXISTS texts (hash TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS calls (
    id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, model TEXT NOT NULL, purpose TEXT NOT NULL,
    sample_id TEXT NOT NULL, messages TEXT NOT NULL, sampling TEXT NOT NULL, schema TEXT, text TEXT NOT NULL,
    reasoning TEXT, finish_reason TEXT NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
    cached_tokens INTEGER, latency REAL NOT NULL, started REAL NOT NULL);
CREATE INDEX IF NOT EXISTS calls_by_key ON calls (key);
CREATE TABLE IF NOT EXISTS failures (
    id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, model TEXT NOT NULL, purpose TEXT NOT NULL,
    sample_id TEXT NOT NULL, error TEXT NOT NULL, latency REAL NOT NULL, started REAL NOT NULL);
"""
_INSERT_CALL = (
    "INSERT INTO calls (key, model, purpose, sample_id, messages, sampling, schema, text, reasoning, finish_reason, "
    "prompt_tokens, completion_tokens, cached_tokens, latency, started) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
)
_USAGE = """
SELECT substr(sample_id, 1, instr(sample_id || '/', '/') - 1) AS stage, purpose, model, sum(done) AS calls,
    sum(prompt_tokens) AS prompt_tokens, sum(cached_tokens) AS cached_tokens,
    sum(completion_tokens) AS completion_tokens, sum(latency) AS latency, sum(cut) AS cut, sum(1 - done) AS failures
FROM (
    SELECT sample_id, purpose, model, 1 AS done, prompt_tokens, cached_tokens, completion_tokens, latency,
        finish_reason = 'length' AS cut
    FROM calls
    UNION ALL
    SELECT sample_id, purpose, model, 0, 0, NULL, 0, 0.0, 0 FROM failures
) GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""


class Timing(NamedTuple):
    """When a completed call ran and how large it was. `started` is in seconds since the epoch, `latency` in seconds."""

    stage: str
    purpose: str
    sample_id: str
    started: float
    latency: float
    prompt_tokens: int
    completion_tokens: int


@lru_cache(maxsize=4096)
def _text_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@lru_cache(maxsize=64)
def _sampling(sampling: Sampling) -> str:
    return json.dumps(sampling.model_dump(), sort_keys=True)


@dataclass(frozen=True)
class CallKey:
    """What identifies a call: model, messages, sampling, schema and sample_id, hashed; with the parts as stored."""

    key: str
    texts: tuple[tuple[str, str], ...]
    messages: str
    sampling: str
    schema: str | None


def call_key(model_name: str, request: Request) -> CallKey:
    """The ledger's key of a request to a model. `purpose` is accounting and not part of it."""
    texts = tuple((_text_hash(m.content), m.content) for m in request.messages)
    messages = json.dumps([[m.role, h] for m, (h, _) in zip(request.messages, texts, strict=True)])
    sampling = _sampling(request.sampling)  # pyright: ignore[reportArgumentType]: it is frozen
    schema = None if request.schema is None else json.dumps(request.schema, sort_keys=True)
    parts = json.dumps([model_name, messages, sampling, schema, request.sample_id])
    return CallKey(hashlib.sha256(parts.encode()).hexdigest(), texts, messages, sampling, schema)


class Ledger:
    """An SQLite file (WAL) of calls. One process writes it at a time; see `runs.Run` for the lock.

    A completed call is committed before its completion is handed on, so a killed process loses only calls that
    were still under way.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = path
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._database.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;" + _SCHEMA)

    def lookup(self, key: str) -> Completion | None:
        """The completion recorded under a key, or None."""
        row = self._database.execute(
            "SELECT text, finish_reason, prompt_tokens, completion_tokens, cached_tokens, reasoning, latency "
            "FROM calls WHERE key = ? ORDER BY id LIMIT 1",
            (key,),
        ).fetchone()
        return Completion(*row) if row else None

    def record(self, key: CallKey, model: str, request: Request, completion: Completion, started: float) -> None:
        """Commit a completed call. `started` is in seconds since the epoch."""
        schema_row = [] if key.schema is None else [(_text_hash(key.schema), key.schema)]
        execute = self._database.execute
        with self._database:  # commits, or rolls back where a row is refused
            execute("BEGIN")
            self._database.executemany("INSERT OR IGNORE INTO texts VALUES (?, ?)", [*key.texts, *schema_row])
            execute(
                _INSERT_CALL,
                (key.key, model, request.purpose, request.sample_id, key.messages, key.sampling,
                 schema_row[0][0] if schema_row else None, completion.text, completion.reasoning,
                 completion.finish_reason, completion.prompt_tokens, completion.completion_tokens,
                 completion.cached_tokens, completion.latency, started),
            )  # fmt: skip

    def record_failure(
        self, key: str, model: str, request: Request, error: Exception, started: float, latency: float
    ) -> None:
        """Note a call that gave no completion; it is made again on resume."""
        self._database.execute(
            "INSERT INTO failures (key, model, purpose, sample_id, error, latency, started) VALUES (?,?,?,?,?,?,?)",
            (key, model, request.purpose, request.sample_id, str(error), latency, started),
        )

    def usage(self) -> list[dict[str, Any]]:
        """What calls cost, a row a stage (the first part of a sample_id), purpose and model.

        Tokens are counts, `latency` is the sum over calls in seconds, `cut` counts replies cut off. `cached_tokens` is
        None where no server told. `failures` counts attempts that gave no completion.
        """
        rows = self._database.execute(_USAGE)
        names = [column[0] for column in rows.description]
        return [dict(zip(names, row, strict=True)) for row in rows]

    def timeline(self) -> list[Timing]:
        """Every completed call in the order in which they were recorded; the stage is as in `usage`."""
        query = "SELECT purpose, sample_id, started, latency, prompt_tokens, completion_tokens FROM calls ORDER BY id"
        return [Timing(row[1].split("/", 1)[0], *row) for row in self._database.execute(query)]

    def messages(self, sample_id: str) -> list[Message]:
        """The messages of the first call recorded under a sample_id; KeyError where there is none."""
        query = "SELECT messages FROM calls WHERE sample_id = ? ORDER BY id LIMIT 1"
        row = self._database.execute(query, (sample_id,)).fetchone()
        if row is None:
            raise KeyError(f"no call with sample_id {sample_id!r} in {self.path}")
        texts = dict(self._database.execute("SELECT * FROM texts WHERE instr(?, hash)", row))
        return [Message(role, texts[digest]) for role, digest in json.loads(row[0])]

    def count(self, table: str = "calls", *, distinct: bool = False) -> int:
        """Rows of "calls" or "failures"; with `distinct`, different keys among them."""
        if table not in ("calls", "failures"):
            raise ValueError(f"the ledger has no table {table!r}: calls or failures")
        what = "count(DISTINCT key)" if distinct else "count(*)"
        return self._database.execute(f"SELECT {what} FROM {table}").fetchone()[0]

    def close(self) -> None:
        """Close the file; it can't be used afterwards."""
        self._database.close()


class RecordedModel:
    """A ChatModel that answers from the ledger where it can and records what it has to ask.

    Two requests with one key at the same time share one call.
    """

    def __init__(self, model: ChatModel, ledger: Ledger) -> None:
        self.model = model
        self.ledger = ledger
        self._under_way: dict[str, asyncio.Future[Completion]] = {}

    @property
    def name(self) -> str:
        """The name of the model that is asked."""
        return self.model.name

    @property
    def context_length(self) -> int:
        """The context length of the model that is asked, in tokens."""
        return self.model.context_length

    async def connect(self) -> None:
        """Get the model that is asked ready."""
        await self.model.connect()

    async def generate(self, request: Request) -> Completion:
        """The recorded completion, or a new one that is recorded first; ModelError if there is none."""
        key = call_key(self.model.name, request)
        while (recorded := self.ledger.lookup(key.key)) is None:
            shared = self._under_way.get(key.key)
            if shared is None:
                return await self._ask(key, request)
            await asyncio.wait([shared])  # unlike `await shared`: if this waiter is cancelled, the others go on
            if not shared.cancelled():
                return shared.result()
            # Whoever asked was cancelled, which is no answer to anyone else: look again, and ask if need be.
        return recorded

    async def _ask(self, key: CallKey, request: Request) -> Completion:
        future = self._under_way[key.key] = asyncio.get_running_loop().create_future()
        started, clock = time.time(), time.perf_counter()
        try:
            completion = await self.model.generate(request)
            self.ledger.record(key, self.name, request, completion, started)
            future.set_result(completion)
            return completion
        except Exception as error:
            if isinstance(error, ModelError):
                self.ledger.record_failure(key.key, self.name, request, error, started, time.perf_counter() - clock)
            future.set_exception(error)
            future.exception()  # read once, so that a failure nobody else waits for isn't warned about
            raise
        finally:
            del self._under_way[key.key]
            future.cancel()  # does nothing where there is a result; nobody must wait for one that won't come

    async def close(self) -> None:
        """Close the model that is asked; the ledger stays open."""
        await self.model.close()
