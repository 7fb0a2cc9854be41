"""The figures of the notebooks, drawn from the tables that are committed."""

import shutil

import numpy as np
import pandas as pd
import pytest

from skill_evolution.analysis import gallery
from skill_evolution.analysis.figures import paint
from skill_evolution.base import paths

TABLES = paths.ROOT / "results" / "demo" / "tables"


def tables(name: str) -> list[pd.DataFrame]:
    return [pd.read_csv(TABLES / f"{table}.csv") for table in gallery.FIGURES[name].tables]


@pytest.mark.parametrize("name", gallery.FIGURES)
def test_each_figure_is_drawn_says_whose_it_is_and_keeps_inside_its_page(name: str):
    spec, frames = gallery.FIGURES[name], tables(name)
    figure = paint(spec, *frames)
    figure.draw_without_rendering()
    made_with = frames[0]["made_with"].iloc[0]
    assert figure.get_suptitle().endswith(f"({made_with})")
    assert "low" not in frames[0] or name == "06_gains" or "n = {" in spec.note  # its n differs by task
    drawn = figure.get_tightbbox().bounds  # inches
    assert drawn[0] >= -0.02
    assert drawn[0] + drawn[2] <= spec.size[0] + 0.02
    assert all(ax.get_xlabel() or ax.get_ylabel() or ax.get_title() for ax in figure.axes if ax.axison)


@pytest.mark.parametrize("name", ["01_f1", "04_differences", "07_main", "08_ablations"])
def test_intervals_are_those_of_the_table(name: str):
    spec, (frame, *_) = gallery.FIGURES[name], tables(name)
    shown = spec.tidy(frame).dropna(subset=["low"])
    paths_ = [path.vertices for ax in paint(spec, frame).axes for c in ax.collections for path in c.get_paths()]
    ends = [sorted(ends) for ends in (np.asarray(v)[:, 0 if spec.y != "mean" else 1] for v in paths_) if len(ends)]
    drawn = sorted((low, high) for low, high in ends if not np.isnan(low))
    assert np.allclose(drawn, sorted(zip(shown["low"], shown["high"], strict=True)))


def test_all_that_have_their_tables_are_redrawn_byte_for_byte(tmp_path):
    (tmp_path / "tables").mkdir()
    for table in ("01_validation", "06_limits", "06_reported"):
        shutil.copy(TABLES / f"{table}.csv", tmp_path / "tables")
    first = {}
    for _ in range(2):
        assert gallery.redraw(tmp_path) == ["01_validation", "06_limits"]
        files = {path.name: path.read_bytes() for path in (tmp_path / "figures").iterdir()}
        first = first or files
        assert files == first
    assert len(first) == 4
    assert gallery.main([str(tmp_path / "nothing")]) == 1


@pytest.mark.parametrize("name", ["07_differences", "07_seeds"])
def test_a_run_with_nothing_to_compare_has_a_figure_that_says_so(name: str):
    figure = paint(gallery.FIGURES[name], *(table.iloc[:0] for table in tables(name)))
    assert [text.get_text() for text in figure.texts] == ["nothing to compare"]
