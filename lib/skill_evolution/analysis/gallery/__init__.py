"""The figures of all notebooks: each is drawn from tidy CSV files that were written first, and from nothing else.

    python -m skill_evolution.analysis.gallery results/demo

redraws every figure whose tables are there (`make figures`), byte for byte as the notebooks drew them.
"""

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from IPython.display import HTML
from matplotlib.figure import Figure

from skill_evolution.analysis import figures
from skill_evolution.runs.folder import write_text

Draw = Callable[..., Figure]
MADE_WITH = "made_with"
_MODULES = ("main", "learned", "transfer", "ablations", "runtime", "robustness", "sage")


@dataclass(frozen=True)
class Drawing:
    """A figure: the tables it is drawn from (names below `tables/`), its alt text, and how to draw it."""

    name: str
    tables: tuple[str, ...]
    alt: str
    draw: Draw


DRAWINGS: dict[str, Drawing] = {}


def drawing(name: str, *tables: str, alt: str) -> Callable[[Draw], Draw]:
    """Register a function from tidy frames (one a table, in order) to a Figure under a name."""

    def register(draw: Draw) -> Draw:
        if name in DRAWINGS:
            raise ValueError(f"two figures are called {name!r}")
        DRAWINGS[name] = Drawing(name, tables, alt, draw)
        return draw

    return register


def save_table(frame: pd.DataFrame, folder: Path, name: str, *, made_with: str) -> None:
    """Write a tidy frame to `folder/tables/name.csv`; the column made_with says whose model and questions it is."""
    text = frame.assign(**{MADE_WITH: made_with}).to_csv(index=False, lineterminator="\n")
    write_text(folder / "tables" / f"{name}.csv", text)


def draw(name: str, folder: Path) -> HTML:
    """Draw a figure from its tables into `folder/figures/` (PDF and PNG) and show it.

    Raises:
        KeyError: there is no such figure.
        FileNotFoundError: one of its tables has not been written.
    """
    spec = _all()[name]
    frames = [pd.read_csv(folder / "tables" / f"{table}.csv") for table in spec.tables]
    with figures.paper_style():
        figure = spec.draw(*frames)
    path = folder / "figures" / name
    figures.save_figure(figure, path, alt=spec.alt)
    return figures.show_figure(path)


def redraw(folder: Path) -> list[str]:
    """Draw every figure whose tables are in the folder; returns their names."""
    there = [d for d in _all().values() if all((folder / "tables" / f"{t}.csv").is_file() for t in d.tables)]
    for spec in there:
        draw(spec.name, folder)
    return [spec.name for spec in there]


def title_of(frame: pd.DataFrame, text: str) -> str:
    """A figure's title with what it was made with."""
    return f"{text} ({frame[MADE_WITH].iloc[0]})"


def _all() -> dict[str, Drawing]:
    for module in _MODULES:
        importlib.import_module(f"skill_evolution.analysis.gallery.{module}")
    return DRAWINGS


def main(arguments: list[str]) -> int:
    """Redraw the figures of the folders named; the exit status is 1 where a folder has none of the tables."""
    status = 0
    for argument in arguments:
        names = redraw(Path(argument))
        sys.stdout.write(f"{argument}: {len(names)} figures drawn\n")
        status = status or int(not names)
    return status
