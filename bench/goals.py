"""Goals of ringlet's collectives and strategies relative to limits and durations, and whether a run reached them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TypeVar

from bench import report
from bench.collective_results import CollectiveResult
from bench.controller_results import ControllerResult
from bench.harness import format_bytes, ratios
from bench.results import Result
from bench.target_results import TargetResult

__all__ = [
    "Goal",
    "all_reduce_goals",
    "at_least",
    "at_most",
    "collective_goals",
    "controller_goals",
    "in_spite_of",
    "table",
    "target_goals",
    "unless_disturbed",
]

T = TypeVar("T", bound=Result)

_KIB, _MIB = 1 << 10, 1 << 20
_PAGE_BYTES = 4 << 10

# Above this part of the cores' time taken by others, and below this ratio to a limit that nothing can beat by much, the
# machine was measured and not the program.
_MOST_DISTURBED = 0.05
_LEAST_TIMES_LIMIT = 0.8

# What a result holds the samples of, as goals call it.
_RUNNERS = {"python": "Python", "native": "C++", "processes": "processes"}

# The collectives that goal 10 is about.
_LIMITED = ("reduce_scatter", "all_gather", "broadcast", "all_to_all")


@dataclass(frozen=True)
class Goal:
    """A goal compared with the result.

    Attributes
    ----------
    number : str
        Its number in ``bench/README.md``.
    what, goal, reached : str
        Texts for display.
    verdict : {"met", "MISSED", "disturbed"}
        "disturbed" if other processes used too much of the cores.
    """

    number: str
    what: str
    goal: str
    reached: str
    verdict: str

    def as_dict(self) -> dict[str, object]:
        """Return the fields as JSON values."""
        return asdict(self)


def at_most(number: str, what: str, limit: float, reached: float, show: Callable[[float], str]) -> Goal:
    """Return the goal that a measured value is at most a limit.

    Examples
    --------
    >>> at_most("13", "run of a no-op", 1e-5, 2e-6, report.format_seconds)
    Goal(number='13', what='run of a no-op', goal='<= 10.0 us', reached='2.00 us', verdict='met')
    """
    return Goal(number, what, f"<= {show(limit)}", show(reached), "met" if reached <= limit else "MISSED")


def at_least(number: str, what: str, limit: float, reached: float, show: Callable[[float], str]) -> Goal:
    """Return the goal that a measured value is at least a limit.

    Examples
    --------
    >>> at_least("9", "NumPy / ringlet", 2.5, 3.0, "{:.2f}".format)
    Goal(number='9', what='NumPy / ringlet', goal='>= 2.50', reached='3.00', verdict='met')
    """
    return Goal(number, what, f">= {show(limit)}", show(reached), "met" if reached >= limit else "MISSED")


def in_spite_of(others: float, goal: Goal) -> Goal:
    """Return a goal with the verdict on a duration under foreign load, which can only lengthen it.

    Examples
    --------
    >>> missed = at_most("13", "run of a no-op", 1.0, 2.0, report.format_seconds)
    >>> in_spite_of(0.01, missed).verdict, in_spite_of(0.5, missed).verdict
    ('MISSED', 'disturbed')
    """
    return _judged(goal, goal.verdict == "met" or others <= _MOST_DISTURBED)


def unless_disturbed(others: float, goal: Goal) -> Goal:
    """Return a goal with the verdict on a ratio under foreign load, which can change it either way.

    Examples
    --------
    >>> met = at_least("18", "TensorFlow / ringlet", 20.0, 30.0, "{:.0f} x".format)
    >>> unless_disturbed(0.01, met).verdict, unless_disturbed(0.5, met).verdict
    ('met', 'disturbed')
    """
    return _judged(goal, others <= _MOST_DISTURBED)


def _judged(goal: Goal, is_believable: bool) -> Goal:
    return goal if is_believable else replace(goal, verdict="disturbed")


def table(goals: Sequence[Goal]) -> str:
    """Return a table of goals, results and verdicts."""
    rows = [(goal.number, goal.what, goal.goal, goal.reached, goal.verdict) for goal in goals]
    return report.format_table(("goal", "what", "wanted", "reached", "verdict"), rows)


def all_reduce_goals(results: Sequence[Result]) -> list[Goal]:
    """Compare float32 sums by the automatic algorithm with goals 1 to 7b; omit sizes that were not measured.

    Parameters
    ----------
    results : sequence of Result

    Returns
    -------
    list of Goal
        For Python threads, sizes of at least 256 KiB; for C++ and for processes, if measured, every size.
    """
    ours = [
        result
        for result in results
        if result.algorithm == "auto" and (result.cell.dtype, result.cell.op) == ("float32", "SUM")
    ]
    goals: list[Goal] = []
    for result in sorted(ours, key=lambda result: (result.cell.num_ranks, result.cell.size_bytes)):
        goals += _ratio_goals(result)
        goals += _small_goals(result)
    goals += _fault_goals([result for result in ours if result.variant != "in_place"])
    goals += _shared_against_in_place(ours)
    return sorted(goals, key=lambda goal: (len(goal.number.rstrip("b")), goal.number))


def collective_goals(results: Sequence[CollectiveResult]) -> list[Goal]:
    """Compare the other collectives, on float32, with goal 10; show the worst of all ranks and sizes.

    Parameters
    ----------
    results : sequence of CollectiveResult

    Returns
    -------
    list of Goal
        For Python threads, C++, and processes if measured.
    """
    ours = [
        result
        for result in results
        if result.collective in _LIMITED
        and (result.cell.dtype, result.cell.op) == ("float32", "SUM")
        and result.cell.size_bytes >= 8 * _MIB
    ]
    goals: list[Goal] = []
    for collective, variant in dict.fromkeys((result.collective, result.variant) for result in ours):
        alike = [result for result in ours if (result.collective, result.variant) == (collective, variant)]
        for runner, measured in _by_runner(alike):
            worst = max(measured, key=lambda result: result.times_limit(runner).median)
            place = f"P={worst.cell.num_ranks}, {format_bytes(worst.cell.size_bytes)}"
            name = f"{collective}, {variant}, {_RUNNERS[runner]}, {place}"
            goals.append(_times_limit("10", name, 1.2, worst, runner))
    return goals


def _by_runner(results: Sequence[T]) -> Iterator[tuple[str, list[T]]]:
    """Yield each measured runner with its results."""
    for runner in _RUNNERS:
        measured = [result for result in results if runner in result.runners]
        if measured:
            yield runner, measured


def controller_goals(results: Sequence[ControllerResult]) -> list[Goal]:
    """Compare one thread with the buffers of all ranks with goal 9; show the worst size.

    Parameters
    ----------
    results : sequence of ControllerResult

    Returns
    -------
    list of Goal
    """
    goals: list[Goal] = []
    for job, num_ranks in dict.fromkeys((result.job, result.cell.num_ranks) for result in results):
        ours = [result for result in results if (result.job, result.cell.num_ranks) == (job, num_ranks)]
        for result in ours:
            if result.cell.size_bytes == 8:
                fastest = min(result.time(workers).median for workers in result.ringlet)
                goal = at_most("9", f"{job}, P={num_ranks}, 8 B", 0.5e-6, fastest, report.format_seconds)
                goals.append(in_spite_of(result.others, goal))
        large = [result for result in ours if result.cell.size_bytes >= 256 * _KIB]
        goals += _least_gain(ours, "default", 1.0) + _least_gain(large, "2", 2.5)
    return goals


def _least_gain(results: Sequence[ControllerResult], workers: str, limit: float) -> list[Goal]:
    if not results:
        return []
    worst = min(results, key=lambda result: result.gain(workers).median)
    place = f"P={worst.cell.num_ranks}, {format_bytes(worst.cell.size_bytes)}"
    name = f"NumPy / ringlet, {worst.job}, workers {workers}, {place}"
    goal = at_least("9", name, limit, worst.gain(workers).median, _two_digits)
    return [_judged(goal, worst.others <= _MOST_DISTURBED)]


def target_goals(results: Sequence[TargetResult]) -> list[Goal]:
    """Compare the loops for older CPUs with goal 16: one goal for each, for its worst result.

    Parameters
    ----------
    results : sequence of TargetResult

    Returns
    -------
    list of Goal
        Empty on CPUs without AVX-512.
    """
    goals: list[Goal] = []
    for target, limit in (("avx2", 1.1), ("portable", 1.6)):
        ours = [result for result in results if {target, "avx512"} <= set(result.seconds)]
        if ours:
            worst = max(ours, key=lambda result: result.times(target, "avx512").median)
            reached = worst.times(target, "avx512").median
            goal = at_most("16", f"{target} / avx512, {worst.what}", limit, reached, _two_digits)
            goals.append(_judged(goal, worst.others <= _MOST_DISTURBED))
    return goals


def _ratio_goals(result: Result) -> Iterable[Goal]:
    number, limit = _allowed_ratio(result)
    if limit is None:
        return
    for runner in result.runners:
        where = _RUNNERS[runner]
        name = f"{result.variant}, {where}, P={result.cell.num_ranks}, {format_bytes(result.cell.size_bytes)}"
        yield _times_limit(number, name, limit, result, runner)


def _times_limit(number: str, name: str, limit: float, result: Result, runner: str) -> Goal:
    reached = result.times_limit(runner).median
    # A disturbance slows the limit, too, so it can flatter as well as harm.
    is_believable = result.others <= _MOST_DISTURBED and reached >= _LEAST_TIMES_LIMIT
    return _judged(at_most(number, name, limit, reached, lambda value: f"{value:.2f} x limit"), is_believable)


def _fault_goals(results: Sequence[Result]) -> Iterable[Goal]:
    """Yield the second half of goal 7, for the worst size: reused memory causes no page faults.

    A region of few calls has a few faults, such as those of newly started threads. So faults are compared with the
    pages of a result: without reuse, they are 0.2 % of the pages with huge pages, else 100 %.
    """
    large = [result for result in results if result.cell.size_bytes >= 8 * _MIB]
    for runner, measured in _by_runner(large):
        worst = max(result.faults_per_call(runner) * _PAGE_BYTES / result.cell.size_bytes for result in measured)
        name = f"page faults a call, of the pages of a result, out and shared, {_RUNNERS[runner]}"
        yield at_most("7", name, 0.001, worst, lambda value: f"{value:.2%}")


def _allowed_ratio(result: Result) -> tuple[str, float | None]:
    ranks, size = result.cell.num_ranks, result.cell.size_bytes
    if result.variant == "out":
        return "7", 1.15 if size >= 8 * _MIB else None
    if result.variant == "shared":
        return "7b", 1.2 if size >= 8 * _MIB else None
    if ranks == 2:
        if size >= 8 * _MIB:
            return "1", 1.15
        return "3", 1.4 if 256 * _KIB <= size <= _MIB else None
    if ranks in (4, 8):
        return "2", 1.15 if size >= 64 * _MIB else 1.3 if size >= 8 * _MIB else None
    return "", None


def _small_goals(result: Result) -> Iterable[Goal]:
    """Yield goals 4 to 6; for Python threads, not processes, switches of the interpreter lock alone exceed them."""
    if result.variant != "in_place" or result.cell.size_bytes > 32 * _KIB:
        return
    for runner in result.runners:
        if runner != "python":
            yield from (in_spite_of(result.others, goal) for goal in _durations(result, runner))


def _durations(result: Result, runner: str) -> Iterator[Goal]:
    ranks, size, is_native = result.cell.num_ranks, result.cell.size_bytes, runner == "native"
    name = f"{_RUNNERS[runner]}, P={ranks}, {format_bytes(size)}"
    seconds = result.time(runner).median
    if ranks == 2 and size == 32 * _KIB:
        yield at_most("4", name, 1.0e-6 if is_native else 1.5e-6, seconds, report.format_seconds)
    if ranks == 2 and size == 8:
        yield at_most("5", name, 0.25e-6 if is_native else 0.5e-6, seconds, report.format_seconds)
    if ranks in (4, 8) and size <= _KIB:
        yield at_most("6", name, 2.5e-6 if ranks == 4 else 4.5e-6, seconds, report.format_seconds)
        # A tail is what returns: one disturbed round of the machine must not look like one.
        slowest = result.slowest_call(runner).median
        yield at_most("6", f"slowest call, {name}", 1e-3, slowest, report.format_seconds)


def _shared_against_in_place(results: Sequence[Result]) -> Iterable[Goal]:
    """Yield the second half of goal 7b: with eight ranks, a shared result beats the limit of any in-place result."""
    large = [result for result in results if result.cell.num_ranks == 8 and result.cell.size_bytes >= 8 * _MIB]
    in_place = {result.cell: result for result in large if result.variant == "in_place"}
    for result in large:
        if result.variant != "shared" or result.cell not in in_place:
            continue
        for runner in result.runners:
            seconds = [sample.seconds for sample in result.samples(runner)]
            gain = ratios(in_place[result.cell].limit, seconds).median
            name = f"in-place limit / shared, {_RUNNERS[runner]}, P=8, {format_bytes(result.cell.size_bytes)}"
            goal = at_least("7b", name, 1.5, gain, _two_digits)
            yield _judged(goal, max(result.others, in_place[result.cell].others) <= _MOST_DISTURBED)


def _two_digits(value: float) -> str:
    return f"{value:.2f}"
