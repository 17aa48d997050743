"""Numbers of rows that fall to replicas."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from ringlet.data.distribution.replica_rows import balanced_slices, batch_sizes_for_worker, chunk_slices

counts = st.integers(1, 20)


@given(size=st.integers(0, 200), num_chunks=counts)
def test_chunks_follow_each_other_from_the_first_row_to_the_last(size, num_chunks):
    chunks = chunk_slices(size, num_chunks)
    assert len(chunks) == num_chunks
    assert [row for chunk in chunks for row in range(chunk.start, chunk.stop)] == list(range(size))
    rows = math.ceil(size / num_chunks)
    full = sum(chunk.stop - chunk.start == rows for chunk in chunks)
    assert all(chunk.stop - chunk.start < rows for chunk in chunks[full:]), "short chunks come last"


@given(size=st.integers(0, 200), num_parts=counts)
def test_shares_follow_each_other_and_differ_by_one_row_at_most(size, num_parts):
    shares = balanced_slices(size, num_parts)
    assert [row for share in shares for row in range(share.start, share.stop)] == list(range(size))
    rows = [share.stop - share.start for share in shares]
    assert len(rows) == num_parts
    assert rows == sorted(rows, reverse=True)
    assert max(rows) - min(rows) <= 1


@given(size=st.integers(1, 200), num_workers=st.integers(1, 8), num_replicas=st.integers(1, 4))
def test_in_each_step_the_workers_together_take_a_global_batch(size, num_workers, num_replicas):
    sizes = [batch_sizes_for_worker(size, num_workers, num_replicas, worker) for worker in range(num_workers)]
    assert all(sum(mine) == size for mine in sizes)
    for step in range(num_workers):
        taken = [mine[step * num_replicas : (step + 1) * num_replicas] for mine in sizes]
        assert sum(map(sum, taken)) == size
