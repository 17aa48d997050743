"""Arrays on their way into the core and back."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.collectives.buffers import apart_from, as_buffer, as_buffers
from ringlet.errors import InvalidArgumentError


def test_an_array_that_fits_is_not_copied() -> None:
    x = np.ones((3, 4), np.float32)
    assert as_buffer(x) is x


def test_a_subclass_is_read_through_its_base() -> None:
    class Tagged(np.ndarray):  # type: ignore[type-arg]
        pass

    assert type(as_buffer(np.ones(3).view(Tagged))) is np.ndarray


def test_a_mask_is_not_lost_in_silence() -> None:
    with pytest.raises(InvalidArgumentError, match=r"the array is a masked array.*x\.filled"):
        as_buffer(np.ma.MaskedArray([1.0, 99.0], mask=[False, True]))


def test_messages_tell_which_array_is_at_fault() -> None:
    with pytest.raises(InvalidArgumentError, match="array 1 of 3, which is dtype float16"):
        as_buffers([np.ones(2), np.ones(2, np.float16), np.ones(2)])


def test_a_0d_array_keeps_its_shape() -> None:
    assert as_buffer(np.array(5, ">i4")).shape == ()


def test_an_unsupported_dtype_is_named_with_the_supported_ones() -> None:
    with pytest.raises(InvalidArgumentError, match=r"dtype float16: collectives take float32.*astype"):
        as_buffer(np.ones(3, np.float16))
    with pytest.raises(InvalidArgumentError, match=r"\{'a': 1\} of type dict.*Give real numbers"):
        as_buffer({"a": 1})


def test_only_partial_overlap_is_copied() -> None:
    x = np.arange(10)
    assert apart_from(x, x) is x
    same = x[:]
    assert apart_from(same, x) is x
    assert apart_from(np.empty(10), x) is x
    assert apart_from(x[2:], x[:-2]).base is None
