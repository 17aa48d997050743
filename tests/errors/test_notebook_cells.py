"""The names of notebook cells."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from ringlet.errors.notebook_cells import cell_or_file


@pytest.mark.parametrize(
    ("shell", "file", "name"),
    [
        (True, "/tmp/ipykernel_1/2.py", "Cell In[3]"),
        (True, "step.py", "step.py"),
        (False, "/tmp/ipykernel_1/2.py", "/tmp/ipykernel_1/2.py"),
    ],
)
def test_the_file_of_a_cell_is_named_by_the_cell(monkeypatch, shell, file, name):
    cells = {"/tmp/ipykernel_1/2.py": ("Cell", "In[3]")}
    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=cells.get)) if shell else None
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert cell_or_file(file) == name


def test_without_ipython_there_are_files(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert cell_or_file("step.py") == "step.py"
