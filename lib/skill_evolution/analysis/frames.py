"""What every analysis does with a tidy frame: its parts and rows, texts for its cells, and the wide table to read."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from skill_evolution.runs.config import Config
from skill_evolution.runs.experiments import predictions


def groups(frame: pd.DataFrame, *columns: str) -> Iterator[tuple[tuple[str, ...], pd.DataFrame]]:
    """The parts of a frame by the texts in some columns, in the order in which they first appear."""
    for names, part in frame.groupby(list(columns), sort=False):
        yield tuple(map(str, names if isinstance(names, tuple) else (names,))), part


def rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """A frame's rows as dictionaries."""
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def where(frame: pd.DataFrame, condition: Any) -> pd.DataFrame:
    """The rows for which a condition (one truth value a row) holds; what `frame[condition]` is, with its type."""
    return frame.loc[condition]


def answers_of(grid: Mapping[str, Sequence[Config]], *, root: Path | None = None) -> pd.DataFrame:
    """`experiments.predictions` of runs that have names, with the name as the method."""
    return pd.concat([predictions(c, root=root).assign(method=name) for name, c in grid.items()], ignore_index=True)


def interval_text(value: float, low: float, high: float, *, sign: str = "", form: str = ".1f") -> str | None:
    """ "value [low, high]" with one decimal; None where there is no value, no brackets where there is no interval."""
    if pd.isna(value):
        return None
    text = f"{value:{sign}{form}}"
    return text if pd.isna(low) else f"{text} [{low:{sign}{form}}, {high:{sign}{form}}]"


def texts(frame: pd.DataFrame, value: str = "mean", low: str = "low", high: str = "high", **form: str) -> pd.Series:
    """`interval_text` of each row, from its columns."""
    cells = zip(frame[value], frame[low], frame[high], strict=True)
    return pd.Series([interval_text(*cell, **form) for cell in cells], frame.index, dtype=object)


def counted(frame: pd.DataFrame, decimals: int = 1) -> pd.Series:
    """ "count (share %)" of each row, from its columns; the count alone where there is no share."""
    cells = zip(frame["count"], frame["share"], strict=True)
    texts = [f"{n:,}" if pd.isna(share) else f"{n:,} ({share:.{decimals}f} %)" for n, share in cells]
    return pd.Series(texts, frame.index, dtype=object)


def wide(frame: pd.DataFrame, index: Sequence[str], columns: str, cell: str, **kept: tuple[str, str]) -> pd.DataFrame:
    """A tidy frame as a table to read: a row a combination of `index`, a column a value of `columns`, in their order.

    Args:
        frame: one row a cell.
        index: the columns that name a row.
        columns: the column whose values become columns.
        cell: the column that fills them.
        kept: further columns, each the column of `frame` that it is made of and how pandas aggregates it.
    """
    by_row = frame.groupby(list(index), sort=False)
    table = frame.pivot(index=list(index), columns=columns, values=cell)
    table = table.reindex(index=by_row.size().index, columns=list(dict.fromkeys(frame[columns])))
    return (table.join(by_row.agg(**kept)) if kept else table).rename_axis(columns=None).reset_index()
