"""How much memory the system would still give, and what `empty_shared` makes of it."""

from __future__ import annotations

import numpy as np
import pytest

import ringlet
from ringlet.collectives.available_memory import AvailableMemory, available_memory
from ringlet.errors import InvalidArgumentError, SharedMemoryFullError

GIB = 2**30


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


MEMINFO = f"MemTotal: 99999999 kB\nMemAvailable: {8 * 2**20} kB\nSwapFree: 0 kB\n"


@pytest.mark.parametrize(
    ("files", "left", "where"),
    [
        # files, GiB left, where
        ({}, 8, "this machine"),
        ({"proc/self/cgroup": "0::/\n"}, 8, "this machine"),
        (
            {
                "proc/self/cgroup": "0::/job/step\n",
                "sys/fs/cgroup/job/step/memory.max": "max\n",
                "sys/fs/cgroup/job/step/memory.current": f"{GIB}\n",
                "sys/fs/cgroup/job/memory.max": f"{4 * GIB}\n",
                "sys/fs/cgroup/job/memory.current": f"{3 * GIB}\n",
                "sys/fs/cgroup/job/memory.stat": f"anon {GIB}\ninactive_file {GIB}\nactive_file 0\n",
            },
            2,
            "control group /job",
        ),
        (
            {
                "proc/self/cgroup": "2:cpu:/x\n1:hugetlb,memory:/of/host\n0::/\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{4 * GIB}",
                "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{GIB}",
            },
            3,
            "control group /",
        ),
        (
            {
                "proc/self/cgroup": "1:memory:/\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
                "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{GIB}",
            },
            8,
            "this machine",
        ),
    ],
)
def test_the_least_of_machine_and_control_groups_is_told(tmp_path, files, left, where):
    write(tmp_path, {"proc/meminfo": MEMINFO, **files})
    assert available_memory(tmp_path) == AvailableMemory(left * GIB, where)


def test_a_system_that_does_not_tell_is_no_limit(tmp_path):
    assert available_memory(tmp_path) is None


def test_more_than_is_left_is_refused_before_anything_is_reserved():
    with pytest.raises(SharedMemoryFullError, match=r"GiB of shared memory, but .* has .* GiB left") as raised:
        ringlet.empty_shared(2**39, np.uint8)
    assert raised.value.need_bytes == 2**39
    assert 0 < raised.value.free_bytes < 2**39
    assert ringlet.empty_shared(2**23, np.uint8).nbytes == 2**23


@pytest.mark.parametrize("shape", [5, np.int8(5), np.array(5), [5], np.array([5]), range(5, 6)])
def test_a_shape_may_be_anything_that_is_or_holds_integers(shape):
    assert ringlet.empty_shared(shape).shape == (5,)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (2.5, "shape is 2.5: expected integers."),
        ((2, -3), "shape is (2, -3): expected non-negative numbers."),
        ((2**20, 2**20), "an array of shape (1048576, 1048576) has 1099511627776 bytes: the maximum is 2**40 - 1."),
    ],
)
def test_a_wrong_shape_is_refused(shape, message):
    with pytest.raises(InvalidArgumentError) as raised:
        ringlet.empty_shared(shape, np.uint8)
    assert str(raised.value) == message
