"""Clusters whose tasks start in milliseconds: forks of a process that has imported everything."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import ringlet
from ringlet.coordinator import ClusterCoordinator
from ringlet.errors import FailedPreconditionError
from ringlet.ipc import Channel, LocalChannel
from ringlet.ipc.worker_process import ending_text
from ringlet.strategy.parameter_server.parameter_server_client import ParameterServers


def spring(orders: socket.socket) -> None:
    """Fork a task for each order to start one, and send its pid; for the order "wait", send an exit status."""
    from ringlet.coordinator.task_main import serve

    while True:
        text, descriptors, _, _ = socket.recv_fds(orders, 100, 1)
        if not text:
            os._exit(0)
        kind, task_type, number = text.decode().split()
        if kind == "wait":
            os.close(descriptors[0])
            orders.send(str(os.waitstatus_to_exitcode(os.waitpid(int(number), 0)[1])).encode())
            continue
        pid = os.fork()
        if not pid:
            orders.close()
            serve(LocalChannel(socket.socket(fileno=descriptors[0]), "the coordinator"), task_type, int(number))
            os._exit(0)
        os.close(descriptors[0])
        orders.send(str(pid).encode())


class Spring:
    """The parent process of all tasks, which alone can wait for them.

    It is a new interpreter, or a fork of a process that has imported everything and has no threads.
    """

    def __init__(self, is_fork: bool = False) -> None:
        self._lock = threading.Lock()
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._orders.settimeout(30)
        with theirs:
            if is_fork:
                self._wait = functools.partial(os.waitpid, os.fork(), 0)
                if not self._wait.args[0]:
                    self._orders.close()
                    with contextlib.suppress(OSError):  # closed before its last answer was read
                        spring(theirs)
                    os._exit(0)
                return
            program = f"import socket; from {__name__} import spring; spring(socket.socket(fileno={theirs.fileno()}))"
            process = subprocess.Popen([sys.executable, "-c", program], pass_fds=[theirs.fileno()])
            self._wait = functools.partial(process.wait, 10)

    def ask(self, kind: str, task_type: str, number: int, descriptor: int) -> int:
        with self._lock:
            socket.send_fds(self._orders, [f"{kind} {task_type} {number}".encode()], [descriptor])
            return int(self._orders.recv(100))

    def close(self) -> None:
        self._orders.close()
        self._wait()


class ForkTasks:
    """Has the methods of `ringlet.cluster.Tasks`."""

    def __init__(self, spring: Spring, workers: int, ps: int) -> None:
        self._spring = spring
        self._is_stopped = False
        self._channels: dict[tuple[str, int], LocalChannel] = {}
        self._pids: dict[tuple[str, int], int] = {}
        for task_type, count in (("worker", workers), ("ps", ps)):
            for task_id in range(count):
                self.restart(task_type, task_id)

    @property
    def workers(self) -> list[Channel]:
        return [channel for (job, _), channel in self._channels.items() if job == "worker"]

    @property
    def ps(self) -> list[Channel]:
        return [channel for (job, _), channel in self._channels.items() if job == "ps"]

    def restart(self, task_type: str, task_id: int) -> Channel:
        if self._is_stopped:
            raise FailedPreconditionError("the cluster was stopped")
        ours, theirs = socket.socketpair()
        with theirs:
            self._pids[task_type, task_id] = self._spring.ask("start", task_type, task_id, theirs.fileno())
        self._channels[task_type, task_id] = LocalChannel(ours, f"/job:{task_type}/task:{task_id}")
        return self._channels[task_type, task_id]

    def ending_of(self, task_type: str, task_id: int) -> str:
        return ending_text(self._spring.ask("wait", "-", self._pids[task_type, task_id], 0))

    def pid_of(self, task_type: str, task_id: int) -> int:
        return self._pids[task_type, task_id]

    def kill(self, task_type: str, task_id: int) -> None:
        with contextlib.suppress(ProcessLookupError):  # it was killed before
            os.kill(self._pids[task_type, task_id], signal.SIGKILL)

    def stop(self, timeout_seconds: float = 2.0) -> None:
        self._is_stopped = True
        for task, channel in self._channels.items():
            channel.close()
            self.kill(*task)


@contextlib.contextmanager
def coordinator_of(spring: Spring, workers: int, ps: int) -> Iterator[ClusterCoordinator]:
    """Yield a coordinator over forks, and shut it down; its strategy's `extended._cluster()` is the ForkTasks."""
    strategy = ringlet.ParameterServerStrategy(ringlet.cluster_resolver.LocalClusterResolver(workers, ps))
    strategy.extended._known_servers = ParameterServers(ForkTasks(spring, workers, ps))
    coordinator = ClusterCoordinator(strategy)
    try:
        yield coordinator
    finally:
        coordinator.shutdown()
