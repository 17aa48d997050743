"""The page of the examples."""

from __future__ import annotations

from docs import gallery


def test_the_page_has_every_example_as_its_docstring_describes_it():
    programs = {path.name for path in (gallery.ROOT / "examples").glob("*.py")}
    assert gallery.FIGURES.keys() == programs
    assert gallery.PAGE.read_text(encoding="utf-8") == gallery.page(), "run python -m docs.gallery"


def test_figures_exist():
    figures = [figure for figure, _ in gallery.FIGURES.values() if figure]
    assert len(figures) > 4
    assert [figure for figure in figures if not (gallery.PAGE.parent / figure).exists()] == []
