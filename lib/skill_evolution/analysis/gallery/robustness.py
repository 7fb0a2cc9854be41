"""Figures of 03_robustness."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from skill_evolution.analysis import figures
from skill_evolution.analysis.frames import groups, rows, where
from skill_evolution.analysis.gallery import drawing, title_of
from skill_evolution.analysis.gallery.main import METHODS
from skill_evolution.analysis.planted_signs import CLEAN, INTERVAL, READINGS

_ROWS = 2


@drawing(
    "03_utility",
    "03_utility",
    "03_reported_utility",
    alt="Utility of each planted skill by iteration, for each method, as long as it has its planted text",
)
def utility(curves: pd.DataFrame, reported: pd.DataFrame) -> Figure:
    """One panel a skill: mean and range over the runs in which it still has the planted text, n at the points."""
    panels = list(groups(curves, "skill", "truth"))
    columns = int(np.ceil(len(panels) / _ROWS))
    figure = Figure(figsize=(figures.WIDTHS["page"], 3.9), layout="constrained")
    axes = list(figure.subplots(_ROWS, columns, sharex=True, sharey=True, squeeze=False).flat)
    for ax, ((skill, truth), part) in zip(axes, panels, strict=False):
        _utility_panel(ax, part)
        crosses = where(reported, reported["skill"] == skill)
        ax.plot(crosses["iteration"], crosses["utility"], "x", color="black", markersize=5)
        ax.set_title(f"{skill} ({truth})")
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    for ax in axes[::columns]:
        ax.set_ylabel("utility")
    for ax in axes[len(panels) - columns : len(panels)]:
        ax.set_xlabel("iteration")
        ax.tick_params(axis="x", labelbottom=True)
    _legend(figure, axes[0], crosses=not reported.empty)
    figure.suptitle(title_of(curves, "Utility of the planted skills"))
    return figure


def _utility_panel(ax: Axes, part: pd.DataFrame) -> None:
    ax.axhline(0, color="0.4", linewidth=0.8)
    for index, method, own in _by_method(part):
        shift = 0.12 * (index - 1.5)  # so that one method's range doesn't hide the other's
        look: dict[str, Any] = {"color": f"C{index}", "marker": figures.MARKERS[index]}
        x = own["iteration"] + shift
        ax.vlines(x, own["low"], own["high"], color=look["color"], linewidth=0.8)
        ax.plot(x, own["mean"], linestyle=figures.LINES[index], label=method, **look)
        for row in rows(where(own, own["n"] < part["n"].max())):
            place = (row["iteration"] + shift, row["mean"])
            ax.annotate(f"{row['n']}", place, (3, 3), textcoords="offset points", fontsize=6, color=look["color"])
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def _legend(figure: Figure, ax: Axes, *, crosses: bool) -> None:
    handles, labels = ax.get_legend_handles_labels()
    if crosses:
        handles.append(ax.plot([], [], "x", color="black", markersize=5)[0])
        labels.append("reported (GRSE, the paper's own such skill)")
    note = "mean and range over the runs whose text is still the planted one (their number, where not all)"
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), title=note, title_fontsize=6.5)


@drawing("03_signs", "03_signs", alt="Share of runs in which each planted skill, and all of them, have the right sign")
def sign_shares(rates: pd.DataFrame) -> Figure:
    """One panel a reading, methods side by side."""
    panels = [(reading, where(rates, rates["reading"] == reading)) for reading in READINGS[:2]]
    figure, axes = figures.new_figure(width="page", columns=len(panels), height=2.8)
    for ax, (reading, part) in zip(axes, panels, strict=True):
        skills = list(dict.fromkeys(part["skill"]))
        for index, method, own in _by_method(part):
            x = np.array([skills.index(skill) for skill in own["skill"]]) + 0.16 * (index - 1.5)
            ax.vlines(x, own["low"], own["high"], color=f"C{index}")
            ax.plot(x, own["mean"], figures.MARKERS[index], color=f"C{index}", label=method)
        ax.set_xticks(range(len(skills)), [skill.replace("-", "-\n").replace(" ", "\n") for skill in skills])
        ax.set_ylim(-4, 104)
        ax.set_ylabel(f"runs with the right sign [%]: {reading}")
    note = f"{INTERVAL}, n = {rates['n'].max()}"
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), title=note, title_fontsize=6.5)
    figure.suptitle(title_of(rates, "Signs of the planted skills' utility against the truth"))
    return figure


def _by_method(frame: pd.DataFrame) -> Iterator[tuple[int, str, pd.DataFrame]]:
    """The rows of each method that is there, with the method's place in the series."""
    for index, method in enumerate(METHODS):
        own = where(frame, frame["method"] == method)
        if not own.empty:
            yield index, method, own


@drawing(
    "03_f1",
    "03_curves",
    "03_f1",
    alt="Test F1 by iteration for each method from the perturbed libraries, beside the helpful skills only",
)
def f1_by_iteration(curves: pd.DataFrame, ends: pd.DataFrame) -> Figure:
    """Means with intervals; the band is the team with the helpful skills only, which is not trained.

    Beside the last iteration stands where each method ends from the helpful skills only.
    """
    figure, (ax,) = figures.new_figure(width="column", height=2.9)
    helpful = where(ends, (ends["method"] == "helpful skills only") & (ends["metric"] == "f1")).iloc[0]
    ax.axhspan(helpful["low"], helpful["high"], color="0.85", linewidth=0)
    ax.axhline(helpful["mean"], color="0.4", linewidth=0.8, linestyle=":", label="helpful skills only")
    for index, method, own in _by_method(curves):
        x = own["iteration"] + 0.1 * (index - 1.5)
        ax.vlines(x, own["low"], own["high"], color=f"C{index}")
        ax.plot(
            x, own["mean"], linestyle=figures.LINES[index], label=method, color=f"C{index}",
            marker=figures.MARKERS[index],
        )  # fmt: skip
    _clean_ends(ax, where(ends, ends["metric"] == "f1"), float(max(curves["iteration"])) + 0.6)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    note = figures.interval_note(where(curves, curves["iteration"] > 0))
    ax.set_xlabel(f"iteration (0: perturbed start)\n{note}{_other_seeds(curves, ends)}")
    ax.set_ylabel("single-hop test F1 [%]")
    figure.legend(loc="outside lower center", ncols=2)
    figure.suptitle(title_of(curves, "Test F1 from planted libraries").replace(" (", "\n("))
    return figure


def _other_seeds(curves: pd.DataFrame, ends: pd.DataFrame) -> str:
    """How many seeds the open markers have, where it isn't as many as the curves have."""
    clean = where(ends, ends["method"].str.endswith(CLEAN))
    trained = where(curves, curves["iteration"] > 0)
    seeds = sorted({row["n_seeds"] for row in rows(clean)} - {row["n_seeds"] for row in rows(trained)})
    return f"\n(open markers: {' to '.join(map(str, seeds))} seeds)" if seeds else ""


def _clean_ends(ax: Axes, ends: pd.DataFrame, x: float) -> None:
    """Open markers: each method's end from the helpful skills only, where that was run."""
    clean = where(ends, ends["method"].str.endswith(CLEAN))
    clean = clean.assign(method=clean["method"].str.removesuffix(CLEAN))
    for index, method, own in _by_method(clean):
        place = x + 0.15 * (index - 1.5)
        look: dict[str, Any] = {"color": f"C{index}", "marker": figures.MARKERS[index]}
        ax.vlines(place, own["low"], own["high"], color=look["color"])
        ax.plot(place, own["mean"], linestyle="", markerfacecolor="white", label=f"{method}{CLEAN}", **look)
