"""TPU generations: one table row each, every number with its source.

Sources, by the keys in the rows:

- GC: Google Cloud's pages, ``docs.cloud.google.com/tpu/docs/{v3,v4,v5e,v5p,v6e,tpu7x}``.
- JAX: ``jax-ml/jax``, ``jax/_src/tpu_info.py`` (cores, memory) and ``jax/_src/mesh_utils.py`` (device kinds);
  docs.jax.dev, ``jax.experimental.pallas.tpu.ChipVersion`` (a table of the chips with two cores that support megacore).
- HSM: *How to Scale Your Model*, parts 2 and 3, ``jax-ml/scaling-book``: measured links and networks.
- MT: ``AI-Hypercomputer/maxtext``, ``MaxText/accelerator_to_spec_map.py``; XPK: ``AI-Hypercomputer/xpk``,
  ``src/xpk/core/system_characteristics.py``; PTX: ``pytorch/xla``, ``torch_xla/_internal/tpu.py`` (shapes, hosts).
- P2: Jouppi et al., CACM 63(7), 2020; P4: Jouppi et al., ISCA 2023, arXiv 2304.01433. Quoted from memory.

If sources differ by a few per cent, GC is used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Literal

ChipShape = tuple[int, int, int]

_GIB = 2**30
_MIB = 2**20

# Chips along each side of the cubes that optical switches connect; their faces carry the wrap links (sources: HSM, MT).
CUBE = 4


@dataclass(frozen=True, kw_only=True, repr=False)
class Generation:
    """Properties of one generation of TPUs, returned by lookups in :data:`GENERATIONS`.

    Bandwidths are bytes per second, rates are operations per second of one chip, sizes are bytes.

    Attributes
    ----------
    name : str
        ``"v2"``, ``"v3"``, ``"v4"``, ``"v5e"``, ``"v5p"``, ``"v6e"`` or ``"v7x"``.
    device_kind : str
        As in ``jax.Device.device_kind``.
    prefixes : tuple of str
        Prefixes of slice names; the first prefix is used for output.
    machine, machine_chips : str, tuple of int
        Prefix of machine names, such as ``ct5lp-hightpu`` in ``ct5lp-hightpu-4t``, and their numbers of chips; empty
        if machines have no names.
    number_counts : str
        Meaning of the number in a name such as ``v4-32``: ``"cores"`` or ``"chips"``.
    cores_per_chip : int
        Number of TensorCores of a chip.
    devices_per_chip : int
        Number of devices that frameworks show for a chip by default.
    has_megacore : bool
        Whether the two cores of a chip can form one device, as by default on real slices.
    torus_rank : int
        Number of axes of the network between chips, 2 or 3.
    pod_shape : tuple of int
        Chips of the largest network along x, y and z.
    shapes : tuple of tuple of int
        Shapes of the named slices, except slices of whole cubes.
    max_cubes : int
        Maximum number of cubes of 4x4x4 chips in a slice; 0 without cubes.
    any_order : bool
        Whether the lengths of a slice along x, y and z need not ascend.
    wrap_rule : str
        Condition for an axis to wrap: ``"pod"`` if it spans the pod, ``"cubes"`` if the slice is whole cubes,
        ``"sixteen"`` if it has 16 chips.
    host_shape : tuple of int
        Chips of one host (virtual machine) in a slice of several hosts.
    single_host_shapes : tuple of tuple of int
        Shapes of slices of a single host, other than `host_shape`.
    chips_per_machine : int
        Number of chips that share the network card of a physical machine.
    hbm_bytes, hbm_bandwidth : int, float
        Memory of a chip, and its bandwidth.
    vmem_bytes : int
        On-chip memory of a core.
    flops : float
        Dense bfloat16 operations per second of a chip.
    low_precision_ops : float
        Operations per second of a chip for int8, or fp8 on v7x; 0 if unsupported.
    ici_bandwidth, ici_bandwidth_usable : float
        Bandwidth of one link between chips, one way: as published, and as measured by programs.
    dcn_bandwidth : float
        Bandwidth of the network card of a physical machine, one way.
    pcie_bandwidth : float
        Bandwidth between a chip and its host, one way.
    hop_seconds : float
        Latency of one link.
    core_link_multiplier : float
        Bandwidth between the two devices of a chip as a multiple of one link; infinite (no limit) if unpublished.

    Examples
    --------
    >>> import ringlet
    >>> v5e = ringlet.tpu.GENERATIONS["v5e"]
    >>> v5e.cores_per_chip, v5e.number_counts, v5e.links_per_chip
    (1, 'chips', 4)
    >>> v5e.wrap((8, 16, 1))
    (False, True, False)
    """

    name: str
    device_kind: str
    prefixes: tuple[str, ...]
    number_counts: Literal["cores", "chips"]
    cores_per_chip: int
    devices_per_chip: int
    torus_rank: int
    pod_shape: ChipShape
    shapes: tuple[ChipShape, ...]
    wrap_rule: Literal["pod", "cubes", "sixteen"]
    hbm_bytes: int
    hbm_bandwidth: float
    vmem_bytes: int
    flops: float
    ici_bandwidth: float
    ici_bandwidth_usable: float
    low_precision_ops: float = 0.0
    # HSM's rules of thumb, if a generation's page has no number: 2.5e10 per host, 1.5e10 per chip, 1 us per hop.
    dcn_bandwidth: float = 2.5e10
    pcie_bandwidth: float = 1.5e10
    hop_seconds: float = 1e-6
    machine: str = ""
    machine_chips: tuple[int, ...] = ()
    has_megacore: bool = False
    max_cubes: int = 0
    any_order: bool = False
    host_shape: ChipShape = (2, 2, 1)
    single_host_shapes: tuple[ChipShape, ...] = ()
    chips_per_machine: int = 4
    core_link_multiplier: float = math.inf

    def __repr__(self) -> str:
        return f"<Generation {self.name}>"

    @property
    def links_per_chip(self) -> int:
        """Number of links of a chip in a full pod."""
        return 2 * self.torus_rank

    @property
    def pod_chips(self) -> int:
        """Number of chips in the largest network."""
        return prod(self.pod_shape)

    @property
    def dcn_bandwidth_per_chip(self) -> float:
        """Data-centre network bandwidth per chip, one way, in bytes per second."""
        return self.dcn_bandwidth / self.chips_per_machine

    def wrap(self, shape: ChipShape) -> tuple[bool, bool, bool]:
        """Return whether each axis of a slice wraps around.

        Parameters
        ----------
        shape : tuple of int
            Chips along x, y and z.

        Returns
        -------
        tuple of 3 bools
        """
        if self.wrap_rule == "cubes":
            x = y = z = all(length % CUBE == 0 for length in shape)
        elif self.wrap_rule == "sixteen":
            x, y, z = (length == 16 for length in shape)
        else:
            # The pod is a torus (source: GC); smaller slices are inferred to be meshes.
            x, y, z = (1 < length == whole for length, whole in zip(shape, self.pod_shape, strict=True))
        return x, y, z

    def host_shape_of(self, shape: ChipShape) -> ChipShape:
        """Return the chips of one host of a slice, along x, y and z."""
        return shape if shape in self.single_host_shapes else self.host_shape


def _flat(*sizes: tuple[int, int]) -> tuple[ChipShape, ...]:
    return tuple((x, y, 1) for x, y in sizes)


# Table of v5e slices (source: GC), which also applies to v6e (source: MT).
_LITE_SHAPES = _flat((1, 1), (2, 2), (2, 4), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16))
# A machine has 8 chips, written 2x4 in Google's tables and 4x2 in HSM; a virtual machine has 1, 4 or 8 (source: GC).
_LITE_HOSTS = _flat((1, 1), (2, 4), (4, 2))
# Slices smaller than a cube (sources: MT, XPK).
_SMALL_SHAPES = ((2, 2, 1), (2, 2, 2), (2, 2, 4), (2, 4, 4))

_V2 = Generation(
    name="v2", device_kind="TPU v2", prefixes=("v2",), number_counts="cores",
    cores_per_chip=2, devices_per_chip=2, torus_rank=2, pod_shape=(16, 16, 1), wrap_rule="pod",
    shapes=_flat((2, 2), (4, 4), (8, 8), (8, 16), (16, 16)),  # source: PTX, hosts of 2x2
    hbm_bytes=16 * 10**9, hbm_bandwidth=7.0e11, vmem_bytes=16 * _MIB, flops=4.6e13,  # source: P2, JAX
    ici_bandwidth=6.2e10, ici_bandwidth_usable=6.2e10,  # source: P2, 496 Gbit/s
)  # fmt: skip
_V3 = Generation(
    name="v3", device_kind="TPU v3", prefixes=("v3",), number_counts="cores",
    cores_per_chip=2, devices_per_chip=2, torus_rank=2, pod_shape=(32, 32, 1), wrap_rule="pod",
    shapes=_flat((2, 2), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16), (16, 32), (32, 32)),  # source: PTX, hosts of 2x2
    hbm_bytes=32 * _GIB, hbm_bandwidth=9.0e11, vmem_bytes=16 * _MIB, flops=1.23e14,  # source: GC, JAX
    # P2: 656 Gbit/s. GC's totals for the pod disagree: its all-reduce implies 83 GB/s a link, its bisection 100.
    ici_bandwidth=8.2e10, ici_bandwidth_usable=8.2e10,
)  # fmt: skip
_V4 = Generation(
    name="v4", device_kind="TPU v4", prefixes=("v4",), number_counts="cores",
    cores_per_chip=2, devices_per_chip=1, has_megacore=True,  # source: JAX
    torus_rank=3, pod_shape=(16, 16, 16), wrap_rule="cubes",
    shapes=_SMALL_SHAPES, max_cubes=64, any_order=True,  # source: GC, MT, XPK
    hbm_bytes=32 * _GIB, hbm_bandwidth=1.2e12, vmem_bytes=16 * _MIB,  # source: GC
    flops=2.75e14, low_precision_ops=2.75e14,  # source: GC
    ici_bandwidth=5e10, ici_bandwidth_usable=4.5e10,  # source: P4; HSM
)  # fmt: skip
_V5E = Generation(
    name="v5e", device_kind="TPU v5 lite", prefixes=("v5litepod", "v5e", "v5lite"), number_counts="chips",
    machine="ct5lp-hightpu", machine_chips=(1, 4, 8),
    cores_per_chip=1, devices_per_chip=1, torus_rank=2, pod_shape=(16, 16, 1), wrap_rule="sixteen",
    shapes=_LITE_SHAPES, single_host_shapes=_LITE_HOSTS, chips_per_machine=8,
    hbm_bytes=16 * _GIB, hbm_bandwidth=8.19e11, vmem_bytes=128 * _MIB,  # source: JAX; GC, as 16 GB
    flops=1.97e14, low_precision_ops=3.94e14,  # source: GC
    ici_bandwidth=5e10, ici_bandwidth_usable=4.5e10,  # source: GC, 4 ports, 400 GB/s both ways; HSM
    dcn_bandwidth=2.5e10,  # source: GC, 6.4 Tbit/s for a pod of 256 chips
)  # fmt: skip
_V5P = Generation(
    name="v5p", device_kind="TPU v5", prefixes=("v5p", "v5"), number_counts="cores",
    cores_per_chip=2, devices_per_chip=1, has_megacore=True,  # source: JAX
    torus_rank=3, pod_shape=(16, 20, 28), wrap_rule="cubes",
    shapes=_SMALL_SHAPES, max_cubes=140,  # source: GC, MT, XPK
    hbm_bytes=95 * _GIB, hbm_bandwidth=2.765e12, vmem_bytes=64 * _MIB,  # source: GC
    flops=4.59e14, low_precision_ops=9.18e14,  # source: GC
    ici_bandwidth=1e11, ici_bandwidth_usable=9e10,  # source: GC, 6 ports, 1200 GB/s both ways; HSM
    dcn_bandwidth=2.5e10,  # source: GC, 50 Gbit/s a chip
)  # fmt: skip
_V6E = Generation(
    name="v6e", device_kind="TPU v6 lite", prefixes=("v6e",), number_counts="chips",
    machine="ct6e-standard", machine_chips=(1, 4, 8),
    cores_per_chip=1, devices_per_chip=1, torus_rank=2, pod_shape=(16, 16, 1), wrap_rule="sixteen",
    shapes=_LITE_SHAPES, single_host_shapes=_LITE_HOSTS, chips_per_machine=8,
    hbm_bytes=32 * _GIB, hbm_bandwidth=1.638e12, vmem_bytes=128 * _MIB,  # source: JAX; GC, as 32 GB
    flops=9.18e14, low_precision_ops=1.836e15,  # source: GC
    ici_bandwidth=1e11, ici_bandwidth_usable=9e10,  # source: GC, 4 ports, 800 GB/s both ways; HSM
    dcn_bandwidth=1e11, pcie_bandwidth=3.2e10,  # source: GC, 25.6 Tbit/s for a pod of 256 chips; HSM
)  # fmt: skip
_V7X = Generation(
    name="v7x", device_kind="TPU7x", prefixes=("tpu7x", "v7x"), number_counts="cores",  # source: XPK
    machine="tpu7x-standard", machine_chips=(4,),
    cores_per_chip=2, devices_per_chip=2, torus_rank=3, pod_shape=(16, 24, 24), wrap_rule="cubes",
    shapes=((1, 1, 1), *_SMALL_SHAPES), single_host_shapes=((1, 1, 1),), max_cubes=144,  # source: XPK; GC: 9,216 chips
    hbm_bytes=192 * _GIB, hbm_bandwidth=7.38e12, vmem_bytes=64 * _MIB,  # source: GC
    flops=2.307e15, low_precision_ops=4.614e15,  # source: GC
    ici_bandwidth=1e11, ici_bandwidth_usable=9e10,  # source: GC, 1200 GB/s both ways; as v5p
    dcn_bandwidth=5e10,  # source: GC, 100 Gbit/s a chip
    core_link_multiplier=6.0,  # two chiplets; the commonly quoted number, unconfirmed
)  # fmt: skip

GENERATIONS: Mapping[str, Generation] = MappingProxyType(
    {generation.name: generation for generation in (_V2, _V3, _V4, _V5E, _V5P, _V6E, _V7X)}
)
