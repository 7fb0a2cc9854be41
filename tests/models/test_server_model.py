"""ServerModel against a scripted HTTP server on real sockets: what is sent, what comes back, event loops."""

import asyncio
import gc
import json
import subprocess
import sys
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from server_calls import ask, model_at, reply_of
from stub_server import Received, Reply, StubServer, chat_body

from skill_evolution.base import paths
from skill_evolution.models.base import ModelError
from skill_evolution.models.chat_completion import parse_completion, seed_of, split_reasoning
from skill_evolution.models.retry import AttemptError
from skill_evolution.models.server import DEFAULT_CONTEXT_LENGTH, ServerModel

SCHEMA = {
    "type": "object",
    "properties": {"b": {"type": "string", "maxLength": 9}, "a": {"enum": ["ä", None]}},
    "required": ["b", "a"],
    "additionalProperties": False,
}


# What is sent


async def test_request_arrives_as_meant():
    async with StubServer([Reply()]) as server:
        model = model_at(server, extra={"chat_template_kwargs": {"enable_thinking": False}})
        await model.generate(ask(temperature=0, schema=SCHEMA))
        await model.close()
    (received,) = server.requests
    assert (received.method, received.path) == ("POST", "/v1/chat/completions")
    assert received.body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Wie heißt der Fluss?"},
        ],
        "max_tokens": 20,
        "temperature": 0,
        "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": SCHEMA}},
        "chat_template_kwargs": {"enable_thinking": False},
    }
    schema = received.body["response_format"]["json_schema"]["schema"]
    assert json.dumps(schema) == json.dumps(SCHEMA), "the order of the keys is part of the schema: vLLM generates by it"


@pytest.mark.parametrize("temperature", [None, 0.7])
async def test_one_prompt_four_samples_four_seeds(temperature: float | None):
    async with StubServer([Reply()]) as server:
        model = model_at(server)
        for _ in range(2):
            await asyncio.gather(*(model.generate(ask(f"g{g}", temperature=temperature)) for g in range(4)))
        await model.close()
    seeds = [received.body["seed"] for received in server.requests]
    assert len(set(seeds)) == 4
    assert sorted(seeds[:4]) == sorted(seeds[4:]), "a rerun draws the same samples"
    assert [("temperature" in r.body, "top_p" in r.body) for r in server.requests] == [
        (temperature is not None, False)
    ] * 8


def test_seed_is_the_hash_of_the_sample_id():
    # printf s1 | sha256sum starts with e8bc163c; its upper 31 bits
    assert seed_of("s1") == 0xE8BC163C // 2


async def test_none_in_extra_removes_a_field():
    async with StubServer([Reply()]) as server:
        model = model_at(server, extra={"max_tokens": None, "max_completion_tokens": 7})
        await model.generate(ask())
        await model.close()
    body = server.requests[0].body
    assert body.keys() == {"model", "messages", "seed", "max_completion_tokens"}


# What comes back


async def test_counts_latency_and_cut_reply():
    body = json.loads(chat_body("half an ans", finish_reason="length"))
    body["usage"]["prompt_tokens_details"] = {"cached_tokens": 8}
    completion, _ = await reply_of(Reply(json.dumps(body).encode()))
    assert (completion.text, completion.finish_reason) == ("half an ans", "length")
    assert (completion.prompt_tokens, completion.completion_tokens, completion.cached_tokens) == (12, 3, 8)
    assert 0 < completion.latency < 5


async def test_missing_counts_are_said_once(caplog: pytest.LogCaptureFixture):
    body = {**json.loads(chat_body()), "usage": None}
    async with StubServer([Reply(json.dumps(body).encode())]) as server:
        model = model_at(server)
        completions = [await model.generate(ask()) for _ in range(2)]
        await model.close()
    assert {(c.prompt_tokens, c.completion_tokens, c.cached_tokens) for c in completions} == {(0, 0, None)}
    assert caplog.text.count("doesn't count tokens") == 1


@pytest.mark.parametrize("text", ["\n" * 10_000, "", " 42 \n"])
async def test_any_text_is_returned_as_it_is(text: str):
    completion, server = await reply_of(Reply(chat_body(text)))
    assert completion.text == text
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("text", "fields", "answer", "reasoning"),
    [
        ("42", {}, "42", None),
        ("42", {"reasoning_content": "six by seven"}, "42", "six by seven"),
        ("42", {"reasoning": "six by seven", "reasoning_content": "six by seven"}, "42", "six by seven"),
        (None, {"reasoning": "still at it"}, "", "still at it"),
        ("<think>six by seven</think>\n\n42", {}, "42", "six by seven"),
        ("<think>six by", {}, "", "six by"),
        ("six by seven</think>42", {}, "42", "six by seven"),  # the opening tag stood in the prompt
        ("<think></think>42", {}, "42", None),
        ("So: <think>six</think> 42 <think>by", {"reasoning": "first"}, "So:  42", "first\nsix\nby"),
    ],
)
async def test_reasoning_is_kept_apart(text: str | None, fields: dict[str, str], answer: str, reasoning: str | None):
    completion, _ = await reply_of(Reply(chat_body(text, **fields)))
    assert (completion.text, completion.reasoning) == (answer, reasoning)


@given(st.text().filter(lambda text: "think>" not in text))
def test_text_without_tags_is_never_touched(text: str):
    assert split_reasoning(text) == (text, "")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
)
MESSAGE = st.fixed_dictionaries({"content": JSON}, optional={"reasoning": JSON})
CHOICE = st.fixed_dictionaries({"message": MESSAGE | JSON}, optional={"finish_reason": JSON})
BODY = st.fixed_dictionaries({"choices": st.lists(CHOICE) | JSON}, optional={"usage": JSON})


@given(st.binary() | (BODY | JSON).map(lambda value: json.dumps(value).encode()))
def test_a_body_is_a_completion_or_a_failure_that_says_why(content: bytes):
    try:
        completion = parse_completion(content, 0.1)
    except AttemptError:  # any other exception would fail the test
        return
    assert isinstance(completion.text, str)
    assert isinstance(completion.prompt_tokens, int)


# Keys


async def test_key_is_sent_and_shown_nowhere(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture):
    monkeypatch.setenv("SOME_KEY", "sk-secret\n")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    refusals = [Reply(b"Incorrect API key: sk-secret", 500), Reply(b"Incorrect API key: sk-secret", 401)]
    async with StubServer(refusals) as server:
        model = model_at(server, api_key_env="SOME_KEY")
        with pytest.raises(ModelError) as raised:
            await model.generate(ask())
        await model.close()
    assert server.requests[0].headers["authorization"] == "Bearer sk-secret"
    assert "Incorrect API key: ***" in str(raised.value)
    assert "Incorrect API key: ***" in caplog.text
    assert "secret" not in str(raised.value) + caplog.text + repr(model) + model.name


async def test_without_a_key_none_of_the_environment_is_sent(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin")
    _, server = await reply_of(Reply())
    assert server.requests[0].headers["authorization"] == "Bearer none"


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"api_key_env": "NO_SUCH_KEY"}, "NO_SUCH_KEY"),
        ({"base_url": "localhost:8000/v1"}, "localhost:8000/v1"),
        ({"base_url": "http://user:word@127.0.0.1/v1"}, "api_key_env"),
        ({"base_url": "http://127.0.0.1/v1?key=word"}, "api_key_env"),
        ({"max_concurrency": 0}, "max_concurrency"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"timeout": 0}, "timeout"),
        ({"extra": {"stream": True}}, "stream"),
    ],
)
def test_wrong_settings_are_named(options: dict[str, Any], named: str):
    with pytest.raises(ValueError, match=named):
        ServerModel(**{"model": "m", "base_url": "http://127.0.0.1:1/v1", **options})


# Concurrency, cancellation, event loops


async def test_no_more_calls_at_once_than_allowed():
    full, hold = asyncio.Event(), asyncio.Event()

    def script(_: Received) -> Reply:
        if server.active == 3:
            full.set()
        return Reply(hold=hold)

    async with StubServer(script) as server:
        model = model_at(server, max_concurrency=3)
        calls = asyncio.gather(*(model.generate(ask(f"s{i}")) for i in range(20)))
        await full.wait()
        hold.set()
        await calls
        await model.close()
    assert (server.peak, len(server.requests)) == (3, 20)


async def test_cancelled_call_leaves_its_place():
    started = asyncio.Event()

    def script(received: Received) -> Reply:
        started.set()
        return Reply(hold=asyncio.Event()) if len(server.requests) == 1 else Reply()

    async with StubServer(script) as server:
        model = model_at(server, max_concurrency=1)
        call = asyncio.create_task(model.generate(ask()))
        await started.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await model.generate(ask())).text == "ok"
        await server.gone.wait()
        await model.close()
    assert len(server.requests) == 2, "a cancelled call isn't tried again"


def test_one_model_in_several_event_loops(caplog: pytest.LogCaptureFixture):
    port = 0
    made: list[ServerModel] = []

    async def run(close: bool) -> str:
        nonlocal port
        async with StubServer([Reply()], port=port) as server:
            port = server.port
            if not made:
                made.append(model_at(server))
            (model,) = made
            completions = await asyncio.gather(*(model.generate(ask(f"s{i}")) for i in range(5)))
            if close:
                await model.close()
            return completions[-1].text

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert [asyncio.run(run(close)) for close in (False, False, True, False)] == ["ok"] * 4
        made.clear()
        gc.collect()
    assert [str(warning.message) for warning in caught if warning.category is ResourceWarning] == []
    assert "Unclosed" not in caplog.text


async def test_closed_model_opens_again():
    async with StubServer([Reply()]) as server:
        model = model_at(server)
        await model.close()
        for _ in range(2):
            assert (await model.generate(ask())).text == "ok"
            await model.close()


def test_import_is_light():
    code = (
        "import sys, skill_evolution.models.server; print({'openai', 'aiohttp', 'httpx2', 'torch'} & set(sys.modules))"
    )
    environment = {"PYTHONPATH": str(paths.PACKAGE.parent)}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert run.stdout.strip() == "set()"


# What the server tells of itself


def models(*entries: dict[str, Any]) -> Reply:
    return Reply(json.dumps({"object": "list", "data": [{"object": "model", **entry} for entry in entries]}).encode())


@pytest.mark.parametrize(
    ("given", "told", "expected"),
    [
        (None, 8192, 8192),
        (4000, 8192, 4000),
        (9000, 8192, 8192),
        (9000, None, 9000),
        (None, None, DEFAULT_CONTEXT_LENGTH),
    ],
)
async def test_context_length(given: int | None, told: int | None, expected: int, caplog: pytest.LogCaptureFixture):
    async with StubServer([Reply(b"", 503), models({"id": "x"}, {"id": "m", "max_model_len": told})]) as server:
        model = model_at(server, context_length=given)
        await model.connect()
        assert model.context_length == expected
        await model.close()
    assert server.requests[-1].path == "/v1/models"
    assert ("context length" in caplog.text) == (given is None and told is None)
    assert ("serves 8192 tokens, not 9000" in caplog.text) == ((given, told) == (9000, 8192))


async def test_model_that_is_not_served():
    async with StubServer([models({"id": "a"}, {"id": "b"})]) as server:
        model = model_at(server)
        with pytest.raises(ModelError, match=r"serves no model 'm'; it serves: a, b"):
            await model.connect()
        with pytest.raises(RuntimeError, match="connect"):
            _ = model.context_length
        await model.close()


async def test_list_of_models_that_is_none():
    async with StubServer([Reply(b'{"models": []}')]) as server:
        model = model_at(server)
        with pytest.raises(ModelError, match="no list of models"):
            await model.connect()
        await model.close()


def test_name_tells_what_changes_answers():
    here: dict[str, Any] = {"model": "m", "base_url": "http://127.0.0.1:1/v1"}
    assert ServerModel(**here).name == ServerModel(**{**here, "base_url": "http://elsewhere/v1"}).name == "m"
    assert ServerModel(**here, extra={"b": 1, "a": {"c": False}}).name == 'm {"a": {"c": false}, "b": 1}'
