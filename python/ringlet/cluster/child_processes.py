"""Processes that one process starts and ends: none of them outlives it."""

from __future__ import annotations

import concurrent.futures
import os
import queue
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ringlet.errors import FailedPreconditionError
from ringlet.ipc.deadline import Deadline
from ringlet.ipc.worker_process import Keeper, Worker

__all__ = ["Crew"]

_START_SECONDS = 60.0
_LOOK_SECONDS = 0.02  # where the system tells nobody of ends
_KILL_SECONDS = 0.5  # of the time to end: for those that did not by themselves


class Crew:
    """Starts processes, and ends them.

    The kernel ends a child with the *thread* that has started it. So one thread starts all, and waits.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()  # a handler of signals may end all while its thread starts one
        self._workers: list[Worker] = []
        self._has_ended = False
        self._orders: queue.SimpleQueue[tuple[concurrent.futures.Future[Any], Callable[[], Any]] | None]
        self._orders = queue.SimpleQueue()
        threading.Thread(target=self._obey, name="ringlet-crew", daemon=True).start()
        try:
            self._keeper: Keeper = self._order(Keeper)
        except BaseException:
            self._orders.put(None)
            raise

    @property
    def is_inherited(self) -> bool:
        """Whether this is a forked child, which has no part in the processes."""
        return self._pid != os.getpid()

    def start(self, command: Sequence[str], environment: Mapping[str, str], descriptors: Sequence[int]) -> Worker:
        """Start a process, with nothing to read on its standard input, that inherits some descriptors.

        Raises
        ------
        FailedPreconditionError
            If all have been ended.
        OSError
            If the system has no more processes or descriptors to give.
        """
        # Before the lock: at a fork another thread may have held it, and a child would wait for ever.
        if self.is_inherited:
            raise FailedPreconditionError(f"the processes of this cluster are those of process {self._pid}")
        with self._lock:
            if not self._has_ended:
                how = {"stdin": subprocess.DEVNULL, "pass_fds": descriptors}
                process = self._order(lambda: self._keeper.start(command, environment, **how))
                worker = Worker(len(self._workers), process)
                self._workers.append(worker)
                if not self._has_ended:
                    return worker
                self.end(worker)
            raise FailedPreconditionError("the processes of this cluster were ended: start another one")

    def end(self, worker: Worker) -> None:
        """Kill a process, and wait until it has ended."""
        if self.is_inherited:
            return
        with self._lock:
            if worker in self._workers:
                worker.signal(signal.SIGKILL)
                worker.close()
                self._workers.remove(worker)

    def end_all(self, seconds: float) -> None:
        """Wait until all have ended by themselves, and kill them in time, with all that they have started."""
        if self.is_inherited:
            return
        with self._lock:
            if self._has_ended:
                return
            self._has_ended = True
            wait_for(self._workers, Deadline.after(max(seconds - _KILL_SECONDS, 0.0)))
            self._keeper.close()
            for worker in self._workers:
                worker.signal(signal.SIGKILL)  # who has left the group
                worker.close()
            self._orders.put(None)

    def _order(self, call: Callable[[], Any]) -> Any:
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._orders.put((future, call))
        return future.result(_START_SECONDS)

    def _obey(self) -> None:
        while (order := self._orders.get()) is not None:
            future, call = order
            try:
                future.set_result(call())
            except BaseException as error:
                future.set_exception(error)


def wait_for(workers: Iterable[Worker], deadline: Deadline) -> bool:
    """Wait until processes have ended, and tell whether all have."""
    left = [worker for worker in workers if not worker.has_ended()]
    while left and not deadline.is_over():
        handle = left[0].pidfd
        if handle is None:
            time.sleep(deadline.left(_LOOK_SECONDS))
        else:
            poll = select.poll()  # not select, which knows the first 1024 descriptors only
            poll.register(handle, select.POLLIN)
            poll.poll(1000 * deadline.left(60.0))
        left = [worker for worker in left if not worker.has_ended()]
    return not left
