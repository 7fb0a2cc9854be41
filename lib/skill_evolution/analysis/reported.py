"""The papers' own figures, from the tidy CSV files in data/reported (FACTS A and B); each row names its source."""

import csv
from collections import defaultdict
from pathlib import Path
from typing import Annotated, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from skill_evolution.analysis.frames import wide
from skill_evolution.analysis.names import named
from skill_evolution.base import paths

Text = Annotated[str, Field(min_length=1)]


class ReportedRow(BaseModel):
    """One figure. `value` is in `unit`; F1, BLEU and shares stand in percent, differences of them in points.

    `difference` is this method minus what `note` names, `relative` is that in percent of the other. `range_low` and
    `range_high` are the ends of a stated range.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    benchmark: Text
    model: Text
    method: Text
    category: Text
    metric: Text
    value: FiniteFloat
    unit: Literal["percent", "points", "share", "ratio", "count", "steps", "tokens", "utility", "iteration"]
    kind: Literal["absolute", "difference", "relative", "range_low", "range_high"]
    source: Text
    note: str


def load_reported(name: str, *, folder: Path = paths.REPORTED) -> pd.DataFrame:
    """The figures of `<name>.csv`, one row each, with the columns of `ReportedRow`.

    A figure stands twice only where the paper disagrees with itself: from two sources, each with a note.

    Raises:
        ValueError: the file is missing, or a row is invalid or repeated; names file, line and column.
    """
    path = folder / f"{name}.csv"
    if not path.is_file():
        raise ValueError(f"{path}: no such file; known are {sorted(p.stem for p in folder.glob('*.csv'))}")
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, restkey="columns beyond the header")
        rows = [_row(path, reader.line_num, {k: v for k, v in fields.items() if v is not None}) for fields in reader]
    _check_repeats(path, rows)
    return pd.DataFrame([row.model_dump() for row in rows], columns=list(ReportedRow.model_fields))


def _row(path: Path, line: int, fields: dict[str, object]) -> ReportedRow:
    try:
        return ReportedRow.model_validate(fields)
    except ValidationError as error:
        faults = "; ".join(f"{fault['loc'][0]}: {fault['msg']}" for fault in error.errors())
        raise ValueError(f"{path}, line {line}: {faults}") from None


def _check_repeats(path: Path, rows: list[ReportedRow]) -> None:
    same: dict[tuple[str, ...], list[ReportedRow]] = defaultdict(list)
    for row in rows:
        same[row.benchmark, row.model, row.method, row.category, row.metric, row.kind].append(row)
    for key, group in same.items():
        if len(group) > 1 and (len({row.source for row in group}) < len(group) or not all(row.note for row in group)):
            raise ValueError(f"{path}: {key} stands {len(group)} times; it needs two sources and a note in each")


def with_reported(cells: pd.DataFrame, said: pd.DataFrame, what: str) -> pd.DataFrame:
    """Our figures by benchmark and `what`, a column a method, and in further columns the paper's, with their model.

    Args:
        cells: columns benchmark, method, `what` and cell, with ids.
        said: rows of a reported file, with the column `what`; only those with a row of ours are taken.
        what: the column that names a row.
    """
    units = said["unit"].map({"percent": " %"}.get).fillna("")
    texts = [f"{v:g}{unit} ({model})" for v, unit, model in zip(said["value"], units, said["model"], strict=True)]
    theirs = said.assign(cell=texts, method=said["method"].map(named) + ", reported")
    theirs = cells[["benchmark", what]].drop_duplicates().merge(theirs, on=["benchmark", what])
    every = pd.concat([cells, theirs], ignore_index=True)
    every = every.sort_values("benchmark", key=lambda b: b.map(list(dict.fromkeys(b)).index), kind="stable")
    return wide(every, ["benchmark", what], "method", "cell")
