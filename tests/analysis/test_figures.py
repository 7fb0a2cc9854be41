"""Figures: what is drawn, that settings outside stay as they are, and that files are the same when made again."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from PIL import Image

from skill_evolution.analysis.figures import (
    interval_note,
    new_figure,
    paper_style,
    plot_differences,
    plot_iterations,
    plot_methods,
    save_figure,
    show_figure,
)

ALT = 'Mean F1 of two methods; "GRSE" is higher – by 5 points'


@pytest.fixture
def means() -> pd.DataFrame:
    rows = [
        ("MASkills", "multi-hop", 50.0, 45.0, 55.0, 40, 1),
        ("MASkills", "all", 52.0, 48.0, 56.0, 90, 3),
        ("GRSE", "multi-hop", 55.0, np.nan, np.nan, 40, 0),
        ("GRSE", "all", 57.0, 53.0, 61.0, 90, 0),
    ]
    frame = pd.DataFrame(rows, columns=["method", "category", "mean", "low", "high", "n", "n_missing"])
    return frame.assign(n_seeds=3, interval="95 % bootstrap interval over questions and seeds")


def points(ax, method: str) -> np.ndarray:
    return np.asarray(next(line for line in ax.get_lines() if line.get_label() == method).get_xydata())


def test_methods_are_points_beside_each_other_with_their_intervals(means):
    _, (ax,) = new_figure()
    assert plot_methods(means, ax, label="F1 [%]") is ax
    assert points(ax, "MASkills")[:, 1].tolist() == [50, 52]
    assert points(ax, "GRSE")[0, 0] > points(ax, "MASkills")[0, 0]
    low, high = np.asarray(ax.collections[0].get_paths()[0].vertices)[:, 1]
    assert (low, high) == (45, 55)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["multi-hop", "all"]
    assert ax.get_xlabel() == interval_note(means)


def test_note_names_interval_n_seeds_and_missing_once(means):
    note = interval_note(means)
    assert note.split("\n") == [
        "95 % bootstrap interval over questions and seeds,",
        "n = 40 to 90 questions x 3 seeds;",
        "0 to 1 answers missing per method",
    ]
    assert interval_note(means[means["category"] == "all"]).endswith(
        "n = 90 questions x 3 seeds;\n0 to 3 answers missing per method"
    )


def test_a_method_keeps_its_look_in_another_selection(means):
    series = ["MASkills", "GRSE"]
    with paper_style():
        _, axes = new_figure(columns=2)
        plot_methods(means, axes[0], label="F1", methods=series)
        plot_methods(means.query("method == 'GRSE'"), axes[1], label="F1", methods=series)
    lines = [next(line for line in ax.get_lines() if line.get_label() == "GRSE") for ax in axes]
    assert lines[0].get_color() == lines[1].get_color() == "#D55E00"
    assert lines[0].get_marker() == lines[1].get_marker() == "s"
    with pytest.raises(ValueError, match=r"\['GRSE'\]"):
        plot_methods(means, axes[0], label="F1", methods=["MASkills"])


def test_iterations_show_mean_and_range_over_seeds():
    frame = pd.DataFrame(
        [{"method": "GRSE", "seed": s, "iteration": i, "value": i + s / 4} for s in range(3) for i in range(4)]
    )
    _, (ax,) = new_figure()
    plot_iterations(frame, ax, label="skills")
    assert points(ax, "GRSE").tolist() == [[i, i + 0.25] for i in range(4)]
    band = np.asarray(ax.collections[0].get_paths()[0].vertices)
    assert (band[:, 1].min(), band[:, 1].max()) == (0, 3.5)
    assert "n = 3 seeds" in ax.get_xlabel()


def test_differences_run_from_top_to_bottom_round_zero(means):
    frame = means.rename(columns={"mean": "difference"}).drop(columns="n_seeds")
    _, (ax,) = new_figure()
    plot_differences(frame, ax, label="F1 minus direct [points]")
    assert points(ax, "GRSE")[:, 0].tolist() == [55, 57]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["multi-hop", "all"]
    assert ax.yaxis_inverted()
    assert ax.get_xlabel().startswith("F1 minus direct [points]\n95 % bootstrap")


def test_files_are_the_same_when_made_again_whatever_the_settings(means, tmp_path):
    def make(folder):
        with paper_style():
            figure, (ax,) = new_figure()
            plot_methods(means, ax, label="F1 [%]")
        save_figure(figure, tmp_path / folder / "main.v1", alt=ALT)
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
    with paper_style():
        figure, (ax,) = new_figure()
        plot_methods(means, ax, label="F1 [%]")
        figure.draw_without_rendering()
        box, inside = ax.xaxis.label.get_window_extent(), figure.bbox
    assert inside.x0 <= box.x0
    assert box.x1 <= inside.x1
    assert inside.y0 <= box.y0


def test_notebook_figure_carries_the_alt_text(means, tmp_path):
    with paper_style():
        figure, (ax,) = new_figure()
        plot_methods(means, ax, label="F1 [%]")
    save_figure(figure, tmp_path / "main", alt=ALT)
    shown = str(show_figure(tmp_path / "main", caption="GRSE & others").data)
    assert 'alt="Mean F1 of two methods; &quot;GRSE&quot; is higher' in shown
    assert "<figcaption>GRSE &amp; others</figcaption>" in shown
    with pytest.raises(ValueError, match="main: a figure needs an alt text"):
        save_figure(figure, tmp_path / "main", alt=" ")
