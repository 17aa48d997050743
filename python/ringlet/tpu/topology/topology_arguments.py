"""Validation of the arguments of a topology, with TensorFlow's messages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ringlet.tpu.topology import topology_proto
from ringlet.tpu.topology.coordinates import as_int32
from ringlet.tpu.topology.generation import GENERATIONS, Generation

__all__ = ["check_size", "checked", "find_generation", "parsed"]

IntArray = np.ndarray[Any, np.dtype[np.int32]]

# Larger than any TPU, but small enough for arrays with one entry per core.
_MOST_CORES = 2**24


def check_size(mesh_shape: Sequence[int]) -> None:
    """Raise for a mesh that would exhaust the memory."""
    if math.prod(mesh_shape) > _MOST_CORES:
        text = "x".join(map(str, mesh_shape))
        raise ValueError(f"a mesh of {text} has {math.prod(mesh_shape)} cores; the maximum is {_MOST_CORES}.")


def find_generation(generation: str | Generation | None) -> Generation | None:
    """Return a generation by name."""
    if generation is None or isinstance(generation, Generation):
        return generation
    if generation not in GENERATIONS:
        raise ValueError(f"unknown generation {generation!r}: expected one of {', '.join(GENERATIONS)}.")
    return GENERATIONS[generation]


def checked(mesh_shape: Any, device_coordinates: Any) -> tuple[IntArray, IntArray]:
    """Return the arguments as arrays of the right shapes."""
    if mesh_shape is None or device_coordinates is None:
        raise TypeError("a Topology requires `serialized`, or both `mesh_shape` and `device_coordinates`.")
    shape = as_int32("`mesh_shape`", mesh_shape)
    coordinates = as_int32("`device_coordinates`", device_coordinates)
    if shape.shape != (4,) or (shape < 1).any():
        raise ValueError(f"`mesh_shape` must be a sequence of 4 positive entries; got `mesh_shape={shape}`")
    if coordinates.ndim != 3 or coordinates.shape[2] != 4:
        minor = f" device_coordinates.shape[2]={coordinates.shape[2]}" if coordinates.ndim > 2 else ""
        raise ValueError(
            "`device_coordinates` must be a rank 3 int32 array with minor dimension equal to the `mesh_shape` rank; "
            f"got device_coordinates.shape={coordinates.shape} len(device_coordinates.shape)={coordinates.ndim}{minor} "
            f"mesh_shape={shape}, len(mesh_shape)={len(shape)}"
        )
    return shape, coordinates


def parsed(serialized: bytes) -> tuple[IntArray, IntArray]:
    """Return the mesh shape and the coordinates of a serialized message."""
    message = topology_proto.parse(serialized)
    shape, coordinates = message.mesh_shape, message.device_coordinates
    tasks, devices = message.num_tasks, message.num_devices_per_task
    if shape.shape != (4,) or (shape < 1).any():
        raise ValueError(f"`mesh_shape` must be a vector of size 4 with positive entries; got {shape}")
    if tasks < 0:
        raise ValueError(f"`num_tasks` must be >= 0; got {tasks}")
    if devices < 0:
        raise ValueError(f"`num_tpu_devices_per_task` must be >= 0; got {devices}")
    if coordinates.size != tasks * devices * 4:
        raise ValueError(
            f"`device_coordinates` must have shape num_tasks ({tasks}) * num_tpu_devices_per_task ({devices}) * "
            f"len(mesh_shape) ({shape.tolist()}); got shape {coordinates.size}"
        )
    if (coordinates < 0).any():
        raise ValueError(f"All values in `device_coordinates` must be >= 0, got {coordinates}")
    return shape, coordinates.reshape(tasks, devices, 4)
