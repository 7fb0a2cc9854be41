"""Tables of the SAGE experiments as papers print them, with the papers' own figures below ours."""

import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

import pandas as pd

from skill_evolution.analysis import frames
from skill_evolution.analysis.frames import groups, interval_text
from skill_evolution.analysis.reported import load_reported
from skill_evolution.analysis.sage import INTERVAL
from skill_evolution.sage.config import SageConfig
from skill_evolution.sage.stages.stage import PACKAGES

HEADS = {"tgc": "TGC [%]", "sgc": "SGC [%]", "steps": "steps", "tokens": "tokens"}
NAMES = {
    "prompted": "prompted",
    "sft": "SFT",
    "grpo": "GRPO, no library",
    "sft_grpo": "SFT+GRPO, no library",
    "sage": "SAGE",
    "reward_outcome": "outcome reward",
    "reward_chain": "chain reward",
    "chain_of_one": "K = 1",
    "chain_of_three": "K = 3",
    "start_base_model": "from the base",
    "start_self_distillation": "from self-distillation",
    "start_rl_warm_up": "from RL warm-up",
    "sage_empty_library": "SAGE, empty library",
    "sft_empty_library": "SFT, empty library",
    "prompted_empty_library": "prompted, empty library",
    "retrieval_same_scenario": "same scenario",
    "retrieval_query_ngram": "query n-gram",
    "retrieval_query_embedding": "query embedding",
    "retrieval_skill_embedding": "skill embedding",
    "react": "ReAct",
    "loop": "LOOP",
}
"""Names of arms and of the papers' methods, as tables and figures show them."""
REPORTED_SPLITS = {"test_normal": "Test-Normal", "test_challenge": "Test-Challenge"}


def displayed(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with names for the ids in its columns arm and baseline."""
    return frame.assign(**{name: frame[name].replace(NAMES) for name in ("arm", "baseline") if name in frame})


def wide_table(table: pd.DataFrame, reported: pd.DataFrame | None = None) -> pd.DataFrame:
    """A `summary` as papers print it: a row an arm under its split and decoding, "mean [low, high]" in each cell.

    The papers' figures follow as rows of their own, under what they were measured on.
    """
    found: list[dict[str, Any]] = []
    for (split, decoding, arm), part in groups(table, "split", "decoding", "arm"):
        cells = frames.rows(part.drop_duplicates("metric"))
        texts = {HEADS[cell["metric"]]: interval_text(cell["mean"], cell["low"], cell["high"]) for cell in cells}
        found.append(_place(split, decoding) | {"method": NAMES.get(arm, arm)} | texts | _counts(cells))
    ours = pd.DataFrame(found, columns=["benchmark", "method", *HEADS.values(), "skill usage", "failed", "interval"])
    return ours if reported is None else pd.concat([ours, reported_rows(reported)], ignore_index=True)


def _place(split: str, decoding: str) -> dict[str, str]:
    return {"benchmark": f"{split}, {decoding}"}


def _counts(cells: Sequence[Mapping[str, Any]]) -> dict[str, str | None]:
    first, n, seeds = cells[0], max(cell["n"] for cell in cells), max(cell["n_seeds"] for cell in cells)
    note = f"{INTERVAL}, n = {n} scenarios{f' x {seeds} seeds' if seeds > 1 else ''}; failed: rows in no mean"
    usage = None if pd.isna(first["usage"]) else f"{first['usage']:.2f}"
    return {"skill usage": usage, "failed": f"{first['failed']}", "interval": note}


def reported_rows(reported: pd.DataFrame) -> pd.DataFrame:
    """The papers' absolute figures in the columns of `wide_table`, a row a method and model."""
    part = frames.where(reported, (reported["kind"] == "absolute") & reported["metric"].isin(list(HEADS)))
    found = []
    for (split, method, model), cells in groups(part, "category", "method", "model"):
        values = {HEADS[row["metric"]]: f"{row['value']:,g}" for row in frames.rows(cells)}
        place = f"reported by the paper: AppWorld {REPORTED_SPLITS.get(split, split)}"
        found.append({"benchmark": place, "method": f"{NAMES.get(method, method)} ({model})", **values})
    order = {name: place for place, name in enumerate(REPORTED_SPLITS.values())}
    found.sort(key=lambda row: order[row["benchmark"].rpartition(" ")[2]])
    return pd.DataFrame(found)


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
        f"here, {decoding}": {(row["arm"], row["metric"]): row["mean"] for row in frames.rows(part)}
        for (decoding,), part in groups(table.query("split == 'test'"), "decoding")
    }
    theirs = {(row["method"], row["metric"]): row["value"] for row in frames.rows(reported)}
    return pd.DataFrame(
        [
            {"SAGE against": NAMES[baseline], "what": what}
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
    found = []
    for (split, decoding, arm, baseline), part in groups(table, "split", "decoding", "arm", "baseline"):
        cells = {row["metric"]: row for row in frames.rows(part)}
        texts = {
            HEADS[name]: interval_text(row["difference"], row["low"], row["high"], sign="+")
            for name, row in cells.items()
        }
        tests = {f"p ({name.upper()})": f"{cells[name]['p_value']:.3f}" for name in ("tgc", "sgc")}
        names = f"{NAMES.get(arm, arm)} − {NAMES.get(baseline, baseline)}"
        note = f"{INTERVAL}, n = {part['n'].max()} scenarios, paired; p: sign flips over scenarios"
        found.append(_place(split, decoding) | {"method": names, **texts, **tests, "interval": note})
    return pd.DataFrame(found, columns=["benchmark", "method", *HEADS.values(), "p (TGC)", "p (SGC)", "interval"])


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
    ours = [
        {
            "benchmark": f"{row['split']}, {row['decoding']}",
            "method": NAMES.get(row["arm"], row["arm"]),
            **{head: _share_or_count(row[name]) for name, head in SKILL_COLUMNS.items()},
        }
        for row in frames.rows(figures.drop_duplicates(["arm", "split", "decoding"]))
    ]
    theirs = [
        {
            "benchmark": "reported by the paper: AppWorld",
            "method": f"{NAMES.get(method, method)} ({model})",
            **{SKILL_COLUMNS[row["metric"]]: _share_or_count(row["value"]) for row in frames.rows(part)},
        }
        for (method, model), part in groups(reported, "method", "model")
    ]
    ours.sort(key=lambda row: row["benchmark"])
    return pd.DataFrame([*ours, *theirs])


def _share_or_count(value: float) -> str | None:
    if pd.isna(value):
        return None
    return f"{value:.2f}" if value <= 1 and value != 0 else f"{value:g}"
