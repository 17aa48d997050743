"""A topology says which number counts what."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.tpu import Topology
from ringlet.tpu.topology.topology import coordinates_of_slice


@pytest.mark.parametrize(
    ("name", "megacore", "lines"),
    [
        (
            "v3-32",
            False,
            """
            Topology of a v3-32 slice
              cores    32  2 on each chip; the number in v3-32 counts these
              chips    16  4x4, no axis wraps
              devices  32  2 for each chip, one core each; mesh_shape [4 4 1 2]
              hosts     4  with 4 chips and 8 devices each
            """,
        ),
        (
            "v4-128",
            True,
            """
            Topology of a v4-128 slice
              cores    128  2 on each chip; the number in v4-128 counts these
              chips     64  4x4x4, x, y and z wrap
              devices   64  1 for each chip, both cores as one; mesh_shape [4 4 4 1]
              hosts     16  with 4 chips and 4 devices each
            """,
        ),
        (
            "v5e:8x16",
            False,
            """
            Topology of a v5litepod-128 slice
              cores    128  1 on each chip
              chips    128  8x16, y wraps; the number in v5litepod-128 counts these
              devices  128  1 for each chip, its only core; mesh_shape [ 8 16  1  1]
              hosts     32  with 4 chips and 4 devices each
            """,
        ),
        (
            "v5litepod-1",
            False,
            """
            Topology of a v5litepod-1 slice
              cores    1  1 on each chip
              chips    1  1x1, no axis wraps; the number in v5litepod-1 counts these
              devices  1  1 for each chip, its only core; mesh_shape [1 1 1 1]
              hosts    1  with 1 chip and 1 device each
            """,
        ),
        (
            "v4-4x8x16",
            False,
            """
            Topology of a v4-4x8x16 slice
              cores    1024  2 on each chip
              chips     512  4x8x16, x, y and z wrap
              devices  1024  2 for each chip, one core each; mesh_shape [ 4  8 16  2]
              hosts     128  with 4 chips and 8 devices each
            """,
        ),
    ],
)
def test_a_slice_is_told_as_a_table(name, megacore, lines):
    expected = "\n".join(line[12:] for line in lines.strip("\n").splitlines()[:-1])
    assert repr(Topology.from_accelerator_type(name, megacore)) == expected


def test_a_degraded_slice_of_unknown_kind_says_how_many_are_missing():
    whole = coordinates_of_slice((2, 2, 1), (1, 1, 1), 1)
    text = repr(Topology(mesh_shape=[2, 2, 1, 1], device_coordinates=whole[:3], wrap=[True, False, False]))
    assert text.splitlines() == [
        "Topology of a TPU slice",
        "  cores    4  1 on each chip",
        "  chips    4  2x2x1, x wraps",
        "  devices  3  1 for each chip, its only core, 1 missing; mesh_shape [2 2 1 1]",
        "  hosts    3  with 1 chip and 1 device each",
    ]


@pytest.mark.parametrize(
    ("coordinates", "hosts"),
    [
        # two tasks on every chip, each with one of its devices; and tasks with unlike numbers of chips
        (coordinates_of_slice((2, 2, 1), (2, 2, 1), 2, 2), "with 4 chips and 4 devices each"),
        ([[[0, 0, 0, 0], [0, 0, 0, 1]], [[1, 0, 0, 0], [0, 1, 0, 0]]], "with 2 devices each"),
        ([[], []], "with 0 chips and 0 devices each"),
    ],
)
def test_hosts_have_the_chips_that_their_devices_sit_on(coordinates, hosts):
    given = np.array(coordinates, int).reshape(len(coordinates), -1, 4)
    text = repr(Topology(mesh_shape=[2, 2, 1, 2], device_coordinates=given))
    assert text.splitlines()[-1] == f"  hosts    2  {hosts}"


def test_a_twisted_torus_is_called_one():
    assert "x, y and z wrap, twisted" in repr(Topology.from_accelerator_type("v4-4x4x8", twisted=True))
