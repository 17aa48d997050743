"""Main function of a task process that its coordinator has started."""

from __future__ import annotations

import contextlib
import os
import resource
import socket

from ringlet.coordinator.task_main import serve
from ringlet.ipc import LocalChannel

# Maximum number of open files; each variable of a parameter server is an open file.
_MOST_FILES = 1 << 16


def main(descriptor: int, task_type: str, task_id: int) -> None:
    """Serve the parent process, over the inherited socket `descriptor`."""
    os.set_inheritable(descriptor, False)
    _allow_many_files()
    serve(LocalChannel(socket.socket(fileno=descriptor), "the coordinator"), task_type, task_id)


def _allow_many_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
