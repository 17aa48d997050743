"""Destinations are devices, or what lives on devices."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.strategy.api.destinations import check_destinations
from ringlet.values import Mirrored, PerReplica, ShardedVariable, Variable


class Placed:
    """Stands for a plain variable."""

    device = "/job:localhost/replica:0/task:0/device:CPU:0"


SHARDED = ShardedVariable([Variable([1])])


@pytest.mark.parametrize(
    "destinations",
    ["CPU:0", "/device:CPU:3", PerReplica([1]), Mirrored([1, 1]), np.ones(1), Placed(), SHARDED],
    ids=repr,
)
def test_devices_and_what_lives_on_them_are_taken(destinations):
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
