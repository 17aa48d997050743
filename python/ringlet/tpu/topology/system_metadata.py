"""TPUSystemMetadata: the devices of a TPU system, by name."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ringlet.tpu.topology.topology import Topology

_TPU = re.compile(r".*task:(\d+)/.*device:TPU:(\d+)")


class SystemDevice(NamedTuple):
    """A device of a TPU system."""

    name: str
    device_type: str


class TPUSystemMetadata(NamedTuple):
    """Description of a TPU system (``tf.tpu.experimental.TPUSystemMetadata``).

    Parameters
    ----------
    num_cores : int
        Number of TPU devices of all hosts.
    num_hosts : int
    num_of_cores_per_host : int
        Number of TPU devices of each host.
    topology : Topology or None
    devices : tuple of SystemDevice
        Including the CPU devices of the hosts.

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
    """The ids of each host's TPU devices, as strings, and the total number of devices."""

    device_map: dict[str, list[str]]
    total_cores: int


def metadata_of(topology: Topology, job: str = "worker") -> TPUSystemMetadata:
    """Return the metadata of a system: a ``CPU:0`` for each host, and TPUs in the order of their numbers."""
    hosts, per_host = topology.num_tasks, topology.num_tpus_per_task
    devices = tuple(
        SystemDevice(f"/job:{job}/replica:0/task:{host}/device:{kind}:{index}", kind)
        for host in range(hosts)
        for kind, count in (("CPU", 1), ("TPU", per_host))
        for index in range(count)
    )
    return TPUSystemMetadata(hosts * per_host, hosts, per_host, topology, devices)


def cores_by_host(devices: Iterable[Any]) -> CoresByHost:
    """Group TPU devices by host; other devices are ignored."""
    hosts: defaultdict[str, list[str]] = defaultdict(list)
    for device in devices:
        if match := _TPU.fullmatch(device.name):
            hosts[match[1]].append(match[2])
    return CoresByHost(dict(hosts), sum(map(len, hosts.values())))


def cores_per_host(device_map: Mapping[str, list[str]]) -> int:
    """Return the number of TPU devices per host; raise RuntimeError if there are no hosts or it differs."""
    counts = {len(cores) for cores in device_map.values()}
    if len(counts) != 1:
        raise RuntimeError(
            "TPU cores on each device is not the same: all hosts of a system must have the same number, got "
            f"{dict(device_map)}. List all devices of each host"
        )
    return counts.pop()
