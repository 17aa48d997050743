"""TPU systems of this process: modelled slices that are initialized and shut down."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Mapping
from typing import Any

from ringlet.tpu.topology.system_metadata import SystemDevice, metadata_of
from ringlet.tpu.topology.topology import Topology

DEFAULT_ACCELERATOR_TYPE = "v4-16"
# Variables that describe a slice; a machine without any of them is not a TPU machine.
_SLICE_VARIABLES = (
    "TPU_ACCELERATOR_TYPE",
    "ACCELERATOR_TYPE",
    "TPU_TOPOLOGY",
    "TPU_CHIPS_PER_PROCESS_BOUNDS",
    "TPU_CHIPS_PER_HOST_BOUNDS",
    "TPU_PROCESS_BOUNDS",
    "TPU_HOST_BOUNDS",
)
_CORES_OF_HOST = 8  # the number in the name of a v4 slice counts cores, 8 for each host

_log = logging.getLogger(__name__)

# Devices of each initialized system, by name.
_systems: dict[str, tuple[SystemDevice, ...]] = {}


def slice_topology(
    accelerator_type: str | None = None,
    environ: Mapping[str, str] | None = None,
    num_hosts: int | None = None,
    name: str = "",
) -> Topology:
    """Return the topology of the slice to model for a program without TPUs; each core is a device.

    The slice is determined by `accelerator_type`, else by `environ`, else by `num_hosts`, else by `name` if it is an
    accelerator type; default: ``v4-16``.
    """
    found = os.environ if environ is None else environ
    if accelerator_type is not None:
        return Topology.from_accelerator_type(accelerator_type)
    if any(found.get(name, "").strip() for name in _SLICE_VARIABLES):
        return Topology.from_env(found)
    if num_hosts is not None:
        return _topology_of_hosts(num_hosts)
    with contextlib.suppress(ValueError):
        return Topology.from_accelerator_type(name)
    return Topology.from_accelerator_type(DEFAULT_ACCELERATOR_TYPE)


def _topology_of_hosts(num_hosts: int) -> Topology:
    try:
        return Topology.from_accelerator_type(f"v4-{num_hosts * _CORES_OF_HOST}")
    except ValueError as error:
        raise ValueError(
            f"no slice of the default generation {DEFAULT_ACCELERATOR_TYPE[:2]} has {num_hosts} hosts: "
            "name the slice with accelerator_type= or TPU_ACCELERATOR_TYPE"
        ) from error


def initialize_tpu_system(cluster_resolver: Any = None) -> Topology:
    """Initialize the TPUs of a slice as devices (``tf.tpu.experimental.initialize_tpu_system``).

    The slice is modelled: device names and positions are those of real TPUs, and computations run on the cores of this
    host, in its memory.

    Parameters
    ----------
    cluster_resolver : TPUClusterResolver, optional
        The slice; default: the slice that the environment describes.

    Returns
    -------
    Topology
        For assigning replicas with ``DeviceAssignment.build``.

    Raises
    ------
    TypeError
        If `cluster_resolver` is not a TPUClusterResolver.
    ValueError
        If no such slice exists.

    Examples
    --------
    >>> import ringlet
    >>> resolver = ringlet.cluster_resolver.TPUClusterResolver(accelerator_type="v4-8")
    >>> ringlet.tpu.initialize_tpu_system(resolver).mesh_shape
    array([2, 2, 1, 2], dtype=int32)
    >>> ringlet.tpu.shutdown_tpu_system(resolver)
    """
    name = _name_of(cluster_resolver)
    if name in _systems:
        _log.warning("TPU system %r has already been initialized; initializing it again", name)
    if cluster_resolver is None:
        topology, metadata = slice_topology(), None
    else:
        topology, metadata = cluster_resolver.topology, cluster_resolver.get_tpu_system_metadata()
        cluster_resolver.set_tpu_topology(topology.serialized())
    devices = (metadata or metadata_of(topology)).devices
    _systems[name] = tuple(device for device in devices if device.device_type == "TPU")
    _log.info(
        "TPU system %r models %s with %d devices on %d hosts",
        name,
        topology.accelerator_type or f"a {topology.mesh_shape} mesh",
        topology.num_devices,
        topology.num_tasks,
    )
    return topology


def shutdown_tpu_system(cluster_resolver: Any = None) -> None:
    """Remove the TPU devices of a slice (``tf.tpu.experimental.shutdown_tpu_system``).

    Strategies created for these devices continue to work.

    Parameters
    ----------
    cluster_resolver : TPUClusterResolver, optional
        As passed to :func:`initialize_tpu_system`.

    Raises
    ------
    TypeError
        If `cluster_resolver` is not a TPUClusterResolver.

    Examples
    --------
    >>> import ringlet
    >>> resolver = ringlet.cluster_resolver.TPUClusterResolver.connect("a slice to shut down")
    >>> ringlet.tpu.shutdown_tpu_system(resolver)
    >>> resolver.num_accelerators()
    {'TPU': 0}
    """
    name = _name_of(cluster_resolver)
    if _systems.pop(name, None) is None:
        _log.warning("TPU system %r cannot be shut down: it has not been initialized", name)


def tpu_devices(name: str | None = None) -> tuple[SystemDevice, ...]:
    """Return the TPU devices of the initialized systems, or of one of them."""
    if name is not None:
        return _systems.get(name, ())
    return tuple(dict.fromkeys(device for devices in list(_systems.values()) for device in devices))


def _name_of(cluster_resolver: Any) -> str:
    if cluster_resolver is None:
        return ""
    if not hasattr(type(cluster_resolver), "tpu_hardware_feature"):
        raise TypeError(
            f"cluster_resolver must be a TPUClusterResolver, got {cluster_resolver!r} of type "
            f"{type(cluster_resolver).__name__}: pass ringlet.cluster_resolver.TPUClusterResolver()"
        )
    name: str = cluster_resolver.tpu_name
    return name
