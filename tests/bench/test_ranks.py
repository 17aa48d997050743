import os
import threading

import numpy as np
import pytest

from bench import ranks
from bench.machine import usable_cores
from bench.python_ranks import PythonRanks
from bench.reference import WrongAnswerError
from bench.results import Cell
from ringlet.collectives import Member


class Meeting:
    """Ranks that meet at an ordinary barrier."""

    def __init__(self, barrier):
        self.barrier = barrier.wait


def test_answers_come_in_rank_order():
    assert ranks.RankThreads(4).run(lambda rank: rank * 10) == [0, 10, 20, 30]


def test_the_first_failure_is_raised_and_releases_the_ranks_that_wait():
    barrier = threading.Barrier(3)

    def body(rank):
        if rank == 1:
            raise ZeroDivisionError("rank 1")
        barrier.wait()

    with pytest.raises(ZeroDivisionError, match="rank 1"):
        ranks.RankThreads(3, on_failure=barrier.abort).run(body)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="threads cannot be pinned here")
def test_ranks_are_spread_over_the_usable_cores():
    cores = usable_cores()
    seen = ranks.RankThreads(3).run(lambda rank: os.sched_getaffinity(0))
    assert seen == [{cores[rank % len(cores)]} for rank in range(3)]
    assert usable_cores() == cores


def test_a_region_makes_its_calls_on_every_rank_after_two_to_warm_up():
    calls = [0, 0]
    barrier = threading.Barrier(2)

    def call(rank):
        calls[rank] += 1

    region = ranks.time_region(ranks.RankThreads(2), [Meeting(barrier)] * 2, [lambda: call(0), lambda: call(1)], 5)
    assert calls == [7, 7]
    assert region.seconds_per_call > 0


@pytest.mark.parametrize("variant", ["in_place", "out", "shared"])
@pytest.mark.parametrize("algorithm", ["auto", "direct", "ring"])
def test_ringlet_passes_verification_and_is_timed(algorithm, variant):
    group = PythonRanks(Cell(3, 4096, "float32", "SUM"), region_seconds=0.001, pin=False)
    group.verify(algorithm, variant)
    assert 0 < group.measure(algorithm, variant).seconds < 10


def test_a_wrong_answer_of_one_rank_is_refused(monkeypatch):
    right = Member.all_reduce

    def wrong(self, x, *args, **kwargs):
        result = np.array(right(self, x, *args, **kwargs))
        result[-1] += self.rank == 1
        return result

    monkeypatch.setattr(Member, "all_reduce", wrong)
    group = PythonRanks(Cell(2, 4096, "float32", "SUM"), region_seconds=0.001, pin=False)
    with pytest.raises(WrongAnswerError, match="element 1023 is "):
        group.verify("ring", "shared")
