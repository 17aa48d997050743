"""The processes of a cluster as their coordinator sees them: a channel to each."""

from __future__ import annotations

from typing import Protocol

from ringlet.ipc import Channel

__all__ = ["Tasks"]


class Tasks(Protocol):
    """Workers and parameter servers that do what one coordinator says. Every method may be called by any thread."""

    @property
    def workers(self) -> list[Channel]:
        """The channels to all workers, by index: each leads to its process, or to the last one that there was."""

    @property
    def ps(self) -> list[Channel]:
        """The channels to all parameter servers, by index."""

    def restart(self, task_type: str, task_id: int) -> Channel:
        """Give the channel to a new process of a task; what is left of the old one is not heard any more.

        Raises
        ------
        FailedPreconditionError
            If the cluster is stopped, also meanwhile.
        DeadlineExceededError
            If nobody has come.
        OSError
            If the system cannot start a process.
        """

    def ending_of(self, task_type: str, task_id: int) -> str:
        """Say what happened to a process whose channel has closed, such as ``"was killed by SIGKILL (signal 9)"``."""

    def pid_of(self, task_type: str, task_id: int) -> int:
        """Give the number of the process of a task."""

    def stop(self, timeout_seconds: float = 2.0) -> None:
        """Close all channels and end the processes that this one has started, within that time; once is enough."""
