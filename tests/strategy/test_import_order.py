"""The folders of ringlet.strategy import each other in one direction at run time."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "python" / "ringlet" / "strategy"
# Folder: those that it imports from.
BELOW = {"calls": (), "replica": ("calls",), "api": ("calls", "replica")}


def imported_folders(module: Path) -> set[str]:
    """Return the folders that a module imports from, except for type annotations."""
    nodes = list(ast.walk(ast.parse(module.read_text())))
    type_checking = [node for node in nodes if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)]
    skipped = {inner for node in type_checking for inner in ast.walk(node)}
    names = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and node not in skipped]
    return {name.split(".")[2] for name in names if name.startswith("ringlet.strategy.")}


@pytest.mark.parametrize("folder", BELOW)
def test_a_folder_imports_from_itself_and_those_below(folder):
    for module in (FOLDER / folder).glob("*.py"):
        assert imported_folders(module) <= {folder, *BELOW[folder]}, module.name
