"""Slices drawn with matplotlib."""

from __future__ import annotations

import sys

import pytest

from ringlet.tpu import drawing
from tests.tpu.drawing.slices import assignment, degraded, some_loads, words

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def _without_windows():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_a_figure_shows_the_words_of_the_picture():
    drawn = assignment("v5p-128", (2, 2, 2, 1), 8, megacore=True)
    axes = drawn.plot()
    assert texts(axes) == words(drawing.svg(drawn))
    axes.figure.canvas.draw()


@pytest.mark.parametrize("loads", [False, True])
@pytest.mark.parametrize("make", [degraded, lambda: assignment("v3-8", (1, 1, 1, 2), 4)])
def test_all_shapes_are_drawn(make, loads):
    drawn = make()
    axes = drawing.plot(drawn, loads=some_loads(drawn) if loads else None)
    axes.figure.canvas.draw()
    assert len(axes.collections) >= 3


def test_long_hops_are_drawn():
    axes = drawing.plot(assignment("v5p-128", (2, 2, 2, 1), 8, megacore=True), rings="replicas")
    axes.figure.canvas.draw()
    assert "a hop over more than one link" in texts(axes)


def test_a_drawing_goes_where_it_is_told():
    figure = matplotlib.figure.Figure()
    axes = figure.add_subplot()
    assert assignment("v3-8", (1, 1, 1, 2), 4).plot(axes=axes) is axes
    assert texts(axes)


def test_a_dark_figure_gets_the_colours_of_dark_pages():
    from matplotlib.colors import to_hex

    colours = []
    for ground in ("white", "black"):
        axes = matplotlib.figure.Figure(facecolor=ground).add_subplot()
        drawing.plot(degraded(), axes=axes)
        colours.append(to_hex(axes.texts[0].get_color()))
    assert colours == ["#1f2328", "#e6edf3"]


def test_dollars_are_no_formulas():
    axes = drawing.plot(assignment("v3-8", (1, 1, 1, 2), 4))
    assert not any(text.get_parse_math() for text in axes.texts)


def test_a_missing_matplotlib_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'ringlet\[plot\]'"):
        assignment("v3-8", (1, 1, 1, 2), 4).plot()
