"""Logical meshes of devices on a slice, as in ``jax.experimental.mesh_utils``."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from ringlet.tpu.assignment.axis_assignment import assign_axes, lay_out
from ringlet.tpu.topology.generation import Generation
from ringlet.tpu.topology.topology import Topology

IntArray = np.ndarray[Any, np.dtype[np.int32]]

# Axis orders that make each host's chips a block of the logical mesh, by physical shape, then by logical shape without
# sizes of 1. From JAX's table.
_NO_CHANGE, _Z_BEFORE_Y = (0, 1, 2), (0, 2, 1)
_CONTIGUOUS: dict[tuple[int, ...], dict[tuple[int, ...], tuple[int, ...]]] = {
    (2, 2, 1): {(2, 2): _NO_CHANGE},
    (2, 2, 4): {(4, 4): _NO_CHANGE},
    (4, 4, 4): {(16, 4): _Z_BEFORE_Y},
    (4, 8, 8): {(64, 4): _Z_BEFORE_Y, (4, 64): _Z_BEFORE_Y},
    (8, 8, 8): {(64, 8): _Z_BEFORE_Y},
    (8, 16, 16): {(256, 8): _Z_BEFORE_Y, (8, 256): _Z_BEFORE_Y},
}  # fmt: skip

# Orders of the devices of small slices, from JAX's tables. Devices are numbered row by row, x fastest, or, for
# _RING_OF_8_DEVICES, in the order of the topology.
_RING_OF_4 = (0, 1, 3, 2)
_RING_OF_8_DEVICES = (0, 1, 2, 3, 6, 7, 4, 5)  # two devices on each of 2x2 chips
_RING_OF_8 = (0, 1, 2, 3, 7, 6, 5, 4)
_ORDER_OF_2X2X2 = (0, 4, 2, 6, 1, 5, 3, 7)
_RING_OF_16 = (0, 1, 2, 3, 7, 6, 5, 9, 10, 11, 15, 14, 13, 12, 8, 4)


def create_device_mesh(
    mesh_shape: Sequence[int],
    topology: Topology,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> IntArray:
    """Arrange the devices of a slice as a logical mesh whose busiest axes have the fastest links.

    Parameters
    ----------
    mesh_shape : sequence of int
        Lengths of the logical axes, ordered by increasing communication, such as replica, data, model.
    topology : Topology
        A slice with one device per chip (``megacore=True`` for v4 and v5p), or with two per chip on v2, v3 and v7x. Its
        devices must fill a box.
    contiguous_submeshes : bool
        Whether the devices of each host must form a block of the mesh; supported for few shapes.
    allow_split_physical_axes : bool
        Whether several logical axes may share a physical axis and its links.

    Returns
    -------
    ndarray of int32, shape (*mesh_shape, 4)
        Coordinates x, y, z and core of each device. ``mesh.reshape(replicas, cores, 4)`` is a core assignment.

    Raises
    ------
    ValueError
        If the product of the lengths is not the number of devices, if the devices do not fill a box or the chips have
        an unsupported number of devices, or if no contiguous mesh of these shapes is known.
    NotImplementedError
        If no physical axes match a logical axis or, if splitting is allowed, no parts of physical axes do.

    References
    ----------
    jax-ml/jax, ``jax/_src/mesh_utils.py`` of JAX 0.10.2: the same meshes, except for lengths with a large prime factor,
    such as 28, which JAX splits incorrectly.

    Examples
    --------
    >>> import ringlet
    >>> topology = ringlet.tpu.Topology.from_accelerator_type("v5e-4")
    >>> ringlet.tpu.create_device_mesh([4], topology).tolist()
    [[0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 0, 0]]
    """
    if not hasattr(topology, "device_coordinates"):
        raise TypeError(
            f"topology must be a Topology, got {topology!r}: write create_device_mesh([4, 16], "
            "Topology.from_accelerator_type('v4-128', megacore=True))"
        )
    devices = topology.device_coordinates.reshape(-1, 4)
    return _mesh(
        _lengths("mesh_shape", mesh_shape),
        devices,
        topology.generation,
        contiguous=contiguous_submeshes,
        allow_split=allow_split_physical_axes,
    )


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    slices: Sequence[Topology] | Topology,
    *,
    process_is_granule: bool = False,
    allow_split_physical_axes: bool = False,
) -> IntArray:
    """Arrange the devices of several slices, connected by a data-centre network, as one logical mesh.

    Parameters
    ----------
    mesh_shape : sequence of int
        Lengths of the logical axes within a slice, as for :func:`create_device_mesh`.
    dcn_mesh_shape : sequence of int
        Number of slices along each axis.
    slices : sequence of Topology, or Topology
        The slices in the order of their numbers; the product of `dcn_mesh_shape` is the number of slices.
    process_is_granule : bool
        Whether each task counts as a slice.
    allow_split_physical_axes : bool
        As for :func:`create_device_mesh`.

    Returns
    -------
    ndarray of int32, shape (mesh_shape[0] * dcn_mesh_shape[0], ..., 5)
        Number of the slice, and coordinates x, y, z and core, of each device.

    Raises
    ------
    ValueError
        If the shapes differ in length, or do not match the slices.
    NotImplementedError
        As for :func:`create_device_mesh`.

    Examples
    --------
    >>> import ringlet
    >>> slice_ = ringlet.tpu.Topology.from_accelerator_type("v5e-4")
    >>> mesh = ringlet.tpu.create_hybrid_device_mesh([2, 2], [2, 1], [slice_, slice_])
    >>> mesh.shape, mesh[:, 0, 0].tolist()
    ((4, 2, 5), [0, 0, 1, 1])
    """
    inner, outer = _lengths("mesh_shape", mesh_shape), _lengths("dcn_mesh_shape", dcn_mesh_shape)
    if len(inner) != len(outer):
        raise ValueError(f"mesh_shape {inner} and dcn_mesh_shape {outer} must have the same length.")
    topologies = [slices] if isinstance(slices, Topology) else list(slices)
    granules = [
        (number, topology, devices)
        for number, topology in enumerate(topologies)
        for devices in (topology.device_coordinates if process_is_granule else [topology.device_coordinates])
    ]
    if math.prod(outer) != len(granules):
        what = "tasks" if process_is_granule else "slices"
        raise ValueError(f"Number of {what} {len(granules)} must equal the product of dcn_mesh_shape {outer}.")
    meshes = [
        np.insert(
            _mesh(inner, devices.reshape(-1, 4), topology.generation, allow_split=allow_split_physical_axes),
            0,
            number,
            -1,
        )
        for number, topology, devices in granules
    ]
    rank = len(inner)
    blocks: IntArray = np.stack(meshes).reshape(*outer, *inner, 5)
    order = chain.from_iterable((axis, rank + axis) for axis in range(rank))
    lengths = [many * length for many, length in zip(outer, inner, strict=True)]
    mesh: IntArray = blocks.transpose(*order, 2 * rank)
    return mesh.reshape(*lengths, 5)


def _lengths(name: str, given: Sequence[int]) -> tuple[int, ...]:
    try:
        lengths = tuple(operator.index(length) for length in given)
    except TypeError:
        raise ValueError(f"{name} must be a sequence of integers; got {given!r}") from None
    if any(length < 1 for length in lengths):
        raise ValueError(f"{name} must be positive; got {lengths}")
    return lengths


def _mesh(
    mesh_shape: tuple[int, ...],
    devices: IntArray,
    generation: Generation | None,
    *,
    contiguous: bool = False,
    allow_split: bool = False,
) -> IntArray:
    if math.prod(mesh_shape) != len(devices):
        can_combine = generation is not None and generation.has_megacore and len(devices) == 2 * math.prod(mesh_shape)
        raise ValueError(
            f"Number of devices {len(devices)} must equal the product of mesh_shape {mesh_shape}."
            + " For one device per chip, create the topology with megacore=True." * can_combine
        )
    ordered = _small_slice(mesh_shape, devices, generation.name if generation else "")
    if ordered is not None:
        return ordered.reshape(*mesh_shape, 4)
    physical = _physical(devices, generation)
    if contiguous:
        physical = physical.transpose(*_contiguous_order(physical.shape[:-1], mesh_shape), physical.ndim - 1)
    matrix = assign_axes(physical.shape[:-1], mesh_shape, allow_split=allow_split)
    return lay_out(physical, matrix, mesh_shape)


def _contiguous_order(physical_shape: tuple[int, ...], mesh_shape: tuple[int, ...]) -> tuple[int, ...]:
    known = _CONTIGUOUS.get(physical_shape, {})
    order = known.get(tuple(length for length in mesh_shape if length > 1))
    if order is None:
        there = f"supported shapes are {', '.join(map(str, known))}" if known else f"{list(_CONTIGUOUS)} are supported"
        raise ValueError(
            f"create_device_mesh cannot create contiguous submeshes for mesh_shape {mesh_shape} and physical mesh "
            f"topology {physical_shape}; {there}. Omit contiguous_submeshes."
        )
    return order


def _physical(devices: IntArray, generation: Generation | None) -> IntArray:
    """Return the coordinates of the devices, indexed by their positions along the physical axes.

    The shape is (x, y, z, 4), for v2 and v3 (x * z, y, core, 4), for v7x (x, y, z, core, 4).
    """
    name = generation.name if generation else ""
    low = devices.min(0)
    x, y, z, cores = (devices.max(0) - low + 1).tolist()
    if x * y * z * cores != len(devices):
        raise ValueError(
            f"the {len(devices)} devices do not fill a box, which would have {x}x{y}x{z} chips of {cores} cores. Use a "
            "topology without missing devices."
        )
    # The box is full and the devices are distinct: sorted coordinates are in position order.
    places = devices[np.lexsort(devices.T[::-1])]
    if name in ("v2", "v3"):
        return places.reshape(x * z, y, cores, 4)
    if name == "v7x":
        return places.reshape(x, y, z, cores, 4)
    if cores > 1 or int(low[3]) > 0:
        raise ValueError(
            f"a mesh requires one device per chip, but the given {name and name + ' '}devices are single cores of a "
            "chip. Create the topology with megacore=True."
        )
    return places.reshape(x, y, z, 4)


def _small_slice(mesh_shape: tuple[int, ...], devices: IntArray, name: str) -> IntArray | None:
    """Return the devices of a v2, v3 or small slice in JAX's order; None for other slices."""
    if name in ("v2", "v3"):
        is_ring = len(devices) == 8 or (len(mesh_shape) > 0 and mesh_shape[-1] == 8)
        return _each_eight(devices) if is_ring else devices.copy()
    if name in ("v5e", "v6e"):
        return _lite(mesh_shape, devices)
    if name == "v7x" and len(devices) in (8, 16, 24, 32):
        x, y = (devices.max(0) - devices.min(0) + 1)[:2].tolist()
        return _each_eight(devices) if max(x, y) <= 2 else None
    return None


def _each_eight(devices: IntArray) -> IntArray:
    """Reorder every eight consecutive devices into a ring."""
    return devices.reshape(-1, 8, 4)[:, _RING_OF_8_DEVICES].reshape(-1, 4)


def _lite(mesh_shape: tuple[int, ...], devices: IntArray) -> IntArray | None:
    rows = devices[np.lexsort(devices[:, :3].T)]
    bounds: list[int] = max((place[:3] for place in devices.tolist()), default=[])
    if bounds == [1, 1, 0] and len(devices) == 4:
        return rows[list(_RING_OF_4)]
    if len(devices) == 8:
        return rows[list(_ORDER_OF_2X2X2 if bounds == [1, 1, 1] else _RING_OF_8)]
    if bounds == [3, 3, 0] and len(devices) == 16 and max(mesh_shape) == 16:
        return rows[list(_RING_OF_16)]
    return None
