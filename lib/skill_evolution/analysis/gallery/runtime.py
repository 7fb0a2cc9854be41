"""Figures of 06_runtime."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from skill_evolution.analysis import figures
from skill_evolution.analysis.gallery import drawing, title_of
from skill_evolution.analysis.names import NAMES
from skill_evolution.analysis.runtime import PARTS, REPORTED_AS

METHODS = [NAMES[name] for name in ("maskills", "grse")]
LOOKS: dict[str, dict[str, Any]] = {  # as in 01
    "MASkills": {"color": "C1", "marker": "s"},
    "GRSE": {"color": "C2", "marker": "D"},
}
BANDS = ("0.75", "0.6")  # one a statement of the paper


@drawing("06_tokens", "06_tokens", alt="Tokens of training by part for MASkills and GRSE, by task, MASkills' sum as 1")
def tokens(table: pd.DataFrame) -> Figure:
    """Stacked bars, two a task."""
    tasks = list(dict.fromkeys(table["task"]))
    figure, (ax,) = figures.new_figure(width="page", height=0.42 * len(tasks) + 0.9)
    wholes = {task: float(sum(table.query("task == @task and method == 'MASkills'")["tokens"])) for task in tasks}
    ends = dict.fromkeys([(task, method) for task in tasks for method in METHODS], 0.0)
    for index, part in enumerate(PARTS.values()):
        cells = [cell for cell in table.to_dict("records") if cell["part"] == part and wholes[cell["task"]]]
        places = [(cell["task"], cell["method"]) for cell in cells]
        widths = [cell["tokens"] / wholes[cell["task"]] for cell in cells]
        y = [tasks.index(task) + 0.38 * METHODS.index(method) - 0.19 for task, method in places]
        ax.barh(y, widths, 0.34, left=[ends[p] for p in places], color=f"C{index}", label=part)
        for place, width in zip(places, widths, strict=True):
            ends[place] += width
    for (task, method), end in ends.items():
        y = tasks.index(task) + 0.38 * METHODS.index(method) - 0.19
        ax.text(end, y, f" {method}", va="center", fontsize=6)
    ax.set_yticks(range(len(tasks)), tasks)
    ax.invert_yaxis()
    ax.grid(visible=True, axis="x")
    ax.grid(visible=False, axis="y")
    ax.set_xlim(0, 1.12 * max(ends.values()))
    ax.set_xlabel("tokens of training, all of MASkills' on the task = 1 (mean over seeds)")
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4)
    figure.suptitle(title_of(table, "Tokens of training by part"))
    return figure


def _bands(reported: pd.DataFrame, metric: str) -> list[tuple[float, float, dict[str, Any]]]:
    """The paper's ranges of a quantity, each with its look; where it states two, both."""
    rows = [row for row in reported.to_dict("records") if row["metric"] == metric]
    look = {"alpha": 0.5, "linewidth": 0}
    return [
        (row["low"], row["high"], {**look, "color": shade, "label": f"reported, {row['source']}"})
        for shade, row in zip(BANDS, rows, strict=False)
    ]


@drawing(
    "06_ratios",
    "06_ratios",
    "06_reported",
    alt="GRSE over MASkills by task: tokens of rollouts, tokens with validation, modelled wall clock; reported ranges",
)
def ratios(table: pd.DataFrame, reported: pd.DataFrame) -> Figure:
    """A panel a quantity; the paper's ranges as grey bands."""
    metrics = {words: metric for metric, words in REPORTED_AS.items()}
    metrics |= {"modelled wall clock": "wall_clock", "measured wall clock": "wall_clock"}
    panels = {quantity: metrics[quantity] for quantity in dict.fromkeys(table["quantity"]) if quantity in metrics}
    tasks = list(dict.fromkeys(table["task"]))
    figure, axes = figures.new_figure(width="page", height=0.22 * len(tasks) + 1.5, columns=len(panels))
    for ax, quantity in zip(axes, panels, strict=True):
        part = table.query("quantity == @quantity").reset_index(drop=True)
        y = [tasks.index(task) for task in part["task"]]
        for low, high, look in _bands(reported, panels[quantity]):
            ax.axvspan(low, high, **look)
        ax.hlines(y, part["low"], part["high"], color="C2")
        ax.plot(part["ratio"], y, linestyle="none", marker="D", color="C2")
        ax.axvline(1, color="0.4", linewidth=0.8)
        ax.set_yticks(range(len(tasks)), tasks if ax is axes[0] else [""] * len(tasks))
        ax.set_ylim(len(tasks) - 0.5, -0.5)
        ax.grid(visible=True, axis="x")
        ax.set_xlabel(f"{quantity}: GRSE / MASkills")
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1))
    figure.supxlabel(f"sums over n = {table['n_seeds'].max()} seeds, bars from the lowest to the highest seed", size=6)
    figure.suptitle(title_of(table, "Cost of GRSE over MASkills"))
    return figure


@drawing(
    "06_limits",
    "06_limits",
    "06_reported",
    alt="Modelled wall clock of GRSE over MASkills against the number of calls at once, by task",
)
def limits(table: pd.DataFrame, reported: pd.DataFrame) -> Figure:
    """A line a task."""
    figure, (ax,) = figures.new_figure(width="page", height=2.7)
    for low, high, look in _bands(reported, "wall_clock"):
        ax.axhspan(low, high, **look)
    for index, task in enumerate(dict.fromkeys(table["task"])):
        part = table.query("task == @task")
        look: dict[str, Any] = {
            "marker": figures.MARKERS[index],
            "linestyle": figures.LINES[index % len(figures.LINES)],
        }
        ax.plot(part["limit"], part["ratio"], color=f"C{index}", label=task, **look)
    ax.set_xscale("log", base=2)
    ax.set_xticks(list(dict.fromkeys(table["limit"])), [str(limit) for limit in dict.fromkeys(table["limit"])])
    ax.set_xlabel("calls at once (concurrency limit)")
    ax.set_ylabel("modelled wall clock, GRSE / MASkills")
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    figure.suptitle(title_of(table, "Modelled wall clock and concurrency"))
    return figure


@drawing("06_gains", "06_gains", alt="Tokens of training for a point of F1 over the team without skills, by task")
def gains(table: pd.DataFrame) -> Figure:
    """Two points a task, with the costs at the ends of the gain's interval."""
    tasks = list(dict.fromkeys(table["task"]))
    figure, (ax,) = figures.new_figure(width="page", height=0.25 * len(tasks) + 1.2)
    for method, look in LOOKS.items():
        part = table.query("method == @method and tokens_per_point.notna()")
        y = [tasks.index(task) + 0.24 * METHODS.index(method) - 0.12 for task in part["task"]]
        ax.hlines(y, part["cheapest"] / 1e3, part["dearest"] / 1e3, color=look["color"])
        ax.plot(part["tokens_per_point"] / 1e3, y, linestyle="none", label=method, **look)
    ax.set_yticks(range(len(tasks)), tasks)
    ax.set_ylim(len(tasks) - 0.5, -0.5)
    ax.grid(visible=True, axis="x")
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlabel(
        "tokens of training for a point of F1 over no skills [thousands]\n"
        "bars: at the ends of the gain's 95 % bootstrap interval over questions and seeds, none where it reaches 0"
    )
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    figure.suptitle(title_of(table, "What a point of F1 cost"))
    return figure
