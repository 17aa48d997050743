"""Separate output buffers for each rank, for results that are mutable arrays of other libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import in_memory, kind_of, result_memory
from ringlet.collectives.buffers import Array, Outputs
from ringlet.collectives.collective_dtypes import as_result
from ringlet.collectives.op import Op


class AdapterOutputs:
    """Output buffers that become arrays of other libraries; has the interface of `buffers.Outputs`."""

    def __init__(
        self, values: Sequence[Any], shapes: Sequence[tuple[int, ...]], dtypes: Sequence[np.dtype[Any]]
    ) -> None:
        self._values = values
        self._memory = [result_memory(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
        self.direct: list[Array] = [writeable for writeable, _ in self._memory]

    def store(self) -> list[Any]:
        """Convert each result to the array type of its input; NumPy results are read-only."""
        return [in_memory(value, memory) for value, memory in zip(self._values, self._memory, strict=True)]


def outputs_for(
    values: Sequence[Any], buffers: list[Array], op: Op, outs: Sequence[Any] | None
) -> Outputs | AdapterOutputs | None:
    """Return the output buffers of an all-reduce; None if all ranks may share the results."""
    if outs is not None:
        return Outputs(outs, buffers, op)
    kinds = [kind_of(value) for value in values]
    if not any(kind is not None and kind.is_mutable for kind in kinds):
        return None
    return AdapterOutputs(
        values, [buffer.shape for buffer in buffers], [as_result(buffer.dtype, op) for buffer in buffers]
    )
