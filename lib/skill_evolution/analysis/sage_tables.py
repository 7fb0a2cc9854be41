"""Tables of the SAGE experiments as papers print them, with the papers' own figures below ours."""

import platform
from collections.abc import Sequence
from importlib import metadata

import pandas as pd

from skill_evolution.analysis.frames import groups, rows, texts, where, wide
from skill_evolution.analysis.names import named
from skill_evolution.analysis.reported import load_reported
from skill_evolution.analysis.sage import HEADS, INTERVAL
from skill_evolution.sage.config import SageConfig
from skill_evolution.sage.stages.stage import PACKAGES

REPORTED_SPLITS = {"test_normal": "Test-Normal", "test_challenge": "Test-Challenge"}


def wide_table(table: pd.DataFrame, reported: pd.DataFrame | None = None) -> pd.DataFrame:
    """A `summary` as papers print it: a row an arm under its split and decoding, "mean [low, high]" in each cell.

    The papers' figures follow as rows of their own, under what they were measured on.
    """
    keys = ["split", "decoding", "arm"]
    most = pd.DataFrame(table.groupby(keys)[["n", "n_seeds"]].transform("max"))
    note = [
        f"{INTERVAL}, n = {n} scenarios{f' x {seeds} seeds' if seeds > 1 else ''}; failed: rows in no mean"
        for n, seeds in zip(most["n"], most["n_seeds"], strict=True)
    ]
    usage = table["usage"].map("{:.2f}".format).where(table["usage"].notna(), None)
    cells = table.assign(cell=texts(table), usage=usage, interval=note, failed=table["failed"].astype(str))
    cells = cells.drop_duplicates([*keys, "metric"])
    kept = {"skill usage": ("usage", "first"), "failed": ("failed", "first"), "interval": ("interval", "first")}
    ours = _placed(wide(cells, keys, "metric", "cell", **kept).assign(method=lambda view: view["arm"].map(named)))
    return ours if reported is None else pd.concat([ours, reported_rows(reported)], ignore_index=True)


def _placed(view: pd.DataFrame) -> pd.DataFrame:
    """Split and decoding as groups, metrics under their heads."""
    place = view["split"] + ", " + view["decoding"]
    rest = [*HEADS, *(name for name in view if name not in ("split", "decoding", "arm", "baseline", "method", *HEADS))]
    columns = ["benchmark", "method", *rest]
    return view.assign(benchmark=place).reindex(columns=columns).rename(columns=HEADS)


def reported_rows(reported: pd.DataFrame) -> pd.DataFrame:
    """The papers' absolute figures in the columns of `wide_table`, a row a method and model."""
    part = where(reported, (reported["kind"] == "absolute") & reported["metric"].isin(list(HEADS)))
    place = "reported by the paper: AppWorld " + part["category"].replace(REPORTED_SPLITS)
    names = part["method"].map(named) + " (" + part["model"] + ")"
    part = part.assign(benchmark=place, method=names, cell=part["value"].map("{:,g}".format))
    part = part.sort_values("category", key=lambda c: c.map(list(REPORTED_SPLITS).index), kind="stable")
    table = wide(part, ["benchmark", "method"], "metric", "cell")
    return table.rename(columns=HEADS)


def main_reported() -> pd.DataFrame:
    """The figures that stand below the main table: data/reported/sage.csv, and SFT with GRPO from the ablations."""
    return pd.concat([load_reported("sage"), load_reported("sage_ablations").query("method == 'sft_grpo'")])


def reported_of(arms: Sequence[str]) -> pd.DataFrame:
    """The paper's figures on Test-Normal for some arms: its ablations, and those of its main results among them."""
    every = pd.concat([load_reported("sage"), load_reported("sage_ablations")], ignore_index=True)
    return every.query("method in @arms and category == 'test_normal'")


def group_table(table: pd.DataFrame, group: str) -> pd.DataFrame:
    """`wide_table` of one group of arms, with the paper's figures for the same arms below."""
    part = table.query("group == @group")
    return wide_table(part, reported_of(list(part["arm"].unique())))


CLAIMS = (
    ("SGC [points]", "sgc", "grpo", False),
    ("steps [%]", "steps", "grpo", True),
    ("tokens [%]", "tokens", "grpo", True),
    ("tokens [%]", "tokens", "sft_grpo", True),
)
"""What the abstract claims of SAGE against GRPO, and the comparison that its figure of tokens leaves out."""


def claims_table(table: pd.DataFrame) -> pd.DataFrame:
    """SAGE against GRPO as the abstract puts it, beside the same here: a row a claim, on test.

    The paper's column is worked out from its main results on Test-Normal (60.7 and 51.8 SGC; 12.1 and 16.4 steps;
    1,475, 3,613 and, for SFT with GRPO, 1,284 tokens).
    """
    reported = main_reported().query("kind == 'absolute' and category == 'test_normal'")
    ours = {
        f"here, {decoding}": {(row["arm"], row["metric"]): row["mean"] for row in rows(part)}
        for (decoding,), part in groups(table.query("split == 'test'"), "decoding")
    }
    theirs = {(row["method"], row["metric"]): row["value"] for row in rows(reported)}
    return pd.DataFrame(
        [
            {"SAGE against": named(baseline), "what": what}
            | {
                place: _compared(values.get(("sage", metric)), values.get((baseline, metric)), relative=relative)
                for place, values in {"reported by the paper": theirs, **ours}.items()
            }
            for what, metric, baseline, relative in CLAIMS
        ]
    )


def _compared(own: float | None, other: float | None, *, relative: bool) -> str | None:
    if own is None or other is None or (relative and not other):
        return None
    return f"{100 * (own / other - 1) if relative else own - other:+.1f}"


def versions(config: SageConfig) -> pd.DataFrame:
    """Versions of Python and of the packages that a run depends on, the profile and the policy."""
    rows = {"python": platform.python_version(), **{name: metadata.version(name) for name in PACKAGES}}
    rows |= {"profile": config.profile, "policy": config.label}
    return pd.DataFrame(rows.items(), columns=["package", "version"])


def difference_table(table: pd.DataFrame) -> pd.DataFrame:
    """Differences as a row a pair under its split and decoding, "difference [low, high]" and p-values in the cells."""
    keys = ["split", "decoding", "arm", "baseline"]
    most = pd.DataFrame(table.groupby(keys)[["n"]].transform("max"))
    note = [f"{INTERVAL}, n = {n} scenarios, paired; p: sign flips over scenarios" for n in most["n"]]
    p_values = {
        f"p ({metric.upper()})": table["p_value"].map("{:.3f}".format).where(table["metric"] == metric, None)
        for metric in ("tgc", "sgc")
    }
    cells = table.assign(cell=texts(table, "difference", sign="+"), interval=note, **p_values)
    kept = {name: (name, "first") for name in (*p_values, "interval")}
    view = wide(cells, keys, "metric", "cell", **kept)
    return _placed(view.assign(method=view["arm"].map(named) + " − " + view["baseline"].map(named)))


SKILL_COLUMNS = {
    "skill_usage_rate": "usage rate",
    "successful_skill_usage_rate": "success when used",
    "library_size": "skills made",
    "skills_used": "of them used",
    "dropped": "failed to load",
}


def skill_table(figures: pd.DataFrame, reported: pd.DataFrame) -> pd.DataFrame:
    """How skills are made and used, a row an arm, with the papers' figures below.

    Args:
        figures: As of `stages.study.figures`.
        reported: data/reported/sage_skills.csv.
    """
    names, own = list(SKILL_COLUMNS), figures.drop_duplicates(["arm", "split", "decoding"])
    own = own.assign(benchmark=own["split"] + ", " + own["decoding"], method=own["arm"].map(named))
    own = own.sort_values("benchmark", kind="stable")
    said = reported.assign(method=reported["method"].map(named) + " (" + reported["model"] + ")")
    said = wide(said.assign(benchmark="reported by the paper: AppWorld"), ["benchmark", "method"], "metric", "value")
    table = pd.concat([own, said], ignore_index=True).reindex(columns=["benchmark", "method", *names])
    return table.assign(**{name: table[name].map(_share_or_count) for name in names}).rename(columns=SKILL_COLUMNS)


def _share_or_count(value: float) -> str | None:
    if pd.isna(value):
        return None
    return f"{value:.2f}" if value <= 1 and value != 0 else f"{value:g}"
