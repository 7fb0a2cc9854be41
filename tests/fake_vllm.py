"""Stands in for the interpreter of vLLM's environment: converts a "model", serves a "model", or fails as it is told to.

Called as that interpreter is: `-c CODE ...` finds or converts the embedded model, `-m vllm... --served-model-name NAME
--port PORT ...` serves. The served model's name says how: "broken" ends with a message, "silent" never listens,
"stubborn" ignores SIGTERM; any other is healthy. FAKE_VLLM_PIDS names a file that gets the ids of all its processes.
"""

import json
import os
import signal
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class _Handler(BaseHTTPRequestHandler):
    model = ""

    def _send(self, body: object) -> None:
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self) -> None:
        """The list of models."""
        self._send({"object": "list", "data": [{"id": self.model, "object": "model", "max_model_len": 8192}]})

    def do_POST(self) -> None:
        """A completion."""
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": "<answer>blue</answer>"}
        usage = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        self._send({"id": "c", "object": "chat.completion", "model": self.model, "choices": [choice], "usage": usage})

    def log_message(self, format: str, *args: object) -> None:
        """Nothing to log."""


def convert(arguments: list[str]) -> None:
    """What the snippet of models/qwen.py and models/smollm2.py does."""
    gguf, target = map(Path, arguments)
    target.mkdir()
    (target / "model.safetensors").write_bytes(b"weights of " + gguf.read_bytes())


def serve(model: str, port: int) -> None:
    """A server with a child, as vLLM has its engine."""
    print(f"fake vLLM with {model}", flush=True)
    if model == "broken":
        print("RuntimeError: no memory left for the cache", flush=True)
        sys.exit(3)
    if model == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    with open(os.environ["FAKE_VLLM_PIDS"], "a", encoding="utf-8") as file:
        file.write(f"{os.getpid()} {child.pid}\n")
    if model == "silent":
        signal.pause()
    _Handler.model = model
    ThreadingHTTPServer(("127.0.0.1", port), _Handler).serve_forever()


if __name__ == "__main__":
    if sys.argv[1] == "-c":
        convert(sys.argv[3:])
    else:
        options = dict(zip(sys.argv, sys.argv[1:], strict=False))
        serve(options["--served-model-name"], int(options["--port"]))
