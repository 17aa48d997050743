"""The spec of datasets among elements."""

from __future__ import annotations

import numpy as np

from ringlet.data import Dataset, TensorSpec
from ringlet.data.dataset_spec import DatasetSpec


def test_it_is_equal_where_elements_are():
    assert DatasetSpec(TensorSpec([], np.int64)) == DatasetSpec(TensorSpec([], np.int64))
    assert DatasetSpec(TensorSpec([], np.int64)) != DatasetSpec(TensorSpec([1], np.int64))


def test_it_has_no_dimension_and_nothing_unknown():
    spec = Dataset.range(3).batch(2).window(2).element_spec
    assert spec.shape == ()
    assert spec.is_fully_defined
    assert spec.dtype == object
