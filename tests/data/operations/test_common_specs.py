"""What elements of several datasets have in common."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import Dataset, TensorSpec
from ringlet.data.graph.spec_inference import common_spec
from ringlet.data.operations.common_specs import check_compatible, doubled, without_sizes

INT = np.int64


@pytest.mark.parametrize(
    ("shapes", "common"),
    [
        ([[2], [2]], [2]),
        ([[2], [3]], [None]),
        ([[2, 3], [None, 3]], [None, 3]),
        ([[2], [2, 3]], None),
        ([None, [2]], None),
        ([[2], [3], [2]], [None]),
    ],
)
def test_sizes_that_differ_are_unknown(shapes, common):
    assert common_spec([TensorSpec(shape, INT) for shape in shapes]) == TensorSpec(common, INT)


@pytest.mark.parametrize("other", [TensorSpec([2], np.float64), (TensorSpec([2], INT),), {"a": TensorSpec([2], INT)}])
def test_structures_and_dtypes_must_be_the_same(other):
    with pytest.raises(TypeError, match="incompatible"):
        common_spec([TensorSpec([2], INT), other])


def test_functions_of_users_are_not_called_to_compare():
    check_compatible([Dataset.range(3).node, Dataset.range(3).map(lambda x: 1 / 0).node])
    with pytest.raises(TypeError):
        check_compatible([Dataset.range(3).node, Dataset.from_tensors("a").node])


def test_an_example_is_doubled_where_sizes_are_unknown():
    specs = (TensorSpec([None, 2], INT), TensorSpec([2], INT))
    first, second = doubled((np.ones((3, 2)), np.ones(2)), specs)
    assert (first.shape, second.shape) == ((6, 2), (2,))
    assert without_sizes(specs) == (TensorSpec([None, None], INT), TensorSpec([None], INT))
    assert without_sizes(TensorSpec(None, INT)) == TensorSpec(None, INT)
