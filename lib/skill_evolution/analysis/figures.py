"""Figures: a plot takes a tidy frame and an `ax` and returns the `ax`; nothing touches pyplot or global settings."""

import base64
import html
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from IPython.display import HTML
from matplotlib import rcParams, style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike
from PIL import Image

from skill_evolution.analysis.statistics import ALL, AVERAGE

STYLE = Path(__file__).with_name("paper.mplstyle")
WIDTHS = {"column": 3.3, "page": 6.9}  # inches
MARKERS = "osD^vPX<"
LINES = ("-", "--", "-.", ":")


def paper_style() -> AbstractContextManager[None]:
    """The style of all figures, whatever the kernel has set: `with paper_style(): ...` around drawing and saving."""
    return style.context(STYLE, after_reset=True)


def new_figure(
    *, width: Literal["column", "page"] = "column", height: float = 2.5, columns: int = 1, rows: int = 1
) -> tuple[Figure, list[Axes]]:
    """A figure of a paper's column or page width (3.3 or 6.9 inches) with `columns` axes side by side in each row."""
    figure = Figure(figsize=(WIDTHS[width], height), layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def plot_methods(frame: pd.DataFrame, ax: Axes, *, label: str, methods: Sequence[str] | None = None) -> Axes:
    """Each method's mean and interval, by category.

    Args:
        frame: columns method, category, mean, low, high, n, n_seeds, n_missing, interval: the rows of a
            `tables.main_table` with one benchmark and metric.
        ax: where to draw.
        label: the metric with its unit, "F1 [%]".
        methods: all methods that any figure of a series shows, so that each keeps its colour and marker.
    """
    categories, shown = list(dict.fromkeys(frame["category"])), list(dict.fromkeys(frame["method"]))
    for offset, (method, look) in zip(_offsets(len(shown)), looks(shown, methods), strict=True):
        rows = frame[frame["method"] == method]
        x = np.array([categories.index(category) for category in rows["category"]]) + offset
        ax.vlines(x, rows["low"], rows["high"], color=look["color"])
        ax.plot(x, rows["mean"], linestyle="none", label=method, **look)
    ax.set_xticks(range(len(categories)), categories)
    if _inches(ax) < 0.7 * len(categories):
        ax.tick_params(axis="x", rotation=20)
    ax.set_xlim(-0.5, len(categories) - 0.5)
    ax.set_ylabel(label)
    ax.set_xlabel(interval_note(frame))
    _legend_above(ax)
    return ax


def plot_iterations(frame: pd.DataFrame, ax: Axes, *, label: str, methods: Sequence[str] | None = None) -> Axes:
    """A value over the iterations: each method's mean over its seeds, and the band from its lowest to highest seed.

    A band and not an interval: three seeds are too few to resample.

    Args:
        frame: columns method, seed, iteration, value.
        ax: where to draw.
        label: the value with its unit, "validation score" or "skills in the library".
        methods: as in `plot_methods`.
    """
    shown = list(dict.fromkeys(frame["method"]))
    for index, (method, look) in enumerate(looks(shown, methods)):
        seeds = frame[frame["method"] == method].pivot(index="iteration", columns="seed", values="value")
        x = seeds.index.to_numpy()
        ax.plot(x, seeds.mean(axis=1), linestyle=LINES[index % len(LINES)], label=method, **look)
        ax.fill_between(x, seeds.min(axis=1), seeds.max(axis=1), color=look["color"], alpha=0.15, linewidth=0)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel(f"iteration (mean and range over n = {frame['seed'].nunique()} seeds)")
    ax.set_ylabel(label)
    _legend_above(ax, handlelength=2.6)
    return ax


def plot_differences(frame: pd.DataFrame, ax: Axes, *, label: str, methods: Sequence[str] | None = None) -> Axes:
    """Forest plot of paired differences: a line a category, zero marked.

    Args:
        frame: columns method, category, difference, low, high, n, n_missing, interval: the rows of a
            `tables.difference_table` with one benchmark and metric.
        ax: where to draw.
        label: the difference with its unit and baseline, "F1 minus MASkills [points]".
        methods: as in `plot_methods`.
    """
    categories, shown = list(dict.fromkeys(frame["category"])), list(dict.fromkeys(frame["method"]))
    ax.axvline(0, color="0.4", linewidth=0.8)
    for offset, (method, look) in zip(_offsets(len(shown)), looks(shown, methods), strict=True):
        rows = frame[frame["method"] == method]
        y = np.array([categories.index(category) for category in rows["category"]]) + offset
        ax.hlines(y, rows["low"], rows["high"], color=look["color"])
        ax.plot(rows["difference"], y, linestyle="none", label=method, **look)
    ax.set_yticks(range(len(categories)), categories)
    ax.set_ylim(len(categories) - 0.5, -0.5)
    ax.grid(visible=True, axis="x")
    ax.grid(visible=False, axis="y")
    ax.set_xlabel(f"{label}\n{interval_note(frame)}")
    _legend_above(ax)
    return ax


def interval_note(frame: pd.DataFrame) -> str:
    """What the bars of a figure are, in lines: the interval, the questions n, and the answers that are missing."""
    parts = frame[~frame["category"].isin([ALL, AVERAGE])]
    if parts.empty:
        parts = frame.drop_duplicates("method")
    lost = list(parts.pivot_table(index="method", values="n_missing", aggfunc="sum")["n_missing"])
    seeds = f" x {_span(frame['n_seeds'])} seeds" if "n_seeds" in frame else ""
    lacking = f";\n{_span(lost)} answers missing per method" if any(lost) else ""
    return f"{'; '.join(frame['interval'].unique())},\nn = {_span(frame['n'])} questions{seeds}{lacking}"


def save_figure(figure: Figure, path_without_suffix: Path, *, alt: str) -> None:
    """Write .pdf and .png, each whole and then renamed, byte for byte the same when made again.

    `alt` says in words what the figure shows; it's embedded in the PNG ("Description") and shown by `show_figure`.

    Raises:
        ValueError: `alt` is empty.
    """
    if not alt.strip():
        raise ValueError(f"{path_without_suffix}: a figure needs an alt text that says what it shows")
    path_without_suffix.parent.mkdir(parents=True, exist_ok=True)
    metadata: dict[str, dict[str, Any]] = {
        "pdf": {"CreationDate": None},
        "png": {"Software": None, "Description": alt},
    }
    for suffix, entries in metadata.items():
        path = path_without_suffix.with_name(f"{path_without_suffix.name}.{suffix}")
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        with paper_style():
            figure.savefig(temporary, format=suffix, metadata=entries)
        temporary.replace(path)


def show_figure(path_without_suffix: Path, *, caption: str = "") -> HTML:
    """A saved figure for a notebook: an HTML `<figure>` with the PNG, its alt text and a caption."""
    path = path_without_suffix.with_name(path_without_suffix.name + ".png")
    with Image.open(path) as image:
        alt, width = html.escape(image.info["Description"]), round(image.width / 2)  # 200 dpi shown at 100
    data = base64.b64encode(path.read_bytes()).decode()
    source = f'<img src="data:image/png;base64,{data}" alt="{alt}" width="{width}">'
    return HTML(f"<figure>{source}<figcaption>{html.escape(caption)}</figcaption></figure>")


def looks(shown: Sequence[str], methods: Sequence[str] | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Colour and marker of each shown method, by its place in the whole series."""
    series = list(methods or shown)
    if unknown := [method for method in shown if method not in series]:
        raise ValueError(f"methods {unknown} are in the frame but not in methods={series}")
    colours = rcParams["axes.prop_cycle"].by_key()["color"]
    for method in shown:
        index = series.index(method)
        yield method, {"color": colours[index % len(colours)], "marker": MARKERS[index % len(MARKERS)]}


def _offsets(count: int) -> np.ndarray:
    """Places of `count` methods round a category's tick, at most 0.7 wide together."""
    return (np.arange(count) - (count - 1) / 2) * min(0.7 / max(count, 1), 0.18)


def _span(values: ArrayLike) -> str:
    low, high = np.min(np.asarray(values)), np.max(np.asarray(values))
    return f"{low}" if low == high else f"{low} to {high}"


def _inches(ax: Axes) -> float:
    """The width of the axes, before the layout is settled."""
    figure = ax.get_figure(root=True)
    return ax.get_position().width * (figure.get_figwidth() if figure else WIDTHS["column"])


def _legend_above(ax: Axes, *, handlelength: float = 1.0) -> None:
    ncols = max(1, round(_inches(ax) / 0.85))
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=ncols, borderaxespad=0.2, handlelength=handlelength)
