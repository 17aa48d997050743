"""Messages carried between devices, of one process and of several."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.errors import CollectiveMismatchError, ShardingError
from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.resharding.collective_record import Message
from ringlet.sharding.resharding.tile_transport import Transfer, deliver, received, transfer, view_of
from ringlet.testing import run_on_ranks

ROW = (slice(0, 1), slice(0, 3))


def group_of(member, owner=(0, 0, 1, 1)):
    return DeviceGroup(len(owner), tuple(map(str, owner)), member, owner)


def own_spaces(group, dtype="int64"):
    """Device d has the number d everywhere."""
    return [np.full((2, 3), d, dtype) if group.has(d) else None for d in range(group.num_devices)]


def test_a_message_arrives_at_the_coordinates_where_it_was():
    group = DeviceGroup.of(2)
    spaces = own_spaces(group)
    deliver(group, [Message(1, 0, ROW)], spaces, spaces)
    assert spaces[0].tolist() == [[1, 1, 1], [0, 0, 0]]


def test_messages_between_processes_arrive_as_those_within_one():
    messages = [Message(3, 0, ROW), Message(3, 1, ROW), Message(0, 2, ROW), Message(2, 3, (slice(1, 2), slice(0, 1)))]

    def step(member):
        group = group_of(member)
        sources, targets = own_spaces(group), own_spaces(group)
        deliver(group, messages, sources, targets)
        return [None if target is None else target.tolist() for target in targets]

    low, high = run_on_ranks(2, step)
    assert low == [[[3] * 3, [0] * 3], [[3] * 3, [1] * 3], None, None]
    assert high == [None, None, [[0] * 3, [2] * 3], [[3] * 3, [2, 3, 3]]]


def test_what_several_devices_of_a_process_are_sent_goes_there_once():
    sent = []

    def step(member):
        group = group_of(member)
        all_to_all = member.all_to_all
        spy = type(
            "Spy",
            (),
            {
                "rank": member.rank,
                "num_ranks": 2,
                "barrier": lambda self, name: member.barrier(name),
                "all_to_all": lambda self, x, counts: (sent.append(x.size), all_to_all(x, counts=counts))[1],
            },
        )
        received(group_of(spy()), [Message(0, 2, ROW), Message(0, 3, ROW)], own_spaces(group))

    run_on_ranks(2, step)
    assert sorted(sent) == [0, 3 * 8]


@pytest.mark.parametrize("dtype", ["bool", "float16", "complex128", "U5", "M8[D]"])
def test_every_dtype_of_a_fixed_size_crosses(dtype):
    values = np.arange(6).reshape(2, 3).astype(dtype)

    def step(member):
        group = group_of(member, (0, 1))
        taken = np.empty((3, 2), dtype).T if member.rank else None
        transfer(group, [Transfer(0, 1, None if member.rank else values, taken)])
        return taken

    np.testing.assert_array_equal(run_on_ranks(2, step)[1], values)


def test_objects_do_not_leave_their_process():
    def step(member):
        group = group_of(member, (0, 1))
        transfer(group, [Transfer(0, 1, None if member.rank else np.array([{}]), np.array([None]))])

    with pytest.raises(ShardingError, match="dtype object cannot be sent to another process"):
        run_on_ranks(2, step)


def test_processes_that_do_different_things_are_told():
    def step(member):
        group = group_of(member, (0, 1))
        size = 2 if member.rank else 3
        transfer(
            group, [Transfer(0, 1, None if member.rank else np.ones(size), np.ones(size) if member.rank else None)]
        )

    with pytest.raises(ShardingError, match="rank 1 expected 16 bytes from other processes and got 24"):
        run_on_ranks(2, step)


def test_processes_that_want_another_thing_of_as_many_bytes_are_told():
    def step(member):
        group = group_of(member)
        spaces = own_spaces(group)
        received(group, [Message(0, 2, ROW)], spaces, "parts for MAX" if member.rank else "parts for SUM")

    with pytest.raises(CollectiveMismatchError, match=r"parts for SUM[\s\S]*parts for MAX"):
        run_on_ranks(2, step)


def test_no_dimensions_are_a_box_too():
    space = np.array(3)
    view_of(space, ())[...] = 4
    assert space == 4
