"""Destinations are devices, or values that stand for their devices."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.strategy.calls.destinations import check_destinations
from ringlet.values import Mirrored, PerReplica, ShardedVariable, Variable


class Placed:
    """A stand-in for a plain variable."""

    device = "/job:localhost/replica:0/task:0/device:CPU:0"


SHARDED = ShardedVariable([Variable([1])])


@pytest.mark.parametrize(
    "destinations",
    ["CPU:0", "/device:CPU:3", PerReplica([1]), Mirrored([1, 1]), np.ones(1), Placed(), SHARDED],
)
def test_devices_and_values_with_devices_are_accepted(destinations):
    check_destinations(destinations)


@pytest.mark.parametrize(
    ("destinations", "error", "text"),
    [
        ("", ValueError, "destinations can not be empty: name a device"),
        ("GPU:x", ValueError, "GPU:x"),
        (None, TypeError, "got None of type NoneType"),
        (["CPU:0"], TypeError, r"got \['CPU:0'\] of type list"),
        (("CPU:0",), TypeError, "of type tuple"),
        (5, TypeError, "got 5 of type int"),
    ],
)
def test_everything_else_is_refused(destinations, error, text):
    with pytest.raises(error, match=text):
        check_destinations(destinations)
