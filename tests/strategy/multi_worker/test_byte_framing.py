"""Bytes of several workers in one array."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ringlet.strategy.multi_worker.byte_framing import pack, unpack


@given(parts=st.lists(st.binary(max_size=300), min_size=1, max_size=5))
def test_what_is_packed_comes_apart_as_it_was(parts):
    assert unpack(np.concatenate([pack(part) for part in parts])) == parts


def test_no_parts_are_no_bytes():
    assert unpack(np.empty(0, np.uint8)) == []
