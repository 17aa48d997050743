"""Messages from rank to rank over several hosts, and groups of some ranks."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

from ringlet.collectives.hosts.host_messages import MessageHub, _Offer
from ringlet.collectives.hosts.mpi_transport import PeerFailed
from ringlet.errors import (
    CollectiveAborted,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    WorkerLostError,
)
from tests.collectives.hosts.fake_hosts import Network, run_on_hosts
from tests.processes.harness import eventually

SIZES = [0, 1, 8000, 8200, 300_000]  # of float64; larger ones than 64 KiB are offered


@pytest.mark.parametrize("hosts", [[1, 1], [2, 1], [2, 2]])
def test_arrays_of_all_sizes_arrive_in_the_order_of_their_source_and_tag(hosts):
    def step(member):
        others = [rank for rank in range(member.num_ranks) if rank != member.rank]
        works = [
            member.send_async(np.arange(size)[::-1] + member.rank, other, tag=size % 2)
            for size in SIZES
            for other in others
        ]
        for source in others:
            for tag in (1, 0):  # not in the order in which they were sent
                for size in [size for size in SIZES if size % 2 == tag]:
                    found = member.recv(source, tag=tag)
                    assert np.array_equal(found, np.arange(size)[::-1] + source), size
        for work in works:
            work.wait()
        member.barrier()
        return "done"

    assert run_on_hosts(hosts, step) == ["done"] * sum(hosts)


def test_messages_from_any_source_name_it_and_fill_out():
    def step(member):
        if member.rank:
            member.send(np.full((300, 400), member.rank), to=0)
            return None
        found = []
        for _ in range(3):
            out = np.zeros((400, 300), int).T
            work = member.recv_async(out=out)
            assert work.wait() is out
            found.append(work.source)
            assert (out == work.source).all()
        return sorted(found)

    assert run_on_hosts([2, 2], step)[0] == [1, 2, 3]


def test_a_callback_of_a_receive_may_send():
    """As with futures of torch; it runs in the thread that moves the messages, or in that of the receive."""

    def step(member):
        other, sent = 1 - member.rank, []
        for tag in range(20):
            member.send(np.full(10, tag), other, tag=tag)
            received = member._inbox().receive(memoryview(bytearray(80)), "int64[10]", other, tag)
            received.add_done_callback(lambda _, tag=tag: sent.append(member.send_async([tag], other, tag=100 + tag)))
        found = [int(member.recv(other, tag=100 + tag)[0]) for tag in range(20)]
        member.barrier()
        return found

    assert run_on_hosts([1, 1], step) == [list(range(20))] * 2


def test_a_message_that_does_not_fit_is_an_error_of_the_receiver():
    def step(member):
        if member.rank == 0:
            for count in (3, 100_000, 5):
                member.send(np.ones(count), 1)
            return None
        for _ in range(2):
            with pytest.raises(InvalidArgumentError, match=r"rank 0 sent float64\[\d+\].*receives into float64\[5\]"):
                member.recv(0, out=np.empty(5))
        return member.recv(0, out=np.empty(5)).sum()

    assert run_on_hosts([1, 1], step)[1] == 5


def test_a_message_that_no_rank_receives_ends_with_the_time_out():
    def step(member):
        if member.rank == 0:
            with pytest.raises(DeadlineExceededError, match="send to rank 1"):
                member.send(np.ones(100_000), 1)
        else:
            with pytest.raises(DeadlineExceededError, match="recv from rank 0 with tag 5"):
                member.recv(0, tag=5)

    before = set(threading.enumerate())
    assert run_on_hosts([1, 1], step, seconds=0.5) == [None, None]
    gc.collect()  # errors refer to the frames of the members
    assert eventually(lambda: not {t for t in threading.enumerate() if t.name == "ringlet messages"} - before)


@pytest.mark.parametrize("count", [1, 100_000])
def test_a_rank_that_left_is_named(count):
    left = threading.Event()

    def step(member):
        if member.rank == 2:
            member.send(np.ones(count), 0, tag=1)
            member.close()
            left.set()
            return
        if member.rank == 0:
            assert member.recv(2, tag=1).size == count
            with pytest.raises(WorkerLostError, match=r"rank 2 .*on host1.* left the group") as caught:
                member.recv(2)
            assert caught.value.rank == 2
            left.wait(10)
            with pytest.raises(WorkerLostError, match="rank 2"):
                member.send(np.ones(count), 2)
        return

    assert run_on_hosts([2, 1], step) == [None] * 3


def test_an_offer_of_a_rank_that_left_is_lost():
    has_offered, has_left = threading.Event(), threading.Event()

    def step(member):
        if member.rank == 0:
            work = member.send_async(np.ones(100_000), 1)
            has_offered.set()
            with pytest.raises(FailedPreconditionError, match="send to rank 1"):
                member.close()
            has_left.set()
            with pytest.raises(FailedPreconditionError, match="left the group before the message was sent"):
                work.wait()
        else:
            assert has_offered.wait(10)
            assert has_left.wait(10)
            with pytest.raises(WorkerLostError, match="rank 0"):
                member.recv(0)

    assert run_on_hosts([1, 1], step) == [None, None]


def test_a_lost_process_ends_its_messages():
    network, alive = Network(2), []

    def step(member):
        alive.append(member)  # a process that is killed does not free its members
        member.barrier()
        if member.rank == 1:
            network.lost.add(1)
            return None
        for call in (lambda: member.recv(1), member.recv, lambda: member.send(np.ones(100_000), 1)):
            with pytest.raises(WorkerLostError, match="rank 1") as caught:
                call()
            assert (caught.value.rank, caught.value.host) == (1, "host1")
        return "named"

    assert run_on_hosts([1, 1], step, network=network)[0] == "named"


class LosesItsPeer:
    """A transport whose peer is lost while a receive from it starts."""

    largest_tag = 32767

    def receive(self, into, source, tag):
        return self

    def test(self):
        raise PeerFailed("lost")

    def failed(self):
        return [1]

    def poll(self, tag):
        return None


def test_a_receive_whose_source_is_lost_meanwhile_fails_once():
    hub, finished = MessageHub(LosesItsPeer()), []
    hub.accept(_Offer(process=1, number=0, size=8), np.empty(8, np.uint8), finished.append)
    hub.wake()
    assert eventually(lambda: not hub._transfers)
    hub.stop()
    assert finished == [None]


# --- groups of some ranks ---------------------------------------------------------------------------------------------


def test_groups_across_hosts_and_within_one_reduce_and_send():
    def step(member):
        row, column = member.split(member.rank // 2), member.split(member.rank % 2, key=5)
        nothing = member.split(None if member.rank else 0)
        assert (nothing is None) == (member.rank > 0)
        sums = [int(part.all_reduce(member.rank)) for part in (row, column, member)]
        big = np.full(20_000, member.rank)
        for part in (row, column):
            work = part.send_async(big, (part.rank + 1) % part.num_ranks)
            sums.append(int(part.recv((part.rank - 1) % part.num_ranks)[-1]))
            work.wait()
        assert np.array_equal(column.all_gather(np.array([member.rank])), [member.rank % 2, member.rank % 2 + 2])
        return sums

    assert run_on_hosts([2, 2], step) == [[1, 2, 6, 1, 2], [1, 4, 6, 0, 3], [5, 2, 6, 3, 0], [5, 4, 6, 2, 1]]


def test_ranks_of_a_new_group_follow_their_keys():
    def step(member):
        part = member.split(0, key=-member.rank)
        return part.rank, part.all_gather(np.array([member.rank])).tolist()

    assert run_on_hosts([2, 1], step) == [(2 - rank, [2, 1, 0]) for rank in range(3)]


def test_keys_that_mix_the_ranks_of_hosts_are_refused():
    def step(member):
        with pytest.raises(InvalidArgumentError, match=r"would have the ranks \[0, 2, 1\].*must be consecutive"):
            member.split(0, key=[0, 2, 1][member.rank])
        return int(member.all_reduce(1))

    assert run_on_hosts([2, 1], step) == [3, 3, 3]


def test_a_failure_of_a_new_group_is_its_own_and_that_of_the_whole_group_is_of_all():
    has_sums = threading.Barrier(3)  # outside of the groups: a rank may abort before a sum reaches another host

    def step(member):
        first, second = member.split(0), member.split(0)
        if member.rank == 2:
            first._core.group.abort("broken")
        with pytest.raises(CollectiveAborted, match="broken"):
            first.all_reduce(1)
        assert int(member.all_reduce(1)) == int(second.all_reduce(1)) == 3
        has_sums.wait(10)
        if member.rank == 0:
            member._core.group.abort("all broken")
        with pytest.raises(CollectiveAborted, match="all broken"):
            second.all_reduce(1)
        return "named"

    assert run_on_hosts([2, 1], step) == ["named"] * 3


def test_a_closed_group_is_left_by_its_parts():
    def step(member):
        part = member.split(0)
        if member.rank == 0:
            member.close()
            with pytest.raises(FailedPreconditionError):
                part.barrier()
            return
        with pytest.raises(Exception, match=r"closed its group|make no more calls"):
            part.barrier()
        return

    assert run_on_hosts([1, 1], step) == [None, None]
