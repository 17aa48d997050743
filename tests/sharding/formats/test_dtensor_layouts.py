"""Wrong arguments of the conversion of DTensors; tests/frameworks has the conversion."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from ringlet.sharding import from_dtensor, to_dtensor

MESH = SimpleNamespace(get_rank=lambda: 0)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            lambda: from_dtensor(np.ones(2), None),
            r"requires a DTensor, got .* ndarray: pass distribute_tensor\(tensor, ",
        ),
        (
            lambda: from_dtensor(SimpleNamespace(device_mesh=MESH), 2),
            r"a Member, got .* int: pass the result of ringlet",
        ),
        (lambda: from_dtensor(SimpleNamespace(device_mesh=4), 2), r"a DeviceMesh, got .* int: pass torch\.distributed"),
        (lambda: to_dtensor(np.ones(2), MESH), r"requires a ShardedArray, got .* ndarray: pass shard\(array, "),
    ],
)
def test_a_wrong_argument_is_answered_with_what_to_pass(call, told):
    with pytest.raises(TypeError, match=told):
        call()
