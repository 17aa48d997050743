"""Placement of the cores of each replica for :meth:`DeviceAssignment.build`, with checks in TensorFlow's order."""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ringlet.tpu.topology.coordinates import as_int32
from ringlet.tpu.topology.topology import Topology
from ringlet.tpu.topology.topology_text import counted, unit_of

IntArray = np.ndarray[Any, np.dtype[np.int32]]


def computation(name: str, given: Any) -> tuple[int, ...]:
    """Convert `computation_shape` or `computation_stride` to four positive numbers, all 1 by default."""
    if given is None:
        return (1, 1, 1, 1)
    if type(given) in (list, tuple) and len(given) == 4 and all(type(one) is int and 0 < one < 2**31 for one in given):
        return tuple(given)  # common case: avoids the creation of an array
    values = as_int32(name, given)
    if values.shape != (4,):
        raise ValueError(
            f"{name} must have shape [4]; got {values.shape}: pass four integers, for the axes x, y and z of the chips "
            "and for the devices of a chip, such as [2, 2, 2, 1]"
        )
    if (values < 1).any():
        raise ValueError(f"{name} must be positive; got {name}={values}")
    return tuple(values.tolist())


def _text(numbers: Sequence[int]) -> str:
    return str(np.array(numbers))


def _room(mesh: Sequence[int], shape: Sequence[int], stride: Sequence[int], num_replicas: int) -> list[int]:
    footprint = [a * b for a, b in zip(shape, stride, strict=True)]
    if any(a > b for a, b in zip(footprint, mesh, strict=True)):
        fitting = (s for s in itertools.product(*(range(1, n + 1) for n in mesh)) if math.prod(s) == math.prod(shape))
        nearest = min(fitting, key=lambda s: (sum(s), s), default=None) if max(stride) == 1 else None
        raise ValueError(
            f"computation footprint {_text(footprint)} does not fit in TPU topology shape {_text(mesh)}. The footprint "
            "is computation_shape * computation_stride along x, y, z and the devices of a chip."
            + (f" For {math.prod(shape)} devices, write {[*nearest]}." if nearest else "")
        )
    room = [length // size * step for length, size, step in zip(mesh, footprint, stride, strict=True)]
    most = math.prod(room)
    if num_replicas > most:
        raise ValueError(
            f"requested {num_replicas} replicas but only {most} replicas with shape {_text(shape)} and "
            f"computation_stride {_text(stride)} fit in a TPU mesh of shape {_text(mesh)}. "
            f"Use num_replicas={most} or fewer, smaller replicas, or a larger slice."
        )
    if num_replicas < 0:
        raise ValueError(f"num_replicas must not be negative; got {num_replicas}. At most {most} replicas fit.")
    return room


def place(
    topology: Topology, shape: Sequence[int], stride: Sequence[int], num_replicas: int, order_mode: str
) -> IntArray:
    """Return the cores [replica, logical core, coordinate] of all replicas on a slice."""
    mesh = tuple(topology.mesh_shape.tolist())
    room = _room(mesh, shape, stride, num_replicas)
    if topology.num_devices < math.prod(mesh):
        return _in_task_order(topology, shape, stride, num_replicas)
    most = math.prod(room)
    can_be_rings = shape[3] == mesh[3] and math.prod(stride) == 1 and num_replicas == most
    if order_mode == "RING" and not can_be_rings:
        raise ValueError(
            "device_order_mode=DeviceOrderMode.RING is not compatible with the 3D tiling current topology.  Try "
            "setting device_order_mode=DeviceOrderMode.AUTO. Rings require whole chips (computation_shape[3] == "
            f"{mesh[3]}, got {shape[3]}), computation_stride of all ones (got {list(stride)}) and "
            f"num_replicas == {most} (got {num_replicas})."
        )
    grid = replica_grid(room, num_replicas)
    if can_be_rings and order_mode != "MESH":
        return ring_assignment(grid, shape)
    return mesh_assignment(num_replicas, grid, shape, stride)


def _in_task_order(topology: Topology, shape: Sequence[int], stride: Sequence[int], num_replicas: int) -> IntArray:
    """Return the cores [replica, logical core, coordinate] task by task, for slices with missing devices."""
    missing, there = len(topology.missing_devices), topology.num_devices
    if math.prod(stride) != 1:
        raise ValueError(
            f"computation_stride {_text(stride)} requires a slice without missing devices, but {missing} are missing. "
            "Omit computation_stride."
        )
    each = math.prod(shape)
    if num_replicas * each > there:
        raise ValueError(
            f"requested {num_replicas} replicas of {counted(each, unit_of(topology))}, {num_replicas * each} in all, "
            f"but only {there} devices exist ({missing} are missing). Request at most {there // each} replicas."
        )
    coordinates: IntArray = topology.device_coordinates.reshape(-1, 4)[: num_replicas * each]
    taken: IntArray = coordinates.reshape(num_replicas, each, 4).copy()
    return taken


_log = logging.getLogger(__name__)


# --- orders of devices, as in TensorFlow's ``device_assignment`` -----------------------------------------------------

# A *ring* is an order of the chips of a box in which successive chips, and the last and the first chip, are neighbours.
# A *mesh* order iterates over the axes in nested loops.


def replica_grid(capacity: Sequence[int], num_replicas: int) -> tuple[int, ...]:
    """Return the number of replicas along each axis, as equal as possible; the axis of least capacity is set first.

    Among axes with equal capacity, the last axis (cores) is first, then x, y, z. The product may exceed `num_replicas`.
    """
    grid = [0] * len(capacity)
    if num_replicas == 0:
        return tuple(grid)
    axes_left, replicas_left = len(capacity), num_replicas
    last = len(capacity) - 1
    for axis in sorted(range(len(capacity)), key=lambda axis: (capacity[axis], axis != last, axis)):
        # In floating point, as in TensorFlow, so that the results are the same.
        wanted = math.ceil(replicas_left ** (1.0 / axes_left))
        grid[axis] = min(wanted, capacity[axis])
        replicas_left = -(-replicas_left // grid[axis])
        axes_left -= 1
    return tuple(grid)


def _lay_open_ring(column: IntArray, row: IntArray, columns: int, rows: int) -> None:
    """Write the column and row of each position on a flat ring except the first, (0, 0); `rows` must be even.

    For 4 x 4::

         .  0  1  2
        14  5  4  3
        13  6  7  8
        12 11 10  9
    """
    turns = rows * (columns - 1)
    there_and_back = column[:turns].reshape(rows // 2, 2, columns - 1)
    there_and_back[:, 0] = np.arange(1, columns)
    there_and_back[:, 1] = np.arange(columns - 1, 0, -1)
    row[:turns].reshape(rows, columns - 1)[...] = np.arange(rows)[:, None]
    column[turns:] = 0
    row[turns:] = np.arange(rows - 1, 0, -1)


def _layered_ring(x_size: int, y_size: int, z_size: int) -> IntArray:
    """Return a ring through all layers: the open flat ring in alternating direction, then back along (0, 0)."""
    layer = np.empty((2, x_size * y_size - 1), np.int32)
    _lay_open_ring(layer[0], layer[1], x_size, y_size)
    steps = np.zeros((x_size * y_size * z_size, 3), np.int32)
    inside = steps[1 : 1 + z_size * layer.shape[1]].reshape(z_size, -1, 3)
    inside[0::2, :, :2] = layer.T
    inside[1::2, :, :2] = layer[:, ::-1].T
    inside[:, :, 2] = np.arange(z_size)[:, None]
    steps[1 + z_size * layer.shape[1] :, 2] = np.arange(z_size - 1, 0, -1)
    return steps


def ring(shape: Sequence[int]) -> IntArray:
    """Return the coordinates [chip, axis] of the chips of a box in an order that forms a ring.

    A line of chips is ordered from end to end, and forms a ring only if the axis wraps. For other boxes with an odd
    side longer than 1 the order is row by row, x fastest, with a warning. The orders are as in tensorflow/tensorflow,
    ``tensorflow/python/tpu/device_assignment.py``.
    """
    lengths = [int(length) for length in shape]
    longer = [axis for axis in range(3) if lengths[axis] > 1]
    if len(longer) > 1 and any(lengths[axis] % 2 for axis in longer):
        text = "x".join(map(str, lengths))
        _log.warning("Odd dimension: the %s chips are not ordered in a ring, but row by row, x first.", text)
        return grid_order(lengths, (0, 1, 2))
    if len(longer) == 3:
        return _layered_ring(*lengths)
    steps = np.zeros((math.prod(lengths), 3), np.int32)
    if len(longer) == 2:
        _lay_open_ring(steps[1:, longer[0]], steps[1:, longer[1]], lengths[longer[0]], lengths[longer[1]])
    elif longer:
        steps[:, longer[0]] = np.arange(lengths[longer[0]])
    return steps


def grid_order(shape: Sequence[int], fastest_first: Sequence[int]) -> IntArray:
    """Return the coordinates [position, axis] of a box in the order of nested loops over the axes."""
    places = np.empty((math.prod(shape), len(shape)), np.int32)
    inner, total = 1, len(places)
    for axis in fastest_first:
        length = shape[axis]
        # A coordinate repeats for the number of positions of the faster axes, and restarts after its last value.
        places[:, axis].reshape(total // (inner * length), length, inner)[...] = np.arange(length)[:, None]
        inner *= length
    return places


def mesh_assignment(
    num_replicas: int, grid: Sequence[int], computation_shape: Sequence[int], computation_stride: Sequence[int]
) -> IntArray:
    """Return the cores [replica, logical core, coordinate] in mesh order.

    Across replicas, the core varies fastest, then x, y, z; within a replica, x varies slowest.
    """
    inside = grid_order(computation_shape, (3, 2, 1, 0))
    if num_replicas == 0:
        return np.empty((0, len(inside), 4), np.int32)
    start = grid_order(grid, (3, 0, 1, 2))[:num_replicas]
    shape = np.array(computation_shape, np.int32)
    if math.prod(computation_stride) == 1:
        start = start * shape
    else:
        stride = np.array(computation_stride, np.int32)
        inside = inside * stride
        start = start // stride * (shape * stride) + start % stride
    assignment: IntArray = start[:, None] + inside
    return assignment


def ring_assignment(grid: Sequence[int], computation_shape: Sequence[int]) -> IntArray:
    """Return the cores [replica, logical core, coordinate] along a ring of blocks, each with an inner ring."""
    *chips, cores = computation_shape
    inner, outer = ring(chips), ring(grid[:3])
    assignment = np.empty((len(outer), len(inner), cores, 4), np.int32)
    assignment[..., :3] = (outer * np.array(chips, np.int32))[:, None, None] + inner[:, None]
    assignment[..., 3] = np.arange(cores)
    return assignment.reshape(len(outer), -1, 4)
