"""Notebooks run, and hold the outputs of their cells."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from docs import notebooks

from tests.frameworks.libraries import library

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = [*sorted((ROOT / "examples").glob("*.ipynb")), *sorted((ROOT / "docs" / "tutorial").glob("*.ipynb"))]
WITH_PICTURES = {"pod_on_a_laptop.ipynb", "sharded_arrays.ipynb"}


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


def without_pids(cell):
    return json.loads(re.sub(r"\(pid \d+", "(pid N", json.dumps(cell)))


def test_the_tutorial_has_three_lessons():
    assert len(list((ROOT / "docs" / "tutorial").glob("*.ipynb"))) == 3


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs_and_shows_what_its_cells_give(path):
    for name in ("sklearn", "cloudpickle", "safetensors") if path.parent.name == "tutorial" else ():
        library(name)
    stored = notebooks.read(path)
    shown = notebooks.executed(stored)
    for was, now in zip(stored["cells"], shown["cells"], strict=True):
        assert without_pids(now) == without_pids(was), f"run python -m docs.notebooks {path.relative_to(ROOT)}"
    assert path.read_text(encoding="utf-8") == notebooks.as_text(stored)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_small_and_of_the_format_that_viewers_know(path):
    stored = notebooks.read(path)
    assert path.stat().st_size < 300_000
    assert (stored["nbformat"], stored["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in stored["cells"]}) == len(stored["cells"])
    data = [output.get("data", {}) for cell in stored["cells"] for output in cell.get("outputs", ())]
    assert any("image/svg+xml" in each for each in data) == (path.name in WITH_PICTURES)


def test_cells_share_their_names_and_are_numbered():
    done = notebooks.executed(notebook("a = 2", "a + 3"))
    assert [cell["execution_count"] for cell in done["cells"]] == [1, 2]
    assert done["cells"][1]["outputs"][0]["data"] == {"text/plain": ["5"]}


def test_what_a_cell_prints_comes_before_its_value():
    ((printed, value),) = outputs("print('first\\nsecond')\n7")
    assert printed == {"name": "stdout", "output_type": "stream", "text": ["first\n", "second\n"]}
    assert value["output_type"] == "execute_result"


def test_what_a_cell_writes_to_standard_error_is_an_output_of_its_own():
    ((printed, warned),) = outputs("import sys; print('result'); print('warning', file=sys.stderr)")
    assert (printed["name"], warned["name"], warned["text"]) == ("stdout", "stderr", ["warning\n"])


def test_a_command_finds_the_file_of_another_cell_and_the_interpreter_of_the_notebook():
    before = Path.cwd()
    program = "%%writefile show.py\nimport sys\nprint(sys.prefix)\nsys.exit('failed')"
    (written,), (printed,) = outputs(program, "!python show.py")
    assert written["text"] == ["Writing show.py\n"]
    assert printed["text"] == [f"{sys.prefix}\n", "failed\n"]
    assert Path.cwd() == before
    assert not (before / "show.py").exists()


def test_a_location_in_a_cell_has_the_name_that_jupyter_gives_it():
    ((printed,),) = outputs("def f(): pass\nprint(f.__code__.co_filename)")
    assert printed["text"] == ["Cell In[1]\n"]


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
