"""Fetches the two real benchmark files, checked against their SHA-256."""

import hashlib
import http.client
import logging
import shutil
import tempfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path

logger = logging.getLogger(__name__)

_TIMEOUT = 60.0  # seconds without a byte


@dataclass(frozen=True)
class Source:
    """Where a file is published, under which licence, and what it must hash to."""

    url: str
    filename: str
    sha256: str
    licence: str


SOURCES = {
    "hotpotqa": Source(
        url="http://curtis.ml.cmu.edu/datasets/hotpot/hotpot_dev_distractor_v1.json",
        filename="hotpot_dev_distractor_v1.json",
        # As it stands in several public projects, e.g. facebookresearch/ParlAI; 46,320,117 bytes.
        sha256="4e9ecb5c8d3b719f624d66b60f8d56bf227f03914f5f0753d6fa1b359d7104ea",
        licence="CC BY-SA 4.0 (Yang et al. 2018): name the source and share alike",
    ),
    "locomo": Source(
        url="https://raw.githubusercontent.com/snap-research/locomo/"
        "3eb6f2c585f5e1699204e3c3bdf7adc5c28cb376/data/locomo10.json",
        filename="locomo10.json",
        sha256="79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4",
        licence="CC BY-NC 4.0 (Maharana et al. 2024): not for commercial use",
    ),
}


class DownloadError(RuntimeError):
    """A file that could not be had, or isn't the published one; the text says what to do by hand."""


def fetch(name: str, folder: Path | str) -> Path:
    """The benchmark's file in `folder`, downloaded unless it is there already.

    A download goes to a temporary file in the folder and is renamed once its checksum is right; a broken one leaves
    nothing behind and starts anew next time.

    Returns:
        The path to give to `load_benchmark`.

    Raises:
        KeyError: unknown name.
        DownloadError: no network, or the file there or the one received has another checksum.
    """
    source, path = SOURCES[name], Path(folder) / SOURCES[name].filename
    logger.warning("%s is under %s", source.filename, source.licence)
    if path.exists():
        if (found := _sha256(path)) != source.sha256:
            raise DownloadError(
                f"{path} is not the published file: its SHA-256 is {found}, not {source.sha256}. Move it away to have "
                f"it fetched again; to use a file of your own, give its path as the benchmark's path."
            )
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".download-") as temporary:
        partial = Path(temporary) / source.filename
        try:
            with urllib.request.urlopen(source.url, timeout=_TIMEOUT) as reply, partial.open("wb") as file:
                shutil.copyfileobj(reply, file)
            if (found := _sha256(partial)) != source.sha256:
                size = partial.stat().st_size
                raise OSError(f"{size} bytes came, with the SHA-256 {found}, not {source.sha256}")
        except (OSError, http.client.HTTPException) as error:
            raise DownloadError(
                f"{source.url} can't be had ({error}). By hand: fetch it on a machine with a network, put the file at "
                f"{path} and run this again, or give its path as the path of the benchmark {name!r}. Without a path "
                "the bundled synthetic questions are used."
            ) from error
        partial.replace(path)
    return path


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
