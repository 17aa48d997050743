"""Every difference from TensorFlow is a row of a page of docs/differences, with a test that holds it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = ["what", "TensorFlow", "ringlet", "why", "test"]


def rows() -> list[list[str]]:
    """Return the cells of every row of every table, without headers and rules."""
    pages = sorted((ROOT / "docs" / "differences").glob("*.md"))
    lines = [line for page in pages for line in page.read_text(encoding="utf-8").splitlines()]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [row for row in cells if row != COLUMNS and set(row[0]) != {"-"}]


def test_every_difference_names_a_test_that_exists():
    assert [row[0] for row in rows() if len(row) != len(COLUMNS)] == []
    named = {row[-1]: re.fullmatch(r"`(test_\w+\.py)::(test_\w+)`", row[-1]) for row in rows()}
    assert [cell for cell, match in named.items() if not match] == [], "the last column names tests as `file.py::test`"
    defined = {
        (path.name, test)
        for path in (ROOT / "tests").rglob("test_*.py")
        for test in re.findall(r"def (test_\w+)\(", path.read_text(encoding="utf-8"))
    }
    assert [cell for cell, match in named.items() if match.groups() not in defined] == []


def test_there_are_differences():
    assert len(rows()) > 10
