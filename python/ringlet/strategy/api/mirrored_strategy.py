"""MirroredStrategy: synchronous replicas in one process."""

from __future__ import annotations

import functools
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np

from ringlet import context, nest
from ringlet.collectives import CommunicationOptions, ReduceOp
from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.collectives.argument_parsing import shortened
from ringlet.devices import (
    Device,
    canonicalize,
    canonicalize_distinct,
    logical_devices,
    logical_devices_reason,
    short_list,
)
from ringlet.devices.blas_threads import blas_limiter
from ringlet.errors import ReplicatedBatchWarning
from ringlet.errors.exception_notes import with_usage
from ringlet.strategy.api.cross_device_ops import CoreAllReduce, CrossDeviceOps
from ringlet.strategy.api.extended import StrategyExtended
from ringlet.strategy.api.strategy import Strategy
from ringlet.strategy.calls.gather_semantics import gather_components
from ringlet.strategy.calls.reduce_semantics import (
    check_count,
    is_mirrored,
    read_component,
    reduce_components,
    reduce_mirrored,
    reduce_plain,
)
from ringlet.strategy.calls.run_options import HELPERS_ONLY, has_writable_results
from ringlet.strategy.replica.gil_contention_warning import gil_contention_monitor
from ringlet.strategy.replica.replica_context import ReplicaContext
from ringlet.strategy.replica.replica_threads import ReplicaThreadPool
from ringlet.strategy.replica.step_execution import ReplicaRun
from ringlet.values import DistributedValues, PerReplica, as_variables, check_components, regroup, split_arguments

# The maximum number of ranks of a group.
MAX_REPLICAS = 4096

_log = logging.getLogger(__name__)


class MirroredStrategy(Strategy):
    """Runs each step on several replicas of this process, with mirrored variables (``tf.distribute.MirroredStrategy``).

    Parameters
    ----------
    devices : sequence of str or int, optional
        One device for each replica, such as ``["CPU:0", "CPU:1"]``, or the number of replicas, such as 2;
        the default is all logical devices. Devices are names only: replicas are threads that share the cores and the
        memory of the host.
    cross_device_ops : CrossDeviceOps, optional
        How arrays are combined; ``RingAllReduce()`` and ``DirectAllReduce()`` select an algorithm for all calls.
        User-defined operations are called for ``reduce``, for the reductions of `extended`, and for the replicas'
        ``all_reduce``.

    Raises
    ------
    DuplicateDeviceError
        If a device occurs twice.
    ValueError
        If `devices` is a single string, a device string cannot be parsed, local devices are mixed with devices of a
        cluster, or the number of replicas is not between 1 and 4,096.
    TypeError
        If `devices` is not a sequence of strings or a number. A set is not accepted, because it is unordered.
    RuntimeError
        If the devices belong to several tasks: one process cannot run the replicas of another.

    Examples
    --------
    >>> import numpy as np, ringlet
    >>> strategy = MirroredStrategy(["CPU:0", "CPU:1"])
    >>> strategy
    MirroredStrategy(['CPU:0', 'CPU:1'])
    >>> def step(x):
    ...     return ringlet.replica_context().all_reduce("SUM", x)
    >>> print(strategy.run(step, args=(np.array([1.0, 2.0]),)))
    PerReplica:{
      0: [2. 4.],
      1: [2. 4.]
    }
    """

    @with_usage("MirroredStrategy(2), or MirroredStrategy(['CPU:0', 'CPU:1'])")
    def __init__(
        self, devices: Sequence[str] | int | None = None, cross_device_ops: CrossDeviceOps | None = None
    ) -> None:
        super().__init__(MirroredExtended(self, devices, cross_device_ops))
        _warn_if_each_worker_is_alone()

    def __repr__(self) -> str:
        return f"MirroredStrategy({short_list(self.extended.worker_devices)})"


@functools.cache
def _warn_if_each_worker_is_alone() -> None:
    """Log once in worker 0 of `ringlet run` that all workers do the same work, if the program has not read its rank."""
    workers = os.environ.get("WORLD_SIZE", "1") if "RINGLET_ATTEMPT" in os.environ else "1"
    if workers != "1" and os.environ.get("RANK") == "0" and "ringlet.cluster.environment" not in sys.modules:
        _log.warning(
            "each of the %s workers runs this program by itself: MirroredStrategy and map use one process. "
            "Write MultiWorkerMirroredStrategy(), or divide the work by ringlet.rank() and ringlet.size()",
            workers,
        )


class MirroredExtended(StrategyExtended):
    """Implementation of :class:`MirroredStrategy`."""

    # The class whose instances run several replicas.
    _run_type = ReplicaRun
    # Whether a device may have several replicas.
    _may_repeat_devices = False

    def __init__(
        self, container_strategy: Strategy, devices: Sequence[str] | int | None, cross_device_ops: CrossDeviceOps | None
    ) -> None:
        super().__init__(container_strategy)
        names = [] if devices is None else _device_names(devices)
        self._devices = _local_devices(names, self._may_repeat_devices) if names else _all_devices()
        self._ops = _checked_ops(cross_device_ops)
        self._thread_pool = ReplicaThreadPool(len(self._devices))

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """Full names of the replicas' devices."""
        return self._devices

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """Full names of the replicas' devices, which also hold the variables."""
        return self._devices

    def non_slot_devices(self, var_list: Sequence[Any]) -> Any:
        """Return the replicas' devices."""
        return self._devices

    @property
    def _num_replicas_in_sync(self) -> int:
        return len(self._devices)

    def _call_for_each_replica(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return self._call_with_options(fn, args, kwargs, None)

    def _call_with_options(
        self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], options: Any
    ) -> Any:
        strategy = self._container_strategy()
        rows, keywords = split_arguments(args, kwargs, len(self._devices))
        if len(rows) == 1:
            is_writable = options is not None and has_writable_results(options)
            single = ReplicaContext._single(strategy, is_writable)
            return as_variables(context.call_in(single, fn, *rows[0], **keywords[0]))
        return regroup(self._run_replicas(strategy, fn, rows, keywords, options))

    def _run_replicas(
        self,
        strategy: Strategy,
        fn: Callable[..., Any],
        rows: Sequence[Sequence[Any]],
        keywords: Sequence[Mapping[str, Any]],
        options: Any,
    ) -> list[Any]:
        pool, monitor, limiter, owner = self._thread_pool, gil_contention_monitor(), blas_limiter(), object()
        is_writable = options is not None and has_writable_results(options)
        started = monitor.start()
        try:
            limiter.enter(owner, len(rows))
            run = self._run_type(strategy, pool.acquire(owner), self._ops, self._first_replica, is_writable)
            run.whole_batch = rows_for_all(rows, keywords)
            run.caller_runs = options is not HELPERS_ONLY
            results = run.drive(fn, rows, keywords, pool.timeout_seconds)
            if run.whole_batch:
                warn_of_replicated_batch(run.whole_batch, len(rows))
            return results
        finally:
            try:
                pool.release(owner)
                limiter.leave(owner)
            except BaseException:  # Ctrl-C during the clean-up; both calls may be repeated
                pool.release(owner)
                limiter.leave(owner)
                raise
            monitor.finish(started)

    def _create_variable(self, request: Any) -> Any:
        from ringlet.values.variables.variable_factory import create_mirrored

        return create_mirrored(self._container_strategy(), request)

    def _check_updated(self, var: Any) -> None:
        super()._check_updated(var)
        if not isinstance(var, DistributedValues):
            raise TypeError(
                f"{self._container_strategy()!r} updates variables that were created in its scope, got "
                f"{shortened(var)} of type "
                f"{type(var).__name__}: create a variable there, or call update_non_slot"
            )
        check_components(var, len(self._devices), "update was given")

    def _reduce(self, op: ReduceOp, value: Any) -> Any:
        if type(value) is PerReplica and self._ops._is_core:
            return reduce_components(op, value, len(self._devices))
        if nest.is_nested(value):
            return nest.map_structure(lambda leaf: self._reduce(op, _as_per_replica(leaf)), value)
        if isinstance(value, DistributedValues) and is_mirrored(value):
            check_count(value, len(self._devices))
            return reduce_mirrored(op, value, len(self._devices))
        result = self._reduce_to(op, value, value, None)
        return result.values[0] if isinstance(result, DistributedValues) else result

    def _reduce_to(self, op: ReduceOp, value: Any, destinations: Any, options: CommunicationOptions | None) -> Any:
        if nest.is_nested(value):
            return nest.map_structure(
                lambda leaf: self._reduce_to(op, _as_per_replica(leaf), destinations, options), value
            )
        count = len(self._devices)
        if not isinstance(value, DistributedValues):
            return reduce_plain(op, value, count)
        check_count(value, count)
        if is_mirrored(value):
            return value if op is ReduceOp.MEAN else reduce_mirrored(op, value, count)
        return self._ops.reduce(op, value, destinations, options)

    def _batch_reduce_to(
        self, op: ReduceOp, pairs: list[tuple[Any, Any]], options: CommunicationOptions | None
    ) -> list[Any]:
        if not all(type(value) is PerReplica for value, _ in pairs):
            return super()._batch_reduce_to(op, pairs, options)
        for value, _ in pairs:
            check_count(value, len(self._devices))
        return self._ops.batch_reduce(op, pairs, options)

    def _broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        # As in TensorFlow, Python numbers are returned unchanged, because their dtype is decided later.
        if isinstance(tensor, (int, float)):
            return tensor
        all_devices = PerReplica(self._devices)
        is_unspecified = isinstance(destinations, str) and not destinations
        return self._ops.broadcast(tensor, all_devices if is_unspecified else destinations)

    def _gather(self, value: Any, axis: int) -> Any:
        if not isinstance(value, DistributedValues):
            return value
        check_count(value, len(self._devices))
        return gather_components(value.values, axis)


def _as_per_replica(leaf: Any) -> Any:
    """Convert a mirrored leaf of a structure to a PerReplica: TensorFlow combines the components of such leaves."""
    is_mirrored_leaf = isinstance(leaf, DistributedValues) and not isinstance(leaf, PerReplica)
    return PerReplica(tuple(map(read_component, leaf.values))) if is_mirrored_leaf else leaf


def _all_devices() -> tuple[str, ...]:
    devices = logical_devices()
    _log.info(
        "MirroredStrategy uses all %d logical devices of this process (%s)", len(devices), logical_devices_reason()
    )
    return devices


def _device_names(devices: Any) -> list[str]:
    if isinstance(devices, str):
        example = devices if devices.isdecimal() else [name.strip() for name in devices.split(",")]
        raise ValueError(f"devices must be a list of device strings, got the string {devices!r}: write {example}")
    is_count = isinstance(devices, (int, np.integer)) and not isinstance(devices, bool)
    # Sets are rejected, because replicas have the order of the devices.
    if not is_count and (not isinstance(devices, Iterable) or isinstance(devices, (Set, Mapping, np.ndarray))):
        raise TypeError(
            f"devices must be a list of device strings in the order of the replicas, or their number, got {devices!r} "
            f"of type {type(devices).__name__}: write ['CPU:0', 'CPU:1'] or 2 for two replicas"
        )
    if is_count and devices < 1:
        raise ValueError(f"a strategy requires at least one replica, got {devices}: write a number such as 2")
    if is_count:
        devices = [f"CPU:{number}" for number in range(min(devices, MAX_REPLICAS + 1))]
    names: list[Any] = [getattr(device, "name", device) for device in devices]
    if len(names) > MAX_REPLICAS:
        raise ValueError(
            f"a strategy has at most {MAX_REPLICAS} replicas in one process, but more devices were passed. Pass fewer "
            "devices, for example one for each core"
        )
    return names


def _local_devices(names: list[str], may_repeat: bool) -> tuple[str, ...]:
    parsed = [Device.parse(name) for name in names]
    if len({device.is_local for device in parsed}) > 1:
        raise ValueError(
            "local devices have 'localhost' in the job field, and a list of devices should not mix localhost "
            f"with other jobs such as worker or ps, got {names}. Name the devices of one process, such as "
            "['CPU:0', 'CPU:1']"
        )
    if len({(device.job, device.replica, device.task) for device in parsed}) > 1:
        raise RuntimeError(
            f"a MirroredStrategy does not support several workers, but these devices belong to more than one: {names}. "
            "Name the devices of one process, such as ['CPU:0', 'CPU:1']"
        )
    return tuple(map(canonicalize, names)) if may_repeat else canonicalize_distinct(names)


def _checked_ops(cross_device_ops: CrossDeviceOps | None) -> CrossDeviceOps:
    if cross_device_ops is None:
        return CoreAllReduce()
    if not isinstance(cross_device_ops, CrossDeviceOps):
        raise TypeError(
            f"cross_device_ops must be a CrossDeviceOps such as RingAllReduce(), got {cross_device_ops!r} of type "
            f"{type(cross_device_ops).__name__}"
        )
    return cross_device_ops


# Minimum rows per replica of a batch; a smaller array is probably a parameter of the step, such as a vector of weights.
_ROWS_PER_REPLICA = 4

_has_warned = False


def rows_for_all(rows: Sequence[Sequence[Any]], keywords: Sequence[Mapping[str, Any]]) -> int:
    """Return the number of rows if array arguments look like a global batch passed to every replica, else 0."""
    if _has_warned or not (rows[0] or keywords[0]) or (rows[0] and rows[0][0] is not rows[-1][0]):  # fast path
        return 0
    first, last = (*rows[0], *keywords[0].values()), (*rows[-1], *keywords[-1].values())
    lengths = []
    for value, other in zip(first, last, strict=True):
        if value is not other:
            return 0
        if type(value) is np.ndarray or kind_of(value) is not None:
            shape = value.shape
            lengths.append(shape[0] if len(shape) else 0)
    length = lengths[0] if len(set(lengths)) == 1 else 0
    is_even = len(lengths) > 1 or length % len(rows) == 0  # several arrays, such as inputs and labels, are a batch
    return length if length >= _ROWS_PER_REPLICA * len(rows) and is_even else 0


def warn_of_replicated_batch(length: int, num_replicas: int) -> None:
    """Warn once per process that every replica receives the whole batch."""
    global _has_warned
    _has_warned = True
    warnings.warn(
        f"strategy.run passed all {length} rows of an array to each of {num_replicas} replicas, so all compute the "
        f"same result. To split the rows, write strategy.map(fn, array), or batches = strategy.distribute_dataset("
        f"ringlet.data.Dataset.from_tensor_slices(array).batch({length})) and strategy.run(fn, args=(next(iter(batches)"
        "),)). If each replica needs all rows, write warnings.simplefilter('ignore', "
        "ringlet.errors.ReplicatedBatchWarning)",
        ReplicatedBatchWarning,
        stacklevel=6,
    )
