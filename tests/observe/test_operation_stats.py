"""Statistics of collectives."""

from __future__ import annotations

import sys
import threading
import time

import numpy as np
import pytest

from ringlet.collectives import Group
from ringlet.observe import OperationStats, stats

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the recorder needs memfd_create")


def difference(step, num_ranks=2):
    """The statistics of a step on each rank of a new group, in threads."""
    before = stats()
    group = Group(num_ranks)
    threads = [threading.Thread(target=step, args=(group.member(rank),)) for rank in range(num_ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    nothing = OperationStats(0, 0, 0.0, 0.0)
    return {
        name: OperationStats(
            after.count - before.get(name, nothing).count,
            after.bytes - before.get(name, nothing).bytes,
            after.seconds - before.get(name, nothing).seconds,
            after.waiting_seconds - before.get(name, nothing).waiting_seconds,
        )
        for name, after in stats().items()
        if after != before.get(name)
    }


def test_calls_and_bytes_of_all_ranks_are_added():
    def step(member):
        for _ in range(3):
            member.all_reduce(np.ones(4, np.float32))
        member.barrier()

    found = difference(step)
    assert {name: (total.count, total.bytes) for name, total in found.items()} == {
        "all_reduce": (6, 96),
        "barrier": (2, 0),
    }


def test_calls_of_several_rounds_count_once():
    def step(member):
        member.all_gather(np.ones(1 + member.rank))
        member.split(0)

    found = difference(step)
    assert {name: (total.count, total.bytes) for name, total in found.items()} == {
        "all_gather": (2, 24),
        "split": (2, 0),
    }


def test_counters_go_on_after_the_ring_is_full():
    assert difference(lambda member: [member.barrier() for _ in range(1500)], 1)["barrier"].count == 1500


def test_the_time_until_the_last_rank_calls_is_waiting():
    def step(member):
        time.sleep(0.2 * member.rank)
        member.barrier()

    found = difference(step)["barrier"]
    assert 0.1 < found.waiting_seconds <= found.seconds
