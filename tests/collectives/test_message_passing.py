"""Messages between threads: order, tags, any source, dtypes and layouts, mismatches, ranks that leave."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from ringlet.collectives import Group
from ringlet.collectives.message_passing import array_of, text_of
from ringlet.errors import (
    CollectiveAborted,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    WorkerLostError,
)
from ringlet.testing import run_on_ranks

RECORD = np.dtype([("name", "U3"), ("position", "f8", (2,)), ("count", "i4")])
ARRAYS = [
    np.arange(6.0).reshape(2, 3),
    np.arange(6, dtype="i2").reshape(2, 3).T,
    np.arange(20, dtype="c16")[::3],
    np.array([True, False]),
    np.array(7, "u1"),
    np.zeros((0, 3), "f4"),
    np.array(["2026-11-26", "NaT"], "M8[D]"),
    np.array(["a", "Ringlet"]),
    np.array([b"xy"]),
    np.arange(3, dtype=">f4"),
    np.array([("ab", (1, 2), 3)], RECORD),
    np.zeros(2, np.dtype({"names": ["a"], "formats": ["i4"], "offsets": [4], "itemsize": 16})),
    np.arange(100_000),
]


@pytest.mark.parametrize("x", ARRAYS, ids=text_of)
def test_any_array_arrives(x):
    def step(member):
        if member.rank == 0:
            member.send(x, to=1)
            member.send(x, to=1, tag=3)
            return None
        out = np.zeros(x.shape[::-1], x.dtype).T
        assert member.recv(0, tag=3, out=out) is out
        return member.recv(), out

    for found in run_on_ranks(2, step)[1]:
        assert (found.dtype, found.shape) == (x.dtype, x.shape)
        assert found.tobytes() == x.tobytes()
    assert found.flags.writeable


def test_descriptions_are_read_back():
    for x in ARRAYS:
        found = array_of(text_of(x))
        assert (found.dtype, found.shape) == (x.dtype, x.shape)


def test_messages_are_received_in_order_for_each_source_and_tag():
    def step(member):
        if member.rank:
            for number in range(5):
                member.send(10 * member.rank + number, to=0, tag=number % 2)
            return None
        odd = [member.recv(2, tag=1).item() for _ in range(2)]
        even = [member.recv(2).item() for _ in range(3)]
        works = [member.recv_async() for _ in range(3)]
        return odd, even, [work.wait().item() for work in works], [work.source for work in works]

    assert run_on_ranks(3, step)[0] == ([21, 23], [20, 22, 24], [10, 12, 14], [1, 1, 1])


def test_ranks_exchange_with_their_neighbours_while_a_collective_runs():
    def step(member):
        x = np.full(100_000, member.rank)
        total = member.all_reduce_async(x)
        received = member.recv_async((member.rank - 1) % member.num_ranks)
        sent = member.send_async(x, (member.rank + 1) % member.num_ranks)
        sent.wait()
        return received.wait()[0].item(), total.wait()[0].item()

    assert run_on_ranks(3, step) == [(2, 3), (0, 3), (1, 3)]


def test_a_list_and_a_number_are_sent_and_a_sent_array_may_change():
    member = Group(1).member(0)
    x = np.ones(3)
    member.send(x, 0)
    x[:] = 2
    member.send([1, 2], 0)
    assert [member.recv().tolist() for _ in range(2)] == [[1, 1, 1], [1, 2]]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_message_of_another_shape_or_dtype_is_an_error_of_the_receiver(is_first):
    group = Group(2)
    zero, one = group.member(0), group.member(1)
    if not is_first:
        zero.send(np.ones((2, 3)), 1, tag=5)
    works = [one.recv_async(0, tag=5, out=np.ones(6))]
    if is_first:
        zero.send(np.ones((2, 3)), 1, tag=5)
    zero.send(np.ones(6, "f4"), 1, tag=5)
    works.append(one.recv_async(0, tag=5, out=np.ones(6)))
    for work, sent in zip(works, (r"float64\[2, 3\]", r"float32\[6\]"), strict=True):
        with pytest.raises(
            InvalidArgumentError,
            match=rf"rank 0 sent {sent} with tag 5, but this rank receives into float64\[6\]: "
            r"use the same dtype and shape on both ranks\.",
        ):
            work.wait()
    zero.send(np.ones(6), 1, tag=5)
    assert one.recv(0, tag=5, out=np.zeros(6)).tolist() == [1] * 6


def test_wrong_arguments_are_errors():
    member = Group(2).member(0)
    for call, text in (
        (lambda: member.send([1], 2), "to is 2, but rank 2 is not in this group: its ranks are 0 to 1"),
        (lambda: member.recv(-1), "source is -1"),
        (lambda: member.recv("1"), "source is '1'"),
        (lambda: member.send([1], 1, tag=0.5), r"tag is 0\.5"),
        (lambda: member.send([object()], 1), "an array of Python objects"),
        (lambda: member.recv(1, out=[1]), "out is a list"),
        (lambda: member.recv(1, out=np.broadcast_to(1, 3)), "out is read-only"),
    ):
        with pytest.raises(InvalidArgumentError, match=text):
            call()
    with pytest.raises(FailedPreconditionError, match="send to rank 1 with tag 0 has no source"):
        member.send_async([1], 1).source  # noqa: B018


def test_a_receive_without_a_message_ends_with_the_time_out_of_the_group():
    group = Group(2, timeout_seconds=0.3)
    member = group.member(0)
    with pytest.raises(DeadlineExceededError, match="recv from rank 1 with tag 4 did not complete within the time-out"):
        member.recv(1, tag=4)
    work = member.recv_async()
    with pytest.raises(DeadlineExceededError, match=r"recv from any .* did not complete within 0\.01 s, and continues"):
        work.wait(0.01)
    group.member(1).send([5], 0)
    assert work.wait().tolist() == [5]
    group.member(1).send([6], 0, tag=4)  # not taken by the first receive
    assert member.recv(1, tag=4).tolist() == [6]


def test_a_group_that_fails_ends_a_receive():
    group = Group(2)
    threading.Timer(0.05, group.abort, ["rank 1 raised KeyError"]).start()
    started = time.monotonic()
    for call in (lambda: group.member(0).recv(1), lambda: group.member(0).send([1], 1)):
        with pytest.raises(CollectiveAborted, match="rank 1 raised KeyError"):
            call()
    assert time.monotonic() - started < 5


def test_a_rank_that_has_closed_the_group_is_named():
    group = Group(3)
    member = group.member(0)
    waits = member.recv_async(1)
    group.member(1).send([7], 0, tag=1)
    group.member(1).close()
    for call in (waits.wait, lambda: member.recv(1), lambda: member.send([1], 1)):
        with pytest.raises(WorkerLostError, match="has closed its group: it sends and receives no more mess") as raised:
            call()
        assert raised.value.rank == 1
    assert member.recv(1, tag=1).tolist() == [7]  # it was sent before
    any_source = member.recv_async()
    group.member(2).close()
    with pytest.raises(WorkerLostError):
        any_source.wait()


def test_closing_while_a_receive_waits_is_an_error_that_names_it():
    member = Group(2).member(0)
    work = member.recv_async(1)
    with pytest.raises(FailedPreconditionError, match="while asynchronous calls ran: recv from rank 1"):
        member.close()
    with pytest.raises(FailedPreconditionError, match="rank 0 has left the group"):
        work.wait()
    with pytest.raises(FailedPreconditionError, match="has closed its group"):
        member.send([1], 1)


def test_a_rank_that_closed_before_the_first_message_is_named():
    group = Group(2)
    group.member(1).close()
    with pytest.raises(WorkerLostError, match="rank 1 has closed its group"):
        group.member(0).recv(1)


def test_parts_and_parts_of_parts_have_messages_of_their_own():
    def step(member):
        row = member.split(member.rank // 4, key=-member.rank)
        pair = row.split(row.rank % 2)
        found = []
        for part in (pair, row, member):  # sent to all before any is received
            part.send([member.rank, part.num_ranks], (part.rank + 1) % part.num_ranks)
        for part in (member, row, pair):
            found.append(part.recv((part.rank - 1) % part.num_ranks).tolist())
        work = pair.recv_async()
        pair.send([member.rank], 1 - pair.rank)
        return found, work.wait().item(), work.source

    for rank, (found, other, source) in enumerate(run_on_ranks(8, step)):
        partner = rank // 4 * 4 + (rank + 2) % 4
        assert found == [[(rank - 1) % 8, 8], [rank // 4 * 4 + (rank + 1) % 4, 4], [partner, 2]]
        assert (other, source) == (partner, (3 - rank % 4) // 2 ^ 1)


def test_a_rank_that_has_closed_a_part_is_named_by_its_rank_in_the_whole_group():
    def step(member):
        part = member.split(0 if member.rank else None)
        if part is None:
            return None
        if part.rank == 1:
            part.send([7], 0)
            work = part.recv_async(0)
            with pytest.raises(FailedPreconditionError, match="while asynchronous calls ran: recv from rank 0"):
                part.close()
            with pytest.raises(FailedPreconditionError, match="rank 1 has left the group"):
                work.wait()
            member.send([5], 1)
            return None
        assert member.recv(2).item() == 5  # the whole group stays usable
        assert part.recv(1).item() == 7
        for call in (part.recv, lambda: part.recv(1), lambda: part.send([1], 1)):
            with pytest.raises(WorkerLostError, match="rank 2 has closed its group") as raised:
                call()
            assert raised.value.rank == 2
        return True

    assert run_on_ranks(3, step)[1]


def test_a_part_that_is_freed_or_whose_whole_group_closes_ends_the_receives_of_others():
    def step(member):
        first, second = member.split(0), member.split(0)
        if member.rank:
            first.send([3], 0)
            del first
            member.close()
            return None
        assert first.recv(1).item() == 3
        for part in (first, second, member):
            with pytest.raises(WorkerLostError, match="rank 1 has closed its group"):
                part.recv(1)
        return True

    assert run_on_ranks(2, step)[0]


def test_a_group_or_part_that_fails_ends_the_receives_of_the_part():
    def step(member):
        part, other = member.split(0), member.split(0)
        if member.rank:
            part._core.group.abort("rank 1 raised KeyError")
            member.send([1], 0)
            member.recv(0)
            member._core.group.abort("rank 1 raised OSError")
            return part, other  # a part that is freed is closed
        with pytest.raises(CollectiveAborted, match="KeyError"):
            part.recv(1)
        work = other.recv_async(1)
        assert member.recv(1).item() == 1
        member.send([1], 1)
        with pytest.raises(CollectiveAborted, match="OSError"):
            work.wait()
        return True

    assert run_on_ranks(2, step)[0]
