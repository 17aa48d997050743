"""Comparison of results by value, dtype and structure."""

from __future__ import annotations

import numpy as np

from ringlet.compat import tf
from ringlet.values import PerReplica

__all__ = ["assert_per_replica", "assert_tensor"]


def assert_tensor(found, dtype, expected):
    """Assert that a value is a tensor with this dtype and value."""
    assert isinstance(found, tf.Tensor), repr(found)
    assert found.dtype == dtype
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6 if dtype == "float32" else 0)


def assert_per_replica(found, dtype, *expected, kind=PerReplica):
    """Assert that a value has one such tensor for each replica."""
    assert type(found) is kind, repr(found)
    assert len(found.values) == len(expected)
    for component, value in zip(found.values, expected, strict=True):
        assert_tensor(component, dtype, value)
