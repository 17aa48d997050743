"""Every collective once; prints a digest of the results of this rank."""

from __future__ import annotations

import hashlib

import numpy as np

from ringlet.collectives import Op, init_process_group
from ringlet.sharding import Mesh, shard

with init_process_group(timeout_seconds=30) as member:
    n, rank = member.num_ranks, member.rank
    found = []
    for dtype in ("float32", "float16", "complex64", "int16"):
        for size in (0, 5, 400_000):
            x = np.random.default_rng(rank).standard_normal(size).astype(dtype)
            found += [member.all_reduce(x, op) for op in (Op.SUM, Op.MEAN)]
            found += [member.reduce(x, Op.SUM, root=1), member.gather(x, root=2), member.all_gather(x[: rank + 3])]
            found += [member.broadcast(x if rank == 3 else None, root=3)]
            member.barrier(f"{dtype} {size}")
    rows = np.arange(n * 1000 * 3, dtype=np.float32).reshape(n * 1000, 3) / (rank + 1)
    counts = [(rank + target) % 3 for target in range(n)]
    found += [member.reduce_scatter(rows), member.scatter(rows if rank == 2 else None, root=2), member.all_to_all(rows)]
    found += [member.all_to_all(rows[: sum(counts)], counts=counts)]
    found += [member.collective_permute(rows, [(0, 3), (2, 1)])]
    found += [member.exclusive_scan(rows)]
    mesh = Mesh({"x": n}, member=member)
    square = np.arange(64.0).reshape(8, 8)
    cut = shard(square, mesh.sharding("x", None))
    found += [
        np.asarray(each) for each in (cut @ cut.T, cut.sum(0), cut.T.reshape(64), np.roll(cut, 3, 0), np.cumsum(cut, 0))
    ]
    assert np.array_equal(found[-1], np.cumsum(square, 0))
    found += member.all_reduce_many([rows, rows[0], np.ones(4, np.int8)])
    # Messages and groups of some ranks, within a host and across hosts.
    parts = [member.split(rank // 2), member.split(rank % 2), member.split(None if rank == 1 else 0), member]
    for part in [part for part in parts if part is not None]:
        found.append(part.all_reduce(rows))
        for x in (np.full(3, rank), np.full(700_000, rank)):
            works = [part.send_async(x, other, tag=other) for other in range(part.num_ranks)]
            received = [part.recv_async(other, tag=part.rank) for other in range(part.num_ranks)]
            found += [work.wait() for work in received]
            for work in works:
                work.wait()

digest = hashlib.sha256()
for each in found:
    digest.update(b"none" if each is None else f"{each.dtype}{each.shape}".encode() + each.tobytes())
print(f"rank {rank} {digest.hexdigest()}", flush=True)
