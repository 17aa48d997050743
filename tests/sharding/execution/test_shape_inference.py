from __future__ import annotations

import numpy as np
import pytest

from ringlet.sharding import Sharding, shard
from ringlet.sharding.execution.shape_inference import (
    addresses_of,
    loop_dtype,
    shape_of_reshape,
    shaped,
    small,
    stand_in,
    typed,
)


def test_a_shape_takes_no_memory():
    assert shaped((1 << 40, 1 << 10)).shape == (1 << 40, 1 << 10)


def test_arrays_are_asked_for_their_dtype_and_numbers_for_themselves():
    x = shard(np.zeros(4, np.float32), Sharding.tiled((2,)))
    assert np.result_type(typed(x), typed(2.5)) == np.float32
    assert typed(np.ones(3, np.int8)).shape == (0,)


def test_strides_tell_dimensions_apart():
    assert addresses_of((2, 3, 4))[:, ::-1].transpose(1, 2, 0).strides == (-2, 3, 1)


def test_the_size_that_is_left_out_is_found():
    assert shape_of_reshape((4, 6), -1) == (24,)
    assert shape_of_reshape((0, 6), (3, -1)) == (3, 0)
    assert shape_of_reshape((), (1, 1)) == (1, 1)


def test_a_shape_of_another_size_is_refused_in_numpys_words():
    with pytest.raises(ValueError, match=r"cannot reshape array of size 24 into shape \(5,5\)"):
        shape_of_reshape((4, 6), (5, 5))


def test_what_stands_in_for_a_reduced_array_has_elements_if_that_has_some():
    assert stand_in(small(np.zeros((7, 0, 1), "c8"))).shape == (1, 0, 1)
    assert np.max(stand_in(small(shaped((1 << 40, 3), "i2"))), axis=0).dtype == np.int16
    with pytest.raises(ValueError, match="zero-size"):
        np.max(stand_in(small([])))


def test_what_a_ufunc_computes_in_has_no_unit_of_time_and_the_order_of_bytes_of_the_machine():
    assert [loop_dtype(np.dtype(name)) for name in ("M8[D]", ">i4", "bool")] == [np.dtype(n) for n in ("M8", "i4", "?")]
