"""Memory of their own for results that are arrays of other libraries, which users may write to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import in_memory, kind_of, result_memory
from ringlet.collectives.buffers import Array, Outputs
from ringlet.collectives.collective_dtypes import as_result
from ringlet.collectives.op import Op

__all__ = ["KindOutputs", "outputs_for"]


class KindOutputs:
    """What :class:`~ringlet.collectives.buffers.Outputs` is, where the caller gave no outputs and needs such.

    Parameters
    ----------
    values : sequence
        What the caller gave.
    shapes : sequence of tuple of int
    dtypes : sequence of dtype
        Those of the results.

    Attributes
    ----------
    direct : list of ndarray
        Fresh memory for each result.

    Examples
    --------
    >>> outputs = KindOutputs([[1, 2]], [(2,)], [np.dtype("int64")])
    >>> outputs.direct[0][:] = 5
    >>> outputs.store()
    [array([5, 5])]
    """

    def __init__(
        self, values: Sequence[Any], shapes: Sequence[tuple[int, ...]], dtypes: Sequence[np.dtype[Any]]
    ) -> None:
        self._values = values
        self._memory = [result_memory(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
        self.direct: list[Array] = [writeable for writeable, _ in self._memory]

    def store(self) -> list[Any]:
        """Give the results, each of the kind of its value; those of NumPy refuse to be written to, as always."""
        return [in_memory(value, memory) for value, memory in zip(self._values, self._memory, strict=True)]


def outputs_for(
    values: Sequence[Any], buffers: list[Array], op: Op, outs: Sequence[Any] | None
) -> Outputs | KindOutputs | None:
    """Give where the results of an all-reduce go.

    Parameters
    ----------
    values : sequence
        What the caller gave.
    buffers : list of ndarray
        The same, as the core reads it.
    op : Op
    outs : sequence of ndarray or None
        Where the caller wants them.

    Returns
    -------
    Outputs, KindOutputs or None
        None where the core may let all ranks share the results.

    Examples
    --------
    >>> outputs_for([[1, 2]], [np.array([1, 2])], Op.SUM, None) is None
    True
    """
    if outs is not None:
        return Outputs(outs, buffers, op)
    kinds = [kind_of(value) for value in values]
    if not any(kind is not None and kind.is_mutable for kind in kinds):
        return None
    return KindOutputs(
        values, [buffer.shape for buffer in buffers], [as_result(buffer.dtype, op) for buffer in buffers]
    )
