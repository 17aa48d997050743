"""Implementation of TPUStrategy: MirroredStrategy with the replicas and logical devices of a device assignment."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ringlet import context, nest
from ringlet.cluster.resolvers.tpu_resolver import TPUClusterResolver
from ringlet.collectives import CommunicationOptions, ReduceOp
from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.collectives.argument_parsing import shortened
from ringlet.collectives.buffers import as_ndarray
from ringlet.errors import NotFoundError
from ringlet.sharding import ShardedArray, Sharding
from ringlet.sharding.creation import place
from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.layout import Layout
from ringlet.sharding.layout.layout_of import layout_of
from ringlet.sharding.layout.partition import check_partition, whole_number
from ringlet.strategy.api.cross_device_ops import CoreAllReduce
from ringlet.strategy.api.extended import StrategyExtended
from ringlet.strategy.api.mirrored_strategy import MAX_REPLICAS, MirroredExtended
from ringlet.strategy.api.multi_step import MultiStepContext, run_steps
from ringlet.strategy.api.strategy import Strategy
from ringlet.strategy.calls.argument_checks import refuse_per_replica
from ringlet.strategy.calls.reduce_semantics import is_mirrored, read_component
from ringlet.strategy.replica.replica_threads import ReplicaThreadPool
from ringlet.tpu.assignment.device_assignment import DeviceAssignment
from ringlet.tpu.topology.hardware_feature import HardwareFeature
from ringlet.values import DistributedValues, PerReplica, VariableAggregation, VariableSynchronization

if TYPE_CHECKING:
    from ringlet.data import InputContext

_log = logging.getLogger(__name__)

# Stack of selected logical devices, each with its TPUExtended; the last device of a strategy is current.
_logical_devices: ContextVar[tuple[tuple[object, int], ...]] = ContextVar("ringlet_logical_devices", default=())


class TPUExtended(MirroredExtended):
    """Implementation of :class:`TPUStrategy`; with `is_spmd`, tensors cannot be assigned to a single logical device."""

    def __init__(
        self,
        container_strategy: Strategy,
        tpu_cluster_resolver: Any = None,
        steps_per_run: int | None = None,
        device_assignment: DeviceAssignment | None = None,
        is_spmd: bool = False,
    ) -> None:
        StrategyExtended.__init__(self, container_strategy)
        self.cluster_resolver = _checked_resolver(tpu_cluster_resolver)
        self.device_assignment = _checked_assignment(device_assignment)
        self.steps_per_run = 1 if steps_per_run is None else steps_per_run
        self.is_spmd = is_spmd
        self._metadata = self.cluster_resolver.get_tpu_system_metadata()
        self.tpu_devices = _tpu_devices(self._metadata.devices, device_assignment)
        self._devices = tuple(self.tpu_devices[:, 0])
        self._groups: dict[int, DeviceGroup] = {}
        self._ops = CoreAllReduce()
        self._thread_pool = ReplicaThreadPool(len(self._devices))
        _log.info("TPUStrategy models %d replicas of %d logical devices", *self.tpu_devices.shape)

    # --- properties ---------------------------------------------------------------------------------------------------

    @property
    def num_logical_devices(self) -> int:
        """Number of logical devices of each replica."""
        return int(self.tpu_devices.shape[1])

    @property
    def logical_device_group(self) -> DeviceGroup:
        """The logical devices of the current replica, for layouts; outside of replica context, of the first replica."""
        mode = context.current()
        replica = 0 if mode is None else mode.local_replica_id or mode.update_replica_id or 0
        if replica not in self._groups:
            names, number = tuple(self.tpu_devices[replica]), self._first_replica + replica
            self._groups[replica] = DeviceGroup(len(names), names, assignment=self.device_assignment, replica=number)
        return self._groups[replica]

    @property
    def num_hosts(self) -> int:
        """Number of hosts that have a replica; without an assignment, the number of all hosts of the slice."""
        assignment = self.device_assignment
        if assignment is None:
            return int(self._metadata.num_hosts)
        return len({assignment.host_device(replica) for replica in range(assignment.num_replicas)})

    @property
    def num_replicas_per_host(self) -> int:
        """Number of replicas that fit on a host, at most all; 0 if a replica needs several hosts, as in TensorFlow."""
        cores = int(self._metadata.num_of_cores_per_host)
        if self.device_assignment is None:
            return cores
        return min(self.device_assignment.num_replicas, cores // self.num_logical_devices)

    @property
    def input_devices(self) -> dict[str, tuple[str, ...]]:
        """The first logical devices of the replicas that each host feeds, by the CPU device of the host."""
        hosts: dict[str, tuple[str, ...]] = {}
        for device in self._devices:
            host = _host_of(device)
            hosts[host] = (*hosts.get(host, ()), device)
        return hosts

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """Full names of the replicas' devices: the current logical device of each, by default the first."""
        logical_device = self._logical_device
        return tuple(self.tpu_devices[:, logical_device]) if logical_device else self._devices

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """Full names of the devices that hold variables, equal to `worker_devices`."""
        return self.worker_devices

    @property
    def experimental_require_static_shapes(self) -> bool:
        """True, as in TensorFlow, although arrays of any shape are supported."""
        return True

    @property
    def tpu_hardware_feature(self) -> HardwareFeature:
        """Features of the modelled hardware, as reported by the resolver."""
        return HardwareFeature(self.cluster_resolver.tpu_hardware_feature)

    def non_slot_devices(self, var_list: Sequence[Any]) -> str:
        """Return the CPU device of the first replica's host."""
        return _host_of(self._devices[0])

    @contextmanager
    def experimental_logical_device(self, logical_device_id: int) -> Iterator[None]:
        """Return a context manager in which new variables are placed on a logical device."""
        count, number = self.num_logical_devices, _checked_logical_device(logical_device_id)
        if not -count <= number < count:
            raise ValueError(
                f"`logical_device_id` not in range (was {number}, but there are only {count} logical "
                f"devices per replica): valid ids are 0 to {count - 1}, or -{count} to -1, counted from the end"
            )
        token = _logical_devices.set((*_logical_devices.get(), (self, number)))
        try:
            yield
        finally:
            _logical_devices.reset(token)

    logical_device = experimental_logical_device

    @property
    def _logical_device(self) -> int:
        for owner, number in reversed(_logical_devices.get()):
            if owner is self:
                return number
        return 0

    # --- differences from MirroredStrategy ----------------------------------------------------------------------------

    def _reduce(self, op: ReduceOp, value: Any) -> Any:
        return super()._reduce(op, self._reducible(op, value))

    def _reduce_to(self, op: ReduceOp, value: Any, destinations: Any, options: CommunicationOptions | None) -> Any:
        combined = super()._reduce_to(op, self._reducible(op, value), destinations, options)
        return _on_device(combined, destinations)

    def _batch_reduce_to(
        self, op: ReduceOp, pairs: list[tuple[Any, Any]], options: CommunicationOptions | None
    ) -> list[Any]:
        pairs = [(self._reducible(op, value), destinations) for value, destinations in pairs]
        combined = super()._batch_reduce_to(op, pairs, options)
        return [_on_device(value, destinations) for value, (_, destinations) in zip(combined, pairs, strict=True)]

    def _reducible(self, op: ReduceOp, value: Any) -> Any:
        """Convert mirrored values to PerReplica: TensorFlow combines them on TPUs. Refuse a mean of integers."""
        if isinstance(value, DistributedValues):
            if not isinstance(value, PerReplica):
                value = PerReplica(tuple(map(read_component, value.values)))
            if op is ReduceOp.MEAN:
                _refuse_integers(value, self._num_replicas_in_sync)
        elif nest.is_nested(value):
            value = nest.map_structure(lambda leaf: self._reducible(op, leaf), value)
        return value

    def _broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        return tensor

    def _update(
        self, var: Any, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], group: bool
    ) -> Any:
        self._check_updated(var)
        is_kept_equal = (
            getattr(var, "synchronization", None) is not VariableSynchronization.ON_READ
            and getattr(var, "aggregation", VariableAggregation.NONE) is not VariableAggregation.NONE
        )
        if is_kept_equal:
            for leaf in nest.flatten_containers((args, kwargs))[0]:
                if isinstance(leaf, DistributedValues) and not is_mirrored(leaf):
                    raise TypeError(
                        f"Expected value to be mirrored across replicas: {leaf} in {args}, because variable "
                        f"{var.name!r} is kept equal on all of them. Reduce it first, with extended.reduce_to"
                    )
        return super()._update(var, fn, args, kwargs, group)

    def _run_steps(
        self, fn: Callable[[MultiStepContext, Any], Any], iterator: Any, iterations: int
    ) -> MultiStepContext:
        return run_steps(self, fn, iterator, 1 if self.steps_per_run == 1 else iterations, always_wrap=True)

    # --- datasets: a pipeline for each host ---------------------------------------------------------------------------

    def _distribute_dataset(self, dataset: Any, options: Any, uneven: Literal["keep"] | None = None) -> Any:
        from ringlet.data.distribution.per_host_pipelines import distribute_to_hosts

        refuse_per_replica(self, options)
        if self._worker_arguments():
            return super()._distribute_dataset(dataset, options, uneven)
        return distribute_to_hosts(dataset, self._replicas_of_hosts(), options, uneven=uneven)

    def _distribute_datasets_from_function(self, dataset_fn: Callable[[InputContext], Any], options: Any) -> Any:
        from ringlet.data.distribution.per_host_pipelines import (
            distribute_to_hosts_from_function,
        )

        refuse_per_replica(self, options)
        if self._worker_arguments():
            return super()._distribute_datasets_from_function(dataset_fn, options)
        return distribute_to_hosts_from_function(dataset_fn, self._replicas_of_hosts(), options)

    def _replicas_of_hosts(self) -> list[int]:
        return [len(devices) for devices in self.input_devices.values()]

    # --- tensor layouts -----------------------------------------------------------------------------------------------

    def _split(self, tensor: Any, partition_dimensions: Sequence[int]) -> ShardedArray:
        array = _array(tensor)
        parts = check_partition(array.shape, partition_dimensions, self.num_logical_devices)
        return self._laid_out(array, *_tiled(tuple(parts)))

    def _assign(self, tensor: Any, logical_device_id: int) -> ShardedArray:
        if self.is_spmd:
            raise ValueError(
                "Cannot assign a tensor to a logical device in SPMD mode, where tensors are split over or replicated "
                "on all of them. To disable SPMD, construct the TPUStrategy with "
                "`experimental_spmd_xla_partitioning=False`"
            )
        count = self.num_logical_devices
        number = _checked_logical_device(logical_device_id)
        if not 0 <= number < count:
            raise ValueError(
                "`logical_core_id` to assign must be lower then total number of logical devices per replica. Received "
                f"logical device id {number} but there are only total of {count} logical devices in "
                f"replica: valid ids are 0 to {count - 1}"
            )
        return self._laid_out(_array(tensor), Sharding.maximal(number, count))

    def _replicate(self, tensor: Any) -> ShardedArray:
        return self._laid_out(_array(tensor), Sharding.replicated(self.num_logical_devices))

    def _laid_out(self, array: Any, sharding: Sharding, layout: Layout | None = None) -> ShardedArray:
        group = self.logical_device_group
        if layout is None:
            layout = layout_of(sharding, array.ndim, group.num_devices)
        if not isinstance(array, ShardedArray):
            return place(array, layout, group)
        if array._group == group:
            return array if array._layout == layout else array.reshard(sharding)
        return place(array._gathered(), layout, group)


@lru_cache(maxsize=1024)
def _tiled(parts: tuple[int, ...]) -> tuple[Sharding, Layout]:
    sharding = Sharding.tiled(parts)
    return sharding, layout_of(sharding, len(parts))


def _array(tensor: Any) -> Any:
    """Return the array to lay out: a NumPy array, or a `ShardedArray`, which has a layout already."""
    if type(tensor) is np.ndarray or isinstance(tensor, ShardedArray):
        return tensor
    kind = kind_of(tensor)
    if kind is not None:
        return kind.as_ndarray(tensor, "the tensor")
    whole = np.asarray(tensor)
    if whole.dtype.kind == "O":
        raise TypeError(
            f"the tensor must be an array, a number, text or a list of these, got {shortened(tensor)} of type "
            f"{type(tensor).__name__}: pass each array of a structure separately"
        )
    return whole


def _checked_logical_device(logical_device_id: Any) -> int:
    """Convert the number of a logical device to an int, without checking that the device exists."""
    number = whole_number(logical_device_id)
    if number is None:
        raise TypeError(
            f"logical_device_id must be the number of a logical device, got {shortened(logical_device_id)} of type "
            f"{type(logical_device_id).__name__}: write an integer, 0 for the first device"
        )
    return number


def _on_device(combined: Any, destinations: Any) -> Any:
    """Return the first component of a combined value, unless its destination is a distributed value."""
    if isinstance(combined, DistributedValues) and not isinstance(destinations, DistributedValues):
        return combined.values[0]
    return combined


def _checked_resolver(resolver: Any) -> Any:
    if resolver is None:
        return TPUClusterResolver("")
    if not hasattr(resolver, "get_tpu_system_metadata"):
        raise TypeError(
            f"tpu_cluster_resolver must be a TPUClusterResolver, got {shortened(resolver)} of type "
            f"{type(resolver).__name__}: write ringlet.cluster_resolver.TPUClusterResolver(accelerator_type='v4-16'), "
            "and pass a DeviceAssignment as experimental_device_assignment="
        )
    return resolver


def _checked_assignment(assignment: Any) -> DeviceAssignment | None:
    if assignment is not None and not isinstance(assignment, DeviceAssignment):
        raise TypeError(
            f"the device assignment must be a DeviceAssignment, got {assignment!r} of type "
            f"{type(assignment).__name__}: create one with ringlet.tpu.DeviceAssignment.build"
        )
    return assignment


def _tpu_devices(devices: Sequence[Any], assignment: DeviceAssignment | None) -> NDArray[np.object_]:
    """Return the full names of the logical devices, indexed by [replica, logical device]."""
    names = [device.name for device in devices if "device:TPU:" in device.name]
    if not names:
        raise NotFoundError(
            "TPUs not found in the cluster: the resolver has no TPU device. Name a slice, as in "
            "TPUClusterResolver(accelerator_type='v4-16')"
        )
    if assignment is not None:
        job, cores = _job_of(names[0]), range(assignment.num_cores_per_replica)
        # As in TensorFlow, a DeviceAssignment returns device names without the replica.
        rows = [
            [f"/job:{job}/replica:0{assignment.tpu_device(replica, core)}" for core in cores]
            for replica in range(assignment.num_replicas)
        ]
    else:
        rows = [[name] for name in names]
    if not 0 < len(rows) <= MAX_REPLICAS:
        raise ValueError(
            f"the slice has {len(rows)} replicas, but a strategy supports 1 to {MAX_REPLICAS} in one process: give "
            "each replica several logical devices, with DeviceAssignment.build(topology, computation_shape, "
            "num_replicas=...)"
        )
    return np.array(rows, dtype=object)


def _job_of(device: str) -> str:
    named = re.search("/job:([^/]+)", device)
    return named[1] if named else "localhost"


def _host_of(device: str) -> str:
    """Return the full name of the first CPU of a device's host."""
    return f"{device.rpartition('/')[0]}/device:CPU:0"


def _refuse_integers(value: PerReplica[Any], count: int) -> None:
    """Raise an error for a mean of integers: on TPUs, TensorFlow multiplies the sum by a fraction of the same dtype."""
    for leaf in nest.flatten(value.values[0])[0]:
        dtype = as_ndarray(leaf).dtype
        if dtype.kind in "iu":
            raise TypeError(
                f"Cannot convert {1 / count} to EagerTensor of dtype {dtype}: a TPUStrategy multiplies the sum by this "
                "number, which the dtype of the values cannot hold. Convert the values first, as in "
                "x.astype(np.float32), or reduce with SUM"
            )
