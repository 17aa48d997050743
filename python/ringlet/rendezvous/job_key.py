"""What the processes of one job agree on before they meet, and the name under which they do."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

__all__ = ["MOST_PROCESSES", "Job", "ranks_text"]

MOST_PROCESSES = 1000  # of a group: what the core has room for


def ranks_text(ranks: Iterable[int]) -> str:
    """Name ranks in a sentence.

    Examples
    --------
    >>> ranks_text([3]), ranks_text([0, 1]), ranks_text(range(20))
    ('rank 3', 'ranks 0 and 1', 'ranks 0, 1, 2, 3, 4, 5 and 14 more')
    """
    names = [str(rank) for rank in sorted(ranks)]
    return f"rank{'' if len(names) == 1 else 's'} {listed(names)}"


def listed(names: list[str]) -> str:
    """Write a list as people do, without the end if it is long.

    Examples
    --------
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    if len(names) == 1:
        return names[0]
    if len(names) > 8:
        return f"{', '.join(names[:6])} and {len(names) - 6} more"
    return f"{', '.join(names[:-1])} and {names[-1]}"


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

    KEEP_APART: ClassVar[str] = "set RINGLET_JOB_ID, or name=, to something of its own for each job to keep them apart"
    """What messages advise where two jobs are in each other's way."""

    @property
    def taken(self) -> str:
        """What messages say where another process has a rank already."""
        return f"another job of this name is running; {self.KEEP_APART}"

    @property
    def start_alike(self) -> str:
        """What messages advise where processes do not find each other."""
        return "Start each rank once, as one user, with the same name=, num_ranks= and RINGLET_JOB_ID"

    def who(self, ranks: Iterable[int]) -> str:
        """Name ranks as the user of the job knows them."""
        return ranks_text(ranks)

    def address(self, uid: int | None = None) -> str:
        """Give the address of the abstract socket where the job of one user meets; by default of this user."""
        # The size is no part of it: two processes that were told different sizes shall meet, and hear so.
        canonical = json.dumps([self.name, self.job_id])
        digest = hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
        return f"\0ringlet-{os.geteuid() if uid is None else uid}-{digest}"

    def __str__(self) -> str:
        name = f"group {self.name!r}" if self.name else "group without a name"
        return f"{name} of {self.num_ranks} ranks" + (f" (RINGLET_JOB_ID {self.job_id!r})" if self.job_id else "")
