"""Assignment of the rows of a global batch to replicas: arithmetic on numbers of rows.

A batch of B rows is divided among N = W * R replicas (W workers of R replicas each). TensorFlow has two rules: batches
that are split one by one are divided into *chunks* of ``ceil(B / N)`` rows, the last chunks short or empty; a
continuous sequence of rows is divided into *shares* of ``floor(B / N) + 1`` rows for the first ``B mod N`` replicas and
``floor(B / N)`` rows for the other replicas.
"""

from __future__ import annotations

from itertools import accumulate, pairwise


def chunk_slices(size: int, num_chunks: int) -> tuple[slice, ...]:
    """Return slices that split `size` rows into chunks of equal size; the last chunks may be short or empty."""
    rows = -(-size // num_chunks)
    edges = [min(rows * chunk, size) for chunk in range(num_chunks + 1)]
    return tuple(slice(start, stop) for start, stop in pairwise(edges))


def balanced_slices(size: int, num_parts: int) -> tuple[slice, ...]:
    """Return slices that split `size` rows into shares whose sizes differ by at most one."""
    edges = accumulate(_shares(size, num_parts), initial=0)
    return tuple(slice(start, stop) for start, stop in pairwise(edges))


def batch_sizes_for_worker(
    global_batch_size: int, num_workers: int, num_replicas_per_worker: int, worker_index: int
) -> tuple[int, ...]:
    """Return the batch sizes of a worker's replicas, which repeat after `num_workers` steps.

    Each worker starts at the shares of its own replicas in the list of all shares; in each step, its replicas take the
    next shares. All workers together take every share once in a step: `global_batch_size` rows.
    """
    shares = _shares(global_batch_size, num_workers * num_replicas_per_worker)
    first = worker_index * num_replicas_per_worker
    return (*shares[first:], *shares[:first])


def _shares(size: int, num_parts: int) -> list[int]:
    rows, rest = divmod(size, num_parts)
    return [rows + 1] * rest + [rows] * (num_parts - rest)
