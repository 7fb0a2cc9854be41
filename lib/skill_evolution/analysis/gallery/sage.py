"""Figures of 07_sage_training and 08_sage_ablations."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from skill_evolution.analysis import figures
from skill_evolution.analysis.frames import groups, rows, where
from skill_evolution.analysis.gallery import drawing, title_of
from skill_evolution.analysis.sage import CURVES, INTERVAL
from skill_evolution.analysis.sage_tables import HEADS, NAMES

ARMS = [NAMES[name] for name in ("prompted", "sft", "grpo", "sft_grpo", "sage")]
DECODINGS = ("greedy", "T = 1")


def _looks(arms: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Colour and marker of each arm, the same in all figures."""
    return figures.looks(list(dict.fromkeys(arms)), list(dict.fromkeys([*ARMS, *arms])))


def _legend_below(figure: Figure, axes: Sequence[Axes], *, note: str) -> None:
    entries = {label: handle for ax in axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(
        list(entries.values()), list(entries), loc="outside lower center", ncols=len(entries), title=note,
        title_fontsize=6.5,
    )  # fmt: skip


def _nothing() -> Figure:
    """What stands where a table is empty: a run of few arms has nothing to compare."""
    figure, (ax,) = figures.new_figure(width="column", height=0.6)
    ax.text(0.5, 0.5, "nothing to compare", ha="center", va="center")
    ax.set_axis_off()
    return figure


@drawing(
    "07_curves",
    "07_curves",
    alt="Reward, TGC and SGC on dev, skill usage, tokens and steps over the training steps, for each trained arm",
)
def training_curves(curves: pd.DataFrame) -> Figure:
    """One panel a figure; several seeds as mean and range."""
    metrics = [metric for metric in CURVES if metric in set(curves["metric"])]
    figure = Figure(figsize=(figures.WIDTHS["page"], 3.6), layout="constrained")
    axes = list(figure.subplots(2, -(-len(metrics) // 2), squeeze=False).flat)
    for ax, metric in zip(axes, metrics, strict=False):
        _curve_panel(ax, where(curves, curves["metric"] == metric))
        ax.set_ylabel(CURVES[metric])
    for ax in axes[len(metrics) :]:
        ax.set_axis_off()
    seeds = len(curves.drop_duplicates(["sft_seed", "seed"]))
    _legend_below(figure, axes, note=f"{'mean and range over n = ' if seeds > 1 else ''}{seeds} seed{'s'[: seeds > 1]}")
    figure.suptitle(title_of(curves, "Training: step by step"))
    return figure


def _curve_panel(ax: Axes, part: pd.DataFrame) -> None:
    for index, (arm, look) in enumerate(_looks(list(part["arm"]))):
        own = where(part, part["arm"] == arm)
        seeds = own.pivot(index="step", columns=["sft_seed", "seed"], values="value")
        steps = seeds.index.to_numpy()
        few = {"markersize": 3} if len(steps) < 12 else {"marker": ""}
        ax.plot(steps, seeds.mean(axis=1), linestyle=figures.LINES[index % 4], label=arm, **{**look, **few})
        ax.fill_between(steps, seeds.min(axis=1), seeds.max(axis=1), color=look["color"], alpha=0.15, linewidth=0)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("step")


@drawing("07_main", "07_main", alt="TGC and SGC of each arm on test and challenge, greedy and sampled, with intervals")
def main_results(table: pd.DataFrame) -> Figure:
    """One panel a split and metric, the decodings side by side."""
    splits = [split for split in dict.fromkeys(table["split"]) if split != "dev"]
    panels = [(split, metric) for split in splits for metric in ("tgc", "sgc")]
    figure, axes = figures.new_figure(width="page", height=2.6, columns=len(panels))
    for ax, (split, metric) in zip(axes, panels, strict=True):
        part = table.query("split == @split and metric == @metric")
        _points(ax, part)
        ax.set_title(split)
        ax.set_ylabel(HEADS[metric])
        ax.set_ylim(-3, 103)
    spans = [f"{table.query('split == @split')['n'].max()} ({split})" for split in splits]
    _legend_below(figure, axes, note=f"{INTERVAL}, n = {', '.join(spans)}")
    figure.suptitle(title_of(table, "Task and scenario goal completion"))
    return figure


def _points(ax: Axes, part: pd.DataFrame) -> None:
    decodings = list(dict.fromkeys(part["decoding"]))
    arms = list(_looks(list(part["arm"])))
    for place, (arm, look) in enumerate(arms):
        own = where(part, part["arm"] == arm)
        x = np.array([decodings.index(one) for one in own["decoding"]]) + 0.14 * (place - (len(arms) - 1) / 2)
        ax.vlines(x, own["low"], own["high"], color=look["color"])
        ax.plot(x, own["mean"], linestyle="none", label=arm, **look)
    ax.set_xticks(range(len(decodings)), decodings)
    ax.set_xlim(-0.5, len(decodings) - 0.5)


@drawing(
    "07_differences",
    "07_differences",
    alt="Paired differences by scenario of SAGE to SFT and to SFT with GRPO, in TGC, SGC, steps and tokens",
)
def paired_differences(table: pd.DataFrame) -> Figure:
    """One panel a metric, a line a split and decoding, 0 marked."""
    if table.empty:
        return _nothing()
    figure, axes = figures.new_figure(width="page", height=2.6, columns=len(HEADS))
    lines = [
        f"{split}, {decoding}" for split, decoding in dict.fromkeys(zip(table["split"], table["decoding"], strict=True))
    ]
    for ax, metric in zip(axes, HEADS, strict=True):
        ax.axvline(0, color="0.4", linewidth=0.8)
        for index, ((baseline,), part) in enumerate(groups(table.query("metric == @metric"), "baseline")):
            places = [lines.index(f"{row['split']}, {row['decoding']}") for row in rows(part)]
            y = np.array(places) + 0.16 * (2 * index - 1)
            ax.hlines(y, part["low"], part["high"], color=f"C{index}")
            ax.plot(part["difference"], y, figures.MARKERS[index], color=f"C{index}", label=f"SAGE − {baseline}")
        ax.set_yticks(range(len(lines)), lines if ax is axes[0] else [""] * len(lines))
        ax.set_ylim(len(lines) - 0.5, -0.5)
        ax.grid(visible=True, axis="x")
        ax.grid(visible=False, axis="y")
        ax.set_xlabel(HEADS[metric].replace("[%]", "[points]"))
    spans = ", ".join(f"{part['n'].max()} ({split})" for (split,), part in groups(table, "split"))
    _legend_below(figure, axes, note=f"{INTERVAL}, n = {spans}, paired")
    figure.suptitle(title_of(table, "SAGE against its starting point and against GRPO from the same"))
    return figure


@drawing(
    "07_seeds",
    "07_seeds",
    "07_seed_points",
    alt="TGC and SGC on test over several SFT and RL seeds for SFT, SFT with GRPO and SAGE, greedy and sampled",
)
def seeds(table: pd.DataFrame, points: pd.DataFrame) -> Figure:
    """Means over the seeds with intervals over scenarios, and every seed's own value as a small point beside."""
    if table.empty:
        return _nothing()
    figure, axes = figures.new_figure(width="page", height=2.6, columns=len(HEADS))
    for ax, metric in zip(axes, HEADS, strict=True):
        part = table.query("split == 'test' and metric == @metric")
        _points(ax, part)
        _seed_points(ax, points.query("split == 'test'"), metric, list(dict.fromkeys(part["decoding"])))
        ax.set_ylabel(HEADS[metric])
    n = table.query("split == 'test'")["n"].max()
    _legend_below(figure, axes, note=f"{INTERVAL}, n = {n} (test); small: each seed by itself")
    figure.suptitle(title_of(table, "Over the seeds").replace(" (", "\n(", 1))
    return figure


def _seed_points(ax: Axes, points: pd.DataFrame, metric: str, decodings: Sequence[str]) -> None:
    arms = list(_looks(list(points["arm"])))
    for place, (arm, look) in enumerate(arms):
        own = where(points, points["arm"] == arm)
        shift = 0.14 * (place - (len(arms) - 1) / 2) + 0.05
        x = np.array([decodings.index(one) for one in own["decoding"]]) + shift
        ax.plot(x, own[metric], linestyle="none", color=look["color"], marker=".", markersize=2.5)


@drawing(
    "08_ablations",
    "08_ablations",
    alt="TGC, SGC and tokens of every ablation, grouped, greedy and sampled, with intervals",
)
def ablations(table: pd.DataFrame) -> Figure:
    """One panel a metric, a line an arm under its group; the decodings side by side."""
    metrics = ("tgc", "sgc", "tokens")
    lines = list(dict.fromkeys(zip(table["group"], table["arm"], strict=True)))
    figure, axes = figures.new_figure(width="page", height=1.2 + 0.22 * len(lines), columns=len(metrics))
    for ax, metric in zip(axes, metrics, strict=True):
        for index, decoding in enumerate(DECODINGS):
            part = table.query("metric == @metric and decoding == @decoding")
            y = np.array([lines.index((row["group"], row["arm"])) for row in rows(part)]) + 0.24 * (index - 0.5)
            ax.hlines(y, part["low"], part["high"], color=f"C{index}")
            ax.plot(part["mean"], y, figures.MARKERS[index], color=f"C{index}", label=decoding)
        _group_lines(ax, lines, named=ax is axes[0])
        ax.set_xlabel(HEADS[metric])
    _legend_below(figure, axes, note=f"{INTERVAL}, n = {table['n'].max()}")
    figure.suptitle(title_of(table, f"Ablations on {table['split'].iloc[0]}"))
    return figure


def _group_lines(ax: Axes, lines: Sequence[tuple[str, str]], *, named: bool) -> None:
    """The lines' names, and a rule between groups."""
    names = [
        f"{group}: {arm}" if place == 0 or lines[place - 1][0] != group else arm
        for place, (group, arm) in enumerate(lines)
    ]
    ax.set_yticks(range(len(lines)), names if named else [""] * len(lines))
    ax.set_ylim(len(lines) - 0.5, -0.5)
    ax.grid(visible=True, axis="x")
    ax.grid(visible=False, axis="y")
    for place in range(1, len(lines)):
        if lines[place][0] != lines[place - 1][0]:
            ax.axhline(place - 0.5, color="0.8", linewidth=0.6)
