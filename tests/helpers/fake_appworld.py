"""Stands in for AppWorld's interpreter running sage/appworld/server.py: a server that fails as it is told to.

    fake_appworld.py MODE PIDS_FILE -P appworld_server.py READY_FILE MEMORY_BYTES

MODE says how it starts: "good"; "broken" ends with a message; "silent" never gets a port; "mute" never answers;
"garbled" says nonsense of itself; "open" can't be isolated; "refusing" answers /initialize with 500. What is executed
says how it answers (see `execute`). PIDS_FILE gets the id of each process.
"""

import json
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Handler(BaseHTTPRequestHandler):
    mode = ""
    session: dict[str, Any] = {}

    def do_GET(self) -> None:
        if self.mode == "mute":
            threading.Event().wait()
        self.send({"message": "here"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path, session = self.path, Handler.session
        if path == "/initialize":
            session.clear()
            session.update(body, completed=False, calls=0)
            self.send({"output": {}}, status=500 if self.mode == "refusing" else 200)
        elif path == "/execute":
            self.execute(body["code"])
        elif path == "/task_completed":
            self.send({"output": session["completed"]})
        elif path == "/evaluate":
            passes = [{"requirement": str(n)} for n in range(session.get("passes", 1))]
            self.send({"output": {"success": True, "num_tests": session.get("tests", 2), "passes": passes}})
        else:
            self.send({"output": None})

    def execute(self, code: str) -> None:
        session = Handler.session
        word, _, rest = code.partition(" ")
        output: Any = "Execution successful."
        match word:
            case "hang":
                threading.Event().wait()
            case "die":
                print("Segmentation fault", flush=True)
                os._exit(1)
            case "fail":
                return self.send(None, status=500, raw=b"Traceback ...\nAssertionError: broken inside")
            case "nonsense":
                return self.send(None, raw=b"<html>")
            case "wrong":
                output = ["not", "a", "text"]
            case "flood":
                output = "x" * int(rest)
            case "say":
                output = rest
            case "call":
                self.log_calls(int(rest))
            case "complete":
                session["completed"] = True
            case "set":
                name, value = rest.split("=")
                session[name] = int(value)
            case "environment":
                output = json.dumps(dict(os.environ))
        self.send({"output": output})

    def log_calls(self, number: int) -> None:
        """More API calls, in AppWorld's log."""
        session = Handler.session
        session["calls"] += number
        folder = Path(f"experiments/outputs/{session['experiment_name']}/tasks/{session['task_id']}/logs")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "api_calls.jsonl").write_text("{}\n" * session["calls"], encoding="utf-8")

    def send(self, reply: object, *, status: int = 200, raw: bytes | None = None) -> None:
        content = json.dumps(reply).encode() if raw is None else raw
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


def main(mode: str, pids: str, ready: Path) -> None:
    with open(pids, "a", encoding="utf-8") as file:
        file.write(f"{os.getpid()}\n")
    if mode == "broken":
        sys.exit("ImportError: no pydantic here")
    if mode == "silent":
        signal.pause()
    Handler.mode = mode
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state = {"port": server.server_port, "memory_limited": True, "offline": mode != "open"}
    ready.with_suffix(".new").write_text("{" if mode == "garbled" else json.dumps(state), encoding="utf-8")
    ready.with_suffix(".new").replace(ready)
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[-2]))
