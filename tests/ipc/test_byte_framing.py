"""Length-prefixed framing of byte strings."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ringlet.ipc.byte_framing import join_frames, split_frames


@given(parts=st.lists(st.binary(max_size=300), max_size=5))
def test_frames_are_split_as_they_were_joined(parts):
    assert split_frames(join_frames(parts)) == parts


@given(parts=st.lists(st.binary(max_size=300), min_size=1, max_size=5))
def test_joined_frames_can_be_concatenated_as_arrays(parts):
    arrays = [np.frombuffer(join_frames([part]), np.uint8) for part in parts]
    assert split_frames(np.concatenate(arrays)) == parts


def test_an_empty_array_has_no_frames():
    assert split_frames(np.empty(0, np.uint8)) == []
