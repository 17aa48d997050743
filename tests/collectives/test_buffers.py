"""Arrays on their way into the core and back."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from ringlet.collectives.buffers import (
    Output,
    Outputs,
    as_buffer,
    as_buffers,
    copy_if_overlapping,
    copy_if_partly_overlapping,
    is_direct,
)
from ringlet.errors import InvalidArgumentError


def test_an_array_that_fits_is_not_copied() -> None:
    x = np.ones((3, 4), np.float16)
    assert as_buffer(x) is x


def test_a_subclass_is_read_through_its_base() -> None:
    class Tagged(np.ndarray):  # type: ignore[type-arg]
        pass

    assert type(as_buffer(np.ones(3).view(Tagged))) is np.ndarray


def test_a_mask_is_not_lost_in_silence() -> None:
    with pytest.raises(InvalidArgumentError, match=r"the array is a masked array.*x\.filled"):
        as_buffer(np.ma.MaskedArray([1.0, 99.0], mask=[False, True]))


def test_messages_tell_which_array_is_at_fault() -> None:
    with pytest.raises(InvalidArgumentError, match="array 1 of 3, which is dtype <U1"):
        as_buffers([np.ones(2), np.array(["a"]), np.ones(2)])


def test_a_0d_array_keeps_its_shape() -> None:
    assert as_buffer(np.array(5, ">i4")).shape == ()


def test_an_explicit_order_that_is_this_machines_needs_no_copy() -> None:
    memory = (ctypes.c_double * 3)(1, 2, 3)
    buffer = as_buffer(memory)
    assert buffer.dtype.byteorder == "="
    assert np.shares_memory(buffer, np.asarray(memory))
    assert not is_direct(np.asarray(memory))  # the core would not know it


def test_only_partial_overlap_is_copied() -> None:
    x = np.arange(10)
    assert copy_if_partly_overlapping(x, x) is x
    same = x[:]
    assert copy_if_partly_overlapping(same, x) is x
    assert copy_if_partly_overlapping(np.empty(10), x) is x
    assert copy_if_partly_overlapping(x[2:], x[:-2]).base is None


def test_any_overlap_is_copied_where_inputs_must_be_read_first() -> None:
    x = np.arange(10)
    assert copy_if_overlapping(None, x) is x
    assert copy_if_overlapping(np.empty(10), x) is x
    assert not np.shares_memory(copy_if_overlapping(x, x), x)


def test_an_output_of_another_layout_is_filled_by_a_copy() -> None:
    out = np.zeros((2, 3))
    assert Output(out, (2, 3), out.dtype).direct is out
    turned = Output(out, (2, None), out.dtype, axis=1)
    assert turned.direct.shape == (3, 2)
    turned.direct[:] = np.arange(6).reshape(3, 2)
    assert turned.store() is out
    assert out.tolist() == [[0, 2, 4], [1, 3, 5]]


def test_an_output_is_filled_with_a_result_of_its_shape_only() -> None:
    out = np.zeros((2, 1))
    assert Output(out).fill(np.ones((2, 1))) is out
    with pytest.raises(InvalidArgumentError, match=r"out is float64\[2, 1\], expected float64\[1, 1\]"):
        Output(out).fill(np.ones((1, 1)))


BAD_OUTS: list[tuple[Any, str]] = [
    (np.zeros(4), r"out is float64\[4\], expected float64\[3\]. Pass out=np\.empty\(\(3,\), 'float64'\)"),
    (np.zeros(3, np.float32), r"out is float32\[3\], expected float64\[3\]"),
    ([0.0, 0.0, 0.0], "out is a list: expected a writeable ndarray"),
    (np.broadcast_to(0.0, (3,)), "out is read-only"),
]


@pytest.mark.parametrize(("out", "words"), BAD_OUTS)
def test_an_output_that_does_not_fit_is_refused(out: Any, words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        Outputs([out], [np.zeros(3)])
