"""The variables of TPU machines: what they say together, and that contradictions are named."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.tpu import GENERATIONS, Topology, TPUEnvironment

V4_16 = {"TPU_ACCELERATOR_TYPE": "v4-16"}


@pytest.mark.parametrize(
    ("environ", "shape", "chips", "processes"),
    [
        # variables, chips of the slice, chips of a process, processes
        (V4_16, (2, 2, 2), (2, 2, 1), 2),
        ({"ACCELERATOR_TYPE": "v4-16"}, (2, 2, 2), (2, 2, 1), 2),
        ({"TPU_TOPOLOGY": "4x4x8"}, (4, 4, 8), (2, 2, 1), 32),
        ({"TPU_TOPOLOGY": "4x4"}, (4, 4, 1), (2, 2, 1), 4),
        ({"TPU_TOPOLOGY": "3x1"}, (3, 1, 1), (1, 1, 1), 3),
        ({"TPU_ACCELERATOR_TYPE": "v5litepod-8"}, (2, 4, 1), (2, 4, 1), 1),
        # the number of a name leaves the shape open
        ({"TPU_ACCELERATOR_TYPE": "v4-1024", "TPU_TOPOLOGY": "4x8x16"}, (4, 8, 16), (2, 2, 1), 128),
        # the old names of bounds, the new ones, and the new ones where both are there
        ({"TPU_CHIPS_PER_HOST_BOUNDS": "2,2,1", "TPU_HOST_BOUNDS": "1,1,4"}, (2, 2, 4), (2, 2, 1), 4),
        ({"TPU_CHIPS_PER_PROCESS_BOUNDS": "1,1,1", "TPU_PROCESS_BOUNDS": "2,2,1"}, (2, 2, 1), (1, 1, 1), 4),
        (
            {
                **V4_16,
                "TPU_CHIPS_PER_HOST_BOUNDS": "2,2,1",
                "TPU_HOST_BOUNDS": "1,1,2",
                "TPU_CHIPS_PER_PROCESS_BOUNDS": "1, 1, 1",
                "TPU_PROCESS_BOUNDS": "2,2,2",
            },
            (2, 2, 2),
            (1, 1, 1),
            8,
        ),
        # one of the two bounds
        ({**V4_16, "TPU_CHIPS_PER_PROCESS_BOUNDS": "1,2,1"}, (2, 2, 2), (1, 2, 1), 4),
        ({**V4_16, "TPU_PROCESS_BOUNDS": "2,1,2"}, (2, 2, 2), (1, 2, 1), 4),
        # eight chips of a v5e machine are 2x4 for some and 4x2 for others
        (
            {
                "TPU_ACCELERATOR_TYPE": "v5litepod-8",
                "TPU_TOPOLOGY": "2x4",
                "TPU_CHIPS_PER_HOST_BOUNDS": "4,2,1",
                "TPU_HOST_BOUNDS": "1,1,1",
            },
            (4, 2, 1),
            (4, 2, 1),
            1,
        ),
        # and one machine, or two
        ({"TPU_ACCELERATOR_TYPE": "v5litepod-8", "TPU_WORKER_HOSTNAMES": "a,b"}, (2, 4, 1), (2, 2, 1), 2),
        # a part of a slice, for a process that opens these chips only
        (
            {
                **V4_16,
                "TPU_VISIBLE_CHIPS": "2",
                "TPU_CHIPS_PER_PROCESS_BOUNDS": "1,1,1",
                "TPU_PROCESS_BOUNDS": "1,1,1",
            },
            (1, 1, 1),
            (1, 1, 1),
            1,
        ),
        # whose variables still have the hosts of the whole slice
        (
            {
                **V4_16,
                "TPU_VISIBLE_CHIPS": "0,1,2,3",
                "TPU_CHIPS_PER_PROCESS_BOUNDS": "2,2,1",
                "TPU_PROCESS_BOUNDS": "1,1,1",
                "TPU_WORKER_HOSTNAMES": "a,b",
                "TPU_WORKER_ID": "1",
            },
            (2, 2, 1),
            (2, 2, 1),
            1,
        ),
        # two spellings of one slice
        ({"TPU_ACCELERATOR_TYPE": "v5litepod-4", "ACCELERATOR_TYPE": "v5e-2x2"}, (2, 2, 1), (2, 2, 1), 1),
        # two processes on each chip
        (
            {
                "TPU_ACCELERATOR_TYPE": "tpu7x-8",
                "TPU_CHIPS_PER_PROCESS_BOUNDS": "1,1,1",
                "TPU_PROCESS_BOUNDS": "2,2,1,2",
            },
            (2, 2, 1),
            (1, 1, 1),
            8,
        ),
        # launchers that leave bounds empty
        ({**V4_16, "TPU_CHIPS_PER_HOST_BOUNDS": "", "TPU_HOST_BOUNDS": " "}, (2, 2, 2), (2, 2, 1), 2),
    ],
)
def test_variables_together_say_what_the_slice_is(environ, shape, chips, processes):
    found = TPUEnvironment.read(environ)
    assert (found.shape, found.chips_per_process, found.num_processes) == (shape, chips, processes)
    topology = Topology.from_env(environ)
    assert topology.chip_shape == shape
    assert topology.num_tasks == processes


def test_everything_else_is_read_too():
    found = TPUEnvironment.read(
        {
            **V4_16,
            "TPU_NAME": "my-tpu",
            "TPU_WORKER_ID": "1",
            "TPU_WORKER_HOSTNAMES": "h0, h1",
            "TPU_VISIBLE_DEVICES": "3,2,1,0",
            "TPU_PROCESS_ADDRESSES": "h0:8476,h1:8476",
            "TPU_PROCESS_PORT": "8476",
            "CLOUD_TPU_TASK_ID": "1",
            "MEGASCALE_COORDINATOR_ADDRESS": "10.0.0.2:8080",
            "MEGASCALE_NUM_SLICES": "2",
            "MEGASCALE_SLICE_ID": "1",
            "UNRELATED": "x",
        }
    )
    assert found.generation is GENERATIONS["v4"]
    assert (found.accelerator_type, found.name) == ("v4-16", "my-tpu")
    assert (found.worker_id, found.task_id, found.visible_chips) == (1, 1, (3, 2, 1, 0))
    assert (found.hostnames, found.process_addresses) == (("h0", "h1"), ("h0:8476", "h1:8476"))
    assert (found.num_slices, found.slice_id, found.coordinator_address) == (2, 1, "10.0.0.2:8080")


def test_where_nothing_is_said_it_is_not_known():
    found = TPUEnvironment.read(V4_16)
    assert (found.worker_id, found.task_id, found.visible_chips, found.name) == (None, None, None, None)
    assert (found.hostnames, found.process_addresses, found.num_slices, found.slice_id) == ((), (), 1, 0)


def test_the_environment_of_this_process_is_the_default(monkeypatch):
    monkeypatch.setenv("TPU_ACCELERATOR_TYPE", "v2-8")
    monkeypatch.delenv("TPU_TOPOLOGY", raising=False)
    assert Topology.from_env().accelerator_type == "v2-8"


@pytest.mark.parametrize(
    ("environ", "first", "second"),
    [
        # variables, and the two that contradict each other
        ({**V4_16, "ACCELERATOR_TYPE": "v4-32"}, "TPU_ACCELERATOR_TYPE", "ACCELERATOR_TYPE"),
        ({**V4_16, "TPU_TOPOLOGY": "2x2x4"}, "TPU_TOPOLOGY", "TPU_ACCELERATOR_TYPE"),
        (
            {**V4_16, "TPU_CHIPS_PER_HOST_BOUNDS": "2,2,1", "TPU_HOST_BOUNDS": "1,1,4"},
            "TPU_CHIPS_PER_HOST_BOUNDS times TPU_HOST_BOUNDS",
            "TPU_ACCELERATOR_TYPE",
        ),
        (
            {
                "TPU_TOPOLOGY": "4x4x4",
                "TPU_CHIPS_PER_PROCESS_BOUNDS": "2,2,1",
                "TPU_PROCESS_BOUNDS": "1,4,4",
            },
            "TPU_CHIPS_PER_PROCESS_BOUNDS times TPU_PROCESS_BOUNDS",
            "TPU_TOPOLOGY",
        ),
        # bounds for one chip a process, beside the hosts that the machine was started with
        (
            {**V4_16, "TPU_CHIPS_PER_PROCESS_BOUNDS": "1,1,1", "TPU_HOST_BOUNDS": "1,1,2"},
            "TPU_CHIPS_PER_PROCESS_BOUNDS times TPU_HOST_BOUNDS",
            "TPU_ACCELERATOR_TYPE",
        ),
        ({**V4_16, "TPU_PROCESS_BOUNDS": "3,1,1"}, "TPU_PROCESS_BOUNDS", "TPU_ACCELERATOR_TYPE"),
        ({**V4_16, "TPU_WORKER_HOSTNAMES": "a,b,c,d"}, "TPU_WORKER_HOSTNAMES", "TPU_ACCELERATOR_TYPE"),
        ({**V4_16, "TPU_WORKER_HOSTNAMES": "a"}, "TPU_WORKER_HOSTNAMES", "TPU_ACCELERATOR_TYPE"),
        ({**V4_16, "TPU_WORKER_ID": "2", "TPU_WORKER_HOSTNAMES": "a,b"}, "TPU_WORKER_ID", "TPU_WORKER_HOSTNAMES"),
        ({**V4_16, "TPU_WORKER_ID": "2"}, "TPU_WORKER_ID", "TPU_ACCELERATOR_TYPE"),
        ({**V4_16, "CLOUD_TPU_TASK_ID": "2"}, "CLOUD_TPU_TASK_ID", "TPU_ACCELERATOR_TYPE"),
        ({**V4_16, "TPU_PROCESS_ADDRESSES": "a:1"}, "TPU_PROCESS_ADDRESSES", "TPU_ACCELERATOR_TYPE"),
        (
            {
                **V4_16,
                "TPU_PROCESS_ADDRESSES": "a:1,b:2",
                "TPU_PROCESS_PORT": "1",
                "CLOUD_TPU_TASK_ID": "1",
            },
            "TPU_PROCESS_PORT",
            "TPU_PROCESS_ADDRESSES",
        ),
        ({**V4_16, "TPU_VISIBLE_CHIPS": "0,1"}, "TPU_VISIBLE_CHIPS", "TPU_CHIPS_PER_PROCESS_BOUNDS"),
        ({**V4_16, "TPU_VISIBLE_CHIPS": "1,2,3,4"}, "TPU_VISIBLE_CHIPS", "TPU_ACCELERATOR_TYPE"),
        ({**V4_16, "TPU_VISIBLE_CHIPS": "0", "TPU_VISIBLE_DEVICES": "1"}, "TPU_VISIBLE_CHIPS", "TPU_VISIBLE_DEVICES"),
        (
            {**V4_16, "MEGASCALE_NUM_SLICES": "2", "MEGASCALE_SLICE_ID": "2"},
            "MEGASCALE_SLICE_ID",
            "MEGASCALE_NUM_SLICES",
        ),
    ],
)
def test_variables_that_contradict_each_other_are_both_named(environ, first, second):
    with pytest.raises(ValueError, match=f"^{first} and {second} contradict each other: .* Correct or unset one"):
        TPUEnvironment.read(environ)


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({}, "no environment variable describes the slice .*: none.* Set TPU_ACCELERATOR_TYPE"),
        ({"TPU_NAME": "x", "TPU_WORKER_ID": "0"}, r"that are set: TPU_NAME, TPU_WORKER_ID\)"),
        ({"TPU_CHIPS_PER_HOST_BOUNDS": "2,2,1"}, "no environment variable describes"),
        ({"TPU_ACCELERATOR_TYPE": "v4-17"}, "unknown accelerator type 'v4-17'"),
        ({"TPU_ACCELERATOR_TYPE": "v5litepod-128", "TPU_TOPOLOGY": "4x32"}, "unknown accelerator type"),
        ({"TPU_TOPOLOGY": "4,4"}, "TPU_TOPOLOGY is '4,4': expected the chips along each axis"),
        ({**V4_16, "TPU_HOST_BOUNDS": "1,1"}, "TPU_HOST_BOUNDS is '1,1': expected positive numbers along x, y and z"),
        ({**V4_16, "TPU_HOST_BOUNDS": "1,1,0"}, "TPU_HOST_BOUNDS is '1,1,0'"),
        ({**V4_16, "TPU_PROCESS_BOUNDS": "1,1,2,2"}, "2 processes on each chip, but a v4 chip has 1 device"),
        ({**V4_16, "TPU_WORKER_ID": "one"}, "TPU_WORKER_ID is 'one': expected a non-negative integer"),
        (
            {**V4_16, "TPU_VISIBLE_CHIPS": "0,0,1,2"},
            "TPU_VISIBLE_CHIPS is '0,0,1,2': expected the numbers of different",
        ),
        ({**V4_16, "TPU_WORKER_HOSTNAMES": "a,a"}, "TPU_WORKER_HOSTNAMES has a host twice"),
        ({**V4_16, "TPU_PROCESS_ADDRESSES": "a,b"}, "TPU_PROCESS_ADDRESSES has 'a': expected host:port"),
        ({**V4_16, "TPU_PROCESS_ADDRESSES": "a:1,b:70000"}, "TPU_PROCESS_ADDRESSES has 'b:70000'"),
        ({"TPU_TOPOLOGY": "9999x9999x9999"}, "a mesh of 9999x9999x9999x1 has 999700029999 cores; the maximum"),
        ({**V4_16, "MEGASCALE_NUM_SLICES": "0"}, "MEGASCALE_NUM_SLICES is '0'"),
    ],
)
def test_variables_that_cannot_be_read_are_refused_by_name(environ, words):
    with pytest.raises(ValueError, match=words):
        Topology.from_env(environ)


NAMES = st.sampled_from(
    [
        "TPU_ACCELERATOR_TYPE", "TPU_TOPOLOGY", "TPU_CHIPS_PER_HOST_BOUNDS", "TPU_HOST_BOUNDS", "TPU_PROCESS_BOUNDS",
        "TPU_CHIPS_PER_PROCESS_BOUNDS", "TPU_VISIBLE_CHIPS", "TPU_WORKER_ID", "TPU_WORKER_HOSTNAMES",
        "CLOUD_TPU_TASK_ID", "TPU_PROCESS_ADDRESSES", "TPU_PROCESS_PORT", "MEGASCALE_SLICE_ID",
    ]
)  # fmt: skip
TEXTS = st.one_of(
    st.sampled_from(["v4-16", "v5litepod-8", "2x2x2", "2x4", "2,2,1", "1,1,2", "1,1,1", "0", "0,1", "a,b", "a:1,b:2"]),
    st.text(max_size=8),
)


@given(st.dictionaries(NAMES, TEXTS))
def test_any_variables_are_read_or_refused(environ):
    with contextlib.suppress(ValueError):
        assert Topology.from_env(environ).num_devices > 0
