"""Results of a comparison: seconds per round by subject, task and size, and their ratios."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from bench.harness import Statistics, ratios

__all__ = ["CONTROLLER", "CPP", "LIMIT", "PRIVATE", "PROCESSES", "PYTHON", "Measured", "Task", "best_of", "ratio"]

# Who is measured beside the peers.
PYTHON = "ringlet, Python threads"
CPP = "ringlet, C++ threads"
CONTROLLER = "ringlet, one thread"
PROCESSES = "ringlet, processes"
PRIVATE = "ringlet, processes, private"
LIMIT = "limit"


@dataclass(frozen=True, order=True)
class Task:
    """The task of all subjects.

    Attributes
    ----------
    num_ranks : int
    collective, variant : str
    size_bytes : int
    """

    num_ranks: int
    collective: str
    variant: str
    size_bytes: int


@dataclass(frozen=True)
class Measured:
    """The times of one task by one subject.

    Attributes
    ----------
    task : Task
    who : str
        A peer's name, or one of `PYTHON`, `CPP`, `CONTROLLER`, `PROCESSES`, `PRIVATE`, `LIMIT`.
    family : str
        ``"ringlet"``, ``"limit"``, or a peer's.
    seconds : tuple of float
        Seconds per call, one number for each round; empty if the call was not measured.
    failure : str
        Reason for a missing time, in a word.
    others : float
        Fraction of the cores' time that other processes used.
    """

    task: Task
    who: str
    family: str
    seconds: tuple[float, ...]
    failure: str = ""
    others: float = 0.0

    @property
    def median(self) -> float:
        """Median of the rounds."""
        return Statistics(self.seconds).median

    def as_dict(self) -> dict[str, object]:
        """Return the fields and the median as JSON values."""
        spread = {"median": self.median, "spread": Statistics(self.seconds).spread} if self.seconds else {}
        return {**asdict(self.task), "who": self.who, "family": self.family, "seconds": list(self.seconds),
                "failure": self.failure, "others": self.others, **spread}  # fmt: skip


def ratio(numerator: Measured, denominator: Measured) -> float:
    """Return the median of the ratios within each round.

    Examples
    --------
    >>> task = Task(2, "all_reduce", "in_place", 8)
    >>> ratio(Measured(task, "mpi", "MPI", (2.0, 40.0)), Measured(task, PYTHON, "ringlet", (1.0, 20.0)))
    2.0
    """
    return ratios(numerator.seconds, denominator.seconds).median


def best_of(measured: Iterable[Measured], families: Sequence[str]) -> Measured | None:
    """Return the result of these families with the smallest median; None if none has a time."""
    timed = [one for one in measured if one.family in families and one.seconds]
    return min(timed, key=lambda one: one.median, default=None)
