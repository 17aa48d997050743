"""Ranks that wait burn no processor time (reliability F5)."""

from __future__ import annotations

import os
import uuid

import pytest

from tests.processes.harness import Processes

pytestmark = pytest.mark.slow

SCRIPT = """
from ringlet.collectives import init_process_group
rank, num_ranks, name = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
with init_process_group(rank, num_ranks, name=name, timeout_seconds=50) as member:
    member.barrier()
    for _ in range(2):
        member.barrier()
        started = time.process_time()
        if rank == 0:
            time.sleep(2)
        member.barrier("after a while")
        if rank != 0:
            tell(time.process_time() - started)
tell("done")
"""


def test_waiting_ranks_use_less_than_a_fiftieth_of_a_core():
    num_ranks = 4 * len(os.sched_getaffinity(0))
    with Processes() as processes:
        name = f"test {uuid.uuid4()}"
        started = [processes.start(SCRIPT, rank, num_ranks, name) for rank in range(num_ranks)]
        for process in started[1:]:
            for _ in range(2):
                assert process.told() < 2 * 0.02, "seconds of processor time in 2 s of waiting"
        assert started[0].told() == "done"
