"""The figures of all notebooks: a table of what each one shows. Each is drawn from tidy CSV files and nothing else.

    python -m skill_evolution.analysis.gallery results/demo

redraws every figure whose tables are there (`make figures`), byte for byte as the notebooks drew them.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import seaborn
from IPython.display import HTML
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullLocator

from skill_evolution.analysis.figures import (
    COLUMN,
    METHODS,
    PAGE,
    Looks,
    Spec,
    bars,
    colours,
    heat,
    intervals,
    lines,
    paint,
    places,
    save_figure,
    show_figure,
    stack,
)
from skill_evolution.analysis.frames import groups, where
from skill_evolution.analysis.names import NAMES
from skill_evolution.analysis.runtime import REPORTED_AS
from skill_evolution.analysis.sage import CURVES, HEADS, INTERVAL
from skill_evolution.analysis.sweeps import FIELDS, value_text

OVER_SEEDS = "mean and range over the seeds, n = {seeds}"
ESTIMATED = "{interval}, n = {n} questions x {n_seeds} seeds{missing}"
PAIRED = "{interval}, n = {n} questions, paired{missing}"
SCENARIOS = INTERVAL + ", n = {n}"
ARMS = tuple(NAMES[name] for name in ("prompted", "sft", "grpo", "sft_grpo", "sage"))
CLEAN = " from the helpful skills"  # after a method's name: started from them, not from the planted libraries


def _skill_share(counted: pd.DataFrame) -> pd.DataFrame:
    coded = where(counted, counted["type"] != "not coded").fillna({"share": 0})
    of = {b: ", ".join(f"n = {n} {m}" for m, n in own.drop_duplicates("method")[["method", "n"]].to_numpy())
          for (b,), own in groups(coded, "benchmark")}  # fmt: skip
    return coded.assign(skills=coded["benchmark"].map(of.get))


def _f1_from_planted(ax: Axes, part: pd.DataFrame, looks: Looks, curves: pd.DataFrame, ends: pd.DataFrame) -> None:
    """A band for the helpful skills only, which are not trained, and at the right each method's end from them."""
    ends = where(ends, ends["metric"] == "f1").set_index("method")
    helpful = ends.loc["helpful skills only"]
    ax.axhspan(helpful["low"], helpful["high"], color="0.85", linewidth=0)
    ax.axhline(helpful["mean"], color="0.4", linewidth=0.8, linestyle=":", label="helpful skills only")
    last = curves["iteration"].max() + 0.6
    for method, place in places(looks, FIGURES["03_f1"]).items():
        if (name := method + CLEAN) in ends.index:
            end, look = ends.loc[name], looks[method]
            label = f"{name} ({end['n_seeds']} seeds)"
            ax.vlines(last + 2 * place, end["low"], end["high"], color=look["color"], linewidth=0.8)
            ax.plot(last + 2 * place, end["mean"], look["marker"], color=look["color"], mfc="white", label=label)


def _remaining(ax: Axes, part: pd.DataFrame, looks: Looks, curves: pd.DataFrame, reported: pd.DataFrame) -> None:
    """In how many runs the text is still the planted one, where not in all; crosses for the paper's own such skill."""
    beside = places(looks, FIGURES["03_utility"])
    for name, x, y, n in part[["method", "iteration", "mean", "n"]].to_numpy():
        if n < part["n"].max():
            ax.annotate(f"{n}", (x + beside[name], y), (4, -6), textcoords="offset points", fontsize=6,
                        color=looks[name]["color"])  # fmt: skip
    crosses = where(reported, reported["skill"] == part["skill"].iloc[0])
    if not crosses.empty:
        ax.plot(crosses["iteration"], crosses["utility"], "kx", label="reported (GRSE, the paper's own such skill)")


def _swept(table: pd.DataFrame) -> pd.DataFrame:
    setting_of = {True: "usual setting", False: "changed"}
    values = [value_text(field, value) for field, value in zip(table["field"], table["value"], strict=True)]
    return table.assign(value=values, own=table["own"].map(setting_of.get), setting=table["field"].replace(FIELDS))


def _parts_of_tokens(table: pd.DataFrame) -> pd.DataFrame:
    wholes = {task: sum(own["tokens"]) for (task,), own in groups(where(table, table["method"] == "MASkills"), "task")}
    share = table["tokens"] / table["task"].map(wholes.get)
    return where(table.assign(share=share, bar=table["task"] + ": " + table["method"]), share.notna())


def _compared(table: pd.DataFrame, reported: pd.DataFrame) -> pd.DataFrame:
    known = [*REPORTED_AS.values(), "modelled wall clock", "measured wall clock"]
    return where(table, table["quantity"].isin(known)).assign(method="GRSE / MASkills")


def _ranges(ax: Axes, part: pd.DataFrame, looks: Looks, table: pd.DataFrame, reported: pd.DataFrame) -> None:
    """The paper's ranges of the quantity as grey bands; where it states two, both."""
    quantity = part["quantity"].iloc[0] if "quantity" in part else "wall clock"
    metric = {words: metric for metric, words in REPORTED_AS.items()}.get(quantity, "wall_clock")
    said = where(reported, reported["metric"] == metric)
    span = ax.axvspan if "quantity" in part else ax.axhspan
    for shade, (low, high, source) in zip(("0.75", "0.6"), said[["low", "high", "source"]].to_numpy(), strict=False):
        span(low, high, color=shade, alpha=0.5, linewidth=0, label=f"reported, {source}")


def _octaves(ax: Axes, part: pd.DataFrame, looks: Looks, table: pd.DataFrame, reported: pd.DataFrame) -> None:
    ax.set_xscale("log", base=2)
    limits = list(dict.fromkeys(part["limit"]))
    ax.set_xticks(limits, [str(limit) for limit in limits])
    _ranges(ax, part, looks, table, reported)


def _decades(ax: Axes, part: pd.DataFrame, looks: Looks, table: pd.DataFrame) -> None:
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.xaxis.set_minor_locator(NullLocator())


def _sage(table: pd.DataFrame, *_: pd.DataFrame, metrics: tuple[str, ...] = tuple(HEADS)) -> pd.DataFrame:
    """Rows of some metrics, a metric after the other, with what they are called."""
    parts = [where(table, table["metric"] == metric).assign(what=HEADS[metric]) for metric in metrics]
    return pd.concat(parts, ignore_index=True)


def _of_seeds(ax: Axes, part: pd.DataFrame, looks: Looks, table: pd.DataFrame, points: pd.DataFrame) -> None:
    """Every seed's own value as a small point beside the mean."""
    before, own = len(ax.collections), where(points, points["split"] == "test")
    seaborn.stripplot(
        own, x="decoding", y=part["metric"].iloc[0], hue="arm", hue_order=list(looks), dodge=True, jitter=False, size=2,
        palette=colours(looks), legend=False, ax=ax,
    )  # fmt: skip
    for dots in ax.collections[before:]:
        dots.set_offsets(np.add(dots.get_offsets(), (0.08, 0)))
    ax.set(xlabel="", ylabel=HEADS[part["metric"].iloc[0]])


def _between_groups(ax: Axes, part: pd.DataFrame, looks: Looks, table: pd.DataFrame) -> None:
    bars_of = list(dict.fromkeys(zip(part["group"], part["arm"], strict=True)))
    for place in range(1, len(bars_of)):
        if bars_of[place][0] != bars_of[place - 1][0]:
            ax.axhline(place - 0.5, color="0.8", linewidth=0.6)


_MEANS = Spec(
    title="Token F1 by category",
    alt="Token F1 of each method by question category, for HotpotQA and LoCoMo",
    tables=("01_main",),
    kind=intervals, x="category", y="mean", hue="method", facet=("benchmark",),
    tidy=lambda main: where(main, main["metric"] == "f1"),
    panel="{benchmark} (n = {n})", ylabel="F1 [%]", note=ESTIMATED, size=(PAGE, 4.4), per_row=1,
)  # fmt: skip
_DIFFERENCES = Spec(
    title="Paired differences to MASkills",
    alt="Paired differences in F1 to MASkills by category",
    tables=("01_minus_maskills",),
    kind=intervals, x="difference", y="category", hue="method", facet=("benchmark",),
    panel="{benchmark} (n = {n})", xlabel="F1 minus MASkills [points]", note=PAIRED, line=0, size=(PAGE, 4.2),
)  # fmt: skip
_ITERATIONS = Spec(
    title="Validation reward over the iterations",
    alt="Validation reward over the iterations for each method",
    tables=("01_validation",),
    kind=lines, x="iteration", y="value", hue="method", facet=("benchmark",),
    panel="{benchmark}", xlabel="iteration", ylabel="validation reward [%]", note=OVER_SEEDS,
)  # fmt: skip
_COMPLETION = Spec(
    title="Task and scenario goal completion",
    alt="TGC and SGC of each arm on test and challenge, greedy and sampled, with intervals",
    tables=("07_main",),
    kind=intervals, x="decoding", y="mean", hue="arm", facet=("split", "what"), series=ARMS,
    tidy=lambda table: _sage(table, metrics=("tgc", "sgc")).sort_values("split", kind="stable", ascending=False),
    panel="{split} (n = {n})", ylabel="{what}", note=SCENARIOS, axes={"ylim": (-3, 103)},
)  # fmt: skip

FIGURES: dict[str, Spec] = {
    "01_f1": _MEANS,
    "01_differences": _DIFFERENCES,
    "01_validation": _ITERATIONS,
    "02_transitions": Spec(
        title="Answers before and after training",
        alt="Answers declined, wrong and correct before and after training, counted",
        tables=("02_transitions",),
        kind=heat, x="after", y="before", facet=("benchmark", "method"), panel="{benchmark}: {method}",
        xlabel="after training", ylabel="without skills", size=(PAGE, 2.2), share="y",
    ),
    "02_skill_types": Spec(
        title="Types of the skills in the final libraries, by {coded_by}",
        alt="Share of each skill type in the final libraries of each method",
        tables=("02_skill_types",),
        kind=bars, x="type", y="share", hue="method", facet=("benchmark", "skills"), tidy=_skill_share,
        panel="{benchmark} ({skills})", ylabel="share of the skills [%]", note="numbers: skills",
    ),
    "02_growth": replace(
        _ITERATIONS,
        title="Growth of the libraries",
        alt="Skills in each agent's library over the iterations, by method",
        tables=("02_growth",),
        facet=("benchmark", "agent"), panel="{benchmark}, {agent}", ylabel="skills in a library",
        share="y", axes={"ylim": (0, None)}, size=(PAGE, 2.3),
        tidy=lambda sizes: sizes.groupby(
            ["benchmark", "agent", "method", "seed", "iteration", "made_with"], sort=False, as_index=False
        )["value"].mean().assign(agent=lambda mean: mean["agent"].str.replace("_", " ")),
    ),
    "03_utility": Spec(
        title="Utility of the planted skills",
        alt="Utility of each planted skill by iteration, for each method, as long as it has its planted text",
        tables=("03_utility", "03_reported_utility"),
        kind=lines, x="iteration", y="mean", hue="method", facet=("skill", "truth"), panel="{skill} ({truth})",
        xlabel="iteration", ylabel="utility", size=(PAGE, 3.9), per_row=3, share="xy", line=0, beside=0.1,
        also=_remaining,
        note="mean and range over n = {n} runs, those whose text is still the planted one (a number where not all)",
    ),
    "03_signs": Spec(
        title="Signs of the planted skills' utility against the truth",
        alt="Share of runs in which each planted skill, and all of them, have the right sign",
        tables=("03_signs",),
        kind=intervals, x="skill", y="mean", hue="method", facet=("reading",), panel="{reading}", share="y",
        tidy=lambda rates: where(rates, rates["reading"] != "at the end").assign(
            skill=rates["skill"].str.replace("-", "-\n").str.replace(" ", "\n")
        ),
        ylabel="runs with the right sign [%]", axes={"ylim": (-4, 104)}, size=(PAGE, 2.8),
        note="95 % exact binomial (Clopper-Pearson) interval over runs, n = {n}",
    ),
    "03_f1": Spec(
        title="Test F1 from planted libraries\n",
        alt="Test F1 by iteration for each method from the perturbed libraries, beside the helpful skills only",
        tables=("03_curves", "03_f1"),
        kind=lines, x="iteration", y="mean", hue="method", ylabel="single-hop test F1 [%]",
        xlabel="iteration (0: perturbed start, one run)", note=ESTIMATED,
        size=(COLUMN, 3.6), beside=0.1, also=_f1_from_planted,
        tidy=lambda curves, _: curves.assign(n_seeds=curves["n_seeds"].where(curves["iteration"] > 0)),
    ),
    "04_f1": replace(
        _MEANS,
        title="Token F1 by where the libraries were learned",
        alt="Token F1 on each target without skills, with transferred and with in-domain libraries",
        tables=("04_f1",),
        x="learner", facet=("target",), tidy=lambda means: means.assign(learner="libraries of " + means["learner"]),
        panel="target {target} (n = {n})", size=(PAGE, 2.5), per_row=None,
        series=(*METHODS, "transferred", "in-domain"),
    ),
    "04_differences": replace(
        _DIFFERENCES,
        title="Paired differences in F1",
        alt="Paired differences in F1 between transferred, in-domain and no skills",
        tables=("04_differences",),
        y="comparison", hue="learner", facet=("target",), size=(PAGE, 2.6), share="y",
        panel="target {target} (n = {n})",
        tidy=lambda table: table.assign(comparison=table["comparison"].str.replace(" minus ", "\nminus ")),
        xlabel="F1 difference [points]",
    ),
    "05_minus_full": replace(
        _DIFFERENCES,
        title="Ablations",
        alt="Paired differences of each ablation to the full method in F1 and BLEU, by LoCoMo category, with intervals",
        tables=("05_minus_full",),
        facet=("metric",), panel="{metric}", share="y", series=(), size=(PAGE, 4.2),
        xlabel="{metric} minus the full method's [points]",
        tidy=lambda table: table.rename(columns={"reported (model not stated)": "reported"}).assign(
            metric=table["metric"].replace({"f1": "F1", "bleu": "BLEU"})
        ),
    ),
    "05_sweeps": Spec(
        title="Settings of GRSE, one mixed LoCoMo library, {trained_with}",
        alt="F1 on the mixed LoCoMo library against group size, gate tolerance and support for induction, with "
        "intervals",
        tables=("05_sweeps",),
        kind=intervals, x="value", y="mean", hue="own", facet=("setting",), tidy=_swept, xlabel="{setting}",
        ylabel="F1, average of categories [%]", note=ESTIMATED, series=(), share="y", beside=0,
    ),
    "06_tokens": Spec(
        title="Tokens of training by part",
        alt="Tokens of training by part for MASkills and GRSE, by task, MASkills' sum as 1",
        tables=("06_tokens",),
        kind=stack, x="share", y="bar", hue="part", tidy=_parts_of_tokens, series=(), size=(PAGE, 3.2),
        xlabel="tokens of training, all of MASkills' on the task = 1 (mean over seeds)",
    ),
    "06_ratios": Spec(
        title="Cost of GRSE over MASkills",
        alt="GRSE over MASkills by task: tokens of rollouts, tokens with validation, modelled wall clock; reported "
        "ranges",
        tables=("06_ratios", "06_reported"),
        kind=intervals, x="ratio", y="task", hue="method", facet=("quantity",), tidy=_compared, share="y",
        xlabel="{quantity}", line=1, also=_ranges, series=(*METHODS[:2], "GRSE / MASkills"),
        note="sums over n = {n_seeds} seeds, bars from the lowest to the highest seed",
    ),
    "06_limits": Spec(
        title="Modelled wall clock and concurrency",
        alt="Modelled wall clock of GRSE over MASkills against the number of calls at once, by task",
        tables=("06_limits", "06_reported"),
        kind=lines, x="limit", y="ratio", hue="task", xlabel="calls at once (concurrency limit)",
        ylabel="modelled wall clock, GRSE / MASkills", series=(), given=False, also=_octaves, size=(PAGE, 3.0),
        note="sums over n = {n_seeds} seeds",
    ),
    "06_gains": Spec(
        title="What a point of F1 cost",
        alt="Tokens of training for a point of F1 over the team without skills, by task",
        tables=("06_gains",),
        kind=intervals, x="thousands", y="task", hue="method", also=_decades,
        tidy=lambda costs: where(costs, costs["tokens_per_point"].notna()).assign(
            thousands=costs["tokens_per_point"] / 1e3, low=costs["cheapest"] / 1e3, high=costs["dearest"] / 1e3
        ),
        xlabel="tokens of training for a point of F1 over no skills [thousands]",
        note="bars: at the ends of the gain's 95 % bootstrap interval over questions and seeds, none where it "
        "reaches 0",
    ),
    "07_curves": replace(
        _ITERATIONS,
        title="Training: step by step",
        alt="Reward, TGC and SGC on dev, skill usage, tokens and steps over the training steps, for each trained arm",
        tables=("07_curves",),
        x="step", hue="arm", facet=("metric",), panel="", xlabel="step", ylabel="{metric}", series=ARMS,
        tidy=lambda curves: curves.assign(metric=curves["metric"].replace(CURVES)), size=(PAGE, 3.6), per_row=3,
    ),
    "07_main": _COMPLETION,
    "07_differences": replace(
        _DIFFERENCES,
        title="SAGE against its starting point and against GRPO from the same",
        alt="Paired differences by scenario of SAGE to SFT and to SFT with GRPO, in TGC, SGC, steps and tokens",
        tables=("07_differences",),
        y="place", hue="pair", facet=("what",), size=(PAGE, 2.6), panel="", series=(), share="y", xlabel="{what}",
        tidy=lambda table: _sage(table).assign(
            place=lambda all_: all_["split"] + ", " + all_["decoding"],
            pair=lambda all_: all_["arm"] + " − " + all_["baseline"],
            what=lambda all_: all_["what"].str.replace("%", "points"),
        ),
        note=f"{SCENARIOS}, paired",
    ),
    "07_seeds": replace(
        _COMPLETION,
        title="Over the seeds\n",
        alt="TGC and SGC on test over several SFT and RL seeds for SFT, SFT with GRPO and SAGE, greedy and sampled",
        tables=("07_seeds", "07_seed_points"),
        facet=("what",), tidy=lambda *tables: _sage(where(tables[0], tables[0]["split"] == "test")),
        panel="", note=f"{SCENARIOS} (test); small: each seed by itself", axes={}, beside=0.3, also=_of_seeds,
    ),
    "08_ablations": replace(
        _COMPLETION,
        title="Ablations on {split}",
        alt="TGC, SGC and tokens of every ablation, grouped, greedy and sampled, with intervals",
        tables=("08_ablations",),
        x="mean", y="line", hue="decoding", facet=("what",), series=(), share="y", panel="", xlabel="{what}", ylabel="",
        tidy=lambda table: _sage(table, metrics=("tgc", "sgc", "tokens")).assign(
            line=lambda all_: all_["group"] + ": " + all_["arm"]
        ),
        size=(PAGE, 5.2), axes={}, also=_between_groups,
    ),
}  # fmt: skip


def draw(name: str, folder: Path) -> HTML:
    """Draw a figure from its tables into `folder/figures/` (PDF and PNG) and show it.

    Raises:
        KeyError: there is no such figure.
        FileNotFoundError: one of its tables has not been written.
    """
    spec, path = FIGURES[name], folder / "figures" / name
    tables = [pd.read_csv(folder / "tables" / f"{table}.csv") for table in spec.tables]
    save_figure(paint(spec, *tables), path, alt=spec.alt)
    return show_figure(path)


def redraw(folder: Path) -> list[str]:
    """Draw every figure whose tables are in the folder; returns their names."""
    there = {path.stem for path in (folder / "tables").glob("*.csv")}
    names = [name for name, spec in FIGURES.items() if there.issuperset(spec.tables)]
    for name in names:
        draw(name, folder)
    return names


def main(arguments: list[str]) -> int:
    """Redraw the figures of the folders named; the exit status is 1 where a folder has none of the tables."""
    status = 0
    for argument in arguments:
        names = redraw(Path(argument))
        sys.stdout.write(f"{argument}: {len(names)} figures drawn\n")
        status = status or int(not names)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
