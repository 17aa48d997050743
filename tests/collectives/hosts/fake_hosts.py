"""Hosts in one process: a transport between threads, and a harness that runs a function on every rank."""

from __future__ import annotations

import dataclasses
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ringlet.collectives.hosts import mpi_transport
from ringlet.collectives.hosts.host_join import join
from ringlet.collectives.hosts.mpi_transport import PeerFailed
from ringlet.collectives.process_group import _join_here
from ringlet.rendezvous.job_key import Job
from ringlet.rendezvous.process_identity import ProcessIdentity


class Network:
    """The messages between processes; `change` may replace the bytes of a message, or drop it with None.

    With `reads_late`, a send is complete, and its bytes are read, when the receiver or the sender waits for it.
    """

    def __init__(
        self,
        size: int,
        change: Callable[[int, int, int, bytes], bytes | None] | None = None,
        *,
        reads_late: bool = False,
    ) -> None:
        self.size = size
        self.change = change
        self.reads_late = reads_late
        self.lock = threading.Lock()
        self.queues: dict[Any, deque[tuple[Any, Posted]]] = defaultdict(deque)
        self.posted: dict[Any, deque[Any]] = defaultdict(deque)
        self.lost: set[int] = set()
        self.prepared: list[Prepared] = []


class Posted:
    def __init__(self, network: Network, key: Any, into: Any = None) -> None:
        self.network, self.key, self.into = network, key, into
        self.count: int | None = None

    def test(self) -> int | None:
        with self.network.lock:
            queue, posted = self.network.queues[self.key], self.network.posted[self.key]
            while queue and posted and self.count is None:
                (data, sent), first = queue.popleft(), posted.popleft()
                first.into[: len(data)] = np.frombuffer(data, np.uint8)
                first.count = sent.count = len(data)
            if self.count is None and self.key[0] in self.network.lost:
                raise PeerFailed("lost")
        return self.count


class Prepared:
    is_free = False

    def __init__(self, network: Network, begin: Callable[[], Posted]) -> None:
        self.begin = begin
        self.posted: Posted | None = None
        network.prepared.append(self)

    def start(self) -> None:
        self.posted = self.begin()

    def test(self) -> int | None:
        assert self.posted is not None
        return self.posted.test()

    def free(self) -> None:
        assert self.posted is None or self.posted.count is not None, "it is in progress"
        self.is_free = True


class FakeTransport:
    """One process of a network."""

    def __init__(self, network: Network, rank: int) -> None:
        self.network, self.rank, self.size = network, rank, network.size
        self.largest_tag = 32767  # the least that MPI guarantees
        self.num_groups, self.kept, self.lock = 0, defaultdict(deque), threading.Lock()
        self.gave_up = False
        self.hub = None

    def send(self, data: Any, to: int, tag: int) -> Posted:
        if to in self.network.lost:
            raise PeerFailed("lost")
        content: Any = data if self.network.reads_late else data.tobytes()
        if self.network.change is not None:
            content = self.network.change(self.rank, to, tag, data.tobytes())
        sent = Posted(self.network, (self.rank, to, tag))
        if not self.network.reads_late:
            sent.count = len(data)
        if content is not None:
            with self.network.lock:
                self.network.queues[self.rank, to, tag].append((content, sent))
        return sent

    def receive(self, into: Any, source: int, tag: int) -> Posted:
        posted = Posted(self.network, (source, self.rank, tag), into)
        with self.network.lock:
            self.network.posted[posted.key].append(posted)
        return posted

    def prepare_send(self, data: Any, to: int, tag: int) -> Prepared:
        return self._prepared(to, lambda: self.send(data, to, tag))

    def prepare_receive(self, into: Any, source: int, tag: int) -> Prepared:
        return self._prepared(source, lambda: self.receive(into, source, tag))

    def _prepared(self, peer: int, begin: Callable[[], Posted]) -> Prepared:
        if peer in self.network.lost:
            raise PeerFailed("lost")
        return Prepared(self.network, begin)

    def poll(self, tag: int) -> tuple[int, bytes] | None:
        with self.network.lock:
            for source in range(self.size):
                if queue := self.network.queues[source, self.rank, tag]:
                    data, sent = queue.popleft()
                    sent.count = len(data)
                    return source, bytes(data)
        return None

    def failed(self) -> list[int]:
        return sorted(self.network.lost)

    def give_up(self) -> None:
        self.gave_up = True

    sockets = staticmethod(mpi_transport.sockets)
    watch_connections = staticmethod(mpi_transport.watch_connections)


def identity_on(host: int) -> ProcessIdentity:
    return dataclasses.replace(ProcessIdentity.of_this_process(), host=f"host{host}", network_namespace=str(host))


def run_on_hosts(
    ranks_of_hosts: Sequence[int],
    step: Callable[[Any], Any],
    *,
    seconds: float = 10.0,
    network: Network | None = None,
) -> list[Any]:
    """Return the results of a function on all ranks; an exception is a result."""
    network = network or Network(len(ranks_of_hosts))
    ends = np.cumsum(ranks_of_hosts).tolist()
    results: list[Any] = [None] * ends[-1]

    def drive(member: Any) -> None:
        try:
            results[member.rank] = step(member)
        except Exception as error:
            results[member.rank] = error

    def run_host(host: int) -> None:
        ranks = range(ends[host] - ranks_of_hosts[host], ends[host])
        try:
            transport, job = FakeTransport(network, host), Job("test", "", ends[-1])
            members = join(transport, job, ranks, seconds, _join_here, identity=identity_on(host))
        except Exception as error:
            for rank in ranks:
                results[rank] = error
            return
        run_threads([lambda member=member: drive(member) for member in members])

    run_threads([lambda host=host: run_host(host) for host in range(len(ranks_of_hosts))])
    return results


def run_threads(calls: Sequence[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=call, daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a rank hangs"
