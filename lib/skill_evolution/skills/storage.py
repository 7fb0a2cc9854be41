"""Libraries as folders: `<folder>/<skill-name>/SKILL.md` in the Agent Skills format, `history.jsonl` beside it.

The front matter of a SKILL.md holds name and description, and under `metadata` our records as strings: id,
provenance, utility, invocations and order (the skill's place in the library). The history has one EditRecord a line.
"""

import json
import logging
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

import frontmatter
import yaml
from frontmatter.default_handlers import YAMLHandler
from pydantic import TypeAdapter, ValidationError

from skill_evolution.skills.library import EditRecord, Skill, SkillLibrary

SKILL_FILE = "SKILL.md"
HISTORY_FILE = "history.jsonl"
_RECORD = TypeAdapter(EditRecord)
_FIELDS = {"name", "description", "metadata"}
_RECORDS = {"id", "provenance", "utility", "invocations", "order"}
_N = TypeVar("_N", int, float)

logger = logging.getLogger(__name__)


class LibraryError(ValueError):
    """A library folder that can't be read or may not be replaced; the text names the file and what is wrong."""


# Writing


def save_library(library: SkillLibrary, folder: Path | str) -> None:
    """Write a library as a folder; an older library there is replaced as a whole.

    Everything is written to the hidden sibling `.<folder>.new`, which is then renamed. A folder can't be renamed
    over another one, so the older library is first renamed to `.<folder>.old`; if the process dies just then,
    `load_library` reads it from there. One writer a folder is assumed. Entries of the older folder whose names
    start with "." are carried over.

    Raises:
        LibraryError: The folder holds something that is no part of a library and would be lost.
    """
    folder = Path(folder).resolve()
    new, old = _sibling(folder, "new"), _sibling(folder, "old")
    standing = _standing(folder)
    hidden = _hidden_entries(standing) if standing.exists() else []
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    for order, skill in enumerate(library):
        _write_skill(skill, new / skill.name, order)
    for entry in hidden:
        (shutil.copytree if entry.is_dir() else shutil.copy2)(entry, new / entry.name)
    if folder.exists():
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
    new.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def _sibling(folder: Path, suffix: str) -> Path:
    return folder.with_name(f".{folder.name}.{suffix}")


def _standing(folder: Path) -> Path:
    """Where the library of `folder` is: elsewhere only if a save was cut off between its two renames."""
    old = _sibling(folder, "old")
    return old if old.is_dir() and not folder.exists() else folder


def _hidden_entries(folder: Path) -> list[Path]:
    """The hidden entries of a folder that is to be replaced, after a check that the rest is a library's."""
    if not folder.is_dir():
        raise LibraryError(f"{folder}: is not a folder, so no library can be saved there")
    entries = list(folder.iterdir())
    for entry in entries:
        if entry.name.startswith("."):
            continue
        files = {file.name for file in entry.iterdir()} if entry.is_dir() else set()
        if SKILL_FILE not in files or files - {SKILL_FILE, HISTORY_FILE}:
            raise LibraryError(
                f"{entry}: would be lost by saving a library over {folder}; only folders with nothing but"
                f" {SKILL_FILE} and {HISTORY_FILE} are replaced, so move it away or save elsewhere"
            )
    return [entry for entry in entries if entry.name.startswith(".")]


def _write_skill(skill: Skill, folder: Path, order: int) -> None:
    folder.mkdir()
    (folder / SKILL_FILE).write_bytes(_render(skill, order).encode())
    if skill.history:
        lines = [json.dumps(asdict(record), ensure_ascii=False) + "\n" for record in skill.history]
        (folder / HISTORY_FILE).write_bytes("".join(lines).encode())


def _render(skill: Skill, order: int) -> str:
    """The text of a SKILL.md. Body and front matter are each followed by one line break."""
    records = {
        "id": skill.id,
        "provenance": skill.provenance,
        "utility": repr(float(skill.utility)),
        "invocations": str(skill.invocations),
        "order": str(order),
    }
    fields: dict[str, object] = {"name": skill.name, "description": skill.description, "metadata": records}
    layout: dict[str, Any] = {"sort_keys": False, "width": 2**31 - 1}
    front = YAMLHandler().export(fields, **layout)
    if "---" in front:
        # Many readers, the reference validator among them, end the front matter at the first "---" anywhere.
        front = YAMLHandler().export(fields, **layout, default_style='"').replace("---", r"--\x2d")
    return f"---\n{front}\n---\n\n{skill.body}\n"


# Reading


def load_library(folder: Path | str, agent: str) -> SkillLibrary:
    """Read an agent's library, in the order it was saved in; skills without an order come last, by name.

    A SKILL.md that a person wrote needs name, description and a body only: its id is then its name and its
    provenance "human". What a Skill has no place for (other front matter, other files) is named in a warning.
    Entries whose names start with "." are skipped; an empty folder is an empty library.

    Raises:
        LibraryError: The folder or one of its skills can't be read; names the file and what is wrong with it.
    """
    folder = _standing(Path(folder).resolve())
    if not folder.is_dir():
        raise LibraryError(f"{folder}: is not a folder; a library is a folder of <skill-name>/{SKILL_FILE}")
    found = [_read_skill(entry) for entry in sorted(folder.iterdir()) if not entry.name.startswith(".")]
    found.sort(key=lambda item: (item[0], item[1].name))
    try:
        return SkillLibrary(agent, tuple(skill for _, skill in found))
    except ValueError as error:
        raise LibraryError(f"{folder}: {error}") from error


def _read_skill(folder: Path) -> tuple[float, Skill]:
    """One skill and its place in the library."""
    path = folder / SKILL_FILE
    if not path.is_file():
        raise LibraryError(f"{path}: there is no such file; each entry of a library is <skill-name>/{SKILL_FILE}")
    try:
        fields, body = _parse(path.read_bytes().decode("utf-8-sig"))
        order, skill = _build(fields, body, folder.name)
    except yaml.YAMLError as error:
        raise LibraryError(f"{path}: the front matter is not valid YAML: {error}") from error
    except UnicodeDecodeError as error:
        raise LibraryError(f"{path}: is not UTF-8: {error}") from error
    except ValueError as error:
        raise LibraryError(f"{path}: {error}") from error
    _warn_of_losses(folder, fields)
    return order, replace(skill, history=_read_history(folder / HISTORY_FILE))


def _parse(text: str) -> tuple[Mapping[str, Any], str]:
    """Front matter, all of its scalars as strings as the format has them, and the body with its indentation."""
    handler = YAMLHandler()
    if frontmatter.detect_format(text, [handler]) is None:
        raise ValueError('must start with front matter, a line "---"')
    try:
        front, body = handler.split(text)
    except ValueError:
        raise ValueError('the front matter has no closing line "---"') from None
    _check_keys(yaml.compose(front, Loader=yaml.BaseLoader))
    return handler.load(front, Loader=yaml.BaseLoader), body


def _check_keys(node: yaml.Node | None) -> None:
    """YAML readers keep the last of two equal keys; a doubled one is a slip, of a merge for instance."""
    if not isinstance(node, yaml.MappingNode):
        raise ValueError('the front matter must hold "key: value" lines')
    keys = [key.value for key, _ in node.value]
    if doubled := {key for key in map(str, keys) if keys.count(key) > 1}:
        raise ValueError(f"the front matter holds {', '.join(sorted(doubled))} more than once")


def _build(fields: Mapping[str, Any], body: str, folder_name: str) -> tuple[float, Skill]:
    for key in ("name", "description"):
        if not isinstance(fields.get(key), str) or not fields[key].strip():
            raise ValueError(f"the front matter needs a text under {key!r}")
    name, records = fields["name"], fields.get("metadata") or {}
    if name != folder_name:
        raise ValueError(f"the name {name!r} differs from the folder's name {folder_name!r}; they must be equal")
    if not isinstance(records, dict) or not all(isinstance(value, str) for value in records.values()):
        raise ValueError('metadata must hold "key: value" lines with plain values')
    skill = Skill(
        name=name,
        description=fields["description"],
        body=body,
        id=records.get("id", name),
        provenance=records.get("provenance", "human"),
        utility=_number(records, "utility", float, 0.0),
        invocations=_number(records, "invocations", int, 0),
    )
    return _number(records, "order", int, sys.maxsize), skill


def _number(records: Mapping[str, Any], key: str, kind: Callable[[Any], _N], default: _N) -> _N:
    try:
        return kind(records[key]) if key in records else default
    except ValueError:
        raise ValueError(
            f"metadata.{key} is {records[key]!r}; it must be a number ({type(default).__name__})"
        ) from None


def _warn_of_losses(folder: Path, fields: Mapping[str, Any]) -> None:
    """Say which parts of a skill's folder a Skill has no place for."""
    lost = [str(key) for key in fields if key not in _FIELDS]
    lost += [f"metadata.{key}" for key in fields.get("metadata") or {} if key not in _RECORDS]
    lost += sorted(file.name for file in folder.iterdir() if file.name not in {SKILL_FILE, HISTORY_FILE})
    if lost:
        logger.warning("%s: not used, and not kept when the library is saved: %s", folder, ", ".join(lost))


def _read_history(path: Path) -> tuple[EditRecord, ...]:
    if not path.exists():
        return ()
    records = []
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            records.append(_RECORD.validate_json(line, strict=True))
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            where = ".".join(map(str, fault["loc"])) or "the line"
            raise LibraryError(f"{path}, line {number}: {where}: {fault['msg']}") from error
    return tuple(records)
