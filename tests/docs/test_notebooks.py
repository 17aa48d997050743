"""Notebooks run, and hold the outputs of their cells."""

from __future__ import annotations

import json

import pytest
from docs import notebooks

from tests.docs.test_tpu import DOCUMENT

NOTEBOOKS = sorted((DOCUMENT.parents[1] / "examples").glob("*.ipynb"))


def notebook(*sources):
    cells = [{"cell_type": "code", "source": source.splitlines(keepends=True)} for source in sources]
    return {"cells": cells, "nbformat": 4}


def outputs(*sources):
    return [cell["outputs"] for cell in notebooks.executed(notebook(*sources))["cells"]]


class Picture:
    def __repr__(self):
        return "a picture"

    def _repr_svg_(self):
        return "<svg/>"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs_and_shows_what_its_cells_give(path):
    stored = notebooks.read(path)
    shown = notebooks.executed(stored)
    for was, now in zip(stored["cells"], shown["cells"], strict=True):
        assert now == was, f"run python -m docs.notebooks examples/{path.name}"
    assert path.read_text(encoding="utf-8") == notebooks.as_text(shown)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_small_and_of_the_format_that_viewers_know(path):
    stored = notebooks.read(path)
    assert path.stat().st_size < 300_000
    assert (stored["nbformat"], stored["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in stored["cells"]}) == len(stored["cells"])
    assert any(
        "image/svg+xml" in output.get("data", {}) for cell in stored["cells"] for output in cell.get("outputs", ())
    )


def test_cells_share_their_names_and_are_numbered():
    done = notebooks.executed(notebook("a = 2", "a + 3"))
    assert [cell["execution_count"] for cell in done["cells"]] == [1, 2]
    assert done["cells"][1]["outputs"][0]["data"] == {"text/plain": ["5"]}


def test_what_a_cell_prints_comes_before_its_value():
    ((printed, value),) = outputs("print('first\\nsecond')\n7")
    assert printed == {"name": "stdout", "output_type": "stream", "text": ["first\n", "second\n"]}
    assert value["output_type"] == "execute_result"


@pytest.mark.parametrize("source", ["a = 1", "None", "", "def f(): return 1"])
def test_a_cell_without_a_value_shows_nothing(source):
    assert outputs(source) == [[]]


def test_a_value_with_a_picture_shows_it(monkeypatch):
    monkeypatch.setattr(notebooks, "Picture", Picture, raising=False)
    (((shown),),) = outputs("from docs import notebooks; notebooks.Picture()")
    assert shown["data"] == {"text/plain": ["a picture"], "image/svg+xml": ["<svg/>"]}


def test_a_cell_that_fails_ends_the_notebook():
    with pytest.raises(ZeroDivisionError):
        outputs("1 / 0", "print('never')")


def test_words_stay_as_they_are():
    text = notebooks.as_text({"cells": [{"cell_type": "markdown", "source": ["┌ ä"]}]})
    assert "┌ ä" in text
    assert json.loads(text)["cells"][0]["source"] == ["┌ ä"]
