"""Prompts are files under `prompts/`: this renders them and hashes them for a run's record."""

import hashlib
from functools import cache
from typing import Any

import jinja2

from skill_evolution import paths

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


def prompt_hashes() -> dict[str, str]:
    """sha256 of every prompt file of a run, by its path below `prompts/`.

    Prompts in `analysis/` read what finished runs left, those in `sage/` belong to the other paper: they decide no run
    of a team, so a new one must not start runs afresh.
    """
    files = sorted(
        path
        for path in paths.PROMPTS.rglob("*")
        if path.suffix in (".md", ".j2") and path.relative_to(paths.PROMPTS).parts[0] not in ("analysis", "sage")
    )
    return {f.relative_to(paths.PROMPTS).as_posix(): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}
