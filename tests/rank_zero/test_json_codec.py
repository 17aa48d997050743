"""The codec of values that are sent to other processes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ringlet.rank_zero.once import from_text, to_text


@pytest.mark.parametrize(
    "value",
    [None, True, -(2**70), 2.5, float("inf"), "text \N{SNOWMAN}", b"\x00\xff", Path("a/b"), [1, [2]], (1, (2, [3])), {},
     {"a": (None, {"b": [b"x"]})}],
)  # fmt: skip
def test_a_decoded_value_equals_the_encoded_one(value):
    answer = from_text(to_text(value))
    assert (answer, type(answer)) == (value, type(value))


@pytest.mark.parametrize("value", [object(), {1: 2}, np.float64(2), {3}, [print]])
def test_anything_else_is_refused(value):
    with pytest.raises(TypeError, match="cannot be sent to other processes: return None, numbers"):
        to_text(value)
