"""Clusters whose tasks are threads of this process, for tests of a coordinator without worker processes."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator

import ringlet
from ringlet.coordinator import ClusterCoordinator
from ringlet.coordinator.task_main import serve
from ringlet.errors import FailedPreconditionError
from ringlet.ipc import Channel, LocalChannel
from ringlet.strategy.parameter_server.parameter_server_client import ParameterServers
from ringlet.strategy.parameter_server.parameter_server_strategy import ParameterServerStrategy


class ThreadTasks:
    """Has the methods of `ringlet.cluster.Tasks`."""

    def __init__(self, workers: int, ps: int = 1) -> None:
        self._channels: dict[tuple[str, int], LocalChannel] = {}
        self._far_ends: dict[tuple[str, int], LocalChannel] = {}
        self.num_restarts = 0
        self._is_stopped = False
        self.may_restart = threading.Event()
        self.may_restart.set()
        for task_type, count in (("worker", workers), ("ps", ps)):
            for task_id in range(count):
                self._start(task_type, task_id)

    def _start(self, task_type: str, task_id: int) -> LocalChannel:
        ours, theirs = LocalChannel.pair("the coordinator", f"/job:{task_type}/task:{task_id}")
        self._channels[task_type, task_id], self._far_ends[task_type, task_id] = ours, theirs
        self._serve(theirs, task_type, task_id)
        return ours

    def _serve(self, channel: LocalChannel, task_type: str, task_id: int) -> None:
        threading.Thread(target=serve, args=(channel, task_type, task_id), daemon=True).start()

    def lose(self, task_type: str, task_id: int) -> None:
        """Close the connection, as the exit of a process does; drop the result of a running function."""
        self._far_ends[task_type, task_id].close()

    @property
    def workers(self) -> list[Channel]:
        return [channel for (job, _), channel in self._channels.items() if job == "worker"]

    @property
    def ps(self) -> list[Channel]:
        return [channel for (job, _), channel in self._channels.items() if job == "ps"]

    def restart(self, task_type: str, task_id: int) -> Channel:
        if not self.may_restart.wait(5):
            raise FailedPreconditionError("the cluster was stopped")
        if self._is_stopped:
            raise FailedPreconditionError("the cluster was stopped")
        self.num_restarts += 1
        return self._start(task_type, task_id)

    def ending_of(self, task_type: str, task_id: int) -> str:
        return "has left"

    def pid_of(self, task_type: str, task_id: int) -> int:
        return 812

    def stop(self, timeout_seconds: float = 2.0) -> None:
        self._is_stopped = True
        self.may_restart.set()
        for channel in self._channels.values():
            channel.close()


def strategy_of(workers: int, ps: int, kind: type[ParameterServerStrategy]) -> ParameterServerStrategy:
    """Return a strategy over threads; its `extended._cluster()` is the ThreadTasks."""
    strategy = kind(ringlet.cluster_resolver.LocalClusterResolver(workers, ps))
    strategy.extended._known_servers = ParameterServers(ThreadTasks(workers, ps))
    return strategy


@contextlib.contextmanager
def coordinator_of(workers: int = 2, ps: int = 1) -> Iterator[ClusterCoordinator]:
    """Yield a coordinator over threads, and shut it down."""
    coordinator = ClusterCoordinator(strategy_of(workers, ps, ParameterServerStrategy))
    try:
        yield coordinator
    finally:
        coordinator.shutdown()


def tasks_of(coordinator: ClusterCoordinator) -> ThreadTasks:
    return coordinator.strategy.extended._cluster()


def wait_for(is_so: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait until a condition holds that other threads fulfil."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.001)


def status_in_child(call: Callable[[], object]) -> int:
    """Make a call in a forked child, which then exits; return its exit status: 0, or 1 after an exception."""
    pid = os.fork()
    if not pid:
        signal.alarm(60)
        try:
            call()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
