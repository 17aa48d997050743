"""How the rows of a global batch fall to the replicas: arithmetic on numbers of rows.

B rows over N = W * R replicas (W workers of R replicas each). TensorFlow knows two rules: *chunks* of ``ceil(B / N)``
rows, the last ones short or empty, for batches that are cut one by one; and *shares* of ``floor(B / N) + 1`` rows for
the first ``B mod N`` replicas and ``floor(B / N)`` for the others, for rows that are counted off without end.
"""

from __future__ import annotations

from itertools import accumulate, pairwise

__all__ = ["balanced_slices", "batch_sizes_for_worker", "chunk_slices"]


def chunk_slices(size: int, num_chunks: int) -> tuple[slice, ...]:
    """Give the places of the chunks in `size` rows.

    Examples
    --------
    >>> [(chunk.start, chunk.stop) for chunk in chunk_slices(5, 4)]
    [(0, 2), (2, 4), (4, 5), (5, 5)]
    """
    rows = -(-size // num_chunks)
    edges = [min(rows * chunk, size) for chunk in range(num_chunks + 1)]
    return tuple(slice(start, stop) for start, stop in pairwise(edges))


def balanced_slices(size: int, num_parts: int) -> tuple[slice, ...]:
    """Give the places of the shares in `size` rows, which differ by one row at most.

    Examples
    --------
    >>> [(share.start, share.stop) for share in balanced_slices(5, 4)]
    [(0, 2), (2, 3), (3, 4), (4, 5)]
    """
    edges = accumulate(_shares(size, num_parts), initial=0)
    return tuple(slice(start, stop) for start, stop in pairwise(edges))


def batch_sizes_for_worker(
    global_batch_size: int, num_workers: int, num_replicas_per_worker: int, worker_index: int
) -> tuple[int, ...]:
    """Give the sizes to which a worker cuts its rows, in turn, so that each step of all workers takes a global batch.

    Every worker counts off all shares, beginning with its own, since each reads other rows: in step k its replicas
    take the k-th R sizes, and over the workers these are all the shares.

    Parameters
    ----------
    global_batch_size : int
        Rows of a step over all replicas.
    num_workers : int
    num_replicas_per_worker : int
    worker_index : int

    Returns
    -------
    tuple of int, length ``num_workers * num_replicas_per_worker``
        The sum is `global_batch_size`.

    References
    ----------
    tensorflow/tensorflow, ``tensorflow/python/data/experimental/ops/distribute.py``, ``batch_sizes_for_worker``.

    Examples
    --------
    >>> batch_sizes_for_worker(7, 2, 2, 0), batch_sizes_for_worker(7, 2, 2, 1)
    ((2, 2, 2, 1), (2, 1, 2, 2))
    """
    shares = _shares(global_batch_size, num_workers * num_replicas_per_worker)
    first = worker_index * num_replicas_per_worker
    return (*shares[first:], *shares[:first])


def _shares(size: int, num_parts: int) -> list[int]:
    rows, rest = divmod(size, num_parts)
    return [rows + 1] * rest + [rows] * (num_parts - rest)
