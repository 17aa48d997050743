"""The runner of NumPy's own tests, on one of their files."""

from __future__ import annotations

import types

import numpy as np
import pytest

from bench.numpy_tests import in_tiles, main, replace_in
from ringlet.sharding import Mesh, ShardedArray

MESH = Mesh({"x": 2, "y": 2})


@pytest.mark.slow
def test_tests_that_pass_with_plain_arrays_only_are_listed(capsys):
    assert main(["--files", "lib.tests.test_twodim_base", "--", "-k", "test_tril_indices or TestFliplr"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "lib.tests.test_twodim_base: 1 of 2 pass",
        "  only with plain arrays: ::test_tril_indices",
        "all: 1 of 2 pass (50.0%)",
    ]


def test_arrays_with_dimensions_are_divided():
    assert isinstance(in_tiles(np.ones((3, 4, 5)), MESH), ShardedArray)
    assert type(in_tiles(np.ones(()), MESH)) is np.ndarray


def test_numpy_testing_compares_sharded_arrays():
    module = types.ModuleType("tests")
    module.np, module.assert_equal = np, np.testing.assert_equal
    replace_in([module], MESH)
    for compare in (module.assert_equal, module.np.testing.assert_equal):
        compare(module.np.ones((2, 2)), module.np.ones((2, 2)))
        with pytest.raises(AssertionError):
            compare(module.np.ones((2, 2)), module.np.eye(2))
    assert module.np.testing.assert_raises is np.testing.assert_raises
