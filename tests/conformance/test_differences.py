"""Every difference from TensorFlow is a row of a page of docs/differences, with a test that holds it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = ["what", "TensorFlow", "ringlet", "why", "test"]


def rows() -> list[list[str]]:
    """Return the cells of every row of every table, without headers and rules."""
    pages = sorted((ROOT / "docs" / "differences").glob("*.md"))
    lines = [line for page in pages for line in page.read_text(encoding="utf-8").splitlines()]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [row for row in cells if row != COLUMNS and set(row[0]) != {"-"}]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:60])
def test_every_difference_names_a_test_that_exists(row):
    assert len(row) == len(COLUMNS)
    match = re.fullmatch(r"`(test_\w+\.py)::(test_\w+)`", row[-1])
    assert match, f"the last column names a test as `file.py::test`, not {row[-1]}"
    files = list((ROOT / "tests").rglob(match[1]))
    assert any(f"def {match[2]}(" in file.read_text(encoding="utf-8") for file in files), row[-1]


def test_there_are_differences():
    assert len(rows()) > 10
