"""Tensors in groups of processes: results are written to by one rank and not seen by the others."""

from __future__ import annotations

import uuid

import pytest

from tests.frameworks.libraries import library
from tests.processes.harness import Processes

library("torch")

SCRIPT = """
import torch
from ringlet.collectives import init_process_group
(member,) = init_process_group(ranks=[int(sys.argv[1])], num_ranks=2, name=sys.argv[2], timeout_seconds=100)

def results(count):
    x = torch.arange(count, dtype=torch.bfloat16) % 64 + member.rank
    yield member.all_reduce(x)
    yield member.plan_all_reduce(x)()
    yield member.all_gather(x)
    yield member.broadcast(x)
    yield member.reduce_scatter(x)
    yield member.exclusive_scan(x)
    yield member.all_to_all(x)
    yield member.collective_permute(x, [(0, 1), (1, 0)])
    if member.rank == 0:
        yield member.reduce(x)
        yield member.gather(x)
        yield member.scatter(x)
    else:
        assert member.reduce(x) is member.gather(x) is None
        member.scatter()

for count in (8, 100_000):
    kept = list(results(count))
    assert all(type(result) is torch.Tensor and result.dtype == torch.bfloat16 for result in kept)
    before = [result.clone() for result in kept]
    member.barrier()
    for result in kept:
        result += member.rank + 1
    member.barrier()
    list(results(count))  # the memory of results that are held is not used again
    assert all(torch.equal(result, old + member.rank + 1) for result, old in zip(kept, before))
    tell(float(kept[0][1]))
"""


@pytest.mark.timeout(100)
def test_every_result_belongs_to_its_rank():
    name = f"tensors-{uuid.uuid4().hex[:8]}"
    with Processes() as processes:
        ranks = [processes.start(SCRIPT, str(rank), name) for rank in range(2)]
        told = [[rank.told() for _ in range(2)] for rank in ranks]
        assert told == [[4.0, 4.0], [5.0, 5.0]]
