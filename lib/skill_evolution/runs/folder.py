"""The folder of one run: resolved config, ledger, iterations, predictions, summary; written whole and renamed."""

import hashlib
import json
import logging
import os
import platform
import re
import sqlite3
import subprocess
from collections.abc import Iterable
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from pydantic_core import to_jsonable_python

from skill_evolution.base import paths
from skill_evolution.models.ledger import Ledger
from skill_evolution.models.prompting import prompt_hashes
from skill_evolution.runs.config import SCHEMA_VERSION, Config
from skill_evolution.teams.single import BASELINES

logger = logging.getLogger(__name__)
PACKAGES = ("skill-evolution", "pydantic", "jinja2", "google-re2", "nltk", "numpy", "scipy", "pandas", "openai")


class RunError(RuntimeError):
    """A run folder that can't be used; names the file and what is wrong."""


def write_text(path: Path, text: str) -> None:
    """Write a file whole: to a temporary sibling that is renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def write_json(path: Path, value: Any) -> None:
    """Write one JSON document; dataclasses and paths are converted."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=True, default=to_jsonable_python) + "\n")


def write_jsonl(path: Path, rows: Iterable[Any]) -> None:
    """Write one JSON document a line."""
    write_text(path, "".join(json.dumps(row, ensure_ascii=True, default=to_jsonable_python) + "\n" for row in rows))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise RunError(f"{path}: there is no such file; has the run finished?") from error


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise RunError(f"{where}: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise RunError(f"{where}: expected a JSON object, found {type(value).__name__}")
    return value


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """Read one JSON object a line; RunError names the line that isn't one, or the file if there is none."""
    return [_object(line, f"{path}, line {number}") for number, line in enumerate(_read(path).splitlines(), start=1)]


class Run:
    """An open run folder. It is locked while open: a second process waits, then finds the work done.

    Args:
        config: the resolved configuration.
        root: folder that holds the run folders; default `results/<profile>/runs`.
        own: a description of what takes the place of the config's benchmark, team or models; part of its identity.
    """

    def __init__(self, config: Config, *, root: Path | None = None, own: str = "") -> None:
        self.config = config
        self.folder = run_folder(config, root=root, own=own)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(self.folder / ".lock")

    def __enter__(self) -> "Run":
        try:
            self._lock.acquire(blocking=False)
        except Timeout:
            logger.info("%s: another process works on this run; waiting for it", self.folder)
            try:
                self._lock.acquire()
            except RuntimeError as error:  # filelock's name for a lock that this very thread holds
                raise RunError(f"{self.folder}: this run is open already, here; waiting would never end") from error
        try:
            self._check_config()
            self.ledger = Ledger(self.folder / "calls.sqlite")
        except BaseException as error:
            self._lock.release()
            if isinstance(error, sqlite3.DatabaseError):
                raise RunError(f"{self.folder / 'calls.sqlite'}: no usable ledger: {error}; move it away") from error
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.ledger.close()
        self._lock.release()

    def _check_config(self) -> None:
        path = self.folder / "config.json"
        if path.exists():
            schema = _object(_read(path), str(path)).get("schema_version")
            if schema != SCHEMA_VERSION:
                raise RunError(f"{path}: schema version {schema}, this is {SCHEMA_VERSION}: move the folder away")
        record = {
            "schema_version": SCHEMA_VERSION,
            "config": self.config.model_dump(mode="json"),
            "git_revision": git_revision(),
            "python": platform.python_version(),
            "packages": {name: _version(name) for name in PACKAGES},
            "prompts": run_prompts(self.config),
        }
        write_json(path, record)

    def iteration(self, number: int) -> Path:
        """The folder of an iteration, counted from 1."""
        return self.folder / "iterations" / str(number)


def finished_summary(folder: Path) -> dict[str, Any] | None:
    """The summary of a finished run in which nothing failed, else None: failures are tried again."""
    if not (folder / "summary.json").exists():
        return None
    summary = read_summary(folder)
    return None if summary["failures"]["total"] else summary


def read_summary(folder: Path) -> dict[str, Any]:
    """The summary of a run that came to its end; RunError if there is none."""
    return _object(_read(folder / "summary.json"), str(folder / "summary.json"))


def run_columns(config: Config) -> dict[str, Any]:
    """The columns by which frames of several runs tell them apart."""
    return {
        "method": config.method,
        "benchmark": config.benchmark,
        "trained_on": config.trained_on,
        "seed": config.seed,
    }


def run_folder(config: Config, *, root: Path | None = None, own: str = "") -> Path:
    """Where the run of a config lies: the same config, data and prompts always have the same folder."""
    return (root or paths.RESULTS / config.profile / "runs") / run_name(config, own=own)


def run_name(config: Config, *, own: str = "") -> str:
    """The name of a run's folder; its last part is a hash of everything that decides the results.

    `own` describes what takes the place of the config's benchmark, team or models.
    """
    inputs = [
        config.deciding(),
        run_prompts(config),
        *(_content(p) for p in (config.data_path, config.start_libraries)),
    ]
    bundled = paths.DEMO_DATA / f"{config.benchmark}.json"
    if config.data_path is None and bundled.exists():
        inputs.append(_content(bundled))
    if own:
        inputs.append(own)
    digest = hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:8]
    name = f"{config.benchmark}-{config.trained_on}-{config.method}-seed{config.seed}-{digest}"
    return re.sub(r"[^\w.-]+", "_", name)  # one's own benchmark or category may hold a slash


def run_prompts(config: Config) -> dict[str, str]:
    """Hashes of the prompt files that a run can use, so that changing another one leaves it what it is."""
    if config.method in BASELINES:
        return prompt_hashes("teams/single/*")
    critic = {"empty": [], "maskills": ["grse/critic/trajectory*", "grse/optimizer/*"]}.get(
        config.method, ["grse/critic/group*", "grse/optimizer/*"]
    )
    return prompt_hashes("teams/*.j2", f"teams/{config.benchmark}/*", *critic)


@lru_cache(maxsize=64)
def _content(path: Path | None) -> str | None:
    """A hash of a file, or of all files below a folder; RunError if there is nothing at the path."""
    if path is None:
        return None
    if not path.exists():
        raise RunError(f"{path}: no such file or folder")
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    parts = [f"{p.relative_to(path)} {hashlib.sha256(p.read_bytes()).hexdigest()}" for p in files]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def git_revision() -> str | None:
    """The commit that this code is, with "-dirty" if it was changed since; None outside a git checkout."""
    command = ["git", "-C", str(paths.ROOT), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        logger.info("no git revision: %s is not a git checkout", paths.ROOT)
        return None


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
