"""Profiles: YAML files of settings, which may extend one another; those of SAGE lie in a folder of their own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from skill_evolution.base import paths
from skill_evolution.base.settings import ConfigError


def profile_path(name: str, *, kind: str = "") -> Path:
    """The YAML file of a profile: one of ours by name, or a path.

    Args:
        name: A profile's name, or the path of a .yaml file.
        kind: The folder of `profiles/` that names refer to: "" for teams, "sage", or "accelerate" for launch files.

    Raises:
        ConfigError: There is none; names those there are.
    """
    folder = paths.PROFILES / kind
    path = Path(name) if name.endswith((".yaml", ".yml")) else folder / f"{name}.yaml"
    if not path.is_file():
        there = ", ".join(sorted(p.stem for p in folder.glob("*.yaml")))
        what = {"": "profile", "sage": "SAGE profile", "accelerate": "launch file"}[kind]
        raise ConfigError(f"no {what} {name!r}: there are {there}; or give the path of a .yaml file")
    return path


def read_profile(path: Path, *, kind: str = "", above: tuple[Path, ...] = ()) -> dict[str, Any]:
    """A profile's values over those of the profile that it extends, which is one of the same kind.

    Raises:
        ConfigError: It isn't YAML in UTF-8, holds no mapping, or extends itself or a profile that isn't there.
    """
    if path in above:
        raise ConfigError(f"{path}: extends itself, by way of {', '.join(p.stem for p in above)}")
    try:
        values = mapping(yaml.safe_load(path.read_text(encoding="utf-8")), str(path))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid YAML in UTF-8: {error}") from error
    base = values.pop("extends", None)
    if base is None:
        return values
    try:
        base_path = profile_path(str(base), kind=kind)
    except ConfigError as error:
        raise ConfigError(f"{path}: extends: {error}") from error
    return merged(read_profile(base_path, kind=kind, above=(*above, path)), values)


def mapping(values: Any, where: str) -> dict[str, Any]:
    """Keys and values as a new dictionary, empty for None; ConfigError for anything else."""
    if values is not None and not isinstance(values, Mapping):
        raise ConfigError(f"{where}: expected keys and values, found {type(values).__name__} {values!r}")
    return dict(values or {})


def merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Layers over one another; nested mappings (sampling, models) are merged, not replaced."""
    result: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            if isinstance(value, Mapping) and isinstance(result.get(key), Mapping):
                value = merged(result[key], value)
            result[key] = value
    return result
