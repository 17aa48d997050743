"""One cell of the comparison: everybody in every round, checked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench.beside import alternate_beside
from bench.compare_controller import ControllerThread
from bench.compare_measure import CellMeasurement, memory_needed_bytes
from bench.compare_results import CONTROLLER, CPP, LIMIT, PRIVATE, PROCESSES, PYTHON
from bench.compare_ringlet import RingletSubjects
from bench.peer_team import Failure
from bench.peers.peer import Question, Server
from bench.reference import WrongAnswerError
from bench.results import Cell, Sample

MIB = 1 << 20


class FakeTeam:
    """Two peers, one that answers, one that has no time of one variant; and ringlet's processes."""

    def __init__(self, own_answers=""):
        self.asked = []
        self.variants = {
            PROCESSES: {"all_reduce": ("in_place", "shared")},
            PRIVATE: {"all_reduce": ("in_place",)},
            "mpich": {"all_reduce": ("in_place", "out"), "all_gather": ("out",)},
            "gloo": {"all_reduce": ("out",)},
        }
        self._reasons = {"gloo": "timed out", PROCESSES: own_answers}
        self.failures = [Failure(name, 2, "a sum", reason, "element 3") for name, reason in self._reasons.items()]

    def ask(self, name, question):
        self.asked.append((name, question["question"], question["variant"]))
        return None if self.reason(name, question) else Sample(1.0, 0.0, 2.0)

    def reason(self, name, question):
        return self._reasons.get(name, "")

    def cpu_seconds(self):
        return 0.0


@pytest.fixture
def without_native(monkeypatch):
    """The programs in C++ as a table of times, and a machine whose limit is a nanosecond."""
    row = {"seconds": 1e-6, "faults_per_call": 0.0, "slowest_call": 0.0}
    rows = [{"variant": variant, **row} for variant in ("in_place", "out", "shared")]
    monkeypatch.setattr("bench.compare_ringlet.native.run", lambda program, arguments: rows)
    monkeypatch.setattr(RingletSubjects, "_limit", lambda self, collective, variant: 1e-9)


def cell_measurement(team, *collectives):
    return CellMeasurement(team, _Programs, None, 0.0, collectives, region_seconds=1e-4, rounds=2, keep=True)


class _Programs:
    all_reduce = collectives = None


def test_the_load_that_was_asked_for_is_no_disturbance(without_native, monkeypatch):
    known = []
    monkeypatch.setattr(
        "bench.compare_measure.alternate_beside",
        lambda subjects, seconds, *, rounds: known.append(seconds()) or alternate_beside(subjects, seconds, rounds=1),
    )
    cell = replace(cell_measurement(FakeTeam(), "all_reduce"), load_seconds=lambda: 7.0)
    cell.measure(Cell(2, 64, "float32", "SUM"))
    assert known == [7.0]


def test_a_cell_measures_everybody_in_every_round(without_native):
    team = FakeTeam()
    seen, results = cell_measurement(team, "all_reduce", "all_gather").measure(Cell(2, 64, "float32", "SUM"))
    times = {(one.who, one.task.collective, one.task.variant): one for one in seen}
    assert {key[0] for key in times} >= {LIMIT, PYTHON, CPP, "mpich", "gloo"}
    assert times["mpich", "all_gather", "out"].seconds == (1.0, 1.0)
    assert (times["gloo", "all_reduce", "out"].seconds, times["gloo", "all_reduce", "out"].failure) == ((), "timed out")
    assert len(times[PYTHON, "all_reduce", "shared"].seconds) == 2
    assert [result.variant for result in results] == ["in_place", "out", "shared", "out", "shared"]
    assert len(times[CONTROLLER, "all_reduce", "in_place"].seconds) == 2
    assert team.asked.count(("mpich", "all_reduce", "in_place")) == 3  # one to warm up
    assert [times[who, "all_reduce", "in_place"].seconds for who in (PROCESSES, PRIVATE)] == [(1.0, 1.0)] * 2
    in_place, out, *_ = results
    assert (in_place.time("processes").median, in_place.slowest_call("processes").median) == (1.0, 2.0)
    assert out.runners == ("python", "native")


@pytest.mark.parametrize("reason", ["ended", "wrong answer"])
def test_processes_of_ringlet_may_have_no_time_but_no_wrong_answer(without_native, reason):
    cell = cell_measurement(FakeTeam(own_answers=reason), "all_reduce")
    if reason == "wrong answer":
        with pytest.raises(WrongAnswerError, match="ringlet, processes: element 3"):
            cell.measure(Cell(2, 64, "float32", "SUM"))
        return
    seen, results = cell.measure(Cell(2, 64, "float32", "SUM"))
    assert [(one.seconds, one.failure) for one in seen if one.who == PROCESSES] == [((), "ended")] * 2
    assert all(result.runners == ("python", "native") for result in results)


def test_what_cannot_be_cut_into_a_block_for_each_rank_is_not_asked(without_native):
    team = FakeTeam()
    seen, _ = cell_measurement(team, "all_reduce", "all_gather", "broadcast").measure(Cell(4, 8, "float32", "SUM"))
    assert {one.task.collective for one in seen} == {"all_reduce"}


def test_all_peers_together_need_more_memory_than_one():
    assert memory_needed_bytes(8, 64 * MIB, 8) - memory_needed_bytes(8, 64 * MIB, 1) == 7 * 2 * 8 * 64 * MIB


class _AllAtOnce:
    """What a group does that reduces all buffers from one thread."""

    def __init__(self, error):
        self._error = error

    def plan_all_reduce_all(self, buffers, *, outs):
        def run():
            total = np.sum(buffers, axis=0)
            for out in outs:
                out[:] = total
            outs[-1][-1] += self._error
            return outs

        return run


@pytest.mark.parametrize("variant", ["in_place", "out"])
@pytest.mark.parametrize("error", [0, 1])
def test_one_thread_with_all_buffers_is_checked_like_a_peer(variant, error):
    thread = ControllerThread(3)
    thread._group = _AllAtOnce(error)
    answer = Server(thread).answer(Question("all_reduce", variant, 4096, "float32", 1e-4))
    assert ("wrong" in answer) == (error == 1)
