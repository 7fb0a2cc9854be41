"""Figures of 04_transfer."""

import pandas as pd
from matplotlib.figure import Figure

from skill_evolution.analysis import figures
from skill_evolution.analysis.frames import groups
from skill_evolution.analysis.gallery import drawing, title_of
from skill_evolution.analysis.gallery.main import METHODS
from skill_evolution.analysis.transfer import IN_DOMAIN, TRANSFERRED

SERIES = [*METHODS, TRANSFERRED, IN_DOMAIN]  # no colour of a method for what is none


@drawing("04_f1", "04_f1", alt="Token F1 on each target without skills, with transferred and with in-domain libraries")
def f1_by_library(means: pd.DataFrame) -> Figure:
    """One panel a target, the learner on the x axis, libraries side by side."""
    panels = list(groups(means, "target"))
    figure, axes = figures.new_figure(width="page", columns=len(panels))
    for ax, ((target,), part) in zip(axes, panels, strict=True):
        rows = part.assign(category="libraries of " + part["learner"])
        figures.plot_methods(rows, ax, label=f"target {target}: F1 [%]", methods=SERIES)
    figure.suptitle(title_of(means, "Token F1 by where the libraries were learned"))
    return figure


@drawing(
    "04_differences", "04_differences", alt="Paired differences in F1 between transferred, in-domain and no skills"
)
def differences(table: pd.DataFrame) -> Figure:
    """Forest plot, one panel a target, learners side by side."""
    panels = list(groups(table, "target"))
    figure, axes = figures.new_figure(width="page", columns=len(panels))
    for ax, ((target,), part) in zip(axes, panels, strict=True):
        rows = part.assign(method=part["learner"], category=part["comparison"].str.replace(" minus ", "\nminus "))
        methods = list(dict.fromkeys([*METHODS, *table["learner"]]))
        figures.plot_differences(rows, ax, label=f"target {target}: F1 difference [points]", methods=methods)
    figure.suptitle(title_of(table, "Paired differences in F1"))
    return figure
