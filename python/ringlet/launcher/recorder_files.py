"""Recorder files: the memory of the workers' flight recorders, which the launcher can read after the workers exit."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from ringlet.errors import DataLossError
from ringlet.observe.divergence import first_divergence, last_wait
from ringlet.observe.recorder import Process, copy_memory, read_process
from ringlet.observe.recorder_memory import VARIABLE, new_memory

# Descriptors that the launcher needs besides those of the recorders: for each worker, and for the whole job.
_OTHERS_PER_WORKER, _OTHERS = 4, 64


# Error of a strategy, whose names and numbers of calls differ from those in the recorders.
_CALLS_OF_A_STRATEGY = re.compile(r"\bthe (?:workers|replicas) did not make the same call \(")


class RecorderFiles:
    """The recorder memory of each worker of a job; empty if the recorder is off, or descriptors are scarce."""

    def __init__(self, num_workers: int, environment: Mapping[str, str]) -> None:
        self._descriptors: list[int] = []
        self._is_on = environment.get("RINGLET_RECORDER") != "0" and _has_descriptors(num_workers)

    def add(self) -> tuple[tuple[int, ...], dict[str, str]]:
        """Create the memory of the next worker; return the descriptors that it inherits, and its variables."""
        if self._is_on:
            with contextlib.suppress(OSError):  # memory or descriptors are exhausted
                descriptor, place = new_memory()
                self._descriptors.append(descriptor)
                return (descriptor,), {VARIABLE: place}
            self._is_on = False
        return (), {VARIABLE: ""}

    def divergence(self, reported: str = "") -> str | None:
        """Return a line about the first call that differs between ranks; None if none does, or `reported` states it."""
        if _CALLS_OF_A_STRATEGY.search(reported):
            return None
        found = first_divergence(self._processes())
        return None if found is None else str(found)

    def last_wait(self) -> str | None:
        """Return a line about the last call that only some ranks made, or None."""
        return last_wait(self._processes())

    def save(self, folder: str) -> int:
        """Write a file for each worker that has created a group; return the number of files."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        copies = self._copies()
        for index, data in copies.items():
            Path(folder, f"rank-{index}.recorder").write_bytes(data)
        return len(copies)

    def close(self) -> None:
        """Close all descriptors."""
        while self._descriptors:
            os.close(self._descriptors.pop())

    def _processes(self) -> list[Process]:
        processes = []
        for index, data in self._copies().items():
            with contextlib.suppress(DataLossError):  # the program has overwritten the memory
                processes.append(read_process(data, f"worker {index}"))
        return processes

    def _copies(self) -> dict[int, bytes]:
        copies = {}
        for index, descriptor in enumerate(self._descriptors):
            with contextlib.suppress(DataLossError):  # the worker has created no group, or was killed before that
                copies[index] = copy_memory(descriptor, f"worker {index}")
        return copies


def _has_descriptors(num_workers: int) -> bool:
    if not hasattr(os, "memfd_create"):  # the system is not Linux
        return False
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return limit == resource.RLIM_INFINITY or (_OTHERS_PER_WORKER + 1) * num_workers + _OTHERS <= limit
