"""Reads data files of question records: a JSON list, JSON lines or parquet, each record with its place in the file."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from skill_evolution.benchmarks.base import DataError

Model = TypeVar("Model", bound=BaseModel)
_SHOWN_ERRORS = 3


def read_records(path: Path) -> Iterator[tuple[str, Any]]:
    """Yields (place, record) in file order; the place reads "name.json, record 3" and counts from 1.

    The content decides between a JSON list and JSON lines; parquet goes by its suffix and needs pyarrow.

    Raises:
        FileNotFoundError: there is no such file.
        DataError: the file is neither of the three.
        ImportError: a parquet file without pyarrow.
    """
    if not path.is_file():
        raise FileNotFoundError(f"no data file at {path}")
    if path.suffix == ".parquet":
        from pyarrow import parquet

        yield from _numbered(path, parquet.read_table(path).to_pylist())
        return
    with path.open(encoding="utf-8-sig") as file:
        start = file.read(4096).lstrip()[:1]
    if start != "[":
        yield from _json_lines(path)
        return
    try:
        records = json.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise DataError(f"{path.name} starts like a JSON list but isn't one: {error}") from error
    yield from _numbered(path, records)


def _numbered(path: Path, records: list[Any]) -> Iterator[tuple[str, Any]]:
    return ((f"{path.name}, record {number}", record) for number, record in enumerate(records, 1))


def _json_lines(path: Path) -> Iterator[tuple[str, Any]]:
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            where = f"{path.name}, line {number}"
            try:
                if line.strip():
                    yield where, json.loads(line)
            except ValueError as error:
                expected = "expected a JSON list, or JSON lines with one object a line"
                raise DataError(f"{where}: not JSON ({error}); {expected}") from error


def validate(model: type[Model], record: Any, where: str) -> Model:
    """The record as a `model`; DataError naming the place and each key at fault."""
    try:
        return model.model_validate(record)
    except ValidationError as error:
        faults = [
            f"{'.'.join(map(str, fault['loc'])) or 'record'}: {fault['msg']}"
            for fault in error.errors(include_url=False, include_input=False)
        ]
        more = f" and {len(faults) - _SHOWN_ERRORS} more" if len(faults) > _SHOWN_ERRORS else ""
        raise DataError(f"{where}: {'; '.join(faults[:_SHOWN_ERRORS])}{more}") from error


def one_line(text: str) -> str:
    """The text with every run of white space, line breaks included, as one space."""
    return " ".join(text.split())
