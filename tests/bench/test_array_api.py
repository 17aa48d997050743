"""The runner of the array API standard's tests, on a checkout of two tests."""

from __future__ import annotations

import pytest

from bench.array_api import main

TESTS = """
import os
import pytest

module = os.environ["ARRAY_API_TESTS_MODULE"]
if module.startswith("exec('"):
    names = {}
    exec(module[6:-2], names)
    xp = names["xp"]
else:
    import numpy as xp


def test_numbers():
    assert xp.sum(xp.ones(4)) == 4


@pytest.mark.parametrize("what", ["a - b", "numpy -> only"])
def test_names(what):
    assert "numpy" not in what or xp.__name__ == "numpy"
"""


@pytest.mark.slow
def test_cases_that_pass_with_numpy_only_are_listed(tmp_path, capsys):
    folder = tmp_path / "array_api_tests"
    folder.mkdir()
    (folder / "test_both.py").write_text(TESTS)
    assert main([str(tmp_path), "--meshes", "2x2"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "numpy: 3 of 3 pass",
        "mesh 2x2: 2 of 3 pass",
        "  only with numpy: array_api_tests/test_both.py::test_names[numpy -> only]",
    ]


def test_a_folder_without_tests_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="no test ran"):
        main([str(tmp_path)])
