"""Which devices share memory."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet import _core
from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.layout import WHOLE, Cut, Layout
from ringlet.sharding.memory_modes import mode
from ringlet.sharding.resharding.device_buffers import POISONED, copies, empty, fresh
from ringlet.testing import run_on_ranks

HALVES = Cut(2, (0, 1))
ROWS = Layout(2, (HALVES, WHOLE))
F4 = np.dtype("float32")


def spaces(layout, group=None):
    x = empty((4, 3), F4, layout, group or DeviceGroup.of(layout.num_devices))
    return [x._space(device) for device in range(layout.num_devices)]


def test_devices_of_a_process_share_one_space():
    one, other = spaces(ROWS)
    assert one is other
    assert one.shape == (4, 3)


def test_each_part_of_a_partial_array_has_a_space():
    one, other = spaces(Layout(2, (WHOLE, WHOLE), HALVES))
    assert not np.shares_memory(one, other)


def test_in_copy_mode_each_device_has_a_space():
    with mode("copy"):
        one, other = spaces(ROWS)
        held, unused = spaces(Layout(2, (WHOLE, WHOLE), only=1))
    assert not np.shares_memory(one, other)
    assert not np.shares_memory(held, unused)


def test_devices_of_other_processes_have_none_here():
    def known(member):
        return [space is not None for space in spaces(ROWS, DeviceGroup(2, ("a", "b"), member, (0, 1)))]

    assert run_on_ranks(2, known) == [[True, False], [False, True]]


@pytest.mark.parametrize("dtype", ["float32", "complex128", "int8", "uint64", "bool", "M8[s]", "object", "i4,f8"])
def test_memory_is_poisoned_for_tests(dtype):
    token = POISONED.set(True)
    try:
        made = [fresh(shape, np.dtype(dtype)) for shape in [(3,), (), (0, 2)]]
    finally:
        POISONED.reset(token)
    if dtype == "float32":
        assert np.isnan(made[0]).all()
    if dtype == "int8":
        assert made[0].tolist() == [127] * 3


def test_much_memory_is_used_again():
    large = fresh((1 << 20,), F4)
    place, idle = large.ctypes.data, _core.pool_statistics()["idle_blocks"]
    del large
    assert _core.pool_statistics()["idle_blocks"] == idle + 1
    assert fresh((1 << 20,), F4).ctypes.data == place


def test_a_copy_shares_nothing_and_its_devices_what_they_shared():
    with mode("copy"):
        apart = empty((4, 3), F4, ROWS, DeviceGroup.of(2))
    together = empty((4, 3), F4, ROWS, DeviceGroup.of(2))
    for x in (apart, together):
        one, other = copies(x)
        assert (one is other) == (x is together)
        assert not np.shares_memory(one, x._space(0))
