"""What all settings have in common: strict pydantic models whose errors name the key or value at fault."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator


class ConfigError(ValueError):
    """A configuration that can't be used; names the key or value at fault and what would be right."""


def check_keys(values: Iterable[str], known: Iterable[str], *, where: str) -> None:
    """ConfigError for the first key that is not known, naming the nearest one that is."""
    names = list(known)
    for key in values:
        if key not in names:
            near = difflib.get_close_matches(str(key), names, n=1, cutoff=0.4)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(sorted(names))}"
            raise ConfigError(f"{where}: unknown key {key!r}{hint}")


S = TypeVar("S", bound="Strict")


class Strict(BaseModel):
    """Base of settings: frozen, and unknown keys raise ConfigError."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False, hide_input_in_errors=True
    )

    @model_validator(mode="before")
    @classmethod
    def _known_and_whole(cls, values: Any) -> Any:
        """Unknown keys raise; a part of a nested field changes that part of its default and leaves the rest."""
        if not isinstance(values, Mapping):
            return values
        check_keys(values, cls.model_fields, where=cls.__name__)
        defaults = {name: field.default for name, field in cls.model_fields.items()}
        return {
            name: {**default.model_dump(), **value}
            if isinstance(value, Mapping) and isinstance(default := defaults[name], BaseModel)
            else value
            for name, value in values.items()
        }


def validated(model: type[S], values: Mapping[str, Any], *, profile: str) -> S:
    """A profile's values as settings; ConfigError says what is wrong with them, a line a fault."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        lines = [f"config (profile {profile}):"]
        for problem in error.errors():
            place = ".".join(str(part) for part in problem["loc"]) or "config"
            got = "" if problem["type"] == "value_error" else f" (got {problem.get('input')!r})"
            lines.append(f"  {place}: {problem['msg'].removeprefix('Value error, ')}{got}")
        raise ConfigError("\n".join(lines)) from error
