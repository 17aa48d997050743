"""Cached calls of small operations in shared memory, by operation and kinds (layouts, dtypes, ...) of operands.

The first call with operands of some kinds runs in full: it checks the arguments, plans and computes. If a single NumPy
or kernel call has the same result, that call and the layout of the result are cached, and later calls with operands of
the same kinds run only the cached call. Its result has the same bits, memory order and ownership as the full call's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from ringlet.collectives import Op
from ringlet.sharding.execution.determinism import ignores_tiling
from ringlet.sharding.execution.device_threads import INLINE_BYTES
from ringlet.sharding.explain_operations import is_recording
from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.layout import Array, Layout
from ringlet.sharding.memory_modes import current_mode
from ringlet.sharding.sharded_array import ShardedArray

_NAMES = """argmax argmin broadcast_to clip concatenate expand_dims flip moveaxis nan_to_num ones_like pad
    ravel reshape roll round squeeze stack swapaxes tile transpose tril triu where zeros_like"""
# Functions that copy or compare elements, or are elementwise: one call with whole arrays returns the same elements as a
# call for each tile.
EXACT = frozenset(getattr(np, name) for name in _NAMES.split())
# Functions that may be cached as a StackedCall: their numeric arguments other than operands, such as axes, are
# integers.
_NAMES = "all any dot einsum inner max mean min prod sum tensordot vdot"
STACKED = frozenset(getattr(np, name) for name in _NAMES.split())

_MOST_CALLS = 4096
_calls: dict[Any, _Call | None] = {}


class StackedCall(NamedTuple):
    """A kernel call that computes all tiles at once; ``run(arrays)`` returns the result or its parts in one array."""

    run: Callable[[Sequence[Array]], Array]
    layout: Layout
    combine: Op
    is_view: bool = False

    def __call__(self, arrays: Sequence[ShardedArray], _: Any) -> ShardedArray:
        """Run the call on operands of the cached kinds."""
        return stacked(self, [x._whole for x in arrays], arrays[0]._group)  # type: ignore[misc]


class _WholeCall(NamedTuple):
    """A function that is called with whole arrays; the result may be a view of the only operand."""

    function: Callable[..., Any]
    layout: Layout
    is_view: bool
    shares_memory: bool

    def __call__(self, arrays: Sequence[ShardedArray], arguments: Any) -> ShardedArray:
        args, kwargs = arguments
        made = self.function(*_wholes(args), **{name: _whole(value) for name, value in kwargs.items()})
        if self.shares_memory:
            return arrays[0]._derive(lambda _: made, self.layout, is_view=self.is_view)
        result = ShardedArray._of_whole(made, self.layout, arrays[0]._group)
        result._is_view = self.is_view
        return result


_Call = StackedCall | _WholeCall


class _Recorder:
    def __init__(self) -> None:
        self.calls: list[tuple[StackedCall, Sequence[Array], Array]] = []


_RECORDER: ContextVar[_Recorder | None] = ContextVar("ringlet_sharding_calls", default=None)


def of_parts(whole: Array, layout: Layout, group: DeviceGroup, combine: Op) -> ShardedArray:
    """Build an array from an ndarray of its values, or of its parts along the first dimension."""
    if layout.parts.count == 1:
        return ShardedArray._of_whole(whole, layout, group)
    parts = [*whole] if whole.ndim > 1 else [whole[part, ...] for part in range(len(whole))]
    made = ShardedArray._of_whole(parts[0], layout, group)
    made._whole, made._buffers, made._combine = None, tuple([parts[part] for part in layout.parts.tile]), combine
    return made


def stacked(call: StackedCall, arrays: Sequence[Array], group: DeviceGroup) -> ShardedArray:
    """Run a stacked call, and record it for an enclosing :func:`cached`."""
    whole = call.run(arrays)
    recorder = _RECORDER.get()
    if recorder is not None:
        recorder.calls.append((call, arrays, whole))
    made = of_parts(whole, call.layout, group, call.combine)
    made._is_view = call.is_view
    return made


def cached(
    operation: Any,
    args: tuple[Any, ...],
    work: Callable[[], Any],
    *,
    kwargs: Mapping[str, Any] = {},
    exact: Callable[..., Any] | None = None,
) -> Any:
    """Return the result of ``work()``, or of a call that is cached for arguments of the same kinds.

    `operation` and the kinds of the arguments determine what `work` does, except for the elements of arrays and the
    values of floats and complex numbers. `exact` computes the result from the arguments with whole arrays in place of
    sharded arrays.
    """
    arrays: list[ShardedArray] = []
    kinds = (operation, *(_kind(value, arrays) for value in args))
    if kwargs:
        kinds += tuple((name, _kind(value, arrays)) for name, value in kwargs.items())
    if _UNCACHED in kinds or not arrays or not _is_simple(arrays):
        return work()
    call = _calls.get(kinds, _UNCACHED)
    if call is None:
        return work()
    if call is not _UNCACHED:
        return call(arrays, (args, kwargs))
    outer = _RECORDER.get()
    token = _RECORDER.set(recorder := _Recorder())
    try:
        result = work()
    finally:
        _RECORDER.reset(token)
        if outer is not None:
            outer.calls.extend(recorder.calls)
    if len(_calls) >= _MOST_CALLS:
        _calls.clear()
    if exact is None:
        _calls[kinds] = _stacked_call(arrays, result, recorder)
    else:
        _calls[kinds] = _whole_call(exact, arrays, args, kwargs, result)
    return result


def run_cached(operation: Any, args: Sequence[Any]) -> ShardedArray | None:
    """Return the result of the call that is cached for these arguments; None if no cached call applies."""
    arrays: list[ShardedArray] = []
    call = _calls.get((operation, *[_kind(value, arrays) for value in args]))
    return None if call is None or not _is_simple(arrays) else call(arrays, (args, {}))


def _stacked_call(arrays: Sequence[ShardedArray], result: Any, recorder: _Recorder) -> StackedCall | None:
    """Return the recorded call if it is the only call, has `arrays` as operands, and returned `result`; else None."""
    if not isinstance(result, ShardedArray) or len(recorder.calls) != 1:
        return None
    ((call, operands, made),) = recorder.calls
    memory = result._buffers[0] if result._whole is None else result._whole  # type: ignore[index]
    if memory is not made and memory.base is not made:  # type: ignore[union-attr]
        return None
    if len(operands) != len(arrays) or any(a is not x._whole for a, x in zip(operands, arrays, strict=True)):
        return None
    return call._replace(layout=result._layout, is_view=result._is_view)


def _whole_call(
    function: Callable[..., Any], arrays: Sequence[ShardedArray], args: Any, kwargs: Any, result: Any
) -> _WholeCall | None:
    """Return a call with whole arrays if the work is small and elements and memory order are the same; else None."""
    expected = result._whole if isinstance(result, ShardedArray) else None
    if expected is None or any(result is x for x in arrays) or result._group is not arrays[0]._group:
        return None
    if sum(x.nbytes for x in arrays) + expected.nbytes > INLINE_BYTES or expected.dtype.hasobject:
        return None
    made = function(*_wholes(args), **{name: _whole(value) for name, value in kwargs.items()})
    shares_memory = any(np.may_share_memory(made, x._whole) for x in arrays)
    is_same = (made.dtype, made.strides) == (expected.dtype, expected.strides) and made.tobytes() == expected.tobytes()
    if type(made) is not np.ndarray or not is_same or (shares_memory and len(arrays) > 1):
        return None
    return _WholeCall(function, result._layout, result._is_view, shares_memory)


def _is_simple(arrays: Sequence[ShardedArray]) -> bool:
    """Return whether one process's devices share all arrays, no report is open, and sums may depend on the tiling."""
    group = arrays[0]._group
    if group.member is not None or current_mode() != "shared" or is_recording() or ignores_tiling():
        return False
    return all(x._group is group or (group.mesh is not None and x._group == group) for x in arrays[1:])


_UNCACHED: Any = object()


def _kind(value: Any, arrays: list[ShardedArray]) -> Any:
    """Return the properties of a value that plans depend on, else `_UNCACHED`; append sharded arrays to `arrays`."""
    kind = type(value)
    if kind is ShardedArray:
        if value._whole is None:
            return _UNCACHED
        arrays.append(value)
        return value._layout, value._shape, value._whole.strides, value._dtype
    if kind is float or kind is complex:
        return kind
    if kind is int or value is None or kind is bool or kind is str or value is np._NoValue:
        return kind, value
    if kind is tuple or kind is list:
        kinds = tuple([_kind(each, arrays) for each in value])
        return _UNCACHED if _UNCACHED in kinds else (kind, kinds)
    return (value.dtype,) if isinstance(value, np.inexact) else _UNCACHED


def _whole(value: Any) -> Any:
    kind = type(value)
    if kind is ShardedArray:
        return value._whole
    return kind(_wholes(value)) if kind is tuple or kind is list else value


def _wholes(values: Sequence[Any]) -> list[Any]:
    return [_whole(value) for value in values]
