"""Child processes that do not outlive this process."""

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
from ringlet.ipc.worker_process import Worker, WorkerProcessGroup

_START_SECONDS = 60.0
_LOOK_SECONDS = 0.02  # polling interval on systems without pidfds
_KILL_SECONDS = 0.5  # part of the time limit of end_all() that is reserved for killing


class ChildProcesses:
    """Starts, awaits and kills child processes.

    PR_SET_PDEATHSIG kills a child when the *thread* that started it exits, so one long-lived thread starts all
    children.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()  # reentrant: a signal handler may call end_all() during start()
        self._workers: list[Worker] = []
        self._has_ended = False
        self._calls: queue.SimpleQueue[tuple[concurrent.futures.Future[Any], Callable[[], Any]] | None]
        self._calls = queue.SimpleQueue()
        threading.Thread(target=self._run_calls, name="ringlet-child-processes", daemon=True).start()
        try:
            self._process_group: WorkerProcessGroup = self._call(WorkerProcessGroup)
        except BaseException:
            self._calls.put(None)
            raise

    @property
    def is_inherited(self) -> bool:
        """Whether this is a forked child, which does not own the processes."""
        return self._pid != os.getpid()

    def start(self, command: Sequence[str], environment: Mapping[str, str], descriptors: Sequence[int]) -> Worker:
        """Start a process that inherits `descriptors`, with an empty standard input."""
        # Checked without the lock: in a forked child, a lock held by another thread is never released.
        if self.is_inherited:
            raise FailedPreconditionError(
                f"the processes of this cluster belong to process {self._pid}, the parent of this process (pid "
                f"{os.getpid()}): use the cluster in the parent"
            )
        with self._lock:
            if not self._has_ended:
                process = self._call(
                    lambda: self._process_group.start(
                        command, environment, stdin=subprocess.DEVNULL, pass_fds=descriptors
                    )
                )
                worker = Worker(len(self._workers), process)
                self._workers.append(worker)
                if not self._has_ended:
                    return worker
                self.end(worker)
            raise FailedPreconditionError("the processes of this cluster were stopped: start a new cluster")

    def end(self, worker: Worker) -> None:
        """Kill a process and reap it."""
        if self.is_inherited:
            return
        with self._lock:
            if worker in self._workers:
                worker.signal(signal.SIGKILL)
                worker.close()
                self._workers.remove(worker)

    def end_all(self, seconds: float) -> None:
        """Wait until all processes have exited; shortly before the time limit, kill the rest and their children."""
        if self.is_inherited:
            return
        with self._lock:
            if self._has_ended:
                return
            self._has_ended = True
            wait_for(self._workers, Deadline.after(max(seconds - _KILL_SECONDS, 0.0)))
            self._process_group.close()
            for worker in self._workers:
                worker.signal(signal.SIGKILL)  # in case the worker has left the process group
                worker.close()
            self._calls.put(None)

    def _call(self, call: Callable[[], Any]) -> Any:
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._calls.put((future, call))
        return future.result(_START_SECONDS)

    def _run_calls(self) -> None:
        while (item := self._calls.get()) is not None:
            future, call = item
            try:
                future.set_result(call())
            except BaseException as error:
                future.set_exception(error)


def wait_for(workers: Iterable[Worker], deadline: Deadline) -> bool:
    """Wait until the processes have exited or the deadline has passed; return whether all have exited."""
    left = [worker for worker in workers if not worker.has_ended()]
    while left and not deadline.is_over():
        handle = left[0].pidfd
        if handle is None:
            time.sleep(deadline.left(_LOOK_SECONDS))
        else:
            poll = select.poll()  # not select(), which supports at most 1024 descriptors
            poll.register(handle, select.POLLIN)
            poll.poll(1000 * deadline.left(60.0))
        left = [worker for worker in left if not worker.has_ended()]
    return not left
