"""Figures: what one shows is said in a `Spec`, and `paint` draws it, with seaborn and the paper's style.

The points, lines, bars and heat maps are seaborn's. Intervals are never worked out here: they are the columns low and
high of the table that is drawn. Only the band of a line over several seeds is, from the lowest to the highest seed.
"""

import base64
import html
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import fill
from typing import Any, cast

import numpy as np
import pandas as pd
import seaborn
from IPython.display import HTML
from matplotlib import rcParams, style
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from pandas.api.types import is_numeric_dtype
from PIL import Image

from skill_evolution.analysis.frames import groups, where
from skill_evolution.analysis.names import NAMES
from skill_evolution.analysis.statistics import ALL, AVERAGE

STYLE = Path(__file__).with_name("paper.mplstyle")
COLUMN, PAGE = 3.3, 6.9  # inches
MARKERS = "osD^vPX<"
DASHES: Sequence[Any] = ("", (4, 1.5), (4, 1.25, 1.5, 1.25), (1, 1))
METHODS = tuple(NAMES[name] for name in ("empty", "maskills", "grse"))
MADE_WITH = "made_with"
Looks = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Spec:
    """What a figure shows.

    Texts may name in braces the columns of `facet`, and what `counts` tells of the rows that are drawn.

    Attributes:
        title: Above the figure; whose model and questions it is made with follows in brackets.
        alt: The figure in words.
        tables: Names of the CSV files that it is drawn from; the first one's rows are drawn.
        kind: How a panel is drawn: `intervals`, `lines`, `bars`, `stack` or `heat`.
        x: The column along the x axis. Of x and y, `intervals` takes the one with words for the categories.
        y: The column along the y axis.
        hue: The column told apart by colour and marker.
        facet: A panel for each combination of these columns.
        tidy: Makes the rows to draw from the tables.
        panel: Title of a panel.
        xlabel: Label of the x axis.
        ylabel: Label of the y axis.
        note: What intervals and bands are, over how many; below the figure.
        size: Width and height in inches.
        per_row: Panels in a row; all by default.
        share: Axes ("x", "y") that the panels have in common.
        series: What comes first among the colours, so that a name has the same one in all figures.
        beside: How far apart the names of one category stand, in categories.
        given: Whether to draw the table's columns low and high.
        line: Where to draw a line across the value axis.
        axes: Further settings of the axes, for `Axes.set`.
        also: Adds to a panel what only this figure has, from its axes, rows, looks and the tables.
    """

    title: str
    alt: str
    tables: tuple[str, ...]
    kind: "Kind"
    x: str
    y: str
    hue: str = ""
    facet: tuple[str, ...] = ()
    tidy: Callable[..., pd.DataFrame] = lambda frame, *_: frame
    panel: str = ""
    xlabel: str = ""
    ylabel: str = ""
    note: str = ""
    size: tuple[float, float] = (PAGE, 2.6)
    per_row: int | None = None
    share: str = ""
    series: Sequence[str] = METHODS
    beside: float = 0.18
    given: bool = True
    line: float | None = None
    axes: Mapping[str, Any] = field(default_factory=dict)
    also: Callable[..., None] | None = None


Kind = Callable[[Axes, pd.DataFrame, Spec, Looks, Sequence[Any]], None]


def paper_style() -> AbstractContextManager[None]:
    """The style of all figures, whatever the kernel has set: `with paper_style(): ...` around drawing and saving."""
    return style.context(STYLE, after_reset=True)


def paint(spec: Spec, *tables: pd.DataFrame) -> Figure:
    """The figure of a spec, from its tables in order; one that says so where there are no rows to draw.

    Raises:
        ValueError: two rows would be drawn in one place as their mean.
    """
    with paper_style():
        frame = spec.tidy(*tables)
        if frame.empty:
            figure = Figure(figsize=(COLUMN, 0.6), layout="constrained")
            figure.text(0.5, 0.5, "nothing to compare", ha="center", va="center")
            return figure
        panels = list(groups(frame, *spec.facet)) if spec.facet else [((), frame)]
        columns = min(spec.per_row or len(panels), len(panels))
        figure = Figure(figsize=spec.size, layout="constrained")
        rows, share = -(-len(panels) // columns), spec.share
        grid = figure.subplots(rows, columns, squeeze=False, sharex="x" in share, sharey="y" in share)
        looks, of_all = _looks(frame, spec), counts(frame)
        for ax, (names, part) in zip(grid.flat, panels, strict=False):
            _panel(ax, part, spec, looks, frame)
            texts = of_all | counts(part) | dict(zip(spec.facet, names, strict=True))
            ax.set(title=spec.panel.format(**texts), xlabel=spec.xlabel.format(**texts))
            ax.set_ylabel(spec.ylabel.format(**texts) if ax in grid[:, 0] or "{" in spec.ylabel else "")
            if spec.also:
                spec.also(ax, part, looks, *tables)
        for number, ax in enumerate(grid.flat):
            ax.set(**spec.axes) if number < len(panels) else ax.set_axis_off()
        _legend(figure, looks, spec, spec.note.format(**of_all))
        figure.suptitle(f"{spec.title.format(**of_all)} ({frame[MADE_WITH].iloc[0]})")
    return figure


def counts(frame: pd.DataFrame) -> dict[str, str]:
    """How many a figure's rows are of, as words: n, n_seeds, seeds, missing (by method), interval; what is one in all.

    Rows over all categories are left out where there are others: their n is the others' together.
    """
    parts = frame
    if "category" in frame and not set(frame["category"]) <= {ALL, AVERAGE}:
        parts = where(frame, ~frame["category"].isin([ALL, AVERAGE]))
    found = {str(name): str(values.iloc[0]) for name, values in frame.items() if values.nunique() == 1}
    found |= {name: _span(parts[name].to_numpy()) for name in ("n", "n_seeds") if name in parts}
    seeds = [name for name in ("sft_seed", "seed") if name in frame]
    found["seeds"] = str(len(frame.drop_duplicates(seeds))) if seeds else ""
    found["interval"] = "; ".join(map(str, frame["interval"].unique())) if "interval" in frame else ""
    by_method = groups(parts, "method") if {"n_missing", "method"} <= set(parts) else ()
    lost = np.array([sum(part["n_missing"]) for _, part in by_method])
    return {**found, "missing": f"; {_span(lost)} answers missing per method" if any(lost) else ""}


def _span(values: np.ndarray) -> str:
    low, high = np.nanmin(values), np.nanmax(values)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _looks(frame: pd.DataFrame, spec: Spec) -> dict[str, dict[str, Any]]:
    """Colour, marker and dashes of each name that is shown, by its place in the whole series."""
    shown = list(dict.fromkeys(frame[spec.hue])) if spec.hue else []
    cycle, found = rcParams["axes.prop_cycle"].by_key()["color"], {}
    for index, name in enumerate(dict.fromkeys([*spec.series, *shown])):
        look = {"color": cycle[index % 8], "marker": MARKERS[index % 8], "dashes": DASHES[index % 4]}
        found |= {name: look} if name in shown else {}
    return found


def _panel(ax: Axes, part: pd.DataFrame, spec: Spec, looks: Looks, whole: pd.DataFrame) -> None:
    across = not is_numeric_dtype(part[spec.x]) or spec.kind is lines
    category, name = (spec.x, "x") if across else (spec.y, "y")
    ax.grid(visible=False)
    ax.grid(visible=True, axis="y" if across else "x")
    if spec.line is not None:
        (ax.axhline if across else ax.axvline)(spec.line, color="0.4", linewidth=0.8)
    spec.kind(ax, part, spec, looks, list(dict.fromkeys((whole if name in spec.share else part)[category])))


def places(looks: Looks, spec: Spec) -> dict[str, float]:
    """How far beside a category's tick each name stands; all together at most 0.8 wide, as seaborn has it."""
    apart = min(0.8 / max(len(looks), 1), spec.beside)
    return {name: (index - (len(looks) - 1) / 2) * apart for index, name in enumerate(looks)}


def intervals(ax: Axes, part: pd.DataFrame, spec: Spec, looks: Looks, order: Sequence[Any]) -> None:
    """Values as points, what differs in hue side by side, with the intervals and, as crosses, what was reported."""
    across, beside = not is_numeric_dtype(part[spec.x]), places(looks, spec)
    category, value = (spec.x, spec.y) if across else (spec.y, spec.x)
    if part.dropna(subset=value).duplicated([category, spec.hue]).any():
        raise ValueError(f"{spec.title}: two values for one {category} and {spec.hue}")
    seaborn.pointplot(
        part, x=spec.x, y=spec.y, hue=spec.hue, order=order, hue_order=list(looks), errorbar=None, legend=False, ax=ax,
        palette=colours(looks), dodge=cast(bool, max(beside.values()) - min(beside.values())),
        markers=[look["marker"] for look in looks.values()], linestyle="none", markersize=4, markeredgewidth=0,
    )  # fmt: skip
    at = np.array([order.index(one) for one in part[category]]) + part[spec.hue].map(beside.get)
    own = list(part[spec.hue].map(colours(looks).get))
    (ax.vlines if across else ax.hlines)(at, part["low"], part["high"], colors=own)
    ax.set(**({"xlim": (-0.5, len(order) - 0.5)} if across else {"ylim": (len(order) - 0.5, -0.5)}))
    if "reported" in part and any(part["reported"].notna()):
        ax.plot(*((at, part["reported"]) if across else (part["reported"], at)), "kx", label="reported by the paper")


def lines(ax: Axes, part: pd.DataFrame, spec: Spec, looks: Looks, order: Sequence[Any]) -> None:
    """A line for each hue with the table's intervals; where it has none, the mean and the range over the seeds."""
    given, few = spec.given and "low" in part, len(order) < 12
    if given:
        part = part.assign(**{spec.x: part[spec.x] + part[spec.hue].map(places(looks, spec).get)})
        own = list(part[spec.hue].map(colours(looks).get))
        ax.vlines(part[spec.x], part["low"], part["high"], colors=own, linewidth=0.8)
    seaborn.lineplot(
        part, x=spec.x, y=spec.y, hue=spec.hue, style=spec.hue, hue_order=list(looks), style_order=list(looks), ax=ax,
        palette=colours(looks), legend=False, markeredgewidth=0,
        markers={name: look["marker"] for name, look in looks.items()} if few else False,
        dashes={name: look["dashes"] for name, look in looks.items()},
        errorbar=("pi", 100) if spec.given and not given else None, err_kws={"alpha": 0.15, "linewidth": 0},
    )  # fmt: skip
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def colours(looks: Looks) -> dict[str, str]:
    """The colour of each name, as seaborn takes a palette."""
    return {name: look["color"] for name, look in looks.items()}


def bars(ax: Axes, part: pd.DataFrame, spec: Spec, looks: Looks, order: Sequence[Any]) -> None:
    """Bars side by side; the number on a bar is the table's count."""
    seaborn.barplot(
        part, x=spec.x, y=spec.y, hue=spec.hue, order=order, hue_order=list(looks), palette=colours(looks),
        saturation=1, errorbar=None, legend=False, ax=ax,
    )  # fmt: skip
    numbers = part.pivot(index=spec.x, columns=spec.hue, values="count").reindex(index=order, columns=list(looks))
    for name, container in zip(looks, ax.containers, strict=True):
        ax.bar_label(cast(BarContainer, container), numbers[name].map("{:g}".format), fontsize=6)
    ax.tick_params(axis="x", rotation=25)


def stack(ax: Axes, part: pd.DataFrame, spec: Spec, looks: Looks, order: Sequence[Any]) -> None:
    """Bars whose parts follow one another."""
    seaborn.histplot(
        part, y=spec.y, weights=spec.x, hue=spec.hue, hue_order=list(looks)[::-1], multiple="stack", discrete=True,
        shrink=0.8, palette=colours(looks), alpha=1, linewidth=0, legend=False,
        ax=ax,
    )  # fmt: skip


def heat(ax: Axes, part: pd.DataFrame, spec: Spec, looks: Looks, order: Sequence[Any]) -> None:
    """Counts as a matrix, coloured by their share."""
    table = part.pivot(index=spec.y, columns=spec.x, values="count").loc[list(order), list(order)]
    shares = table / table.to_numpy().sum()
    texts = [[f"{n}\n{100 * share:.0f} %" for n, share in zip(*row, strict=True)] for row in
             zip(table.to_numpy(), shares.to_numpy(), strict=True)]  # fmt: skip
    seaborn.heatmap(shares, annot=np.array(texts), fmt="", cmap="Blues", vmin=0, vmax=1, cbar=False, square=True, ax=ax)
    ax.tick_params(length=0)
    ax.tick_params(axis="x", rotation=30)
    ax.tick_params(axis="y", rotation=0)


def _legend(figure: Figure, looks: Looks, spec: Spec, note: str) -> None:
    """One legend below all panels: side by side their own would run into each other."""
    entries = {name: _handle(look, spec) for name, look in looks.items()}
    entries |= {label: h for ax in figure.axes for h, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    width = figure.get_figwidth()
    figure.legend(
        list(entries.values()), list(entries), loc="outside lower center", ncols=max(2, round(width / 1.4)),
        title=fill(note, round(19 * width)), title_fontsize=6.5, handlelength=2.6 if spec.kind is lines else 1.0,
    )  # fmt: skip


def _handle(look: Mapping[str, Any], spec: Spec) -> Patch | Line2D:
    if spec.kind in (bars, stack):
        return Patch(color=look["color"])
    dashes: Any = (0, look["dashes"] or None) if spec.kind is lines else ""
    return Line2D([], [], color=look["color"], marker=look["marker"], linestyle=dashes)


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


def show_figure(path_without_suffix: Path) -> HTML:
    """A saved figure for a notebook: an HTML `<figure>` with the PNG and its alt text."""
    path = path_without_suffix.with_name(path_without_suffix.name + ".png")
    with Image.open(path) as image:
        alt, width = html.escape(image.info["Description"]), round(image.width / 2)  # 200 dpi shown at 100
    data = base64.b64encode(path.read_bytes()).decode()
    return HTML(f'<figure><img src="data:image/png;base64,{data}" alt="{alt}" width="{width}"></figure>')
