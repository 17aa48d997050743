"""What the processes of one job agree on before they meet, and the name under which they do."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass

__all__ = ["MOST_PROCESSES", "Job"]

MOST_PROCESSES = 1000  # of a group: what the core has room for


@dataclass(frozen=True)
class Job:
    """A job, as each of its processes was told about it.

    Attributes
    ----------
    name : str
        What the program calls its group; processes with other names never meet.
    job_id : str
        What the launcher calls the job (``RINGLET_JOB_ID``); processes with other ones never meet.
    num_ranks : int
        Size of the group. All must have been told the same.

    Examples
    --------
    >>> Job("main", "", 4).address(1000) == Job("main", "", 8).address(1000)
    True
    >>> Job("main", "", 4).address(1000) == Job("main", "second", 4).address(1000)
    False
    """

    name: str
    job_id: str
    num_ranks: int

    def address(self, uid: int | None = None) -> str:
        """Give the address of the abstract socket where the job of one user meets; by default of this user."""
        # The size is no part of it: two processes that were told different sizes shall meet, and hear so.
        canonical = json.dumps([self.name, self.job_id])
        digest = hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
        return f"\0ringlet-{os.geteuid() if uid is None else uid}-{digest}"

    def __str__(self) -> str:
        name = f"group {self.name!r}" if self.name else "group without a name"
        return f"{name} of {self.num_ranks} ranks" + (f" (RINGLET_JOB_ID {self.job_id!r})" if self.job_id else "")
