"""Clusters whose tasks are separately started servers, which are restarted when killed."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from types import FrameType

import ringlet
from ringlet.cluster import ClusterSpec

__all__ = ["Servers"]


class Servers:
    """A server for each task, restarted by a separate process; all are forks of this process."""

    def __init__(self, workers: int, ps: int) -> None:
        os.environ["RINGLET_JOB_ID"] = f"servers {os.getpid()}"
        addresses = {
            job: [f"localhost:{port + index}" for index in range(count)]
            for job, port, count in (("worker", 20000, workers), ("ps", 30000, ps))
        }
        self.spec = ClusterSpec({**addresses, "chief": ["localhost:40000"]})
        self._supervisors = [
            _fork(self.spec, job, index) for job, count in (("worker", workers), ("ps", ps)) for index in range(count)
        ]

    def close(self, seconds: float) -> list[int]:
        """Wait until all servers have ended; return those that had to be killed."""
        end = time.monotonic() + seconds
        left = self._supervisors
        while left and time.monotonic() < end:
            left = [pid for pid in left if os.waitpid(pid, os.WNOHANG) == (0, 0)]
            time.sleep(0.01)
        for pid in left:
            os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)
        return left


def _fork(spec: ClusterSpec, job: str, index: int) -> int:
    supervisor = os.fork()
    if supervisor:
        return supervisor
    server = 0

    def end(number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(server, signal.SIGKILL)
        os._exit(0)

    status = signal.SIGKILL.value
    while status == signal.SIGKILL:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        server = os.fork()
        if not server:
            try:
                ringlet.Server(spec, job, index).join()
            finally:
                os._exit(0)
        signal.signal(signal.SIGTERM, end)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        status = os.waitpid(server, 0)[1]
    os._exit(0)
