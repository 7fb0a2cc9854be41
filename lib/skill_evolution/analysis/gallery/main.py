"""Figures of 01_main_results."""

from collections.abc import Callable

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skill_evolution.analysis import figures
from skill_evolution.analysis.gallery import drawing, title_of
from skill_evolution.analysis.names import NAMES

METHODS = [NAMES[name] for name in ("empty", "maskills", "grse")]


def by_benchmark(
    frame: pd.DataFrame, title: str, plot: Callable[[pd.DataFrame, Axes, str], Axes], *, stacked: bool = False
) -> Figure:
    """One panel a benchmark; `plot` gets a benchmark's rows, the axes and the benchmark's name.

    `stacked` panels have the page's width each, for many methods in many categories.
    """
    parts = dict(list(frame.groupby("benchmark", sort=False)))
    if stacked:
        figure, axes = figures.new_figure(width="page", height=2.2 * len(parts), rows=len(parts))
    else:
        figure, axes = figures.new_figure(width="page", columns=len(parts))
    for ax, (benchmark, part) in zip(axes, parts.items(), strict=True):
        plot(part, ax, str(benchmark))
    figure.suptitle(title_of(frame, title))
    return figure


def _methods(frame: pd.DataFrame) -> list[str]:
    """All methods of a frame, the usual ones first, so that each keeps its colour over the figures."""
    return list(dict.fromkeys([*METHODS, *frame["method"]]))


@drawing("01_f1", "01_main", alt="Token F1 of each method by question category, for HotpotQA and LoCoMo")
def f1_by_category(main: pd.DataFrame) -> Figure:
    """Points with intervals, methods side by side, a benchmark below the other: else eight methods run together."""
    return by_benchmark(
        main.query("metric == 'f1'"),
        "Token F1 by category",
        lambda part, ax, name: figures.plot_methods(part, ax, label=f"{name}: F1 [%]", methods=_methods(main)),
        stacked=True,
    )


@drawing("01_differences", "01_minus_maskills", alt="Paired differences in F1 to MASkills by category")
def differences(minus_maskills: pd.DataFrame) -> Figure:
    """Paired differences with intervals around 0."""
    label = "F1 minus MASkills [points]"
    return by_benchmark(
        minus_maskills,
        "Paired differences to MASkills",
        lambda part, ax, name: figures.plot_differences(
            part, ax, label=f"{name}: {label}", methods=_methods(minus_maskills)
        ),
    )


@drawing("01_validation", "01_validation", alt="Validation reward over the iterations for each method")
def validation(curves: pd.DataFrame) -> Figure:
    """Mean and range over the seeds."""
    return by_benchmark(
        curves,
        "Validation reward over the iterations",
        lambda part, ax, name: figures.plot_iterations(
            part, ax, label=f"{name}: validation reward [%]", methods=_methods(curves)
        ),
    )
