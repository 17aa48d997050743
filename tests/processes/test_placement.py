"""However eight ranks lie in processes and threads, they compute the same bits (reliability C1)."""

from __future__ import annotations

import uuid

import pytest

from tests.processes.harness import Processes

pytestmark = pytest.mark.slow

SCRIPT = """
import hashlib, random, threading
import numpy as np, ringlet
from ringlet.collectives import Algorithm, Op, init_process_group
ranks, name, seed = [int(rank) for rank in sys.argv[1].split(",")], sys.argv[2], int(sys.argv[3])
members = init_process_group(ranks=ranks, num_ranks=8, name=name, timeout_seconds=100)
digests = {}
COUNTS = [0, 1, 2, 3, 7, 31, 63, 64, 65, 1023, 4095, 4097, 12_345, 99_991, 300_007, 1_000_003]
def run(member):
    digest = hashlib.sha256()
    sleep = random.Random(seed * 100 + member.rank)
    for number, count in enumerate(COUNTS):
        draw = np.random.default_rng([number, member.rank])
        # Of very different sizes, so that every other order of summation gives other bits.
        x = (draw.standard_normal(count) * 10.0 ** draw.integers(-6, 7, count)).astype(np.float32)
        if (number + member.rank + seed) % 2:
            shared = ringlet.empty_shared(count, np.float32)
            shared[...] = x
            x = shared
        if sleep.random() < 0.3:
            time.sleep(sleep.uniform(0, 0.01))
        for op in (Op.SUM, Op.MEAN):
            digest.update(member.all_reduce(x, op).tobytes())
        digest.update(member.all_reduce(x, algorithm=Algorithm.RING).tobytes())
        digest.update(member.all_reduce(x, algorithm=Algorithm.DIRECT).tobytes())
        out = np.empty_like(x)
        member.all_reduce(x, out=out)
        digest.update(out.tobytes())
        digest.update(np.concatenate(member.all_reduce_many([x, x[: count // 2]])).tobytes())
        if count % 8 == 0:
            digest.update(member.all_gather(member.reduce_scatter(x)).tobytes())
    digests[member.rank] = digest.hexdigest()
threads = [threading.Thread(target=run, args=(member,)) for member in members[1:]]
for thread in threads: thread.start()
run(members[0])
for thread in threads: thread.join()
tell([[rank, digests[rank]] for rank in ranks])
"""


PLACEMENTS = [
    # the ranks of each process
    ["0,1,2,3,4,5,6,7"],
    ["0,1,2,3", "4,5,6,7"],
    ["0,1", "2,3", "4,5", "6,7"],
    ["0", "1", "2", "3", "4", "5", "6", "7"],
    ["0,2,4,6", "1,3,5,7"],
]


@pytest.mark.timeout(300)
def test_every_placement_and_schedule_gives_one_hash():
    hashes = {}
    for seed, shares in enumerate(PLACEMENTS):
        with Processes() as processes:
            name = f"test {uuid.uuid4()}"
            started = [processes.start(SCRIPT, share, name, seed) for share in shares]
            told = dict(pair for process in started for pair in process.told(120))
        digests = {told[rank] for rank in range(1, 8)}
        assert len(digests) == 1, "all ranks hold the same bits"
        hashes[str(shares)] = (told[0], *digests)
    assert len(set(hashes.values())) == 1, hashes
