"""Figures of 05_ablations."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skill_evolution.analysis import figures
from skill_evolution.analysis.ablations import variant_names
from skill_evolution.analysis.gallery import drawing, title_of
from skill_evolution.analysis.sweeps import FIELDS, value_text

REPORTED = "reported (model not stated)"


@drawing(
    "05_minus_full",
    "05_minus_full",
    alt="Paired differences of each ablation to the full method in F1 and BLEU, by LoCoMo category, with intervals",
)
def minus_full(differences: pd.DataFrame) -> Figure:
    """A panel a metric; the papers' differences as crosses in the variant's line."""
    metrics = list(dict.fromkeys(differences["metric"]))
    figure, axes = figures.new_figure(width="page", height=4.2, columns=len(metrics))
    for ax, metric in zip(axes, metrics, strict=True):
        part = differences.query("metric == @metric")
        label = f"{ {'f1': 'F1', 'bleu': 'BLEU'}.get(metric, metric) } minus the full method's [points]"
        figures.plot_differences(part, ax, label=label, methods=_methods(part))
        _add_reported(part, ax)
    _legend_below(figure, axes)
    figure.suptitle(title_of(differences, "Ablations"))
    return figure


def _methods(part: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys([*variant_names(), *part["method"]]))


def _add_reported(part: pd.DataFrame, ax: Axes) -> None:
    if REPORTED not in part or not part[REPORTED].notna().to_numpy().any():
        return
    drawn = {str(line.get_label()): line for line in ax.get_lines()}
    x, y = [], []
    for method, rows in part.groupby("method", sort=False):
        x += list(rows[REPORTED])
        y += list(drawn[str(method)].get_ydata())  # pyright: ignore[reportArgumentType]
    ax.plot(x, y, linestyle="none", marker="x", color="black", label="reported by the paper")


def _legend_below(figure: Figure, axes: list[Axes]) -> None:
    """One legend for all panels: side by side their own would run into each other."""
    entries = {label: handle for ax in axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    for ax in axes:
        if legend := ax.get_legend():
            legend.remove()
    figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=len(entries))


@drawing(
    "05_sweeps",
    "05_sweeps",
    alt="F1 on the mixed LoCoMo library against group size, gate tolerance and support for induction, with intervals",
)
def sweeps(table: pd.DataFrame) -> Figure:
    """A panel a field; the usual value is filled, the others are open."""
    fields = list(dict.fromkeys(table["field"]))
    figure, axes = figures.new_figure(width="page", height=2.6, columns=len(fields))
    low, high = (float(ends) for ends in (table[["low", "mean"]].min().min(), table[["high", "mean"]].max().max()))
    for ax, field in zip(axes, fields, strict=True):
        part = table.query("field == @field").reset_index(drop=True)
        _sweep(part, ax)
        ax.set_xlabel(FIELDS.get(str(field), str(field)))
        ax.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
    axes[0].set_ylabel("F1, average of categories [%]")
    axes[0].legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    figure.supxlabel(figures.interval_note(table.assign(method=table["field"])).replace("\n", " "), size=6)
    figure.suptitle(title_of(table, f"Settings of GRSE, one mixed LoCoMo library, {table['trained_with'].iloc[0]}"))
    return figure


def _sweep(part: pd.DataFrame, ax: Axes) -> None:
    x = list(range(len(part)))
    ax.plot(x, part["mean"], color="C0", linewidth=0.8)
    ax.vlines(x, part["low"], part["high"], color="C0")
    for own, label in ((True, "usual setting"), (False, "changed")):
        there = part["own"] == own
        face = "C0" if own else "white"
        ax.plot(
            [place for place, here in zip(x, there, strict=True) if here],
            part.loc[there, "mean"],
            linestyle="none", marker="o", color="C0", markerfacecolor=face, label=label,
        )  # fmt: skip
    ax.set_xticks(x, [value_text(f, v) for f, v in zip(part["field"], part["value"], strict=True)])
    ax.set_xlim(-0.5, len(part) - 0.5)
