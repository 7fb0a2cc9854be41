"""Tables: the papers' figures beside ours, and files written whole."""

import re

import numpy as np
import pandas as pd
import pytest

from skill_evolution.analysis.reported import load_reported
from skill_evolution.analysis.tables import difference_table, main_table, points, render_table, save_table, wide_table

TITLE = "F1 [%], simulated reader & synthetic data"


@pytest.fixture
def predictions() -> pd.DataFrame:
    rows = [
        {"benchmark": "locomo", "method": method, "category": category, "seed": 0, "question_id": f"{category}{q}"}
        | {"f1": (q + shift) / 4, "error": "timeout" if (method, q) == ("grse", 2) else None}
        for method, shift in (("grse", 1), ("maskills", 0))
        for category in ("multi_hop", "temporal")
        for q in range(3)
    ]
    return pd.DataFrame(rows)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_main_table_is_in_percent_with_counts_and_reported_figures(predictions):
    table = main_table(predictions, ["f1"], rng=rng(), reported=load_reported("grse_ablations"))
    ours = table.query("method == 'grse'").set_index("category")
    assert ours["mean"].to_dict() == {"multi_hop": 37.5, "temporal": 37.5, "all": 37.5, "average": 37.5}
    assert ours.loc["all", ["n", "n_missing"]].tolist() == [4, 2]
    column = "reported (model not stated)"
    assert ours.loc["average", column] == 54.9
    assert list(table[column].dropna()) == [54.9]


def test_difference_table_takes_differences_only(predictions):
    table = difference_table(predictions, "maskills", ["f1"], rng=rng(), reported=load_reported("grse"))
    multi_hop = table.set_index("category").loc["multi_hop"]
    assert multi_hop["difference"] == pytest.approx(25)
    assert multi_hop["reported (Qwen3.8-27B)"] == 6.7
    assert multi_hop["reported (Gemma-4-31B-it)"] == 3.2
    assert (multi_hop["n"], multi_hop["n_unpaired"], multi_hop["n_missing"]) == (2, 1, 1)


def test_two_reported_figures_for_one_cell_are_refused(predictions):
    reported = load_reported("grse_ablations")
    with pytest.raises(ValueError, match=r"two reported figures .*'average'"):
        main_table(predictions, ["f1"], rng=rng(), reported=pd.concat([reported, reported]))


def test_wide_table_marks_reported_rows(predictions):
    table = main_table(predictions, ["f1"], rng=rng(), reported=load_reported("grse_ablations"))
    wide = wide_table(table, "f1").set_index("method")
    assert list(wide.index) == ["grse", "grse (reported)", "maskills"]
    assert wide.loc["grse (reported)", "average"] == "54.9"
    assert wide.loc["grse", "all"].startswith("37.5 [")
    assert wide.loc["grse", ["n", "missing"]].tolist() == ["4", "2"]
    with pytest.raises(ValueError, match=r"'bleu'.*\['f1'\]"):
        wide_table(table, "bleu")


def test_saved_files_hold_title_figures_and_note_and_are_the_same_again(predictions, tmp_path):
    wide = wide_table(main_table(predictions, ["f1"], rng=rng()), "f1")
    texts = []
    for folder in ("a", "b"):
        save_table(wide, tmp_path / folder / "main.v1", title=TITLE)
        texts.append({p.name: p.read_text(encoding="utf-8") for p in (tmp_path / folder).iterdir()})
    assert set(texts[0]) == {"main.v1.csv", "main.v1.tex", "main.v1.html"}
    assert texts[0] == texts[1]
    assert r"F1 [\%], simulated reader \& synthetic data" in texts[0]["main.v1.tex"]
    assert "F1 [%], simulated reader &amp; synthetic data" in texts[0]["main.v1.html"]
    for suffix in ("tex", "html"):
        assert "bootstrap interval over questions and seeds" in texts[0][f"main.v1.{suffix}"]
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "a" / "main.v1.csv", dtype=str), wide, check_dtype=False)


def test_rendering_rounds_values_and_keeps_p_values_readable():
    frame = pd.DataFrame({"difference": [1.26, np.nan], "p_value": [0.0123, 1.0], "calls": [12345, 1]})
    text = shown(frame)
    assert all(cell in text for cell in (">1.3<", ">0.012<", ">–<", ">12,345<", ">p value<"))
    assert ">1.26<" in shown(frame, decimals=2)


def shown(frame: pd.DataFrame, **options: int) -> str:
    return str(render_table(frame, title="t", **options).data)


def test_figures_in_text_are_typeset_and_words_are_left_as_they_are():
    cells = ["-1.5 [-2.5, -0.5]", "+0.0", "+6.7 (Qwen3.8-27B)", "a-1 [b, c] -1", "2022-05-07", None, 3]
    text = shown(pd.DataFrame({"x": pd.Series(cells, dtype=object)}))
    expected = ["−1.5\xa0[−2.5,\xa0−0.5]", "±0", "+6.7 (Qwen3.8-27B)", "a-1 [b, c] -1", "2022-05-07", "–", "3"]
    assert re.findall(r"<td[^>]*>([^<]*)</td>", text)[1:] == expected  # the title comes first


def test_a_table_keeps_texts_from_being_taken_for_formulas():
    text = shown(pd.DataFrame({"body": [r"grep \[D3:(6|8)\] and $x$"]}))
    assert text.startswith('<div class="mathjax_ignore tex2jax_ignore">')
    assert r"grep \[D3:(6|8)\] and $x$" in text


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((np.nan, np.nan), "±0"),
        ((0.0, 0.0), "±0"),
        ((-0.5, 0.5), "+0.0 [-0.5, +0.5]"),
        ((-0.04, 0.5), "+0.0 [+0.0, +0.5]"),
    ],
)
def test_no_difference_is_told_from_one_that_happens_to_be_0(ends, expected):
    assert cells((-1e-12, *ends)) == [expected]


def cells(*rows: tuple[float, float, float]) -> list[str | None]:
    return points(pd.DataFrame(rows, columns=["difference", "low", "high"]))


def test_a_difference_has_its_sign_and_interval_and_a_missing_one_is_none():
    found = cells((1.0, -0.5, 2.5), (-1.0, np.nan, np.nan), (np.nan, np.nan, np.nan))
    assert found == ["+1.0 [-0.5, +2.5]", "-1.0", None]


def test_wide_differences_have_the_papers_below():
    same = {"benchmark": "LoCoMo", "method": "G = 1", "metric": "f1", "p_value": 0.25, "n": 40, "n_missing": 1}
    values = [("temporal", 0.0, np.nan, np.nan, np.nan), ("average", -1.5, -2.5, -0.5, -0.8)]
    columns = ["category", "difference", "low", "high", "reported (model not stated)"]
    table = pd.DataFrame(values, columns=columns).assign(**same, interval="95 %")
    wide = wide_table(table, "f1", "difference")
    assert wide["method"].tolist() == ["G = 1", "G = 1 (reported)"]
    assert wide["average"].tolist() == ["-1.5 [-2.5, -0.5]", "-0.8"]
    assert wide.loc[0, ["temporal", "p (average)", "n", "missing"]].tolist() == ["±0", "0.250", "40", "1"]
