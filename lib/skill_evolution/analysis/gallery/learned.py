"""Figures of 02_learned_skills."""

import numpy as np
import pandas as pd
from matplotlib import colormaps, rcParams
from matplotlib.figure import Figure

from skill_evolution.analysis import figures
from skill_evolution.analysis.frames import groups, where
from skill_evolution.analysis.gallery import drawing, title_of
from skill_evolution.analysis.gallery.main import METHODS
from skill_evolution.analysis.learned import STATES
from skill_evolution.analysis.skill_types import TYPES, UNCODED


@drawing(
    "02_transitions", "02_transitions", alt="Answers declined, wrong and correct before and after training, counted"
)
def transitions(counts: pd.DataFrame) -> Figure:
    """A matrix a benchmark and method: rows are the state before, columns the state after."""
    panels = list(groups(counts, "benchmark", "method"))
    figure, axes = figures.new_figure(width="page", height=2.3, columns=len(panels))
    blues = colormaps["Blues"]
    for ax, (names, part) in zip(axes, panels, strict=True):
        table = part.pivot(index="before", columns="after", values="count").loc[list(STATES), list(STATES)]
        shares = table / table.to_numpy().sum()
        ax.imshow(shares, cmap=blues, vmin=0, vmax=1)
        for y, x in np.ndindex(table.shape):
            share = shares.iat[y, x]
            text = f"{table.iat[y, x]}\n{100 * share:.0f} %"
            ax.text(x, y, text, ha="center", va="center", color="white" if share > 0.5 else "black")
        ax.set_xticks(range(len(STATES)), STATES, rotation=30)
        ax.set_yticks(range(len(STATES)), STATES if ax is axes[0] else [""] * len(STATES))
        ax.set_title(": ".join(names))
        ax.set_xlabel("after training")
        ax.grid(visible=False)
        ax.tick_params(length=0)
    axes[0].set_ylabel("without skills")
    figure.suptitle(title_of(counts, "Answers before and after training"))
    return figure


@drawing("02_skill_types", "02_skill_types", alt="Share of each skill type in the final libraries of each method")
def skill_types(counts: pd.DataFrame) -> Figure:
    """One panel a benchmark, bars of the methods side by side; numbers are skills."""
    counts = where(counts, counts["type"] != UNCODED)
    panels = list(groups(counts, "benchmark"))
    figure, axes = figures.new_figure(width="page", columns=len(panels))
    series = list(dict.fromkeys([*METHODS, *counts["method"]]))  # each method has one colour in all figures
    colours = rcParams["axes.prop_cycle"].by_key()["color"]
    for ax, ((benchmark,), part) in zip(axes, panels, strict=True):
        methods = list(dict.fromkeys(part["method"]))
        width = 0.8 / len(methods)
        for index, method in enumerate(methods):
            rows = part[part["method"] == method].set_index("type").loc[list(TYPES)]
            x = np.arange(len(TYPES)) + (index - (len(methods) - 1) / 2) * width
            label = f"{method} (n = {rows['n'].iloc[0]})"
            colour = colours[series.index(method) % len(colours)]
            bars = ax.bar(x, rows["share"].fillna(0), 0.95 * width, color=colour, label=label)
            ax.bar_label(bars, rows["count"].astype(str), fontsize=6)
        ax.set_xticks(range(len(TYPES)), TYPES, rotation=25)
        ax.set_ylabel(f"{benchmark}: share of the skills [%]")
        ax.legend(loc="upper right")
    figure.suptitle(title_of(counts, f"Types of the skills in the final libraries, by {counts['coded_by'].iloc[0]}"))
    return figure


@drawing("02_growth", "02_growth", alt="Skills in each agent's library over the iterations, by method")
def growth(sizes: pd.DataFrame) -> Figure:
    """One panel a benchmark and agent; over several libraries of a benchmark their mean."""
    panels = list(groups(sizes, "benchmark", "agent"))
    figure, axes = figures.new_figure(width="page", height=2.2, columns=len(panels))
    methods = list(dict.fromkeys([*METHODS, *sizes["method"]]))
    for ax, ((benchmark, agent), part) in zip(axes, panels, strict=True):
        mean = part.pivot_table(values="value", index=["method", "seed", "iteration"], sort=False).reset_index()
        figures.plot_iterations(mean, ax, label="skills in a library" if ax is axes[0] else "", methods=methods)
        ax.set_xlabel(f"iteration (n = {part['seed'].nunique()} seeds)")
        ax.set_title(f"{benchmark}, {agent.replace('_', ' ')}", pad=26)
        ax.set_ylim(bottom=0)
    figure.suptitle(title_of(sizes, "Growth of the libraries: mean and range over the seeds"))
    return figure
