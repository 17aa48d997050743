"""Job key: the settings that all processes of a job share, and the rendezvous address derived from them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

MOST_PROCESSES = 1000  # maximum size of a group: the capacity of the core's tables


def ranks_text(ranks: Iterable[int]) -> str:
    """Return text such as "ranks 0, 1 and 2"."""
    names = [str(rank) for rank in sorted(ranks)]
    return f"rank{'' if len(names) == 1 else 's'} {listed(names)}"


def listed(names: list[str]) -> str:
    """Join names with commas and "and"; list only the first six of more than eight names."""
    if len(names) == 1:
        return names[0]
    if len(names) > 8:
        return f"{', '.join(names[:6])} and {len(names) - 6} more"
    return f"{', '.join(names[:-1])} and {names[-1]}"


@dataclass(frozen=True)
class Job:
    """A job, as configured in one of its processes. Only processes with equal `name` and `job_id` connect.

    `name` is the name that the program gives to the group, `job_id` is ``RINGLET_JOB_ID`` or the launcher's id, and
    `num_ranks` must be equal in all processes.
    """

    name: str
    job_id: str
    num_ranks: int

    KEEP_APART: ClassVar[str] = "set RINGLET_JOB_ID, or name=, to a different value for each job"
    """The remedy in messages about two jobs with the same address."""

    @property
    def taken(self) -> str:
        """Cause and remedy in messages about a rank that another process holds."""
        return f"another job of this name is running; {self.KEEP_APART}"

    @property
    def start_alike(self) -> str:
        """The remedy in messages about processes that did not connect."""
        return "Start each rank once, as one user, with the same name=, num_ranks= and RINGLET_JOB_ID"

    def names_of(self, ranks: Iterable[int]) -> str:
        """Return the names of ranks in messages of this job."""
        return ranks_text(ranks)

    def size_text(self, num_ranks: int) -> str:
        """Return the number of ranks in messages of this job."""
        return f"num_ranks={num_ranks}"

    def address(self, uid: int | None = None) -> str:
        """Return the abstract socket address of this job for a user, by default the user of this process."""
        # num_ranks is left out, so that processes with different values connect and receive an error that names both.
        canonical = json.dumps([self.name, self.job_id])
        digest = hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
        return f"\0ringlet-{os.geteuid() if uid is None else uid}-{digest}"

    def __str__(self) -> str:
        name = f"{self.name!r} " if self.name else ""
        job = f" (RINGLET_JOB_ID {self.job_id!r})" if self.job_id else ""
        return f"the group {name}of {self.num_ranks} ranks{job}"
