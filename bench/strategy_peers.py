"""TensorFlow's MirroredStrategy, asked the questions of ``bench.strategy_run`` in a separate process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from bench import report
from bench.environments import python_of
from bench.goals import Goal, at_least
from bench.harness import ratios
from bench.machine import ROOT
from bench.peer_process import PeerProcess
from bench.peer_table import missing_environments

__all__ = ["StrategyPeers", "peer_goals", "peer_rows", "peer_title"]

# Goal 18: how many times as long TensorFlow takes, calling as a program does that was not compiled.
_LEAST_RATIO = 20.0

_VARIANTS = ("eager", "function")
_SCRIPT = ROOT / "bench" / "peers" / "tensorflow_strategy.py"
_START_SECONDS, _ANSWER_SECONDS = 120.0, 120.0


def peer_title(variant: str, title: str) -> str:
    """Return the title of the peer's answer to a question.

    Examples
    --------
    >>> peer_title("eager", "run, no-op P=2")
    'TensorFlow, eager: run, no-op P=2'
    """
    return f"TensorFlow, {variant}: {title}"


class StrategyPeers:
    """TensorFlow, once for each number of replicas; ends with the ``with`` block.

    Parameters
    ----------
    folder : Path
        Folder of the environments of ``bench.environments``.
    replica_counts : sequence of int

    Raises
    ------
    FileNotFoundError
        If there is no environment with TensorFlow.
    """

    def __init__(self, folder: Path, replica_counts: Sequence[int]) -> None:
        if missing_environments(folder, ["tensorflow"]):
            raise FileNotFoundError(
                f"no environment for tensorflow below {folder}. Make it with: python -m bench.environments tensorflow "
                f"--into {folder}; or leave --environments out to measure ringlet alone"
            )
        self._command = [str(python_of(folder, "tensorflow")), str(_SCRIPT)]
        self._counts = replica_counts
        self._processes: dict[int, PeerProcess] = {}

    def __enter__(self) -> StrategyPeers:
        try:
            for count in self._counts:
                self._processes[count] = PeerProcess(self._command, count)
                self._processes[count].wait_until_ready(_START_SECONDS)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.stop()

    def subjects(self, region_seconds: float) -> dict[str, Callable[[], float]]:
        """Return the measurements by :func:`peer_title`; a wrong or late answer raises PeerFailure."""
        told = {"size_bytes": 0, "dtype": "float32", "seconds": region_seconds}
        return {
            peer_title(variant, f"{question} P={count}"): partial(
                process.ask, {**told, "question": question, "variant": variant}, _ANSWER_SECONDS
            )
            for count, process in self._processes.items()
            for question, variants in process.variants.items()
            for variant in variants
        }

    def cpu_seconds(self) -> float:
        """CPU time of all processes, in seconds."""
        return sum(process.cpu_seconds() for process in self._processes.values())


def _compared(answers: Mapping[str, Sequence[float]]) -> Iterator[tuple[str, Sequence[float], dict[str, float]]]:
    """Yield title, seconds of ringlet, and medians of TensorFlow's time divided by ringlet's in the same round."""
    for title, seconds in answers.items():
        theirs = {v: answers[peer_title(v, title)] for v in _VARIANTS if peer_title(v, title) in answers}
        if theirs:
            yield title, seconds, {variant: ratios(times, seconds).median for variant, times in theirs.items()}


def peer_goals(answers: Mapping[str, Sequence[float]]) -> list[Goal]:
    """Compare every question that both answered with goal 18.

    Parameters
    ----------
    answers : mapping of str to sequence of float
        Seconds by title, one for each round.

    Returns
    -------
    list of Goal
        Empty if TensorFlow was not measured.

    Examples
    --------
    >>> [goal] = peer_goals({"run, no-op P=2": [1e-5], "TensorFlow, eager: run, no-op P=2": [1e-3]})
    >>> goal.reached, goal.verdict
    ('100 x', 'met')
    """
    return [
        at_least("18", f"TensorFlow / ringlet, {title}", _LEAST_RATIO, gains["eager"], lambda value: f"{value:.0f} x")
        for title, _, gains in _compared(answers)
    ]


def peer_rows(answers: Mapping[str, Sequence[float]]) -> str:
    """Return a table of ringlet and TensorFlow; empty if TensorFlow was not measured."""
    rows = [
        [title, report.format_seconds(sorted(seconds)[len(seconds) // 2]), *(f"{gains[v]:.1f} x" for v in _VARIANTS)]
        for title, seconds, gains in _compared(answers)
    ]
    header = ("what", "ringlet", *(f"TensorFlow, {variant} / ringlet" for variant in _VARIANTS))
    return report.format_table(header, rows) if rows else ""
