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
        yield from _parquet(path)
        return
    with path.open(encoding="utf-8-sig") as file:
        start = file.read(4096).lstrip()[:1]
    yield from _json_list(path) if start == "[" else _json_lines(path)


def _json_list(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        records = json.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise DataError(f"{path.name} starts like a JSON list but isn't one: {error}") from error
    for number, record in enumerate(records, 1):
        yield f"{path.name}, record {number}", record


def _json_lines(path: Path) -> Iterator[tuple[str, Any]]:
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            where = f"{path.name}, line {number}"
            try:
                record = json.loads(line)
            except ValueError as error:
                expected = "expected a JSON list, or JSON lines with one object a line"
                raise DataError(f"{where}: not JSON ({error}); {expected}") from error
            yield where, record


def _parquet(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        from pyarrow import parquet  # type: ignore[import-not-found]
    except ImportError as error:
        raise ImportError(f"reading {path.name} needs the package pyarrow; or give the file as JSON lines") from error
    number = 0
    for batch in parquet.ParquetFile(path).iter_batches():
        for record in batch.to_pylist():
            number += 1
            yield f"{path.name}, record {number}", record


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
