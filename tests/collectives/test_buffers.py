"""Arrays on their way into the core and back."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.collectives.buffers import apart_from, as_buffer
from ringlet.errors import InvalidArgumentError


def test_an_array_that_fits_is_not_copied() -> None:
    x = np.ones((3, 4), np.float32)
    assert as_buffer(x) is x


def test_a_subclass_is_read_through_its_base() -> None:
    masked = np.ma.MaskedArray([1.0, 2.0], mask=[True, False])
    assert type(as_buffer(masked)) is np.ndarray


def test_a_0d_array_keeps_its_shape() -> None:
    assert as_buffer(np.array(5, ">i4")).shape == ()


def test_an_unsupported_dtype_is_named_with_the_supported_ones() -> None:
    with pytest.raises(InvalidArgumentError, match="an array of dtype float16: collectives take float32"):
        as_buffer(np.ones(3, np.float16))
    with pytest.raises(InvalidArgumentError, match="a value of type dict"):
        as_buffer({"a": 1})


def test_only_partial_overlap_is_copied() -> None:
    x = np.arange(10)
    assert apart_from(x, x) is x
    same = x[:]
    assert apart_from(same, x) is x
    assert apart_from(np.empty(10), x) is x
    assert apart_from(x[2:], x[:-2]).base is None
