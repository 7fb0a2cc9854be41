"""Figures: what is drawn from a spec, that settings outside stay as they are, and files that are the same again."""

from dataclasses import replace
from typing import cast

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from PIL import Image

from skill_evolution.analysis.figures import Spec, counts, intervals, lines, paint, save_figure, show_figure

ALT = 'Mean F1 of two methods; "GRSE" is higher – by 5 points'
MEANS = Spec(
    title="F1", alt=ALT, tables=("main",), kind=intervals, x="category", y="mean", hue="method", ylabel="F1 [%]",
    note="{interval}, n = {n} questions x {n_seeds} seeds{missing}", series=("MASkills", "GRSE"), size=(3.3, 2.5),
)  # fmt: skip
FOREST = replace(MEANS, x="mean", y="category", line=0)


@pytest.fixture
def means() -> pd.DataFrame:
    rows = [
        ("MASkills", "multi-hop", 50.0, 45.0, 55.0, 40, 1),
        ("MASkills", "all", 52.0, 48.0, 56.0, 90, 3),
        ("GRSE", "multi-hop", 55.0, np.nan, np.nan, 40, 0),
        ("GRSE", "all", 57.0, 53.0, 61.0, 90, 0),
    ]
    frame = pd.DataFrame(rows, columns=["method", "category", "mean", "low", "high", "n", "n_missing"])
    return frame.assign(n_seeds=3, interval="95 % bootstrap interval over questions and seeds", made_with="a reader")


def drawn(spec: Spec, *tables: pd.DataFrame):
    (ax,) = paint(spec, *tables).axes
    found = [np.asarray(line.get_xydata(), dtype=float) for line in ax.get_lines()]
    return ax, [points for points in found if len(points)]


def test_methods_are_points_beside_each_other_with_the_tables_intervals(means):
    ax, (maskills, grse) = drawn(MEANS, means)
    assert maskills[:, 1].tolist() == [50, 52]
    assert grse[:, 1].tolist() == [55, 57]
    assert grse[0, 0] > maskills[0, 0]
    ends = [np.asarray(path.vertices) for path in ax.collections[0].get_paths()]
    assert ends[0][:, 1].tolist() == [45, 55]
    assert ends[0][0, 0] == maskills[0, 0]  # the interval stands under its point
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["multi-hop", "all"]


def test_differences_run_from_top_to_bottom_round_zero(means):
    (ax,) = paint(FOREST, means.assign(reported=[-1.0, np.nan, np.nan, np.nan])).axes
    points = [np.asarray(line.get_xydata(), dtype=float) for line in ax.get_lines()]
    assert points[0][:, 0].tolist() == [0, 0]
    assert points[2][:, 0].tolist() == [55, 57]
    crosses = next(line for line in ax.get_lines() if line.get_label() == "reported by the paper")
    assert np.asarray(crosses.get_xydata())[0].tolist() == [-1, points[1][0, 1]]  # in its method's line
    assert ax.yaxis_inverted()


def test_a_value_that_stands_twice_is_not_averaged_in_silence(means):
    with pytest.raises(ValueError, match="two values for one category"):
        paint(MEANS, pd.concat([means, means.head(1)]))


def test_note_names_interval_n_seeds_and_missing_once(means):
    found = counts(means)
    assert MEANS.note.format(**found) == (
        "95 % bootstrap interval over questions and seeds, n = 40 questions x 3 seeds; "
        "0 to 1 answers missing per method"
    )
    assert counts(means[means["category"] == "all"])["n"] == "90"
    assert counts(means.assign(n_missing=0))["missing"] == ""


def test_a_method_keeps_its_look_in_another_selection(means):
    for frame in (means, means.query("method == 'GRSE'")):
        legend = paint(MEANS, frame).legends[0]
        look = cast(Line2D, legend.legend_handles[-1])
        assert (to_hex(look.get_color()), look.get_marker()) == ("#d55e00", "s")


def test_lines_show_mean_and_range_over_seeds():
    frame = pd.DataFrame(
        [{"method": "GRSE", "seed": s, "iteration": i, "value": i + s / 4} for s in range(3) for i in range(4)]
    ).assign(made_with="a reader")
    spec = replace(MEANS, kind=lines, x="iteration", y="value", note="{seeds} seeds")
    ax, (line,) = drawn(spec, frame)
    assert line.tolist() == [[i, i + 0.25] for i in range(4)]
    band = np.asarray(ax.collections[0].get_paths()[0].vertices)
    assert (band[:, 1].min(), band[:, 1].max()) == (0, 3.5)
    assert paint(spec, frame).legends[0].get_title().get_text() == "3 seeds"


def test_facets_share_one_legend_and_a_title_that_says_whose_it_is(means):
    spec = replace(MEANS, facet=("category",), panel="{category}", size=(6.9, 2.5))
    figure = paint(spec, means)
    assert [ax.get_title() for ax in figure.axes] == ["multi-hop", "all"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["MASkills", "GRSE"]
    assert figure.get_suptitle() == "F1 (a reader)"


def test_files_are_the_same_when_made_again_whatever_the_settings(means, tmp_path):
    def make(folder):
        save_figure(paint(MEANS, means), tmp_path / folder / "main.v1", alt=ALT)
        return {path.name: path.read_bytes() for path in (tmp_path / folder).iterdir()}

    first = make("a")
    with mpl.rc_context({"font.size": 20, "savefig.dpi": 50, "savefig.bbox": "tight"}):
        second = make("b")
        assert mpl.rcParams["font.size"] == 20
    assert set(first) == {"main.v1.pdf", "main.v1.png"}
    assert first == second
    assert b"CreationDate" not in first["main.v1.pdf"]
    with Image.open(tmp_path / "a" / "main.v1.png") as image:
        assert image.info["Description"] == ALT
        assert image.width == round(3.3 * 200)


def test_labels_stay_inside_a_column(means):
    figure = paint(MEANS, means)
    figure.draw_without_rendering()
    box, inside = figure.legends[0].get_window_extent(), figure.bbox
    assert inside.x0 <= box.x0
    assert box.x1 <= inside.x1
    assert inside.y0 <= box.y0


def test_notebook_figure_carries_the_alt_text(means, tmp_path):
    figure = paint(MEANS, means)
    save_figure(figure, tmp_path / "main", alt=ALT)
    assert 'alt="Mean F1 of two methods; &quot;GRSE&quot; is higher' in str(show_figure(tmp_path / "main").data)
    with pytest.raises(ValueError, match="main: a figure needs an alt text"):
        save_figure(figure, tmp_path / "main", alt=" ")
