"""Fetching from a server on this machine: checksums, half-sent files, no network."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from skill_evolution.benchmarks import download

CONTENT = b'[{"made": "up"}]' * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/missing.json":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT[: len(CONTENT) // 2] if self.path == "/half.json" else CONTENT)

    def log_message(self, format, *args):
        pass


@pytest.fixture(scope="module")
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


@pytest.fixture
def publish(server, monkeypatch):
    def at(path, sha256=SHA256):
        source = download.Source(f"{server}/{path}", "locomo10.json", sha256, "CC BY-NC 4.0: not for commercial use")
        monkeypatch.setitem(download.SOURCES, "locomo", source)

    return at


def test_fetches_checks_and_keeps(publish, tmp_path, caplog):
    publish("whole.json")
    path = download.fetch("locomo", tmp_path / "new" / "folder")
    assert path == tmp_path / "new" / "folder" / "locomo10.json"
    assert path.read_bytes() == CONTENT
    assert "not for commercial use" in caplog.text
    assert [file.name for file in path.parent.iterdir()] == ["locomo10.json"]

    publish("missing.json")  # a file that is there and right is not fetched again
    assert download.fetch("locomo", path.parent) == path


@pytest.mark.parametrize(
    ("page", "sha256", "fault"),
    [
        ("missing.json", SHA256, "404"),
        ("half.json", SHA256, "8000 bytes"),
        ("whole.json", "0" * 64, "not 0000"),
    ],
)
def test_failure_leaves_nothing_and_says_what_to_do(publish, tmp_path, page, sha256, fault):
    publish(page, sha256)
    with pytest.raises(download.DownloadError, match=fault) as caught:
        download.fetch("locomo", tmp_path)
    assert f"put the file at {tmp_path / 'locomo10.json'}" in str(caught.value)
    assert download.SOURCES["locomo"].url in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_no_server_says_what_to_do(tmp_path, monkeypatch):
    source = download.Source("http://127.0.0.1:1/x.json", "x.json", "0" * 64, "made up")
    monkeypatch.setitem(download.SOURCES, "hotpotqa", source)
    with pytest.raises(download.DownloadError, match=r"http://127\.0\.0\.1:1/x\.json can't be had .*By hand: fetch it"):
        download.fetch("hotpotqa", tmp_path)


def test_another_file_in_place_is_not_overwritten(publish, tmp_path):
    publish("whole.json")
    (tmp_path / "locomo10.json").write_text("mine")
    with pytest.raises(download.DownloadError, match="is not the published file"):
        download.fetch("locomo", tmp_path)
    assert (tmp_path / "locomo10.json").read_text() == "mine"
