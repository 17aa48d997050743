"""Replicas placed on a slice: each error says what to write, in Python and on the command line."""

from __future__ import annotations

import pytest

import ringlet
from ringlet import tpu
from ringlet.launcher.command_line import main

SLICE = tpu.Topology.from_accelerator_type("v4-128", megacore=True)
V5E = tpu.Topology.from_accelerator_type("v5e-64")


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: tpu.Topology("v4-128"), TypeError, ["Topology.from_accelerator_type('v4-128')"]),
        (lambda: tpu.create_device_mesh([8, 8], "v4-128"), TypeError, ["Topology.from_accelerator_type('v4-128'"]),
        (lambda: tpu.create_device_mesh(SLICE, [8, 8]), TypeError, ["must be a Topology, got [8, 8]"]),
        (lambda: tpu.DeviceAssignment.build(SLICE, num_replicas=(8, 8)), TypeError, ["(8, 8)", "num_replicas=64"]),
        (lambda: tpu.DeviceAssignment.build(SLICE, [2, 2, 2], num_replicas=8), ValueError, ["(3,)", "[2, 2, 2, 1]"]),
        (lambda: tpu.DeviceAssignment.build(V5E, [2, 2, 2, 1], num_replicas=8), ValueError, ["write [2, 4, 1, 1]"]),
        (lambda: tpu.DeviceAssignment.build(SLICE, [8, 1, 1, 1], num_replicas=8), ValueError, ["write [2, 2, 2, 1]"]),
        (lambda: SLICE.draw("slice.pdf"), ValueError, ["write draw('slice.svg') or draw('slice.png')"]),
        (
            lambda: ringlet.TPUStrategy(tpu.DeviceAssignment.build(SLICE, num_replicas=64)),
            TypeError,
            ["TPUClusterResolver(accelerator_type='v4-16')", "experimental_device_assignment="],
        ),
    ],
)
def test_the_error_says_what_to_write(call, kind, words):
    with pytest.raises(kind) as caught:
        call()
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--replicas 8x8", "expected an integer, at least 1. Write --replicas 64"),
        ("--allreduce 1GiB", "did you mean --all-reduce?"),
        ("--reduce-scater 1GiB", "did you mean --reduce-scatter?"),
    ],
)
def test_the_command_says_what_to_write(options, words, capsys):
    try:
        status = main(["tpu", "v4-128", *options.split()])
    except SystemExit as exited:
        status = exited.code
    assert status == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("shape", ["2x2x2", "2,2,2", "2,2,2,1"])
def test_a_computation_shape_may_omit_the_devices_of_a_chip(shape, capsys):
    assert main(["tpu", "v4-128", "--computation-shape", shape]) == 0
    assert "8 replicas of 8 chips" in capsys.readouterr().out
