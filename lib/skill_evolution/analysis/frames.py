"""Small things that every analysis does with a tidy frame."""

from collections.abc import Iterator
from typing import Any

import pandas as pd


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


def interval_text(value: float, low: float, high: float, *, sign: str = "") -> str | None:
    """ "value [low, high]" with one decimal; None where there is no value, no brackets where there is no interval."""
    if pd.isna(value):
        return None
    text = f"{value:{sign}.1f}"
    return text if pd.isna(low) else f"{text} [{low:{sign}.1f}, {high:{sign}.1f}]"
