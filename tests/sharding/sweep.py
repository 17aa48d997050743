"""The sweep that every operation on sharded arrays passes: all placements, uneven tiles, each memory mode, every dtype.

An operation is a row of a table in ``tests/sharding/rows``: what it computes and the shapes it is tried on. It is run
on arrays on two devices, on four, and on a two-by-two mesh, in every split of their dimensions (none, along one axis of
the mesh, along both in either order), in shared memory and in separate memory of each device. The result is compared
with NumPy's for the same arrays without tiles.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.layout import WHOLE, Cut, Layout
from ringlet.sharding.memory_modes import current_mode, mode
from ringlet.sharding.resharding.device_buffers import POISONED, buffers_for, fresh
from ringlet.sharding.resharding.reshard import materialized
from ringlet.sharding.sharded_array import ShardedArray

# All dtypes and all pairs of placements, where minutes do not count.
NIGHTLY = bool(os.environ.get("RINGLET_CI_NIGHTLY"))

FLOATS = ("float32", "float64")
NUMBERS = ("float32", "int32", "float64", "complex64", "uint8", "int64")
REALS = ("float32", "int32", "float64", "uint8", "int64")
EVERY = ("float32", "int32", "bool", "float64", "complex64", "float16", "int8", "uint64", "complex128")


@dataclass(frozen=True)
class Row:
    """One operation of the sweep.

    Attributes
    ----------
    name : str
    compute : callable
        Takes one array for each shape, all ndarrays or all sharded, and returns an array or a sequence of arrays.
    shapes : tuple of tuple of int
        Shapes of the operands.
    dtypes : tuple of str
        Dtypes of all operands; a few of them in turn, all of them in nightly tests.
    length : int
        Number of elements summed in each element of the result. Results may differ by 4 ulp for each doubling
        of it; 0 if all bits must be equal.
    scale : callable or None
        Returns, for the operands, the numbers whose ulp is used; by default the larger of the result and `compute`
        of the absolute values.
    has_nan : bool
        Whether some of the numbers of the first operand are NaN, all of its second row and column among them.
    """

    name: str
    compute: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...] = NUMBERS
    length: int = 0
    scale: Callable[..., Any] | None = None
    has_nan: bool = False

    def on(self, *shapes: tuple[int, ...]) -> Row:
        """Return the same operation on other shapes."""
        return replace(self, shapes=shapes)


# What each axis of a mesh, and each order of two, cuts a dimension into.
MESHES: dict[str, tuple[int, dict[str, Cut]]] = {
    "2": (2, {"x": Cut(2, (0, 1))}),
    "4": (4, {"x": Cut(4, (0, 1, 2, 3))}),
    "2x2": (
        4,
        {
            "x": Cut(2, (0, 0, 1, 1)),
            "y": Cut(2, (0, 1, 0, 1)),
            "xy": Cut(4, (0, 1, 2, 3)),
            "yx": Cut(4, (0, 2, 1, 3)),
        },
    ),
}


@lru_cache
def placements(mesh: str, ndim: int) -> tuple[Layout, ...]:
    """Return every placement of an array on a mesh, and the whole array on the last device."""
    num_devices, cuts = MESHES[mesh]
    found = []
    for names in itertools.product(["", *cuts], repeat=ndim):
        if max(map("".join(names).count, "xy"), default=0) <= 1:  # an axis of the mesh cuts one dimension at most
            found.append(Layout(num_devices, tuple(cuts[name] if name else WHOLE for name in names)))
    return (*found, Layout(num_devices, (WHOLE,) * ndim, only=num_devices - 1))


def tiled(array: np.ndarray, layout: Layout) -> ShardedArray:
    """Place the values of an array; devices with separate memory receive only their region."""
    boxes, group = layout.boxes(array.shape), DeviceGroup.of(layout.num_devices)

    def buffer(device: int) -> np.ndarray:
        if current_mode() == "shared":
            return array.copy()
        with poisoned():
            made = fresh(array.shape, array.dtype)
        made[boxes[device]] = array[boxes[device]]
        return made

    return ShardedArray._build(buffers_for(layout, group, buffer), layout, group)


@contextlib.contextmanager
def poisoned() -> Iterator[None]:
    """Fill new memory with values that no program expects."""
    token = POISONED.set(True)
    try:
        yield
    finally:
        POISONED.reset(token)


def assemble(x: Any) -> np.ndarray:
    """Put the tiles of an array together, after a check that devices with the same tile have the same bits in it."""
    if not isinstance(x, ShardedArray):
        return np.asarray(x)
    x = materialized(x)
    whole, known = np.zeros(x.shape, x.dtype), np.zeros(x.shape, bool)
    boxes = x._layout.boxes(x.shape)
    for device in x._layout.holders:
        tile, box = x._tile(device), boxes[device]
        assert tile.shape == whole[box].shape, f"device {device} has a tile of {tile.shape}: not {whole[box].shape}"
        if known[box].all():
            np.testing.assert_array_equal(tile, whole[box], err_msg=f"what device {device} has of {box}")
        whole[box], known[box] = tile, True
    assert known.all(), f"no device has the rest of {x._layout}"
    return whole


def operands(row: Row, dtype: str, seed: int = 0) -> list[np.ndarray]:
    """Create distinct values for an operation, of both signs for signed dtypes."""
    made = []
    for number, shape in enumerate(row.shapes):
        generator = np.random.default_rng([seed, number])
        kind, size = np.dtype(dtype).kind, math.prod(shape)
        if kind == "b":
            values = generator.random(size) < 0.6
        elif kind == "u":
            values = generator.permutation(size + 3)[:size] % 100
        elif kind == "i":
            values = generator.permutation(size + 3)[:size] % 100 - min(size // 2, 50)
        elif kind == "c":
            values = generator.standard_normal(size) + 1j * generator.standard_normal(size)
        else:
            values = generator.standard_normal(size)
        made.append(values.astype(dtype).reshape(shape))
    if row.has_nan:
        made[0][made[0] > 1] = np.nan
        made[0][1:2] = np.nan
        made[0][..., 1:2] = np.nan
    return made


def cases(row: Row) -> Iterator[tuple[tuple[Layout, ...], str]]:
    """Yield the placements of an operation's operands and the dtypes: all in nightly tests, else one per placement."""
    turn = 0
    for mesh in MESHES:
        each = [placements(mesh, len(shape)) for shape in row.shapes]
        if NIGHTLY:
            yield from itertools.product(itertools.product(*each), row.dtypes)
            continue
        for step in range(max(map(len, each))):
            layouts = tuple(these[(step * (3 * number + 1) + number) % len(these)] for number, these in enumerate(each))
            yield layouts, row.dtypes[turn % len(row.dtypes)]
            turn += 1


def check(row: Row) -> None:
    """Run an operation on all its cases.

    Raises
    ------
    AssertionError
        If a result differs from NumPy's, or between shared memory, separate memory, and operands created in the
        other mode.
    """
    tried: dict[str, tuple[list[np.ndarray], Any]] = {}
    turn = False
    for layouts, dtype in cases(row):
        if dtype not in tried:
            arrays = operands(row, dtype)
            tried[dtype] = arrays, outcome(lambda arrays=arrays: row.compute(*arrays))
        arrays, expected = tried[dtype]
        where = f"{row.name} of {dtype} {row.shapes} in {layouts}"
        turn = not turn
        mixed = ("shared", "copy") if turn else ("copy", "shared")
        runs = [_run(row, arrays, layouts, *memory) for memory in (("shared", "shared"), ("copy", "copy"), mixed)]
        if isinstance(expected, Exception):
            for found in runs:
                assert type(found) is type(expected), f"{where}: {found!r} instead of {expected!r}"
            continue
        for found in runs:
            if isinstance(found, Exception):
                raise AssertionError(where) from found
            assert len(found) == len(_listed(expected)), where
        bound = _bound(row, arrays, expected)
        for one, apart, mix, wanted, most in zip(*runs, map(np.asarray, _listed(expected)), bound, strict=True):
            assert (one.dtype, one.shape) == (wanted.dtype, wanted.shape), f"{where}: {one.dtype}{one.shape}"
            np.testing.assert_array_equal(one, apart, err_msg=f"shared and copy: {where}")
            np.testing.assert_array_equal(one, mix, err_msg=f"made in mode {mixed[0]}, used in {mixed[1]}: {where}")
            if row.length == 0 or one.dtype.kind not in "fc":
                np.testing.assert_array_equal(one, wanted, err_msg=where)
            else:
                np.testing.assert_array_less(_distance(one, wanted), most, err_msg=where)


def outcome(work: Callable[[], Any]) -> Any:
    """Return the result of a call, or the error that it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            return work()
        except (TypeError, ValueError, IndexError) as error:
            return error


def _run(row: Row, arrays: Sequence[np.ndarray], layouts: Sequence[Layout], made_in: Any, used_in: Any) -> Any:
    def work() -> list[np.ndarray]:
        with mode(made_in):
            given = [tiled(array, layout) for array, layout in zip(arrays, layouts, strict=True)]
        with mode(used_in), poisoned():
            result = row.compute(*given)
            for x, array in zip(given, arrays, strict=True):
                np.testing.assert_array_equal(assemble(x), array, err_msg="an operand has changed")
            for each in _listed(result):
                assert isinstance(each, ShardedArray), f"a {type(each).__name__}, without tiles"
            return [assemble(each) for each in _listed(result)]

    return outcome(work)


def _listed(result: Any) -> Sequence[Any]:
    return result if isinstance(result, (list, tuple)) else (result,)


def _distance(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the distances of numbers: 0 where both are the same infinity, or NaN."""
    with np.errstate(invalid="ignore"):
        distance = np.abs(one.astype(np.result_type(one, "float64")) - other)
    return np.where((one == other) | (np.isnan(one) & np.isnan(other)), 0, distance)


def _bound(row: Row, arrays: Sequence[np.ndarray], expected: Any) -> list[Any]:
    """Return the allowed distance of each result from NumPy's."""
    if row.length == 0:
        return [0] * len(_listed(expected))
    scale = row.scale or row.compute
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        larger = _listed(scale(*(array if array.dtype.kind in "bu" else np.abs(array) for array in arrays)))
    bounds = []
    for wanted, other in zip(map(np.asarray, _listed(expected)), larger, strict=True):
        if wanted.dtype.kind not in "fc":
            bounds.append(0)
            continue
        size = np.fmax(np.abs(wanted), np.abs(other)).astype(wanted.real.dtype)
        ulp = np.spacing(np.where(np.isfinite(size), size, 1).astype(wanted.real.dtype)).astype("float64")
        bounds.append(4 * math.ceil(math.log2(max(row.length, 2))) * ulp + np.finfo("float64").tiny)
    return bounds
