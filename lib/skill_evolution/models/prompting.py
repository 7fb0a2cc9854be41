"""Prompts are files under `prompts/`: this renders them and hashes them for a run's record."""

import hashlib
from functools import cache
from typing import Any

import jinja2

from skill_evolution.base import paths

_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.FileSystemLoader(paths.PROMPTS, encoding="utf-8"),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    autoescape=False,
)


@cache
def _template(name: str) -> jinja2.Template:
    return _ENVIRONMENT.get_template(name)


def render(name: str, **values: Any) -> str:
    """The prompt file `name` with its values filled in; a value that is missing raises jinja2.UndefinedError."""
    return _template(name).render(**values).strip()


def prompt_hashes(*patterns: str) -> dict[str, str]:
    """sha256 of the prompt files that glob patterns match, by their path below `prompts/`."""
    files = sorted({path for pattern in patterns for path in paths.PROMPTS.glob(pattern)})
    return {f.relative_to(paths.PROMPTS).as_posix(): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}
