"""Every collective between processes gives each rank the bits that it gives among threads."""

from __future__ import annotations

import uuid

import pytest

from tests.processes.harness import Processes

pytestmark = pytest.mark.slow

# What rank r of 4 computes: a digest of everything that it gets.
SCRIPT = """
import hashlib, threading
import numpy as np, ringlet
from ringlet.collectives import Algorithm, Op, init_process_group
shares, name = json.loads(sys.argv[1]), sys.argv[2]
members = init_process_group(ranks=shares, num_ranks=4, name=name, timeout_seconds=100)
digests = {}

def steps(member, values):
    '''The results of each collective on one array; None where a rank gets nothing.'''
    rank, count = member.rank, len(values)
    ops = (Op.SUM, Op.PROD) if values.dtype.kind == "c" else (Op.SUM, Op.PROD, Op.MAX, Op.MIN)
    yield from (member.all_reduce(values, op) for op in ops)
    yield member.all_reduce(values, algorithm=Algorithm.RING)
    yield from member.all_reduce_many([values, values[: count // 3], values[:1]])
    yield member.reduce(values, root=2)
    yield member.exclusive_scan(values)
    yield member.all_gather(values)
    yield member.all_gather(values[: rank * count // 5])
    yield member.gather(values, root=1)
    yield member.gather(values[rank:], root=3)
    yield member.broadcast(values if rank == 3 else None, root=3)
    yield from member.broadcast_many([values, values[:2]] if rank == 0 else None, root=0)
    yield member.collective_permute(values, [(0, 2), (2, 1), (1, 0)])
    whole = count - count % 4
    yield member.reduce_scatter(values[:whole])
    yield member.scatter(values[:whole] if rank == 1 else None, root=1)
    yield member.all_to_all(values[:whole])
    counts = [count // 2, 0, count - count // 2 - count // 7, count // 7]
    yield member.all_to_all(values, counts=np.roll(counts, rank).tolist())
    yield member.scatter(values if rank == 0 else None, root=0, counts=counts if rank == 0 else None)
    out = np.empty_like(values)
    yield member.all_reduce(values, out=out)
    part = member.split(rank % 2, key=-rank)
    yield part.all_reduce(values)
    yield part.all_gather(values[:rank])
    inner = part.split(part.rank)
    yield inner.all_reduce(values)
    member.barrier("all")

def run(member):
    digest = hashlib.sha256()
    for number, count in enumerate([1, 5, 64, 1000, 40_003, 700_001]):
        for dtype in ("float32", "int16", "float16", "complex64"):
            draw = np.random.default_rng([number, member.rank])
            values = (draw.standard_normal(count) * 3).astype(dtype)
            if (number + member.rank) % 2:
                shared = ringlet.empty_shared(count, dtype)
                shared[...] = values
                values = shared
            for result in steps(member, values):
                digest.update(b"none" if result is None else str(result.shape).encode() + result.tobytes())
    digests[member.rank] = digest.hexdigest()

threads = [threading.Thread(target=run, args=(member,)) for member in members]
for thread in threads: thread.start()
for thread in threads: thread.join()
tell([[rank, digests[rank]] for rank in shares])
"""

PLACEMENTS = [
    # the ranks of each process
    [[0, 1, 2, 3]],
    [[0], [1], [2], [3]],
    [[0, 1], [2, 3]],
    [[3, 1], [2], [0]],
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("crosses", ["1", "0"], ids=["memory read across processes", "memory copied to shared memory"])
def test_every_collective_gives_the_same_bits_wherever_ranks_are(crosses):
    seen = []
    for placement in PLACEMENTS:
        with Processes() as processes:
            name = f"test {uuid.uuid4()}"
            environ = {"RINGLET_CROSS_MEMORY": crosses}
            started = [processes.start(SCRIPT, share, name, environ=environ) for share in placement]
            seen.append(dict(pair for process in started for pair in process.told(150)))
    assert seen[1:] == seen[:1] * (len(PLACEMENTS) - 1)
