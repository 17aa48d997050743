"""Conversion of JAX's arrays on several devices to sharded arrays, and back."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ringlet.errors import ShardingError
from ringlet.sharding.creation import shard
from ringlet.sharding.layout.mesh import Mesh
from ringlet.sharding.layout.sharding import Sharding
from ringlet.sharding.sharded_array import ShardedArray


def from_jax(array: Any) -> ShardedArray:
    """Convert a JAX array to a sharded array in the same layout.

    Parameters
    ----------
    array : jax.Array
        Its sharding is a ``NamedSharding``, whose devices become the logical devices in mesh order, or a single device.
        All its shards must be in this process.

    Returns
    -------
    ShardedArray
        A read-only array on a :class:`Mesh` with the same axes, or on one device without a mesh. It shares the
        memory of `array` if one device holds all of it; otherwise it is a copy.

    Raises
    ------
    TypeError
        If `array` is not a JAX array.
    ShardingError
        If the sharding is of a different kind, or shards are in other processes.

    Examples
    --------
    >>> import jax  # doctest: +SKIP
    >>> from_jax(jax.numpy.arange(3)).tolist()  # doctest: +SKIP
    [0, 1, 2]
    """
    if not hasattr(array, "addressable_shards"):
        raise TypeError(
            f"from_jax requires a JAX array, got an object of type {type(array).__name__}: pass jax.device_put(array, "
            "sharding), or write shard(array, sharding) for a plain array"
        )
    sharding = array.sharding
    if not array.is_fully_addressable:
        raise ShardingError(f"{sharding} has shards in other processes: pass array.addressable_data(0) in each process")
    if len(sharding.device_set) == 1:
        return shard(np.asarray(array), Sharding.replicated(1))
    if type(sharding).__name__ != "NamedSharding":
        raise ShardingError(
            f"from_jax was given an array with the sharding {sharding}: expected a NamedSharding. Move the array first "
            "with jax.device_put(array, jax.sharding.NamedSharding(mesh, spec))"
        )
    return shard(np.asarray(array), Mesh(dict(sharding.mesh.shape)).sharding(*sharding.spec))


def to_jax(x: ShardedArray, devices: Sequence[Any] | None = None) -> Any:
    """Convert a sharded array to a JAX array in the same layout.

    Parameters
    ----------
    x : ShardedArray
        An array on devices of this process. If it is partial, its parts are combined.
    devices : sequence of jax.Device, optional
        Device for each logical device; the first of ``jax.devices()`` by default.

    Returns
    -------
    jax.Array
        On one device if only one logical device holds `x`. Otherwise its ``NamedSharding`` has a mesh with the axes of
        `x`, or with the axes ``"d0"``, ``"d1"``, … if `x.spec` is None. Tiles are passed to
        ``jax.device_put``, which copies them unless they are contiguous and aligned to 64 bytes. Later writes to `x`
        are visible in tiles that were not copied. 64-bit dtypes become 32-bit dtypes unless ``jax_enable_x64`` is set.

    Raises
    ------
    TypeError
        If `x` is not a ShardedArray.
    ShardingError
        If there are fewer devices than logical devices, or `x` is on devices of several processes.

    Examples
    --------
    >>> to_jax(shard(np.arange(4), Mesh({"x": 2}).sharding("x"))).sharding.spec  # doctest: +SKIP
    PartitionSpec('x',)
    """
    if not isinstance(x, ShardedArray):
        raise TypeError(
            f"to_jax requires a ShardedArray, got an object of type {type(x).__name__}: pass shard(array, sharding)"
        )
    if x._group.member is not None:
        raise ShardingError(
            f"to_jax was given an array on {x._group}: expected devices of this process. Pass shard(np.asarray(x), "
            "x.sharding)"
        )
    jax: Any = importlib.import_module("jax")
    number = x._group.num_devices
    given = [*(jax.devices() if devices is None else devices)][:number]
    if len(given) < number:
        raise ShardingError(
            f"to_jax was given an array on {x._group} and {len(given)} JAX devices: set "
            f"XLA_FLAGS=--xla_force_host_platform_device_count={number} before JAX starts, or pass devices="
        )
    x = x._materialized()
    sharding = x.sharding
    if sharding.kind == "maximal":
        (device,) = sharding.tile_assignment_devices
        return jax.device_put(x.shards[0], given[device])
    mesh, spec, grid = _axes(x, sharding)
    named = jax.sharding.NamedSharding(
        jax.sharding.Mesh(np.array(given, object)[grid], mesh), jax.sharding.PartitionSpec(*spec)
    )
    tiles = [jax.device_put(tile, device) for tile, device in zip(x.shards, given, strict=True)]
    return jax.make_array_from_single_device_arrays(x.shape, named, tiles)


def _axes(x: ShardedArray, sharding: Sharding) -> tuple[tuple[str, ...], list[Any], Any]:
    """Return the names of the axes, the entries of the PartitionSpec, and the grid of logical devices."""
    if x.mesh is not None and x.spec is not None:
        return x.mesh.axis_names, [axes or None for axes in x.spec.entries], x.mesh.devices
    if sharding.kind == "replicated":
        return ("d0",), [], np.arange(x._group.num_devices)
    names = tuple(f"d{axis}" for axis in range(len(sharding.tile_assignment_dimensions)))
    return names, list(names[: x.ndim]), sharding.tile_assignment
