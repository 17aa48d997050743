"""States as bytes."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ringlet.data.operations.common.memory_cache import same_state
from ringlet.data.state.state_codec import pack, unpack

arrays = hnp.arrays(
    st.sampled_from([np.dtype(name) for name in ("?", "i1", "<u8", ">f4", "<f8", "<c16", "<f2")]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
    elements=st.just(1),
)
leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.binary(max_size=5) | arrays
states = st.recursive(
    leaves | st.floats(allow_nan=False),
    lambda s: st.lists(s, max_size=3) | st.dictionaries(st.text(max_size=3), s, max_size=3),
    max_leaves=8,
)


@given(states)
def test_a_state_comes_back_as_it_was(state):
    assert same_state(unpack(*pack(state)), state)


def test_scalars_stay_scalars_and_arrays_cannot_be_written_to():
    scalar, array = unpack(*pack([np.float32(1.5), np.zeros(2)]))
    assert type(scalar) is np.float32
    assert not array.flags.writeable


@pytest.mark.parametrize(
    ("header", "memory"),
    [
        (b"{}", b""),
        (b"not JSON", b""),
        (b'{"a": ["<f8", [2]]}', b"short"),
        (b'{"a": ["<f8", [-1]]}', b""),
        (b'{"a": ["|O", [1]]}', b"12345678"),
        (b'{"a": ["os", [1]]}', b""),
        (b'{"b": -1}', b""),
        (b'{"b": 1}', b"too long"),
        (b'{"x": 1}', b""),
        (b'{"d": 3}', b""),
    ],
)
def test_bytes_that_are_no_state_are_refused(header, memory):
    with pytest.raises(ValueError, match=r"."):
        unpack(header, memory)


@given(st.binary(max_size=40), st.binary(max_size=20))
def test_any_bytes_are_a_state_or_refused(header, memory):
    with contextlib.suppress(ValueError):
        unpack(header, memory)
