"""Environment variables of the processes on a TPU slice."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ringlet.tpu.topology.accelerator_type import AcceleratorType, shape_text
from ringlet.tpu.topology.generation import ChipShape
from ringlet.tpu.topology.topology import Topology


def environment(
    slice_: str | AcceleratorType | Topology,
    processes: int | None = None,
    *,
    hostnames: Sequence[str] | None = None,
    base_port: int = 8476,
) -> list[dict[str, str]]:
    """Return the environment variables with which to start each process on a slice.

    Parameters
    ----------
    slice_ : str, AcceleratorType or Topology
        Such as ``"v4-16"``.
    processes : int, optional
        Number of processes on the slice: a multiple of its hosts, at most one per device. Default: one per host.
    hostnames : sequence of str, optional
        Host names, in order. Default: ``localhost`` for a single host, else placeholders ``host-0``, ``host-1`` and so
        on.
    base_port : int
        Port of the first process of each host; other processes use the following ports.

    Returns
    -------
    list of dict, length ``processes``
        In process order, host by host. :meth:`Topology.from_env` reads these variables.

    Raises
    ------
    ValueError
        If the processes cannot share the chips of each host evenly (the message lists the valid numbers), the number of
        host names is wrong, or there are no slices of this generation and shape.

    Examples
    --------
    >>> import ringlet
    >>> for name, value in sorted(ringlet.tpu.environment("v4-8", processes=4)[1].items()):
    ...     print(f"{name}={value}")
    CLOUD_TPU_TASK_ID=1
    TPU_ACCELERATOR_TYPE=v4-8
    TPU_CHIPS_PER_PROCESS_BOUNDS=1,1,1
    TPU_PROCESS_ADDRESSES=localhost:8476,localhost:8477,localhost:8478,localhost:8479
    TPU_PROCESS_BOUNDS=2,2,1
    TPU_PROCESS_PORT=8477
    TPU_SKIP_MDS_QUERY=1
    TPU_TOPOLOGY=2x2x1
    TPU_VISIBLE_CHIPS=1
    TPU_WORKER_HOSTNAMES=localhost
    TPU_WORKER_ID=0
    """
    kind = _kind(slice_)
    host = kind.generation.host_shape_of(kind.shape)
    hosts = math.prod(kind.shape) // math.prod(host)
    names = _hostnames(hostnames, hosts)
    chips, per_chip = _share(kind, host, hosts if processes is None else processes)
    size = math.prod(chips)
    each = math.prod(host) // size * per_chip
    addresses = [f"{name}:{base_port + local}" for name in names for local in range(each)]
    bounds = [all_ // own for all_, own in zip(kind.shape, chips, strict=True)]
    shared = {
        "TPU_ACCELERATOR_TYPE": kind.name,
        "TPU_TOPOLOGY": shape_text(kind.shape, kind.generation.torus_rank),
        "TPU_WORKER_HOSTNAMES": ",".join(names),
        "TPU_CHIPS_PER_PROCESS_BOUNDS": ",".join(map(str, chips)),
        "TPU_PROCESS_BOUNDS": ",".join(map(str, bounds if per_chip == 1 else [*bounds, per_chip])),
        "TPU_PROCESS_ADDRESSES": ",".join(addresses),
        # All variables are set, so that no process queries the machine's metadata server, which assumes one process per
        # host.
        "TPU_SKIP_MDS_QUERY": "1",
    }
    return [
        {
            **shared,
            "TPU_WORKER_ID": str(worker),
            "CLOUD_TPU_TASK_ID": str(worker * each + local),
            "TPU_PROCESS_PORT": str(base_port + local),
            "TPU_VISIBLE_CHIPS": ",".join(str(local // per_chip * size + chip) for chip in range(size)),
        }
        for worker in range(hosts)
        for local in range(each)
    ]


def _kind(slice_: str | AcceleratorType | Topology) -> AcceleratorType:
    if isinstance(slice_, Topology):
        if slice_.generation is None:
            raise ValueError(
                "the generation of this Topology is unknown: create the Topology with generation=, or pass the name of "
                "the slice."
            )
        kind = AcceleratorType.of(slice_.generation, slice_.chip_shape)
        if kind is None:
            raise ValueError(
                f"{slice_.generation.name} has no slices of {shape_text(slice_.chip_shape)} chips. Pass "
                f"the name of a slice."
            )
        return kind
    return slice_ if isinstance(slice_, AcceleratorType) else AcceleratorType.parse(slice_)


def _hostnames(hostnames: Sequence[str] | None, hosts: int) -> list[str]:
    if hostnames is None:
        return ["localhost"] if hosts == 1 else [f"host-{worker}" for worker in range(hosts)]
    if len(hostnames) != hosts:
        raise ValueError(f"hostnames has {len(hostnames)} names, but the slice has {hosts} host{'s' * (hosts != 1)}.")
    return list(hostnames)


def _share(kind: AcceleratorType, host: ChipShape, processes: int) -> tuple[ChipShape, int]:
    """Return the chips of one process, and the number of processes that share a chip."""
    hosts = math.prod(kind.shape) // math.prod(host)
    possible = {hosts * math.prod(host) // math.prod(box): (box, 1) for box in _boxes(host)}
    if kind.generation.devices_per_chip > 1:
        possible[hosts * math.prod(host) * kind.generation.devices_per_chip] = (
            (1, 1, 1),
            kind.generation.devices_per_chip,
        )
    if processes not in possible:
        numbers = ", ".join(map(str, sorted(possible)))
        raise ValueError(
            f"{processes} processes cannot share {kind.name} evenly: it has {hosts} host{'s' * (hosts != 1)} of "
            f"{shape_text(host)} chips. Use {numbers} processes."
        )
    return possible[processes]


def _boxes(host: ChipShape) -> Iterator[ChipShape]:
    """Yield boxes of chips that tile a host, from the longest to the most compact, then by length in y."""
    # Programs that start two processes per host use boxes of 1x2 chips, not 2x1: jax-ml/jax issue 14977, and
    # ray-project/ray, python/ray/_private/accelerators/tpu.py.
    boxes = [
        (x, y, z)
        for x in range(1, host[0] + 1)
        for y in range(1, host[1] + 1)
        for z in range(1, host[2] + 1)
        if host[0] % x == host[1] % y == host[2] % z == 0
    ]
    yield from sorted(boxes, key=lambda box: (-max(box), box[1]))
