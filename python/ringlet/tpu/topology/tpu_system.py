"""The TPU systems of this process: modelled slices, which are begun and ended as TPUs are."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any

from ringlet.tpu.topology.system_metadata import SystemDevice, metadata_of
from ringlet.tpu.topology.topology import Topology

__all__ = ["initialize_tpu_system", "shutdown_tpu_system", "slice_topology", "tpu_devices"]

DEFAULT_ACCELERATOR_TYPE = "v4-16"
# Any of these describes a slice; without them there is no TPU machine.
_SLICE_VARIABLES = (
    "TPU_ACCELERATOR_TYPE",
    "ACCELERATOR_TYPE",
    "TPU_TOPOLOGY",
    "TPU_CHIPS_PER_PROCESS_BOUNDS",
    "TPU_CHIPS_PER_HOST_BOUNDS",
    "TPU_PROCESS_BOUNDS",
    "TPU_HOST_BOUNDS",
)
_CORES_OF_HOST = 8  # of the number in the name of a v4 slice

_log = logging.getLogger(__name__)

# Name of a system that was begun: its devices.
_systems: dict[str, tuple[SystemDevice, ...]] = {}


def slice_topology(
    accelerator_type: str | None = None, environ: Mapping[str, str] | None = None, num_hosts: int | None = None
) -> Topology:
    """Give the slice that a program without TPUs works with: a model of one.

    Parameters
    ----------
    accelerator_type : str, optional
        Such as ``"v4-32"``.
    environ : mapping of str to str, optional
        Whose variables describe the slice where the type is not given; by default those of the process.
    num_hosts : int, optional
        How many hosts it is to have where neither says what it is.

    Returns
    -------
    Topology
        Each core is a device. A ``v4-16`` slice where nothing was said.

    Raises
    ------
    ValueError
        If there is no such slice, or the variables contradict each other.

    Examples
    --------
    >>> slice_topology(environ={}).mesh_shape, slice_topology(environ={"TPU_ACCELERATOR_TYPE": "v5e-4"}).mesh_shape
    (array([2, 2, 2, 2], dtype=int32), array([2, 2, 1, 1], dtype=int32))
    """
    found = os.environ if environ is None else environ
    if accelerator_type is not None:
        return Topology.from_accelerator_type(accelerator_type)
    if any(found.get(name, "").strip() for name in _SLICE_VARIABLES):
        return Topology.from_env(found)
    if num_hosts is not None:
        return _topology_of_hosts(num_hosts)
    return Topology.from_accelerator_type(DEFAULT_ACCELERATOR_TYPE)


def _topology_of_hosts(num_hosts: int) -> Topology:
    try:
        return Topology.from_accelerator_type(f"v4-{num_hosts * _CORES_OF_HOST}")
    except ValueError as error:
        raise ValueError(
            f"{num_hosts} hosts make no slice of the type that is modelled by default, {DEFAULT_ACCELERATOR_TYPE[:2]}: "
            "name the slice, as accelerator_type or in TPU_ACCELERATOR_TYPE"
        ) from error


def initialize_tpu_system(cluster_resolver: Any = None) -> Topology:
    """Begin with the TPUs of a slice (``tf.tpu.experimental.initialize_tpu_system``): from now on they are devices.

    They are a model: their names and places are those of real ones, and what runs on them runs on the cores of this
    host, in its memory.

    Parameters
    ----------
    cluster_resolver : TPUClusterResolver, optional
        Which slice; without one, that of the environment.

    Returns
    -------
    Topology
        To place replicas on, with ``DeviceAssignment.build``.

    Raises
    ------
    TypeError
        If it is no TPUClusterResolver.
    ValueError
        If there is no such slice.

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
        _log.warning("TPU system %r has already been initialized; it begins anew", name)
    if cluster_resolver is None:
        topology, metadata = slice_topology(), None
    else:
        topology, metadata = cluster_resolver.topology, cluster_resolver.get_tpu_system_metadata()
        cluster_resolver.set_tpu_topology(topology.serialized())
    devices = (metadata or metadata_of(topology)).devices
    _systems[name] = tuple(device for device in devices if device.device_type == "TPU")
    _log.info(
        "TPU system %r: a model of %s, %d devices on %d hosts",
        name,
        topology.accelerator_type or f"a {topology.mesh_shape} mesh",
        topology.num_devices,
        topology.num_tasks,
    )
    return topology


def shutdown_tpu_system(cluster_resolver: Any = None) -> None:
    """End with the TPUs of a slice (``tf.tpu.experimental.shutdown_tpu_system``): they are devices no more.

    Strategies that were made for them go on working.

    Parameters
    ----------
    cluster_resolver : TPUClusterResolver, optional
        As :func:`initialize_tpu_system` was given it.

    Raises
    ------
    TypeError
        If it is no TPUClusterResolver.

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
        _log.warning("TPU system %r is shut down, and has not been initialized", name)


def tpu_devices(name: str | None = None) -> tuple[SystemDevice, ...]:
    """Give the TPU devices that there are: those of the systems that were initialized.

    Parameters
    ----------
    name : str, optional
        Of one system.

    Returns
    -------
    tuple of SystemDevice
        Each name once.

    Examples
    --------
    >>> tpu_devices("never initialized")
    ()
    """
    if name is not None:
        return _systems.get(name, ())
    return tuple(dict.fromkeys(device for devices in list(_systems.values()) for device in devices))


def _name_of(cluster_resolver: Any) -> str:
    if cluster_resolver is None:
        return ""
    if not hasattr(type(cluster_resolver), "tpu_hardware_feature"):
        raise TypeError(
            f"cluster_resolver is a TPUClusterResolver, got {cluster_resolver!r} of type "
            f"{type(cluster_resolver).__name__}: write ringlet.cluster_resolver.TPUClusterResolver()"
        )
    name: str = cluster_resolver.tpu_name
    return name
