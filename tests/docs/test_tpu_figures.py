"""Figures of docs/tpu.md: each is what the library draws now."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from docs import tpu_figures

FIGURES = tpu_figures.figures()


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_what_the_library_draws_now(name):
    stored = (tpu_figures.FOLDER / name).read_text(encoding="utf-8")
    assert stored == FIGURES[name], "run python -m docs.tpu_figures"
    assert ElementTree.fromstring(stored).tag.endswith("svg")


def test_every_figure_is_shown_and_every_shown_figure_is_drawn():
    shown = re.findall(r"\]\(figures/(\w+\.svg)\)", (tpu_figures.FOLDER.parent / "tpu.md").read_text(encoding="utf-8"))
    stored = [path.name for path in tpu_figures.FOLDER.glob("*.svg")]
    assert sorted(shown) == sorted(stored) == sorted(FIGURES)
