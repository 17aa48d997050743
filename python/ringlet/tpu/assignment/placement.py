"""Placement of the cores of each replica for :meth:`DeviceAssignment.build`, with TensorFlow's checks in order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ringlet.tpu.assignment.device_order import mesh_assignment, replica_grid, ring_assignment
from ringlet.tpu.topology.coordinates import as_int32
from ringlet.tpu.topology.topology import Topology
from ringlet.tpu.topology.topology_text import counted, unit_of

__all__ = ["computation", "place"]

IntArray = np.ndarray[Any, np.dtype[np.int32]]


def computation(name: str, given: Any) -> tuple[int, ...]:
    """Return `computation_shape` or `computation_stride` as four positive numbers; the default is all ones."""
    if given is None:
        return (1, 1, 1, 1)
    if type(given) in (list, tuple) and len(given) == 4 and all(type(one) is int and 0 < one < 2**31 for one in given):
        return tuple(given)  # common case: avoids the creation of an array
    values = as_int32(name, given)
    if values.shape != (4,):
        raise ValueError(
            f"{name} must have shape [4]; got {values.shape}: write chips along x, y and z, and devices of a chip, "
            "such as [2, 2, 2, 1]"
        )
    if (values < 1).any():
        raise ValueError(f"{name} must be positive; got {name}={values}")
    return tuple(values.tolist())


def _text(numbers: Sequence[int]) -> str:
    return str(np.array(numbers))


def _room(mesh: Sequence[int], shape: Sequence[int], stride: Sequence[int], num_replicas: int) -> list[int]:
    footprint = [a * b for a, b in zip(shape, stride, strict=True)]
    if any(a > b for a, b in zip(footprint, mesh, strict=True)):
        raise ValueError(
            f"computation footprint {_text(footprint)} does not fit in TPU topology shape {_text(mesh)}. The footprint "
            "is computation_shape * computation_stride along x, y, z and the devices of a chip."
        )
    room = [length // size * step for length, size, step in zip(mesh, footprint, stride, strict=True)]
    most = math.prod(room)
    if num_replicas > most:
        raise ValueError(
            f"requested {num_replicas} replicas but only {most} replicas with shape {_text(shape)} and "
            f"computation_stride {_text(stride)} fit in a TPU mesh of shape {_text(mesh)}"
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
    """Return the existing devices task by task, which slices with missing devices use."""
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
            f"but only {there} devices exist ({missing} are missing): at most {there // each} replicas."
        )
    coordinates: IntArray = topology.device_coordinates.reshape(-1, 4)[: num_replicas * each]
    taken: IntArray = coordinates.reshape(num_replicas, each, 4).copy()
    return taken
