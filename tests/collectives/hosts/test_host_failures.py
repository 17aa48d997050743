"""A failure on one host is raised with its cause by every rank of every host; no wrong result is returned."""

from __future__ import annotations

import os
import re
import socket
import struct
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from ringlet.collectives import Group, Op
from ringlet.collectives.hosts import host_reductions, mpi_transport
from ringlet.collectives.hosts.host_link import DATA, HEAD, NUM_KINDS, PARTIAL, RESULT
from ringlet.errors import (
    CollectiveAborted,
    CollectiveMismatchError,
    DeadlineExceededError,
    FailedPreconditionError,
    WorkerLostError,
)
from tests.collectives.hosts.fake_hosts import Network, identity_on, run_on_hosts

pytestmark = pytest.mark.slow


def check_all(found, kind, *texts):
    for rank, error in enumerate(found):
        assert type(error) is kind, f"rank {rank}: {error!r}"
        for text in texts:
            assert re.search(text, str(error)), f"rank {rank}: {error}"


def test_different_calls_of_two_hosts_are_listed():
    def step(member):
        return member.all_reduce(np.ones(3)) if member.rank < 2 else member.barrier("end")

    found = run_on_hosts([2, 2], step)
    check_all(
        found, CollectiveMismatchError, r"ranks 0, 1 \(host host0\): all_reduce\(SUM, float64\[3\]\)", "barrier.'end'"
    )


def test_different_calls_within_a_host_are_listed_with_the_ranks_of_the_group():
    def step(member):
        return member.all_reduce(np.ones(max(member.rank + 1, 3)))

    found = run_on_hosts([2, 2], step)
    check_all(
        found,
        CollectiveMismatchError,
        r"rank 2: all_reduce\(SUM, float64\[3\]\)",
        r"rank 3: all_reduce\(SUM, float64\[4\]\)",
    )


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda member: member.barrier("end"), r"barrier\('end'\)"),
        (lambda member: member.reduce(np.ones(3), Op.SUM, 0), r"reduce\(SUM, float64\[3\], root=0\)"),
        (lambda member: member.all_reduce(np.ones(3), Op.MAX), r"all_reduce\(MAX, float64\[3\]\)"),
        (lambda member: member.all_reduce(np.ones(3), out=np.empty(3)), r"all_reduce\(SUM, float64\[3\], out\)"),
        (lambda member: member.all_reduce(np.ones(1_000_000)), r"all_reduce\(SUM, float64\[1000000\]\)"),
        (
            lambda member: member.all_reduce_many([np.ones(3), np.ones(1)]),
            r"all_reduce\(SUM, float64\[3\], float64\[1\]\)",
        ),
    ],
)
def test_a_small_all_reduce_is_compared_with_other_calls_of_its_host(call, text):
    def step(member):
        return call(member) if member.rank == 3 else member.all_reduce(np.ones(3))

    check_all(
        run_on_hosts([2, 2], step),
        CollectiveMismatchError,
        r"rank 2: all_reduce\(SUM, float64\[3\]\), in step",
        f"rank 3: {text}, in <lambda>",
    )


def test_a_call_that_the_core_would_match_is_a_mismatch():
    def step(member):
        return member.reduce(np.ones(3), Op.SUM, member.rank % 2)

    check_all(run_on_hosts([2, 2], step), CollectiveMismatchError, "root=0", "root=1")


def test_a_broadcast_to_an_array_of_another_shape_is_a_mismatch():
    def step(member):
        return member.broadcast(np.ones(3 if member.rank < 2 else 4), 0)

    check_all(run_on_hosts([2, 2], step), CollectiveMismatchError, r"\[3\]", r"\[4\]")


@pytest.mark.parametrize("late", range(4))
def test_a_rank_that_does_not_call_is_named(late):
    def step(member):
        member.barrier("begin")
        if member.rank == late:
            time.sleep(3)
        return member.all_reduce(np.ones(3))

    started = time.monotonic()
    found = run_on_hosts([2, 2], step, seconds=1.0)
    assert time.monotonic() - started < 10
    # A leader that is late cannot report; its host is named.
    check_all(found, DeadlineExceededError, rf"rank {late}\b", "timeout_seconds=")


def test_a_long_wait_for_another_host_is_reported(monkeypatch, caplog):
    monkeypatch.setenv("RINGLET_STALL_SECONDS", "0.3")

    def step(member):
        time.sleep(0.8 * member.rank)
        return member.all_reduce(np.ones(3))[0]

    assert run_on_hosts([1, 1], step) == [2, 2]
    assert "call 1 of rank 0 (host host0) waited 0.3 s for rank 1 (host host1); still waiting" in caplog.text


def test_a_rank_that_raises_in_a_with_block_aborts_all():
    def step(member):
        with member:
            member.barrier("begin")
            if member.rank == 3:
                raise ValueError("bad data")
            return member.all_reduce(np.ones(3))

    found = run_on_hosts([2, 2], step)
    assert isinstance(found[3], ValueError)
    check_all(found[:3], CollectiveAborted, "rank 3 raised ValueError: bad data")


@pytest.mark.parametrize("left", [[2, 3], [3], [0, 1]])
def test_a_call_for_ranks_that_have_closed_is_a_mismatch(left):
    def step(member):
        member.barrier("begin")
        if member.rank in left:
            return member.close()
        return member.all_reduce(np.ones(3))

    found = run_on_hosts([2, 2], step)
    check_all(
        [found[r] for r in range(4) if r not in left],
        CollectiveMismatchError,
        rf"rank.*\b{left[0]}\b.*closed its group",
    )


@pytest.mark.parametrize("is_known_before", [True, False])
def test_a_lost_process_is_named_on_all_ranks(is_known_before):
    network = Network(2)
    is_lost = threading.Event()
    alive = []  # a process that is killed does not free its members

    def step(member):
        alive.append(member)
        member.barrier("begin")
        if member.rank >= 2:
            if not is_known_before:
                time.sleep(0.05)  # the others wait in their call
            network.lost.add(1)
            is_lost.set()
            return None
        if is_known_before:
            is_lost.wait(10)
        return member.all_reduce(np.ones(3))

    found = run_on_hosts([2, 2], step, network=network)
    check_all(found[:2], WorkerLostError, r"rank 2 \(pid \d+ on host1\) was lost")
    assert (found[0].rank, found[0].host) == (2, "host1")


@pytest.mark.parametrize(
    ("size", "which", "texts"),
    [
        (3, 4, {}),
        (
            500_000,
            4,
            dict.fromkeys(("repeat", "zero"), "confirms other bytes") | {"short": "524287 bytes, expected 524288"},
        ),
        (500_000, 7, {}),
    ],
    ids=["a small call", "a piece of a large call", "the end of a large call"],
)
@pytest.mark.parametrize("change", ["repeat", "drop", "zero", "short"])
def test_no_wrong_message_becomes_a_result(size, which, texts, change, monkeypatch):
    monkeypatch.setattr(host_reductions, "_DATA_BYTES", 524_288)
    seen: list[tuple[int, bytes]] = []

    def changed(source, to, tag, data):
        if source != 1 or tag % NUM_KINDS not in (HEAD, PARTIAL, RESULT, DATA):
            return data
        seen.append((tag, data))
        if len(seen) != which:
            return None if change == "drop" and len(seen) > which else data
        before = [each for of, each in seen[:-1] if of == tag][-1]
        return {"repeat": before, "drop": None, "zero": bytes(len(data)), "short": data[:-1]}[change]

    def step(member):
        values = np.arange(size, dtype=np.float32)
        values[::131_072] = 0  # all pieces begin alike
        return [member.all_reduce(values + number + member.rank) for number in range(6)]

    found = run_on_hosts([1, 1], step, network=Network(2, changed), seconds=2)
    kind = DeadlineExceededError if change == "drop" else CollectiveAborted
    check_all(found, kind, "timeout_seconds=" if change == "drop" else texts.get(change, "has the stamp"))


def test_an_array_that_changes_after_a_failure_is_not_taken_for_what_was_sent(monkeypatch):
    combine, has_changed = host_reductions._combine, threading.Event()
    ranks, num_combined = {}, [0, 0]

    def failing(*arguments):
        rank = ranks[threading.current_thread()]
        num_combined[rank] += 1
        if num_combined[rank] == 3:  # of four pieces; the last one is in flight
            if rank == 1:
                raise RuntimeError("a fault in the middle of a call")
            assert has_changed.wait(10)
        return combine(*arguments)

    monkeypatch.setattr(host_reductions, "_combine", failing)
    monkeypatch.setattr(host_reductions, "_DATA_BYTES", 524_288)

    def step(member):
        ranks[threading.current_thread()] = member.rank
        mine = np.ones(500_000, np.float32)
        try:
            return member.all_reduce(mine)
        except RuntimeError:
            mine[:] = 7
            has_changed.set()
            raise

    found = run_on_hosts([1, 1], step, network=Network(2, reads_late=True))
    assert type(found[1]) is RuntimeError
    check_all(found[:1], CollectiveAborted, "rank 1 raised RuntimeError in all_reduce.*a fault in the middle")


def test_after_a_failure_every_call_raises_the_first_cause():
    def step(member):
        texts = []
        for call in (
            lambda: member.reduce(np.ones(1), root=member.rank // 2),
            member.barrier,
            member.barrier,
        ):
            try:
                call()
            except CollectiveMismatchError as error:
                texts.append(str(error))
        return texts

    for first, *later in run_on_hosts([2, 2], step):
        assert later == [first, first]


def test_ranks_that_do_not_follow_each_other_in_a_host_are_refused():
    from ringlet.collectives.hosts.host_group import hosts_of

    with pytest.raises(ValueError, match=r"host host0 has the ranks \[0, 2\]"):
        hosts_of([([rank], identity_on(rank % 2)) for rank in range(4)])
    assert len(hosts_of([([rank], identity_on(rank // 2)) for rank in range(4)])) == 2


def test_a_missing_process_is_named_at_the_rendezvous():
    network = Network(3)
    found = run_on_hosts([1, 1], lambda member: None, seconds=0.5, network=network)
    check_all(found, DeadlineExceededError, "process")


def test_what_is_not_available_says_what_to_use():
    def step(member):
        with pytest.raises(NotImplementedError, match="over several hosts: create another group"):
            member.rejoin()
        return member.all_reduce(1)

    assert [int(each) for each in run_on_hosts([2, 1], step)] == [3, 3, 3]


def test_a_closed_member_raises_as_on_one_host():
    def step(member):
        member.close()
        with pytest.raises(FailedPreconditionError, match="closed its group"):
            member.barrier()

    assert run_on_hosts([2, 1], step) == [None] * 3


def test_a_rank_that_waits_for_other_hosts_has_more_time():
    member = Group(2, timeout_seconds=0.2).member(0)
    member._core.set_extra_time(0.6)
    started = time.monotonic()
    with pytest.raises(DeadlineExceededError):
        member.barrier()
    assert 0.75 < time.monotonic() - started < 5


def test_connections_of_the_program_keep_their_settings():
    """The first call connects the leaders; sockets that the program opens before and after it are not MPI's."""
    made, done = threading.Barrier(2), threading.Barrier(2)
    connections = []

    def connect():
        with socket.create_server(("127.0.0.1", 0)) as server:
            connections.append(socket.create_connection(server.getsockname()))
            connections.append(server.accept()[0])

    connect()

    def step(member):
        member.barrier()
        if made.wait(30) == 0:
            connect()
        done.wait(30)
        member.barrier()
        return member.all_reduce(np.ones(3)).tolist()

    assert run_on_hosts([1, 1], step) == [[2.0] * 3] * 2
    kept = [connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) for connection in connections]
    for connection in connections:
        connection.close()
    assert kept == [0, 0, 0, 0]


def test_connections_that_were_made_meanwhile_are_watched():
    before = mpi_transport.sockets()
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as connection:
        watched = mpi_transport.watch_connections(before)
        assert list(watched) == [connection.fileno()]
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        seconds = [
            connection.getsockopt(socket.IPPROTO_TCP, name) for name in (socket.TCP_KEEPIDLE, socket.TCP_KEEPCNT)
        ]
        assert sum(seconds) == 5
        mpi_transport.shut_down_dead(watched)
        assert list(watched) == [connection.fileno()]
        assert connection.send(b"still open") == 10


@pytest.mark.parametrize("is_socket", [True, False])
def test_a_descriptor_of_the_program_that_was_that_of_a_closed_connection_is_left_alone(is_socket, monkeypatch):
    monkeypatch.setattr(mpi_transport, "is_dead", lambda info: True)
    before = mpi_transport.sockets()
    with socket.create_server(("127.0.0.1", 0)) as server:
        first = socket.create_connection(server.getsockname())
        watched, descriptor = mpi_transport.watch_connections(before), first.fileno()
        other = socket.create_connection(server.getsockname()) if is_socket else os.open(os.devnull, os.O_WRONLY)
        first.close()
        os.dup2(other.fileno() if is_socket else other, descriptor)
        count = len(list(Path("/proc/self/fd").iterdir()))
        mpi_transport.shut_down_dead(watched)
        assert len(list(Path("/proc/self/fd").iterdir())) == count
        assert watched == {}
        os.write(descriptor, b"still open")
        os.close(descriptor)
        if is_socket:
            other.close()
        else:
            os.close(other)


def test_a_dead_connection_is_shut_down(monkeypatch):
    monkeypatch.setattr(mpi_transport, "is_dead", lambda info: True)
    before = mpi_transport.sockets()
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as connection:
        mpi_transport.shut_down_dead(mpi_transport.watch_connections(before))
        with pytest.raises(BrokenPipeError):
            connection.send(b"")


@pytest.mark.parametrize(
    ("retransmits", "probes", "milliseconds", "expected"),
    [(2, 0, 5001, True), (0, 2, 5001, True), (1, 0, 60_000, False), (0, 1, 60_000, False), (9, 0, 4999, False)],
)
def test_a_connection_is_dead_if_nothing_is_acknowledged_for_five_seconds(retransmits, probes, milliseconds, expected):
    fields = [0] * 21
    fields[2], fields[3], fields[20] = retransmits, probes, milliseconds
    assert mpi_transport.is_dead(struct.pack("=8B13I", *fields)) is expected
