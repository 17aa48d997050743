import ast
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bench.machine import ROOT
from bench.peers import peer
from bench.peers.peer import Peer, Question, Server

COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all")
PERIOD = 4099


def inputs(num_ranks, count, dtype="float32"):
    arrays = [np.empty(count, dtype) for _ in range(num_ranks)]
    for rank, array in enumerate(arrays):
        peer.fill(array, rank)
    return arrays


def results(collective, arrays):
    """What NumPy says that each rank must have, in a whole buffer."""
    num_ranks, count = len(arrays), len(arrays[0])
    block = count // num_ranks
    rows = np.stack(arrays)
    total = rows.sum(axis=0)
    whole = {
        "all_reduce": [total] * num_ranks,
        "reduce_scatter": [total[rank * block : (rank + 1) * block] for rank in range(num_ranks)],
        "all_gather": [rows[:, :block].ravel()] * num_ranks,
        "broadcast": [rows[0]] * num_ranks,
        "all_to_all": [rows[:, rank * block : (rank + 1) * block].ravel() for rank in range(num_ranks)],
    }[collective]
    return [np.resize(array, count) for array in whole]


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("count", [12, 3 * PERIOD, 80 * PERIOD + 4])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_the_right_answer_passes_on_every_rank(collective, count, dtype):
    for rank, result in enumerate(results(collective, inputs(2, count, dtype))):
        assert peer.complaint_about(result, collective, rank, 2) is None


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_the_answer_of_another_rank_or_one_wrong_element_is_refused(collective):
    right = results(collective, inputs(4, 4000))
    if collective in ("reduce_scatter", "all_to_all"):
        assert peer.complaint_about(right[1], collective, 0, 4) is not None
    wrong = right[2].copy()
    wrong[999] += 1
    expected = f"{collective}, rank 2: element 999 is {wrong[999]}, expected {right[2][999]}"
    assert peer.complaint_about(wrong, collective, 2, 4) == expected


def test_every_rank_and_every_place_has_other_values():
    arrays = inputs(8, PERIOD)
    assert len({array.tobytes() for array in arrays}) == 8
    assert all(len(np.unique(array)) == PERIOD for array in arrays)


def test_sums_of_many_ranks_are_exact_in_float32():
    exact = np.sum(inputs(64, PERIOD, "int64"), axis=0)
    assert np.array_equal(np.sum(inputs(64, PERIOD, "float32"), axis=0, dtype=np.float32), exact)


class Doubler(Peer):
    """A peer of one rank, whose all-reduce is right unless it is told to be wrong; writes down what happens."""

    num_ranks = 1

    def __init__(self, error=0):
        self.happened = []
        self._error = error
        self._x = np.empty(0)

    def barrier(self):
        self.happened.append("barrier")

    def allocate(self, count, dtype):
        self.happened.append(f"allocate {count} {dtype}")
        self._x = np.zeros(count, dtype)

    def release(self):
        self.happened.append("release")

    def fill(self):
        self.happened.append("fill")
        peer.fill(self._x, 0)

    def clear(self):
        self._x.fill(0)

    def call(self, collective, variant):
        def one_call():
            self.happened.append("call")
            self._x[-1] += self._error

        return one_call

    def complaint(self, collective, variant):
        return peer.complaint_about(self._x, collective, 0, 1)


class Giver(Doubler):
    """Another one, whose calls return their result and which has more to tell of them."""

    def call(self, collective, variant):
        return lambda: self._x + self._error

    def complaint(self, collective, variant):
        return peer.complaint_about(self.result, collective, 0, 1)

    def details(self, question, call, calls):
        return {"slowest_call": 0.5}


def question(**changes):
    return Question(**{"question": "all_reduce", "variant": "out", "size_bytes": 40, "dtype": "float32",
                       "seconds": 0.0, **changes})  # fmt: skip


def test_an_answer_is_checked_before_it_is_timed():
    doubler = Doubler()
    answer = Server(doubler).answer(question())
    assert (answer["checked"], answer["calls"]) == (True, 3)
    assert doubler.happened == ["release", "allocate 10 float32", "fill", "barrier", "call", "barrier",
                                "barrier", "call", "barrier", "barrier", "call", "call", "call", "barrier"]  # fmt: skip


def test_it_is_checked_once_as_long_as_the_buffers_stay():
    doubler = Doubler()
    server = Server(doubler)
    for size_bytes, dtype, variant in [(40, "float32", "out"), (40, "float32", "out"), (40, "float32", "in_place"),
                                       (80, "float64", "out"), (40, "float32", "out")]:  # fmt: skip
        server.answer(question(size_bytes=size_bytes, dtype=dtype, variant=variant))
    assert doubler.happened.count("fill") == 4
    assert [entry for entry in doubler.happened if entry.startswith("allocate")] == [
        "allocate 10 float32", "allocate 10 float64", "allocate 10 float32",
    ]  # fmt: skip


def test_buffers_that_need_not_be_kept_are_released():
    doubler = Doubler()
    Server(doubler).answer(question(keep=False))
    assert doubler.happened[-1] == "release"


def test_a_wrong_answer_is_said_and_not_timed():
    doubler = Doubler(error=1)
    answer = Server(doubler).answer(question())
    assert answer == {"wrong": "all_reduce, rank 0: element 9 is 28.0, expected 27.0"}
    assert doubler.happened.count("call") == 1


@pytest.mark.parametrize("error", [0, 1])
def test_what_a_call_returns_can_be_checked_and_is_not_kept(error):
    giver = Giver(error)
    assert ("wrong" in Server(giver).answer(question())) == (error == 1)
    assert giver.result is None


def test_a_peer_may_tell_more_than_a_time():
    assert Server(Giver()).answer(question())["slowest_call"] == 0.5


def test_a_barrier_needs_no_buffers_and_has_no_answer_to_check():
    doubler = Doubler()
    assert Server(doubler).answer(question(question="barrier"))["checked"]
    assert set(doubler.happened) == {"barrier"}


def test_calls_fill_the_region_however_slow_the_first_ones_are(monkeypatch):
    now, calls = [0.0], []

    def call():
        calls.append(1)
        now[0] += 1e-3 if len(calls) < 6 else 1e-6  # of the warm-up, and of the first guess

    monkeypatch.setattr(peer.time, "perf_counter", lambda: now[0])
    seconds, repeats = peer.seconds_per_call(Doubler(), call, 0.02)
    assert seconds == pytest.approx(1e-6)
    assert 10_000 <= repeats <= 20_000


def test_the_time_is_that_of_the_slowest_rank():
    doubler = Doubler()
    doubler.largest = lambda value: 6.0
    assert peer.seconds_per_call(doubler, lambda: None, 0.0) == (2.0, 3)


def test_standard_output_is_kept_for_answers(tmp_path):
    program = (
        "import os, sys; sys.path.insert(0, sys.argv[1]); import peer\n"
        "told = {'--ranks': 2, '--cores': '0,1', '--folder': sys.argv[2], '--driver': os.getppid()}\n"
        "options = peer.begin([str(word) for pair in told.items() for word in pair])\n"
        "print('noise'); os.write(1, b'noise of a library')\n"
        "options.answers.write('answer'); options.answers.close()"
    )
    finished = peer_process(program, tmp_path)
    assert (finished.stdout, "noise of a library" in finished.stderr) == ("answer", True)


def peer_process(program, folder):
    command = [sys.executable, "-c", program, str(ROOT / "bench" / "peers"), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)


SCRIPTS = sorted(path for path in (ROOT / "bench" / "peers").glob("*.py") if path.name != "__init__.py")

# What scripts have in common, which needs no more than they do.
SHARED = {"peer", "dataset_peer", "server_peer", "sharding_inputs"}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_imports_nothing_of_ringlet_that_is_not_about_it_or_of_the_other_benchmarks(path: Path):
    others = {"mpi4py", "torch", "jax", "tensorflow", "ray", "distributed"}
    measured = {"ringlet"} if path.name.startswith("ringlet_") else others
    own = set() if path.name == "peer.py" else {*SHARED, *measured} - {path.stem}
    allowed = {*sys.stdlib_module_names, "numpy", *own}
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module.split(".")[0])
    assert names <= allowed


def test_a_question_is_a_line_of_json():
    line = json.dumps({"question": "broadcast", "variant": "in_place", "size_bytes": 8, "dtype": "int32", "seconds": 1})
    assert Question(**json.loads(line)) == Question("broadcast", "in_place", 8, "int32", 1, True, 60.0)
