"""What devices a TPU system has: counted by name, as programs of TensorFlow ask for it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ringlet.tpu.topology.topology import Topology

__all__ = ["CoresByHost", "SystemDevice", "TPUSystemMetadata", "cores_by_host", "cores_per_host", "metadata_of"]

_TPU = re.compile(r".*task:(\d+)/.*device:TPU:(\d+)")


class SystemDevice(NamedTuple):
    """A device of a TPU system.

    Examples
    --------
    >>> SystemDevice("/job:worker/replica:0/task:0/device:TPU:3", "TPU").device_type
    'TPU'
    """

    name: str
    device_type: str


class TPUSystemMetadata(NamedTuple):
    """What is known of a TPU system (``tf.tpu.experimental.TPUSystemMetadata``).

    Parameters
    ----------
    num_cores : int
        TPU devices of all hosts.
    num_hosts : int
    num_of_cores_per_host : int
        TPU devices of each host.
    topology : Topology or None
    devices : tuple of SystemDevice
        Those of the hosts themselves, too.

    Examples
    --------
    >>> import ringlet
    >>> topology = ringlet.tpu.Topology.from_accelerator_type("v4-16")
    >>> metadata_of(topology)[:3]
    (16, 2, 8)
    """

    num_cores: int
    num_hosts: int
    num_of_cores_per_host: int
    topology: Any
    devices: tuple[Any, ...]


class CoresByHost(NamedTuple):
    """Which TPU devices each host has, both by number, as text; and how many there are in all."""

    device_map: dict[str, list[str]]
    total_cores: int


def metadata_of(topology: Topology, job: str = "worker") -> TPUSystemMetadata:
    """Describe the system whose devices a topology places.

    Parameters
    ----------
    topology : Topology
    job : str
        Of the devices' names.

    Returns
    -------
    TPUSystemMetadata
        With a ``CPU:0`` for each host, and devices in the order of their names' numbers.

    Examples
    --------
    >>> import ringlet
    >>> metadata_of(ringlet.tpu.Topology.from_accelerator_type("v5e-1")).devices[1].name
    '/job:worker/replica:0/task:0/device:TPU:0'
    """
    hosts, per_host = topology.num_tasks, topology.num_tpus_per_task
    devices = tuple(
        SystemDevice(f"/job:{job}/replica:0/task:{host}/device:{kind}:{index}", kind)
        for host in range(hosts)
        for kind, count in (("CPU", 1), ("TPU", per_host))
        for index in range(count)
    )
    return TPUSystemMetadata(hosts * per_host, hosts, per_host, topology, devices)


def cores_by_host(devices: Iterable[Any]) -> CoresByHost:
    """Sort TPU devices by their hosts.

    Parameters
    ----------
    devices : iterable of SystemDevice or of other objects with a ``name``
        Devices that are no TPUs are passed over.

    Returns
    -------
    CoresByHost

    Examples
    --------
    >>> cores_by_host([SystemDevice("/job:worker/task:1/device:TPU:0", "TPU")])
    CoresByHost(device_map={'1': ['0']}, total_cores=1)
    """
    hosts: defaultdict[str, list[str]] = defaultdict(list)
    for device in devices:
        if match := _TPU.fullmatch(device.name):
            hosts[match[1]].append(match[2])
    return CoresByHost(dict(hosts), sum(map(len, hosts.values())))


def cores_per_host(device_map: Mapping[str, list[str]]) -> int:
    """Give how many TPU devices each host has, all as many.

    Parameters
    ----------
    device_map : mapping of str to list of str
        Of :func:`cores_by_host`.

    Raises
    ------
    RuntimeError
        If they differ, or there are none.

    Examples
    --------
    >>> cores_per_host({"0": ["0", "1"], "1": ["0", "1"]})
    2
    """
    counts = {len(cores) for cores in device_map.values()}
    if len(counts) != 1:
        raise RuntimeError(
            "TPU cores on each device is not the same: every host of a system has as many, and those that are listed "
            f"are {dict(device_map)}. Name all devices of each host"
        )
    return counts.pop()
