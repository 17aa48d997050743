"""Measures the cost of modelling a TPU slice: topologies, device assignments and look-ups, up to more than a pod.

Run as ``python -m bench.device_assignment``; ``--environments FOLDER`` measures TensorFlow too. ``bench/README.md``
defines the columns.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench import harness, report
from bench.beside import alternate_beside
from bench.goals import Goal, at_least, at_most, in_spite_of, table, unless_disturbed
from bench.harness import Statistics, ratios
from bench.machine import describe_machine
from bench.reference import WrongAnswerError
from bench.single_peer import SinglePeer
from ringlet.tpu import DeviceAssignment, Topology

__all__ = ["Question", "main", "parse_meshes", "questions"]

_MESHES = "2x2x1x2,16x16x1x2,16x16x16x2,32x32x32x2"
_COMPUTATIONS = ((1, 1, 1, 1), (1, 1, 1, 2), (2, 2, 1, 2))
_DEVICES_PER_TASK = 8

# In a row, so that what calls them does not count; the peer has as many.
_LOOK_UPS = 100

# Goal 12: seconds of a build by mesh, of a look-up, and how many times as long TensorFlow builds where there are so
# many cores: below that it is both times the calls themselves that count.
_BUILD_GOALS = {(16, 16, 16, 2): 1e-3, (32, 32, 32, 2): 8e-3}
_LOOK_UP_GOAL = 0.2e-6
_LEAST_RATIO, _LEAST_CORES = 50.0, 512

_SCRIPT = "tensorflow_topology.py"
_ANSWER_SECONDS = 300.0
_PEER = "TensorFlow: "

Mesh = tuple[int, int, int, int]
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Question:
    """A timed operation.

    Attributes
    ----------
    title : str
        Kind, mesh and computation shape, such as ``"build 16x16x16x2 1x1x1x2"``.
    mesh : tuple of int
    call : callable
        Makes the timed call once.
    digest : str
        Digest of its answer, which was checked.
    units_per_call : int
        Units of work of one call; times are divided by it.
    """

    title: str
    mesh: Mesh
    call: Callable[[], Any]
    digest: str
    units_per_call: int = 1

    def measure(self, region_seconds: float) -> float:
        """Return the seconds of one unit, over back-to-back calls that fill a region."""
        return harness.seconds_per_call(self.call, region_seconds) / self.units_per_call


def parse_meshes(text: str) -> list[Mesh]:
    """Read meshes with eight devices, or a multiple, such as those of ``--meshes``.

    Examples
    --------
    >>> parse_meshes("2x2x1x2,16x16x16x2")
    [(2, 2, 1, 2), (16, 16, 16, 2)]
    """
    meshes = []
    for entry in text.split(","):
        numbers = [int(part) if part.isdigit() else 0 for part in entry.split("x")]
        if len(numbers) != 4 or min(numbers) < 1 or np.prod(numbers) % _DEVICES_PER_TASK:
            raise argparse.ArgumentTypeError(
                f"'{entry}' is not a mesh of a multiple of {_DEVICES_PER_TASK} cores, such as 16x16x16x2."
            )
        meshes.append((numbers[0], numbers[1], numbers[2], numbers[3]))
    return meshes


def coordinates(mesh: Mesh) -> Array:
    """Return the cells row by row over z, y, x and core, eight per task."""
    z, y, x, core = np.indices((mesh[2], mesh[1], mesh[0], mesh[3]), np.int32)
    return np.stack([x, y, z, core], -1).reshape(-1, _DEVICES_PER_TASK, 4)


def digest(answer: Any) -> str:
    """Return a digest that is equal for equal answers."""
    if isinstance(answer, tuple):
        data = repr(answer).encode()
    elif isinstance(answer, DeviceAssignment):
        data = np.ascontiguousarray(answer.core_assignment).tobytes()
    else:
        data = np.ascontiguousarray(answer.device_coordinates).tobytes()
    return f"{zlib.crc32(data):08x}"


def questions(meshes: Sequence[Mesh]) -> Iterator[Question]:
    """Yield the questions to time, after checking the answers.

    Raises
    ------
    WrongAnswerError
        If an assignment leaves out a core, or takes one twice.
    """
    for mesh in meshes:
        name, given = "x".join(map(str, mesh)), coordinates(mesh)
        topology = Topology(mesh_shape=mesh, device_coordinates=given)
        serialized = topology.serialized()
        yield _question(f"topology {name}", mesh, partial(Topology, mesh_shape=mesh, device_coordinates=given))
        yield _question(f"parse {name}", mesh, partial(Topology, serialized=serialized))
        for shape in _COMPUTATIONS:
            yield from _assignment_questions(topology, mesh, f"{name} {'x'.join(map(str, shape))}", shape)


def _assignment_questions(topology: Topology, mesh: Mesh, name: str, shape: Mesh) -> Iterator[Question]:
    if any(part > length for part, length in zip(shape, mesh, strict=True)):
        return
    replicas = int(np.prod(np.array(mesh) // shape))
    build = partial(DeviceAssignment.build, topology, shape, num_replicas=replicas)
    assignment = build()
    cells = np.ravel_multi_index(tuple(assignment.core_assignment.reshape(-1, 4).T), mesh)
    if not np.array_equal(np.sort(cells), np.arange(np.prod(mesh))):
        raise WrongAnswerError(f"build {name} gave no permutation of the cores. No time is reported.")
    yield _question(f"build {name}", mesh, build)
    last = replicas - 1

    def look_up() -> tuple[str, int]:
        for _ in range(_LOOK_UPS):
            found = assignment.host_device(last, 0), assignment.tpu_ordinal(last, 0)
        return found

    yield _question(f"look-up {name}", mesh, look_up, _LOOK_UPS)


def _question(title: str, mesh: Mesh, call: Callable[[], Any], units_per_call: int = 1) -> Question:
    return Question(title, mesh, call, digest(call()), units_per_call)


class TensorFlow(SinglePeer):
    """TensorFlow in a separate process; parameter and error as for :class:`SinglePeer`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "tensorflow", _SCRIPT, 1)

    def subjects(self, asked: Sequence[Question], region_seconds: float) -> dict[str, Callable[[], float]]:
        """Return the measurements; an answer that differs from ringlet's, or a late one, raises PeerFailure."""
        return {_PEER + question.title: partial(self._seconds, question, region_seconds) for question in asked}

    def _seconds(self, question: Question, region_seconds: float) -> float:
        told = {"size_bytes": 0, "dtype": "float32", "seconds": region_seconds}
        asked = {**told, "question": question.title, "variant": question.digest}
        return self._process.ask(asked, _ANSWER_SECONDS) / question.units_per_call


def _goals(asked: Sequence[Question], answers: Mapping[str, Sequence[float]], share: float) -> Iterator[Goal]:
    for question in asked:
        kind, seconds = question.title.split()[0], answers[question.title]
        limit = _BUILD_GOALS.get(question.mesh) if kind == "build" else _LOOK_UP_GOAL if kind == "look-up" else None
        if limit is not None:
            goal = at_most("12", question.title, limit, Statistics(tuple(seconds)).median, report.format_seconds)
            yield in_spite_of(share, goal)
        theirs = answers.get(_PEER + question.title)
        if theirs and kind == "build" and np.prod(question.mesh) >= _LEAST_CORES:
            reached = ratios(theirs, seconds).median
            name = f"TensorFlow / ringlet, {question.title}"
            yield unless_disturbed(share, at_least("12", name, _LEAST_RATIO, reached, lambda value: f"{value:.0f} x"))


def _rows(asked: Sequence[Question], answers: Mapping[str, Sequence[float]]) -> list[list[str]]:
    rows = []
    for question in asked:
        seconds, theirs = answers[question.title], answers.get(_PEER + question.title)
        times = Statistics(tuple(seconds))
        beside = [report.format_seconds(Statistics(tuple(theirs)).median), f"{ratios(theirs, seconds).median:.1f} x"]
        ours = [report.format_seconds(times.median), f"{times.spread:.0%}"]
        rows.append([question.title, *ours, *(beside if theirs else ("", ""))])
    return rows


def _answers(asked: Sequence[Question], options: argparse.Namespace) -> tuple[dict[str, list[float]], float]:
    """Return the seconds of all subjects in every round, and the fraction of the cores' time used by others."""
    region_seconds = options.milliseconds / 1e3
    subjects = {question.title: partial(question.measure, region_seconds) for question in asked}
    folder = options.environments
    with TensorFlow(folder.resolve()) if folder else nullcontext() as peer:
        subjects |= peer.subjects(asked, region_seconds) if peer else {}
        return alternate_beside(subjects, peer.cpu_seconds if peer else lambda: 0.0, rounds=options.rounds)


def main(arguments: Sequence[str] | None = None) -> int:
    """Check, measure in alternation, print the table and the goals, and write the requested files.

    Returns
    -------
    int
        0, even if a goal was missed. A wrong result raises an error.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.device_assignment", description=__doc__)
    parser.add_argument("--meshes", type=parse_meshes, default=parse_meshes(_MESHES), help=f"such as {_MESHES}")
    parser.add_argument("--rounds", type=int, default=5, help="of everything in alternation")
    parser.add_argument("--milliseconds", type=float, default=20.0, help="length of one timed region")
    parser.add_argument("--json", type=Path, help="file for every figure of every round")
    parser.add_argument("--environments", type=Path, help="folder with an environment of TensorFlow, to ask it too")
    options = parser.parse_args(arguments)
    machine = describe_machine()
    print("\n".join(machine.lines()), "\n")
    asked = list(questions(options.meshes))
    answers, share = _answers(asked, options)
    print(f"meanwhile other processes took {share:.0%} of the cores\n")
    goals = list(_goals(asked, answers, share))
    print(report.format_table(("what", "time", "spread", "TensorFlow", "TensorFlow / ringlet"), _rows(asked, answers)))
    print("\n" + table(goals) if goals else "")
    if options.json:
        report.write_json(options.json, {
            "benchmark": "device_assignment", "machine": machine.as_dict(), "others": share, "seconds": answers,
            "goals": [asdict(goal) for goal in goals],
        })  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
