"""Functions of an array's shape, dtype, memory or text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.execution.shape_inference import dtype_probe, shape_probe
from ringlet.sharding.sharded_array import ShardedArray

# Functions of shapes alone, or of dtypes alone.
_OF_SHAPES = (
    np.einsum_path,
    np.ndim,
    np.shape,
    np.size,
    np.diag_indices_from,
    np.tril_indices_from,
    np.triu_indices_from,
)
_OF_DTYPES = (np.can_cast, np.common_type, np.iscomplexobj, np.isrealobj, np.result_type)
_TEXTS = (np.array2string, np.array_repr, np.array_str)


def _with(function: Callable[..., Any], change: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: function(*map(change, args), **{key: change(it) for key, it in kwargs.items()})


def _shaped(value: Any) -> Any:
    return shape_probe(value.shape, value.dtype) if isinstance(value, ShardedArray) else value


def _whole(value: Any) -> Any:
    return value._gathered() if isinstance(value, ShardedArray) else value


for _functions, _change in ((_OF_SHAPES, _shaped), (_OF_DTYPES, dtype_probe), (_TEXTS, _whole)):
    for _function in _functions:
        implements(_function)(_with(_function, _change))


@implements(np.min_scalar_type)
def _min_scalar_type(a: Any, /) -> Any:
    return np.min_scalar_type(dtype_probe(a)) if a.ndim else NotImplemented  # the result depends on a scalar's value


def _tiles(x: Any) -> list[Any]:
    if not isinstance(x, ShardedArray):
        return [x]
    return [x._tile(device) for device in x._layout.holders if x._buffer(device) is not None]


def _of_tiles(function: Callable[..., Any]) -> Callable[..., Any]:
    def memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
        return any(function(one, other, max_work) for one in _tiles(a) for other in _tiles(b))

    return memory


for _of_memory in (np.may_share_memory, np.shares_memory):
    implements(_of_memory)(_of_tiles(_of_memory))
