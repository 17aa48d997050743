"""Collectives of more than 2**31 elements: no count, offset or size is held in 32 bits.

Needs up to 12 GiB and takes minutes: it runs with ``RINGLET_CI_NIGHTLY`` only.
"""

from __future__ import annotations

import json
import os
import uuid

import numpy as np
import pytest

from ringlet.collectives import Algorithm
from ringlet.testing import run_on_ranks
from tests.processes.harness import Processes

pytestmark = [
    pytest.mark.skipif("RINGLET_CI_NIGHTLY" not in os.environ, reason="takes gigabytes and minutes: nightly only"),
    pytest.mark.timeout(1800),
]

COUNT = 2**31 + 7
MARKS = [0, 2**31 - 1, 2**31, COUNT - 1]  # the elements around the limit, and both ends


def values_of(rank: int) -> np.ndarray:
    values = np.full(COUNT, rank + 1, np.int8)
    values[MARKS] = 10 * (rank + 1)
    return values


def assert_is(result: np.ndarray, expected: int, offset: int = 0) -> None:
    """The elements are `expected`, those at the marks ten times as much; in parts, for want of memory."""
    marks = [mark - offset for mark in MARKS if 0 <= mark - offset < len(result)]
    assert result[marks].tolist() == [10 * expected] * len(marks)
    others = sum(int(np.count_nonzero(result[i : i + 2**26] == expected)) for i in range(0, len(result), 2**26))
    assert others == len(result) - len(marks)


@pytest.mark.parametrize("algorithm", [Algorithm.DIRECT, Algorithm.RING])
def test_threads_add_up_more_than_two_to_the_31_elements(algorithm):
    result = run_on_ranks(
        2, lambda member: member.all_reduce(values_of(member.rank), algorithm=algorithm), timeout_seconds=600
    )[0]
    assert len(result) == COUNT
    assert_is(result, 3)


def test_threads_move_more_than_two_to_the_31_elements():
    def steps(member):
        mine = values_of(member.rank)
        assert_is(member.broadcast(mine if member.rank == 1 else None, root=1), 2)
        whole = member.all_gather(mine)
        assert_is(whole[:COUNT], 1)
        assert_is(whole[COUNT:], 2)
        return True

    assert run_on_ranks(2, steps, timeout_seconds=600) == [True, True]


def test_threads_scatter_a_sum_of_more_than_two_to_the_31_elements():
    def steps(member):
        values = values_of(member.rank)[: COUNT - 1]  # an even count
        return member.reduce_scatter(values)

    first, second = run_on_ranks(2, steps, timeout_seconds=600)
    assert_is(first, 3)
    assert_is(second, 3, offset=len(first))


SCRIPT = """
import numpy as np, ringlet
from ringlet.collectives import init_process_group
rank, count, marks, shared = json.loads(sys.argv[1])
member = init_process_group(rank=rank, num_ranks=2, name=sys.argv[2], timeout_seconds=600)
values = ringlet.empty_shared(count, np.int8) if shared else np.empty(count, np.int8)
values[...] = rank + 1
values[marks] = 10 * (rank + 1)
result = member.all_reduce(values)
others = sum(int(np.count_nonzero(result[i : i + 2**26] == 3)) for i in range(0, count, 2**26))
tell([len(result), result[marks].tolist(), others])
"""


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "private"])
def test_processes_add_up_more_than_two_to_the_31_elements(shared):
    name = f"test {uuid.uuid4()}"
    with Processes() as processes:
        ranks = [processes.start(SCRIPT, json.dumps([rank, COUNT, MARKS, shared]), name) for rank in range(2)]
        for rank in ranks:
            assert rank.told(900) == [COUNT, [30] * len(MARKS), COUNT - len(MARKS)]
