"""Point to point over the ringlet backend: tags, order, any source, large messages, mismatches."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from tests.frameworks.libraries import library
from tests.frameworks.torch_ranks import run_ranks

torch = library("torch")
dist = torch.distributed


def tags_and_order(rank, size):
    large = torch.arange(1 << 20)
    if rank == 0:
        dist.send(torch.tensor([1]), 1, tag=1)
        works = [dist.isend(large * factor, 1, tag=2) for factor in (1, 2)]
        works.append(dist.isend(torch.tensor([3.0 + 4.0j]), 1, tag=3))
        dist.send(torch.zeros(0), 1, tag=4)
        for work in works:
            work.wait()
        for dtype in (torch.bfloat16, torch.float8_e5m2, torch.bool, torch.int8):
            dist.send(torch.ones(3, 2).t().to(dtype), 1)
        return True
    x, found = torch.zeros(1, dtype=torch.complex64), torch.zeros_like(large)
    dist.recv(torch.zeros(0), 0, tag=4)
    dist.recv(x, 0, tag=3)
    assert x.item() == 3 + 4j
    work = dist.irecv(found, 0, tag=2)
    work.wait()
    assert torch.equal(found, large)
    assert dist.recv(found, 0, tag=2) == 0
    assert torch.equal(found, 2 * large)
    one = torch.zeros(1, dtype=torch.int64)
    dist.recv(one, 0, tag=1)
    assert one.item() == 1
    for dtype in (torch.bfloat16, torch.float8_e5m2, torch.bool, torch.int8):
        x = torch.zeros(3, 2).t().to(dtype)
        dist.recv(x, 0)
        assert bool((x.float() == 1).all())
    return True


def test_messages_are_matched_by_tag_and_keep_their_order():
    assert run_ranks(tags_and_order, 2) == [True, True]


def exchanges(rank, size):
    neighbours = (rank - 1) % size, (rank + 1) % size
    x, y = torch.full((300_000,), float(rank)), torch.zeros(300_000)
    for _ in range(5):  # more than sockets hold, both ways
        works = dist.batch_isend_irecv(
            [dist.P2POp(dist.isend, x, neighbours[1]), dist.P2POp(dist.irecv, y, neighbours[0])]
        )
        for work in works:
            work.wait()
        assert y[-1] == neighbours[0]
    work = dist.isend(x[:2], rank)
    dist.irecv(y[:2], rank).wait()
    work.wait()
    assert y[0] == rank
    if rank:
        time.sleep(0.05 * (size - rank))
        dist.send(torch.tensor([rank]), 0, tag=9)
        return None
    found = torch.zeros(1, dtype=torch.int64)
    sources = [dist.recv(found, tag=9) for _ in range(size - 1)]
    assert sorted(sources) == list(range(1, size))
    return sources[-1] == found.item()


def test_exchanges_and_any_source():
    assert run_ranks(exchanges, 3) == [True, None, None]


def mismatches(rank, size):
    if rank == 0:
        dist.send(torch.zeros(3), 1)
        dist.send(torch.zeros(2), 1)
        return True
    with pytest.raises(
        ValueError,
        match=r"rank 0 sent float32\[3\] with tag 0, but this rank receives into int64\[3\]: "
        r"use the same dtype and shape on both ranks\.",
    ):
        dist.recv(torch.zeros(3, dtype=torch.int64), 0)
    dist.recv(torch.zeros(2), 0)
    return True


def test_a_message_of_another_type_is_an_error_and_the_next_one_arrives():
    assert run_ranks(mismatches, 2) == [True, True]


def receives_that_cannot_be_stored(rank, size):
    from ringlet.torch.tensors import Flat

    if rank == 0:
        for tag in (1, 2):
            dist.send(torch.ones(4), 1, tag=tag)
        return True
    with pytest.raises(ValueError, match=r"recv got an output of shape .* whose elements share memory"):
        dist.recv(torch.zeros(1).expand(4), 0, tag=1)
    dist.recv(torch.zeros(4), 0, tag=1)  # no message was lost
    Flat.store = lambda self: 1 // 0
    with pytest.raises(ZeroDivisionError):
        dist.recv(torch.zeros(4), 0, tag=2)
    return True


def test_a_received_message_that_cannot_be_stored_is_an_error():
    assert run_ranks(receives_that_cannot_be_stored, 2) == [True, True]


def late_messages(rank, size):
    if rank == 0:
        dist.barrier()
        dist.send(torch.ones(4), 1)
        dist.isend(torch.ones(4_000_000), 1)
        group = dist.group.WORLD
        group.shutdown()  # waits for the message
        return True
    x, y = torch.zeros(4), torch.zeros(4)
    work = dist.irecv(x, 0)
    for _ in range(2):
        with pytest.raises(dist.DistBackendError, match=r"did not complete within 0\.2 s"):
            work.wait(timedelta(seconds=0.2))
    dist.barrier()
    dist.recv(y, 0)
    assert (x.sum(), y.sum()) == (0, 4)
    with pytest.raises(dist.DistBackendError, match=r"rank 0 .*closed its group"):
        dist.all_reduce(y)
    large = torch.zeros(4_000_000)
    dist.recv(large, 0)
    return bool(large.sum() == len(large))


def test_late_messages():
    started = time.monotonic()
    assert run_ranks(late_messages, 2) == [True, True]
    assert time.monotonic() - started < 25


def messages_of_a_subgroup(rank, size):
    group = dist.new_group([1, 2])
    if rank == 1:
        dist.send(torch.ones(2), 2, group=group)
    if rank == 2:
        with pytest.raises(ValueError, match=r"rank 1 sent float32\[2\] with tag 0"):
            dist.recv(torch.ones(3), 1, group=group)
    return True


def test_a_mismatch_in_a_subgroup_names_the_global_rank():
    assert run_ranks(messages_of_a_subgroup, 3) == [True] * 3


def messages_of_overlapping_groups(rank, size):
    pair, three = dist.new_group([3, 1]), dist.new_group([0, 1, 3])
    found = []
    for group in (three, pair, None):  # sent in all groups before any message is received
        members = dist.get_process_group_ranks(group or dist.group.WORLD)
        if rank in members:
            right = members[(members.index(rank) + 1) % len(members)]
            dist.isend(torch.tensor([rank, len(members)]), right, group=group)
    for group in (None, pair, three):
        if rank in dist.get_process_group_ranks(group or dist.group.WORLD):
            x = torch.zeros(2, dtype=torch.int64)
            source = dist.recv(x, group=group)
            found.append([*x.tolist(), source])
    if rank in (1, 3):
        x, y = torch.full((3,), float(rank)), torch.zeros(3)
        operations = [dist.P2POp(dist.isend, x, 4 - rank, pair), dist.P2POp(dist.irecv, y, 4 - rank, pair)]
        for work in dist.batch_isend_irecv(operations):
            work.wait()
        objects = [None]
        if rank == 1:
            dist.send_object_list([{"rank": 1}], 3, group=pair)
        else:
            dist.recv_object_list(objects, 1, group=pair)
        found.append([y[0].item(), objects[0]])
    return found


def test_overlapping_groups_have_messages_of_their_own():
    assert run_ranks(messages_of_overlapping_groups, 4) == [
        [[3, 4, 3], [3, 3, 3]],
        [[0, 4, 0], [3, 2, 3], [0, 3, 0], [3, None]],
        [[1, 4, 1]],
        [[2, 4, 2], [1, 2, 1], [1, 3, 1], [1, {"rank": 1}]],
    ]
