"""Logical meshes of devices, laid on a slice as JAX lays them."""

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

__all__ = ["create_device_mesh", "create_hybrid_device_mesh"]

IntArray = np.ndarray[Any, np.dtype[np.int32]]

# Transposes of the chips that make those of each host a block of the logical mesh: by physical and by logical shape
# without ones. From JAX's table.
_NO_CHANGE, _Z_BEFORE_Y = (0, 1, 2), (0, 2, 1)
_CONTIGUOUS: dict[tuple[int, ...], dict[tuple[int, ...], tuple[int, ...]]] = {
    (2, 2, 1): {(2, 2): _NO_CHANGE},
    (2, 2, 4): {(4, 4): _NO_CHANGE},
    (4, 4, 4): {(16, 4): _Z_BEFORE_Y},
    (4, 8, 8): {(64, 4): _Z_BEFORE_Y, (4, 64): _Z_BEFORE_Y},
    (8, 8, 8): {(64, 8): _Z_BEFORE_Y},
    (8, 16, 16): {(256, 8): _Z_BEFORE_Y, (8, 256): _Z_BEFORE_Y},
}  # fmt: skip

# Rings through small slices, from JAX's tables. Devices are counted as they are listed, or row by row, x fastest.
_RING_OF_4 = (0, 1, 3, 2)
_RING_OF_8_DEVICES = (0, 1, 2, 3, 6, 7, 4, 5)  # two on each of 2x2 chips
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
        Lengths of the logical axes, the one that talks least first, such as replica, data, model.
    topology : Topology
        A slice with one device for each chip (``megacore=True`` for v4 and v5p), or with two on v2, v3 and v7x. The
        devices that are there must fill a box.
    contiguous_submeshes : bool
        Whether the devices of each host must be a block of the mesh; known for few shapes only.
    allow_split_physical_axes : bool
        Whether several logical axes may share an axis of the chips, and its links.

    Returns
    -------
    ndarray of int32, shape (*mesh_shape, 4)
        Coordinates x, y, z and core of each device. ``mesh.reshape(replicas, cores, 4)`` is a core assignment.

    Raises
    ------
    ValueError
        If the lengths do not multiply to the number of devices, if these do not fill a box or are not of the kind
        above, or if no contiguous mesh of these shapes is known.
    NotImplementedError
        If a logical axis finds no axes of the chips, and these must not be split.

    References
    ----------
    jax-ml/jax, ``jax/_src/mesh_utils.py`` of JAX 0.10.2: the same meshes. There, lengths with a large prime factor,
    such as 28, are not split rightly; here they are.

    Examples
    --------
    >>> import ringlet
    >>> topology = ringlet.tpu.Topology.from_accelerator_type("v5e-4")
    >>> ringlet.tpu.create_device_mesh([4], topology).tolist()
    [[0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 0, 0]]
    """
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
    """Arrange the devices of several slices, which only a data-centre network joins, as one logical mesh.

    Parameters
    ----------
    mesh_shape : sequence of int
        Lengths of the logical axes within a slice, as for :func:`create_device_mesh`.
    dcn_mesh_shape : sequence of int
        How many slices follow each other along each axis.
    slices : sequence of Topology, or Topology
        As many as `dcn_mesh_shape` multiplies to, in the order of their slice numbers.
    process_is_granule : bool
        Take each task for a slice.
    allow_split_physical_axes : bool
        As for :func:`create_device_mesh`.

    Returns
    -------
    ndarray of int32, shape (mesh_shape[0] * dcn_mesh_shape[0], ..., 5)
        Number of the slice, and coordinates x, y, z and core, of each device.

    Raises
    ------
    ValueError
        If the shapes differ in length, or do not fit the slices.
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
        raise ValueError(f"mesh_shape {inner} and dcn_mesh_shape {outer} must have as many axes as each other.")
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
        _numbered(
            number, _mesh(inner, devices.reshape(-1, 4), topology.generation, allow_split=allow_split_physical_axes)
        )
        for number, topology, devices in granules
    ]
    rank = len(inner)
    blocks: IntArray = np.stack(meshes).reshape(*outer, *inner, 5)
    order = chain.from_iterable((axis, rank + axis) for axis in range(rank))
    lengths = [many * length for many, length in zip(outer, inner, strict=True)]
    mesh: IntArray = blocks.transpose(*order, 2 * rank)
    return mesh.reshape(*lengths, 5)


def _numbered(number: int, mesh: IntArray) -> IntArray:
    """The mesh with the number of its slice before the coordinates."""
    return np.concatenate([np.full((*mesh.shape[:-1], 1), number, np.int32), mesh], -1)


def _lengths(name: str, given: Sequence[int]) -> tuple[int, ...]:
    try:
        lengths = tuple(operator.index(length) for length in given)
    except TypeError:
        raise ValueError(f"{name} must be a sequence of whole numbers; got {given!r}") from None
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
    """The mesh of these devices, listed as coordinates."""
    if math.prod(mesh_shape) != len(devices):
        raise ValueError(f"Number of devices {len(devices)} must equal the product of mesh_shape {mesh_shape}.")
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
        there = f"those known for it are {', '.join(map(str, known))}" if known else f"{list(_CONTIGUOUS)} have some"
        raise ValueError(
            f"create_device_mesh cannot create contiguous submeshes for mesh_shape {mesh_shape} and physical mesh "
            f"topology {physical_shape}; {there}. Leave contiguous_submeshes out."
        )
    return order


def _physical(devices: IntArray, generation: Generation | None) -> IntArray:
    """Coordinates of the devices by place: shape (x, y, z, 4), with an axis for cores where chips have several.

    v2 and v3 have an axis for cores, and none for z.
    """
    name = generation.name if generation else ""
    low = devices.min(0)
    x, y, z, cores = (devices.max(0) - low + 1).tolist()
    if x * y * z * cores != len(devices):
        raise ValueError(
            f"the {len(devices)} devices do not fill a box: it would have {x}x{y}x{z} chips of {cores} cores. Make a "
            "topology of devices without holes."
        )
    # Filled box, distinct devices: the order of the coordinates is the order of the places.
    places = devices[np.lexsort(devices.T[::-1])]
    if name in ("v2", "v3"):
        return places.reshape(x * z, y, cores, 4)
    if name == "v7x":
        return places.reshape(x, y, z, cores, 4)
    if cores > 1 or int(low[3]) > 0:
        raise ValueError(
            f"a mesh of {name or 'these'} devices needs one device for each chip, and here each of {cores} cores is "
            "one. Make the topology with megacore=True."
        )
    return places.reshape(x, y, z, 4)


def _small_slice(mesh_shape: tuple[int, ...], devices: IntArray, name: str) -> IntArray | None:
    """The devices of a small slice in an order made for it, or None."""
    if name in ("v2", "v3"):
        return _two_cores(mesh_shape, devices)
    if name in ("v5e", "v6e"):
        return _lite(mesh_shape, devices)
    if name == "v7x" and len(devices) in (8, 16, 24, 32):
        x, y = (devices.max(0) - devices.min(0) + 1)[:2].tolist()
        return _each_eight(devices) if max(x, y) <= 2 else None
    return None


def _two_cores(mesh_shape: tuple[int, ...], devices: IntArray) -> IntArray:
    is_ring = len(devices) == 8 or (len(mesh_shape) > 0 and mesh_shape[-1] == 8)
    return _each_eight(devices) if is_ring else devices.copy()


def _each_eight(devices: IntArray) -> IntArray:
    """A ring through every eight devices."""
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
