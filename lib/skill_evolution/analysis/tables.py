"""Tables: tidy frames from predictions and the papers' figures, and their rendering as CSV, LaTeX and HTML."""

import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from great_tables import GT
from IPython.display import HTML
from pandas.api.types import is_integer_dtype, is_numeric_dtype

from skill_evolution.analysis.frames import interval_text, texts, wide
from skill_evolution.analysis.statistics import AVERAGE, cells, mean_interval, paired_difference
from skill_evolution.runs.folder import write_text

KEYS = ["benchmark", "method", "category", "metric"]
REPORTED = "reported"
ZERO = 1e-9  # differences below are rounding
_FIGURE = re.compile(r"[-+±]?\d")  # how a cell begins that is a figure and not words
_MINUS = re.compile(r"(?<![\w.)-])-(?=\d)")
_INTERVAL = re.compile(r" \[[^\[\]]*\]")


def main_table(
    predictions: pd.DataFrame,
    metrics: Sequence[str],
    *,
    rng: np.random.Generator,
    reported: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Methods, categories (see `statistics.cells`) and metrics with their means, in percent, beside the papers'.

    Returns:
        benchmark, method, category, metric, the fields of `statistics.Estimate` and, for each model in `reported`, one
        column "reported (<model>)", null where the paper states no such figure.
    """
    table = pd.DataFrame(
        [
            {"benchmark": benchmark, "method": method, "category": category, "metric": metric}
            | asdict(mean_interval(rows, metric, rng=rng, by_category=category == AVERAGE))
            for (benchmark, method), own in cells(predictions, metrics).items()
            for category, rows, metric in own
        ]
    )
    return _with_reported(in_percent(table, "mean"), reported, kind="absolute", unit="percent")


def difference_table(
    predictions: pd.DataFrame,
    baseline: str,
    metrics: Sequence[str],
    *,
    rng: np.random.Generator,
    reported: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Each other method's differences to `baseline` in points (0 to 100), beside the papers' differences.

    Returns:
        As `main_table`, with the column baseline and the fields of `statistics.PairedDifference`.

    Raises:
        ValueError: the baseline has no rows for a benchmark.
    """
    found, every = [], cells(predictions, metrics)
    for (benchmark, method), own in every.items():
        if method != baseline and (benchmark, baseline) not in every:
            raise ValueError(f"no predictions of the baseline {baseline!r} on benchmark {benchmark!r}")
        others = {(cell.category, cell.metric): cell.rows for cell in every[benchmark, baseline]}
        for category, rows, metric in own if method != baseline else ():
            other = others.get((category, metric), pd.DataFrame(columns=rows.columns))
            result = paired_difference(rows, other, metric, rng=rng, by_category=category == AVERAGE)
            cell = {"benchmark": benchmark, "method": method, "baseline": baseline, "category": category}
            found.append(cell | {"metric": metric} | asdict(result))
    table = in_percent(pd.DataFrame(found), "difference")
    return _with_reported(table, reported, kind="difference", unit="points")


def in_percent(table: pd.DataFrame, value: str) -> pd.DataFrame:
    """The table with a value and its interval times 100."""
    return table.assign(**{column: 100 * table[column] for column in (value, "low", "high")})


def _with_reported(table: pd.DataFrame, reported: pd.DataFrame | None, *, kind: str, unit: str) -> pd.DataFrame:
    if reported is None:
        return table
    figures = reported.query("kind == @kind and unit == @unit")
    if figures.duplicated([*KEYS, "model"]).any():
        twice = figures.loc[figures.duplicated([*KEYS, "model"]), [*KEYS, "model"]].iloc[0].to_dict()
        raise ValueError(f"two reported figures for {twice}: choose one by its source")
    beside = figures.pivot(index=KEYS, columns="model", values="value")
    beside.columns = [f"{REPORTED} ({model})" for model in beside.columns]
    return table.merge(beside.reset_index(), on=KEYS, how="left")


def wide_table(table: pd.DataFrame, metric: str, value: str = "mean") -> pd.DataFrame:
    """A `main_table` as papers print it: a row a method, a column a category, "mean [low, high]" in each cell.

    So is a `difference_table`, if `value` is "difference". The papers' figures follow their method's row as rows of
    their own, marked "(reported, <model>)", without the model where nobody states it. `n` counts the questions and
    `missing` the answers left out, over all categories. `p_value` is the last category's.

    Raises:
        ValueError: the table has no such metric.
    """
    part = table.query("metric == @metric")
    if part.empty:
        raise ValueError(f"no metric {metric!r} in the table; it has {list(table['metric'].unique())}")
    marked = [str(column) for column in table if str(column).startswith(REPORTED) and any(part[column].notna())]
    sign, whole = ("", {}) if value == "mean" else ("+", {"p (average)": ("p_value", "last")})
    counts = {"n": ("n", "max"), "missing": ("n_missing", "max"), "interval": ("interval", "first")}
    keys = ["benchmark", "method"]
    shown = part.assign(cell=points(part) if sign else texts(part))
    ours = wide(shown, keys, "category", "cell", **whole, **counts).astype({"n": str, "missing": str})
    ours = ours.assign(**{name: ours[name].map("{:.3f}".format) for name in whole})
    rows = [ours.assign(of=ours["method"])]
    for column in marked:
        said = part.dropna(subset=column)
        said = wide(said.assign(cell=said[column].map(f"{{:{sign}.1f}}".format)), keys, "category", "cell")
        mark = f" ({column.replace(' (', ', ')}".replace(", model not stated", "")
        rows.append(said.assign(of=said["method"], method=said["method"] + mark))
    every = pd.concat(rows, ignore_index=True)
    order = list(zip(ours["benchmark"], ours["method"], strict=True))
    place = [order.index(key) for key in zip(every["benchmark"], every["of"], strict=True)]
    return every.iloc[np.argsort(place, kind="stable")].reindex(columns=ours.columns).reset_index(drop=True)


def points(table: pd.DataFrame) -> list[str | None]:
    """The differences of a table with their intervals as cells, "+1.0 [-0.5, +2.5]"; None where there is none.

    "±0" is a difference that cannot be another with other questions or seeds; one that only happens to be 0 keeps its
    interval: "+0.0 [-1.0, +1.0]".
    """
    return [_signed(*cell) for cell in zip(table["difference"], table["low"], table["high"], strict=True)]


def _signed(value: float, low: float, high: float) -> str | None:
    if pd.isna(value):
        return None
    if abs(value) < ZERO and (pd.isna(low) or high - low < ZERO):
        return "±0"  # the same answers
    ends = [round(end, 1) + 0.0 for end in (value, low, high)]  # + 0.0: no -0.0
    return interval_text(ends[0], ends[1], ends[2], sign="+")


def render_table(frame: pd.DataFrame, *, title: str, decimals: int = 1) -> HTML:
    """A table that a notebook displays; the title says whose model and data it is made with.

    Columns `benchmark` and `method`, where there are, become row groups and row names, and `interval` a note below.
    The id is made from the title, so the HTML is the same when made again. Floats have `decimals` decimals, p-values
    always three.
    """
    return verbatim(_table(_typeset(frame), title=title, decimals=decimals).as_raw_html())


def verbatim(markup: str) -> HTML:
    """HTML that MathJax leaves as it is: `\\[` or `$` in the texts of skills and models begin no formula.

    The classes are those that MathJax 3 and later (JupyterLab) and MathJax 2 (exported pages) skip.
    """
    return HTML(f'<div class="mathjax_ignore tex2jax_ignore">{markup}</div>')


def _typeset(frame: pd.DataFrame) -> pd.DataFrame:
    """Figures in cells of text set as great_tables sets numbers: a true minus sign; intervals don't break."""
    texts = [column for column in frame if not is_numeric_dtype(frame[column])]
    cells = {column: [_typeset_cell(cell) for cell in frame[column]] for column in texts}
    return frame.assign(**{str(c): pd.Series(found, frame.index, dtype=object) for c, found in cells.items()})


def _typeset_cell(cell: Any) -> Any:
    if not isinstance(cell, str) or not _FIGURE.match(cell):
        return cell
    if cell in ("+0.0", "-0.0"):  # a difference without an interval, as in `signed`
        return "±0"
    return _INTERVAL.sub(lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), _MINUS.sub("\N{MINUS SIGN}", cell))


def _table(frame: pd.DataFrame, *, title: str, decimals: int = 1) -> GT:
    notes = list(frame["interval"].dropna().unique()) if "interval" in frame else []
    frame = frame.drop(columns="interval", errors="ignore")
    id_ = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    group, name = ("benchmark" if "benchmark" in frame else None), ("method" if "method" in frame else None)
    table = GT(frame, id=id_, groupname_col=group, rowname_col=name)
    floats = list(frame.select_dtypes("float").columns)
    whole = [column for column in frame if is_integer_dtype(frame[column])]
    p_values = [column for column in floats if column == "p_value"]
    table = table.tab_header(title=title).fmt_number([c for c in floats if c not in p_values], decimals=decimals)
    table = table.fmt_integer(whole).fmt_number(p_values, decimals=3).sub_missing(missing_text="–")
    table = table.cols_label({column: column.replace("_", " ") for column in frame if "_" in column})
    for note in notes:
        table = table.tab_source_note(note)
    return table


def save_table(frame: pd.DataFrame, path_without_suffix: Path, *, title: str) -> None:
    """Write the frame as .csv (full precision), .tex and .html, each whole and then renamed."""
    page = _table(_typeset(frame), title=title)
    for suffix, text in (
        (".csv", frame.to_csv(index=False, lineterminator="\n")),
        (".tex", _table(frame, title=title).tab_options(table_font_size="8pt").as_latex()),
        (".html", page.as_raw_html()),
    ):
        write_text(path_without_suffix.with_name(path_without_suffix.name + suffix), text)
