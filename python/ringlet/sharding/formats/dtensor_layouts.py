"""Conversion of PyTorch's ``DTensor`` to sharded arrays, and back."""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ringlet.collectives import Member
from ringlet.collectives.adapters.array_adapters import ArrayAdapter, kind_of
from ringlet.errors import ShardingError
from ringlet.sharding.layout.axis_names import spec_of
from ringlet.sharding.layout.layout_of import layout_of
from ringlet.sharding.layout.mesh import Mesh
from ringlet.sharding.resharding.device_buffers import buffers_for, fresh
from ringlet.sharding.sharded_array import ShardedArray


def from_dtensor(tensor: Any, member: Member) -> ShardedArray:
    """Convert a ``DTensor`` to a sharded array in the same layout; nothing is sent.

    Parameters
    ----------
    tensor : torch.distributed.tensor.DTensor
        In CPU memory, with the placements ``Shard``, ``Replicate`` and ``Partial("sum")``.
    member : Member
        Member of a group that has the processes of the tensor's ``DeviceMesh`` in the order of their ranks.

    Returns
    -------
    ShardedArray
        A copy, on a :class:`Mesh` with the axes of the ``DeviceMesh``, named ``"d0"``, ``"d1"``, … if they have no
        names. Each process has one device.

    Raises
    ------
    ShardingError
        If a placement is of a different kind, a dimension is divided unevenly over several axes, the shape of the
        local tensor does not match its placements, or `member` does not fit the ``DeviceMesh``.
    TypeError
        If an argument has the wrong type.
    InvalidArgumentError
        If the tensor is not in CPU memory, or its dtype is unknown to NumPy and ``ml_dtypes``.

    Examples
    --------
    >>> from_dtensor(distribute_tensor(rows, device_mesh, [Shard(0)]), member).sum(axis=0)  # doctest: +SKIP
    """
    if not hasattr(tensor, "device_mesh"):
        raise TypeError(
            f"from_dtensor requires a DTensor, got an object of type {type(tensor).__name__}: pass "
            "distribute_tensor(tensor, device_mesh, placements), or write shard(array, sharding) for a plain array"
        )
    mesh = _mesh_of(tensor.device_mesh, member)
    entries: list[tuple[str, ...]] = [()] * tensor.ndim
    unreduced = []
    for axis, placement in zip(mesh.axis_names, tensor.placements, strict=True):
        if type(placement).__name__ == "Shard":
            entries[placement.dim] += (axis,)
        elif type(placement).__name__ == "Partial" and placement.reduce_op == "sum":  # subclasses are not plain sums
            unreduced.append(axis)
        elif not placement.is_replicate():
            raise ShardingError(
                f"from_dtensor was given a tensor with the placement {placement!r}: expected Shard(dim), Replicate() "
                "or Partial('sum'). Pass tensor.redistribute(placements=[...]) with these"
            )
    local = tensor.to_local().detach()
    tile = _adapter_of(local).as_ndarray(local, "tensor")
    shape = tuple(tensor.shape)
    _check_chunks(shape, entries, mesh)
    layout = layout_of(mesh.sharding(*entries, unreduced=unreduced), tensor.ndim)
    buffer = fresh(shape, tile.dtype)
    box: Any = (*layout.boxes(shape)[member.rank], ...)  # a view even if 0-d
    own = buffer[box]
    if own.shape != tile.shape:
        raise ShardingError(
            f"the local tensor of rank {member.rank} has shape {tile.shape}, expected {own.shape} for a tensor of "
            f"shape {shape} with placements {tensor.placements}: pass shape= and stride= to DTensor.from_local"
        )
    own[...] = tile
    return ShardedArray._build(buffers_for(layout, mesh.group, lambda device: buffer), layout, mesh.group)


def to_dtensor(x: ShardedArray, device_mesh: Any) -> Any:
    """Convert a sharded array to a ``DTensor`` in the same layout.

    Parameters
    ----------
    x : ShardedArray
        On a :class:`Mesh` of several processes with one device each. If it is partial, its parts are combined.
    device_mesh : torch.distributed.device_mesh.DeviceMesh
        Must have the same processes and axis sizes as the mesh of `x`.

    Returns
    -------
    torch.distributed.tensor.DTensor
        Its local tensor shares the memory of the tile if the tile is writable (see `x.shards`) and contiguous;
        otherwise it is a copy.

    Raises
    ------
    ShardingError
        If the meshes differ, or the layout cannot be written with the placements ``Shard`` and ``Replicate``.
    TypeError
        If an argument has the wrong type.

    Examples
    --------
    >>> to_dtensor(x, device_mesh).placements  # doctest: +SKIP
    (Shard(dim=0), Replicate())
    """
    if not isinstance(x, ShardedArray):
        raise TypeError(
            f"to_dtensor requires a ShardedArray, got an object of type {type(x).__name__}: pass shard(array, "
            "mesh.sharding(...)), with a Mesh of several processes"
        )
    torch: Any = importlib.import_module("torch")
    tensors: Any = importlib.import_module("torch.distributed.tensor")
    x = x._materialized()
    group = x._group
    mesh, member = group.mesh, group.member
    if mesh is None or member is None or _mesh_of(device_mesh, member)._key[1:] != mesh._key[1:]:
        raise ShardingError(
            f"to_dtensor was given an array on {mesh or group} and {device_mesh}: expected an array on a Mesh with "
            "member=, and a DeviceMesh of the same processes and axis sizes. Reshard the array first, or pass "
            "another DeviceMesh"
        )
    spec = spec_of(x._layout, mesh)
    entries = None if spec is None else [axes or () for axes in spec.entries]
    if entries is None or any(list(axes) != [name for name in mesh.axis_names if name in axes] for axes in entries):
        raise ShardingError(
            f"to_dtensor was given an array with sharding {x.sharding}, whose tiles are in an order that "
            "placements cannot express. Reshard it first, as in x.reshard(mesh.sharding('x', None))"
        )
    _check_chunks(x.shape, entries, mesh)
    placements = [tensors.Replicate()] * len(mesh.axis_names)
    for dim, axes in enumerate(entries):
        for axis in axes:
            placements[mesh.axis_names.index(axis)] = tensors.Shard(dim)
    tile = x.shards[0]
    is_shared = tile.flags.writeable and tile.flags.c_contiguous
    local = _adapter_of(torch.empty(0)).from_ndarray(tile if is_shared else tile.copy(), None)
    stride = torch.empty(x.shape, device="meta").stride()
    return tensors.DTensor.from_local(local, device_mesh, placements, shape=torch.Size(x.shape), stride=stride)


def _adapter_of(tensor: Any) -> ArrayAdapter:
    adapter = kind_of(tensor)
    assert adapter is not None, "tensors have an adapter once torch is imported"
    return adapter


def _mesh_of(device_mesh: Any, member: Member) -> Mesh:
    """Return the mesh with the axes of a ``DeviceMesh``; device i belongs to the process with the i-th lowest rank."""
    for given, name, attribute, remedy in (
        (device_mesh, "DeviceMesh", "get_rank", 'torch.distributed.device_mesh.init_device_mesh("cpu", sizes)'),
        (member, "Member", "num_ranks", "the result of ringlet.collectives.init_process_group(rank, num_ranks)"),
    ):
        if not hasattr(given, attribute):
            raise TypeError(f"expected a {name}, got an object of type {type(given).__name__}: pass {remedy}")
    ranks = device_mesh.mesh.numpy()
    names = device_mesh.mesh_dim_names or [f"d{axis}" for axis in range(ranks.ndim)]
    in_order = np.sort(ranks, axis=None)
    if member.num_ranks != ranks.size or in_order[member.rank] != device_mesh.get_rank():
        raise ShardingError(
            f"{device_mesh} has the ranks {in_order.tolist()}, and this process is rank {device_mesh.get_rank()}, but "
            f"member is rank {member.rank} of {member.num_ranks}: pass the member of a group of these processes, in "
            "the order of their ranks"
        )
    if any((np.diff(ranks, axis=axis) < 0).any() for axis in range(ranks.ndim)):
        raise ShardingError(
            f"{device_mesh} has an axis along which the ranks do not ascend, for which PyTorch's operations disagree "
            "on the order of the tiles: use a DeviceMesh of ascending ranks"
        )
    devices = np.searchsorted(in_order, ranks)
    return Mesh(dict(zip(names, ranks.shape, strict=True)), devices, member=member)


def _check_chunks(shape: tuple[int, ...], entries: Sequence[Sequence[str]], mesh: Mesh) -> None:
    """Raise an error if a dimension is divided unevenly over several axes: PyTorch divides it axis by axis."""
    for dim, entry in enumerate(entries):
        axes = [axis for axis in entry if mesh.shape[axis] > 1]
        count = math.prod(mesh.shape[axis] for axis in axes)
        if len(axes) > 1 and shape[dim] % count:
            raise ShardingError(
                f"dimension {dim} of size {shape[dim]} is sharded over the axes {', '.join(axes)} into {count} tiles, "
                f"which PyTorch and ringlet divide differently: pad it to a multiple of {count}, or use one axis"
            )
