"""Goals of ringlet's speed relative to its peers, and whether a run reached them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field

from bench import report
from bench.compare_results import CONTROLLER, CPP, PRIVATE, PROCESSES, PYTHON, Measured, Task, best_of, ratio
from bench.goals import Goal
from bench.harness import format_bytes

__all__ = ["PeerGoal", "goal_rows", "in_order", "peer_goals"]

_KIB, _MIB = 1 << 10, 1 << 20
_ANY = 1 << 60

# Above this part of the cores' time taken by others, the machine was measured and not the programs.
_MOST_DISTURBED = 0.05

_COLLECTIVES = ("reduce_scatter", "all_gather", "broadcast", "all_to_all")

# Large sums of Python threads, and small ones of C++, whose calls cost no hand-over of an interpreter.
_LARGE, _SMALL = (PYTHON, PROCESSES), (CPP, PROCESSES)

# How ringlet is measured, in a word for each row.
_WHERE = {
    PYTHON: "Python", CPP: "C++", CONTROLLER: "one thread", PROCESSES: "processes", PRIVATE: "processes, private",
}  # fmt: skip


@dataclass(frozen=True)
class _Rule:
    """A required speed ratio for some tasks; None to report without a goal. Each of `who` has separate rows."""

    number: str
    ranks: tuple[int, ...]
    sizes: tuple[int, int]
    variant: str
    who: tuple[str, ...]
    times: float | None
    families: tuple[str, ...] = ("MPI",)
    collectives: tuple[str, ...] = ("all_reduce",)
    # JAX and TensorFlow do not write into their inputs: whatever they do is held against both variants.
    variants: tuple[str, ...] = ()
    # Of each number of ranks and collective, only the task is told that is the worst.
    is_worst_only: bool = False

    def holds_for(self, task: Task) -> bool:
        smallest, largest = self.sizes
        is_variant = task.variant == self.variant or (self.variant == "" and task.variant != "shared")
        return (
            task.num_ranks in self.ranks and smallest <= task.size_bytes <= largest
            and task.collective in self.collectives and is_variant
        )  # fmt: skip


_RULES = (
    _Rule("1", (2,), (8 * _MIB, _ANY), "in_place", _LARGE, 3.0),
    _Rule("1", (2,), (8 * _MIB, _ANY), "in_place", _LARGE, 10.0, ("gloo",)),
    _Rule("1", (2,), (8 * _MIB, _ANY), "in_place", _LARGE, 5.0, ("JAX", "TensorFlow"), variants=("in_place", "out")),
    _Rule("2", (4,), (8 * _MIB, _ANY), "in_place", _LARGE, 5.0),
    _Rule("2", (8,), (8 * _MIB, _ANY), "in_place", _LARGE, 3.0),
    _Rule("3", (2,), (256 * _KIB, _MIB), "in_place", _LARGE, 4.5),
    _Rule("3", (4, 8), (256 * _KIB, _MIB), "in_place", _LARGE, 3.5),
    _Rule("4", (2,), (32 * _KIB, 32 * _KIB), "in_place", _SMALL, 5.0),
    _Rule("5", (2,), (8, 8), "in_place", _SMALL, 2.0),
    _Rule("6", (4,), (8, _KIB), "in_place", _SMALL, 4.0),
    _Rule("6", (8,), (8, _KIB), "in_place", _SMALL, 7.0),
    _Rule("7", (2, 4, 8), (8 * _MIB, _ANY), "out", _LARGE, None),
    _Rule(
        "7b", (2, 4, 8), (8 * _MIB, _ANY), "shared", _LARGE, None,
        ("MPI", "gloo", "JAX", "TensorFlow", "NumPy", "NumPy processes"),
        variants=("in_place", "out", "shared"),
    ),
    _Rule("8", (2,), (_MIB, _ANY), "", (PRIVATE,), 1.7),
    _Rule("8", (4,), (_MIB, _ANY), "", (PRIVATE,), 1.5),
    _Rule(
        "8", (2, 4, 8), (1, _ANY), "", (PRIVATE,), 1.0,
        collectives=("all_reduce", *_COLLECTIVES), is_worst_only=True,
    ),
    _Rule("9", (2, 4, 8), (1, 256 * _KIB - 1), "in_place", (CONTROLLER,), 1.0, ("NumPy",)),
    _Rule("9", (2, 4, 8), (256 * _KIB, _ANY), "in_place", (CONTROLLER,), 2.5, ("NumPy",)),
    _Rule("10", (2, 4, 8), (8 * _MIB, _ANY), "", _LARGE, 2.5, collectives=_COLLECTIVES),
)  # fmt: skip


@dataclass(frozen=True)
class PeerGoal:
    """A goal, and the peer that ringlet was compared with.

    Attributes
    ----------
    goal : Goal
        Its verdict is ``"-"`` without a required ratio.
    best_peer : str
        The fastest relevant peer, with its time.
    """

    goal: Goal
    best_peer: str = field(default="-")

    def as_dict(self) -> dict[str, object]:
        """Return the fields as JSON values."""
        return {**asdict(self.goal), "best_peer": self.best_peer}


def peer_goals(measured: Sequence[Measured]) -> list[PeerGoal]:
    """Compare the measurements with every goal about peers.

    Parameters
    ----------
    measured : sequence of Measured

    Returns
    -------
    list of PeerGoal
        Tasks for which ringlet or all peers of a goal have no time are omitted.
    """
    goals = [goal for rule in _RULES for goal in _held_against(rule, measured)]
    goals += [PeerGoal(_controller_goal(one)) for one in measured if _is_smallest_of_controller(one)]
    return in_order(goals)


def in_order(goals: Iterable[PeerGoal]) -> list[PeerGoal]:
    """Sort goals by number, stably."""
    return sorted(goals, key=lambda held: (len(held.goal.number.rstrip("b")), held.goal.number))


def goal_rows(goals: Iterable[PeerGoal]) -> list[tuple[str, ...]]:
    """Return the rows of a table: goal, what, wanted, reached, best peer, verdict."""
    return [
        (held.goal.number, held.goal.what, held.goal.goal, held.goal.reached, held.best_peer, held.goal.verdict)
        for held in goals
    ]


def _held_against(rule: _Rule, measured: Sequence[Measured]) -> Iterator[PeerGoal]:
    pairs = [
        (ours, best)
        for ours in measured
        if ours.who in rule.who and ours.seconds and rule.holds_for(ours.task)
        if (best := best_of((one for one in measured if _is_rival(rule, ours.task, one)), rule.families)) is not None
    ]
    if rule.is_worst_only:
        # Of two with the same key, the one that comes last is kept.
        pairs.sort(key=lambda pair: ratio(pair[1], pair[0]), reverse=True)
        pairs = list({(ours.task.num_ranks, ours.task.collective): (ours, best) for ours, best in pairs}.values())
    yield from (_goal(rule, ours, best) for ours, best in pairs)


def _goal(rule: _Rule, ours: Measured, best: Measured) -> PeerGoal:
    reached = ratio(best, ours)
    families = " or ".join(rule.families) if len(rule.families) <= 2 else "any peer"
    what = f"{'worst, ' * rule.is_worst_only}{_title(ours)}, against {families}"
    goal = Goal(
        rule.number, what, "-" if rule.times is None else f">= {rule.times:g} x", f"{reached:.2f} x",
        _verdict(rule.times, reached, ours.others),
    )  # fmt: skip
    return PeerGoal(goal, f"{best.who} {report.format_seconds(best.median)}")


def _is_rival(rule: _Rule, task: Task, one: Measured) -> bool:
    is_same = (one.task.num_ranks, one.task.collective, one.task.size_bytes) == (
        task.num_ranks,
        task.collective,
        task.size_bytes,
    )
    return is_same and one.task.variant in (rule.variants or (task.variant,))


def _verdict(wanted: float | None, reached: float, others: float) -> str:
    if wanted is None:
        return "-"
    if others > _MOST_DISTURBED:
        return "disturbed"
    return "met" if reached >= wanted else "MISSED"


def _title(one: Measured) -> str:
    task = one.task
    return f"{task.collective} {task.variant}, {_WHERE[one.who]}, P={task.num_ranks}, {format_bytes(task.size_bytes)}"


def _is_smallest_of_controller(one: Measured) -> bool:
    return one.who == CONTROLLER and one.task.size_bytes == 8 and one.task.variant == "in_place" and bool(one.seconds)


def _controller_goal(one: Measured) -> Goal:
    verdict = "met" if one.median <= 0.5e-6 else "disturbed" if one.others > _MOST_DISTURBED else "MISSED"
    return Goal("9", _title(one), "<= 500 ns", report.format_seconds(one.median), verdict)
