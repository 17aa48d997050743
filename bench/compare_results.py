"""What a comparison measured: seconds by who, what and size, one for each round, and the ratios that follow."""

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
    """What everybody is asked to do.

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
    """The times of one task by one of those compared.

    Attributes
    ----------
    task : Task
    who : str
        A peer's name, or one of `PYTHON`, `CPP`, `CONTROLLER`, `PROCESSES`, `PRIVATE`, `LIMIT`.
    family : str
        ``"ringlet"``, ``"limit"``, or a peer's.
    seconds : tuple of float
        Of one call, one for each round; empty if there is no time.
    failure : str
        Why there is none, in a word.
    others : float
        Part of the cores' time that processes of others took meanwhile.
    """

    task: Task
    who: str
    family: str
    seconds: tuple[float, ...]
    failure: str = ""
    others: float = 0.0

    @property
    def median(self) -> float:
        """Middle of the rounds."""
        return Statistics(self.seconds).median

    def as_dict(self) -> dict[str, object]:
        """Give the fields, and the median, as JSON can hold them."""
        spread = {"median": self.median, "spread": Statistics(self.seconds).spread} if self.seconds else {}
        return {**asdict(self.task), "who": self.who, "family": self.family, "seconds": list(self.seconds),
                "failure": self.failure, "others": self.others, **spread}  # fmt: skip


def ratio(numerator: Measured, denominator: Measured) -> float:
    """Median over rounds of the ratio inside a round.

    Examples
    --------
    >>> task = Task(2, "all_reduce", "in_place", 8)
    >>> ratio(Measured(task, "mpi", "MPI", (2.0, 40.0)), Measured(task, PYTHON, "ringlet", (1.0, 20.0)))
    2.0
    """
    return ratios(numerator.seconds, denominator.seconds).median


def best_of(measured: Iterable[Measured], families: Sequence[str]) -> Measured | None:
    """Give the one of these families with the smallest median; None if none of them has a time."""
    timed = [one for one in measured if one.family in families and one.seconds]
    return min(timed, key=lambda one: one.median, default=None)
