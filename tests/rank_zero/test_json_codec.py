"""What goes from process to process is plain, and comes out as it went in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ringlet.rank_zero.json_codec import from_text, to_text


@pytest.mark.parametrize(
    "value",
    [None, True, -(2**70), 2.5, float("inf"), "text \N{SNOWMAN}", b"\x00\xff", Path("a/b"), [1, [2]], (1, (2, [3])), {},
     {"a": (None, {"b": [b"x"]})}],
)  # fmt: skip
def test_it_comes_out_as_it_went_in(value):
    answer = from_text(to_text(value))
    assert (answer, type(answer)) == (value, type(value))


@pytest.mark.parametrize("value", [object(), {1: 2}, np.float64(2), {3}, [print]], ids=repr)
def test_anything_else_is_refused(value):
    with pytest.raises(TypeError, match="cannot be handed to other processes: give None, numbers"):
        to_text(value)
