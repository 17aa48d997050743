"""Task pool: the processes of a cluster, with the coordinator's channel to each."""

from __future__ import annotations

from typing import Protocol

from ringlet.ipc import Channel


class Tasks(Protocol):
    """The workers and parameter servers of one coordinator; thread-safe."""

    @property
    def workers(self) -> list[Channel]:
        """The channels to all workers, by index; for a worker that has exited, its last channel."""

    @property
    def ps(self) -> list[Channel]:
        """The channels to all parameter servers, by index."""

    def restart(self, task_type: str, task_id: int) -> Channel:
        """Return the channel to a new process of a task, and close the old one."""

    def ending_of(self, task_type: str, task_id: int) -> str:
        """Return what happened to a process whose channel has closed: ``"was killed by SIGKILL (signal 9)"``."""

    def pid_of(self, task_type: str, task_id: int) -> int:
        """Return the pid of a task."""

    def stop(self, timeout_seconds: float = 2.0) -> None:
        """Close all channels and end the processes started by this one, within the time limit; idempotent."""
