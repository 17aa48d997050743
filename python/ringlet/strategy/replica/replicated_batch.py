"""A warning for steps in which every replica receives the whole batch."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ringlet.errors import ReplicatedBatchWarning

__all__ = ["hint", "rows_for_all"]

# A smaller array is probably a parameter of the step, such as a vector of weights.
_ROWS_PER_REPLICA = 4

_has_hinted = False


def rows_for_all(rows: Sequence[Sequence[Any]], keywords: Sequence[Mapping[str, Any]]) -> int:
    """Return the length of the arrays among the arguments if they look like a batch for all replicas, else 0."""
    if _has_hinted or not (rows[0] or keywords[0]) or (rows[0] and rows[0][0] is not rows[-1][0]):  # most calls
        return 0
    first, last = (*rows[0], *keywords[0].values()), (*rows[-1], *keywords[-1].values())
    lengths = set()
    for value, other in zip(first, last, strict=True):
        if value is not other:
            return 0
        if type(value) is np.ndarray:
            lengths.add(len(value) if value.ndim else 0)
    length = lengths.pop() if len(lengths) == 1 else 0
    return length if length >= _ROWS_PER_REPLICA * len(rows) and length % len(rows) == 0 else 0


def hint(length: int, num_replicas: int) -> None:
    """Warn about a batch that all replicas receive, once per process."""
    global _has_hinted
    _has_hinted = True
    warnings.warn(
        f"strategy.run passed all {length} rows of an array to each of {num_replicas} replicas, so all compute the "
        f"same result. To split the rows, write strategy.map(fn, array), or batches = strategy.distribute_dataset("
        f"ringlet.data.Dataset.from_tensor_slices(array).batch({length})) and strategy.run(fn, args=(next(iter(batches)"
        "),)). If each replica needs all rows, write warnings.simplefilter('ignore', "
        "ringlet.errors.ReplicatedBatchWarning)",
        ReplicatedBatchWarning,
        stacklevel=6,
    )
