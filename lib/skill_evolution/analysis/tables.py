"""Tables: tidy frames from predictions and the papers' figures, and their rendering as CSV, LaTeX and HTML."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from great_tables import GT
from IPython.display import HTML
from pandas.api.types import is_integer_dtype, is_numeric_dtype

from skill_evolution.analysis.frames import interval_text
from skill_evolution.analysis.statistics import paired_differences, summarize
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
    **options: float,
) -> pd.DataFrame:
    """Methods, categories and metrics with their means, in percent, and the papers' figures beside ours.

    Returns:
        The columns of `statistics.summarize` with `mean`, `low` and `high` in percent and, for each model in
        `reported`, one column "reported (<model>)", null where the paper states no such figure.
    """
    table = _in_percent(summarize(predictions, metrics, rng=rng, **options), ["mean", "low", "high"])
    return _with_reported(table, reported, kind="absolute", unit="percent")


def difference_table(
    predictions: pd.DataFrame,
    baseline: str,
    metrics: Sequence[str],
    *,
    rng: np.random.Generator,
    reported: pd.DataFrame | None = None,
    **options: float,
) -> pd.DataFrame:
    """The columns of `statistics.paired_differences` in points (0 to 100), beside the papers' differences.

    `reported` holds differences to the same baseline (see the rows' notes).
    """
    table = paired_differences(predictions, baseline, metrics, rng=rng, **options)
    table = _in_percent(table, ["difference", "low", "high"])
    return _with_reported(table, reported, kind="difference", unit="points")


def _in_percent(table: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    return table.assign(**{column: 100 * table[column] for column in columns})


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


def wide_table(table: pd.DataFrame, metric: str) -> pd.DataFrame:
    """A `main_table` as papers print it: a row a method, a column a category, "mean [low, high]" in each cell.

    The papers' figures follow their method's row as rows of their own, marked "(reported, <model>)". `n` counts the
    questions and `missing` the answers left out, over all categories.

    Raises:
        ValueError: the table has no such metric.
    """
    part = table.query("metric == @metric")
    if part.empty:
        raise ValueError(f"no metric {metric!r} in the table; it has {list(table['metric'].unique())}")
    marked = [column for column in table.columns if column.startswith(REPORTED)]
    rows = []
    for benchmark, method in dict.fromkeys(zip(part["benchmark"], part["method"], strict=True)):
        cells = part.query("benchmark == @benchmark and method == @method").to_dict("records")
        whole = max(cells, key=lambda cell: cell["n"])
        texts = {cell["category"]: interval_text(cell["mean"], cell["low"], cell["high"]) for cell in cells}
        counts = {"n": str(whole["n"]), "missing": str(whole["n_missing"]), "interval": whole["interval"]}
        rows.append({"benchmark": benchmark, "method": method} | texts | counts)
        for column in marked:
            figures = {cell["category"]: f"{cell[column]:.1f}" for cell in cells if pd.notna(cell[column])}
            if figures:
                label = f"{method} ({column.replace(' (', ', ')}"
                rows.append({"benchmark": benchmark, "method": label} | figures)
    categories = dict.fromkeys(part["category"])
    return pd.DataFrame(rows, columns=["benchmark", "method", *categories, "n", "missing", "interval"])


def signed(cell: Mapping[str, Any]) -> str | None:
    """A difference with its interval as a cell, "+1.0 [-0.5, +2.5]"; None where there is none.

    "±0" is a difference that cannot be another with other questions or seeds; one that only happens to be 0 keeps its
    interval: "+0.0 [-1.0, +1.0]".
    """
    if pd.isna(cell["difference"]):
        return None
    value, low, high = (round(cell[name], 1) + 0.0 for name in ("difference", "low", "high"))  # + 0.0: no -0.0
    if abs(cell["difference"]) < ZERO and (pd.isna(low) or cell["high"] - cell["low"] < ZERO):
        return "±0"  # the same answers
    return interval_text(value, low, high, sign="+")


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
