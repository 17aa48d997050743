"""TPUStrategy: the replicas of a modelled TPU slice, each with several logical devices, on the cores of this host."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ringlet import nest
from ringlet.strategy.api.strategy import Strategy
from ringlet.values import DistributedValues

if TYPE_CHECKING:
    from ringlet.sharding import ShardedArray
    from ringlet.strategy.tpu.tpu_extended import TPUExtended

_log = logging.getLogger(__name__)


class TPUStrategyBase(Strategy):
    """Base class of strategies for TPUs.

    Parameters
    ----------
    extended : TPUExtended
    """

    _extended: TPUExtended

    @property
    def cluster_resolver(self) -> Any:
        """The resolver passed to the strategy, or created by it."""
        return self._extended.cluster_resolver

    def _check_run(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> None:
        if args or kwargs:
            check_run_arguments(fn, args, kwargs)
        super()._check_run(fn, args, kwargs)

    def __repr__(self) -> str:
        extended = self._extended
        replicas, logical_devices = extended._num_replicas_in_sync, extended.num_logical_devices
        return (
            f"TPUStrategy({replicas} replica{'s' * (replicas != 1)} of {logical_devices} logical "
            f"device{'s' * (logical_devices != 1)}, on {extended.num_hosts} host{'s' * (extended.num_hosts != 1)})"
        )


class TPUStrategy(TPUStrategyBase):
    """Runs each step on the replicas of a modelled TPU slice (``tf.distribute.TPUStrategy``).

    Replicas are threads that share the cores and the memory of this host. Each has the logical devices of the
    assignment, on which tensors may be laid out. In a job with one worker for each host of the replicas, each worker
    runs the replicas of its host.

    Parameters
    ----------
    tpu_cluster_resolver : TPUClusterResolver, optional
        Describes the slice; by default taken from the environment.
    experimental_device_assignment : DeviceAssignment, optional
        The cores of each replica; by default each device is a replica.
    experimental_spmd_xla_partitioning : bool
        Whether tensors are always split over or replicated on all logical devices of a replica, and never assigned
        to a single one.

    Raises
    ------
    NotFoundError
        If the resolver has no TPU devices.
    TypeError
        If the assignment is not a DeviceAssignment, or the resolver not a TPUClusterResolver.
    ValueError
        If there are no replicas or more than 4,096, or if each host is a worker, but hosts do not have equal numbers
        of consecutive replicas.

    Examples
    --------
    >>> import numpy as np, ringlet
    >>> resolver = ringlet.cluster_resolver.TPUClusterResolver(accelerator_type="v4-16")
    >>> assignment = ringlet.tpu.DeviceAssignment.build(resolver.topology, [1, 2, 2, 2], num_replicas=1)
    >>> strategy = TPUStrategy(resolver, assignment)
    >>> strategy
    TPUStrategy(1 replica of 8 logical devices, on 1 host)
    >>> def step(image):
    ...     image = strategy.experimental_split_to_logical_devices(image, [1, 2, 4, 1])
    ...     return image.shards[3].shape, float(np.sum(image))
    >>> strategy.run(step, args=(np.ones((16, 32, 32, 3), np.float32),))
    ((16, 16, 8, 3), 49152.0)
    """

    def __init__(
        self,
        tpu_cluster_resolver: Any = None,
        experimental_device_assignment: Any = None,
        experimental_spmd_xla_partitioning: bool = False,
    ) -> None:
        super().__init__(
            _extended(
                self,
                tpu_cluster_resolver,
                device_assignment=experimental_device_assignment,
                is_spmd=bool(experimental_spmd_xla_partitioning),
            )
        )

    def experimental_split_to_logical_devices(self, tensor: Any, partition_dimensions: Sequence[int]) -> ShardedArray:
        """Split a tensor into tiles, one for each logical device of a replica; its values do not change.

        Parameters
        ----------
        tensor : array-like
            An array is not copied: the tiles are views. A tensor that already has a layout gets a new layout.
        partition_dimensions : sequence of int, length ``tensor.ndim``
            Number of tiles along each dimension; ``[1, 2, 4, 1]`` halves the second dimension and quarters the third.

        Returns
        -------
        ShardedArray
            Its ``shards`` are the tiles in row-major order, one for each logical device. NumPy functions and operators
            work tile by tile.

        Raises
        ------
        PartitionError
            In this order: if the number of partition dimensions is not ``tensor.ndim``, a dimension is not a multiple
            of its entry, the product of the entries is not the number of logical devices, or an entry is negative. A
            PartitionError is a ``ValueError``.
        TypeError
            If the partition dimensions are not a list of integers, or the tensor cannot be converted to an array.

        References
        ----------
        tensorflow/tensorflow, ``tensorflow/python/distribute/tpu_strategy.py``: the same checks, tiles and order.

        Examples
        --------
        >>> import numpy as np, ringlet
        >>> resolver = ringlet.cluster_resolver.TPUClusterResolver(accelerator_type="v4-8")
        >>> assignment = ringlet.tpu.DeviceAssignment.build(resolver.topology, [1, 1, 1, 2], num_replicas=4)
        >>> strategy = ringlet.TPUStrategy(resolver, assignment)
        >>> rows = np.arange(8).reshape(4, 2)
        >>> [tile.tolist() for tile in strategy.experimental_split_to_logical_devices(rows, [2, 1]).shards]
        [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
        """
        return self._extended._split(tensor, partition_dimensions)

    def experimental_assign_to_logical_device(self, tensor: Any, logical_device_id: int) -> ShardedArray:
        """Assign a tensor to one logical device of a replica; its values do not change.

        Parameters
        ----------
        tensor : array-like
        logical_device_id : int
            Counted from 0.

        Returns
        -------
        ShardedArray
            Its only shard is the whole tensor.

        Raises
        ------
        ValueError
            If the strategy was created with ``experimental_spmd_xla_partitioning=True``, or the device does not exist.
        TypeError
            If `logical_device_id` is not an integer.

        Examples
        --------
        >>> import numpy as np, ringlet
        >>> resolver = ringlet.cluster_resolver.TPUClusterResolver(accelerator_type="v4-8")
        >>> assignment = ringlet.tpu.DeviceAssignment.build(resolver.topology, [1, 1, 1, 2], num_replicas=4)
        >>> strategy = ringlet.TPUStrategy(resolver, assignment)
        >>> print(strategy.experimental_assign_to_logical_device(np.ones(3), 1).sharding)
        {maximal device=1}
        """
        return self._extended._assign(tensor, logical_device_id)

    def experimental_replicate_to_logical_devices(self, tensor: Any) -> ShardedArray:
        """Replicate a tensor on all logical devices of a replica; its values do not change.

        Parameters
        ----------
        tensor : array-like

        Returns
        -------
        ShardedArray
            Each of its shards is the whole tensor.

        Examples
        --------
        >>> import numpy as np, ringlet
        >>> resolver = ringlet.cluster_resolver.TPUClusterResolver(accelerator_type="v4-8")
        >>> strategy = ringlet.TPUStrategy(resolver)
        >>> print(strategy.experimental_replicate_to_logical_devices(np.ones(2)) + 1)
        [2. 2.]
        """
        return self._extended._replicate(tensor)

    split_to_logical_devices = experimental_split_to_logical_devices
    assign_to_logical_device = experimental_assign_to_logical_device
    replicate_to_logical_devices = experimental_replicate_to_logical_devices


class ExperimentalTPUStrategy(TPUStrategyBase):
    """The older strategy for TPUs, without tensor layouts (``tf.distribute.experimental.TPUStrategy``).

    Parameters
    ----------
    tpu_cluster_resolver, device_assignment : optional
        As for :class:`TPUStrategy`.

    Examples
    --------
    >>> import ringlet
    >>> resolver = ringlet.cluster_resolver.TPUClusterResolver(accelerator_type="v4-8")
    >>> ringlet.experimental.TPUStrategy(resolver).num_replicas_in_sync
    8
    """

    def __init__(self, tpu_cluster_resolver: Any = None, device_assignment: Any = None) -> None:
        _log.warning("experimental.TPUStrategy is deprecated: use TPUStrategy, with experimental_device_assignment=")
        super().__init__(_extended(self, tpu_cluster_resolver, device_assignment=device_assignment))


def _extended(*args: Any, **kwargs: Any) -> TPUExtended:
    # Imported here so that importing the classes does not load their implementation.
    from ringlet.strategy.tpu.tpu_extended import TPUExtended

    extended = TPUExtended(*args, **kwargs)
    num_hosts = len(extended.input_devices)
    if num_hosts > 1:
        from ringlet.strategy.tpu.tpu_workers import TPUWorkersExtended, has_workers

        if has_workers(num_hosts):
            return TPUWorkersExtended(*args, **kwargs)
    return extended


# inspect.CO_VARARGS
_HAS_STAR = 0x04


def check_run_arguments(fn: Callable[..., Any], args: Any, kwargs: Mapping[str, Any] | None) -> None:
    """Raise ValueError for arguments of ``TPUStrategy.run`` that TensorFlow's compiled functions cannot take."""
    if not isinstance(args, (list, tuple)):
        return
    code = getattr(fn, "__code__", None)
    if code is not None and not code.co_flags & _HAS_STAR and not code.co_posonlyargcount:
        # The first argument of a method is bound.
        count = code.co_argcount - hasattr(fn, "__self__")
        if len(args) > count:
            raise _too_many(fn, len(args), count)
        return
    parameters = _parameters(fn)
    if parameters is not None:
        _check_parameters(fn, parameters, args, kwargs or {})


def _parameters(fn: Callable[..., Any]) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):  # some C functions have no signature
        return None


def _check_parameters(
    fn: Callable[..., Any], parameters: list[inspect.Parameter], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    kinds = [parameter.kind for parameter in parameters]
    is_variable = [_begins_with_variable(arg) for arg in args]
    if inspect.Parameter.POSITIONAL_ONLY in kinds:
        named = sum(map(_begins_with_variable, kwargs.values()))
        if named or any(is_variable):
            raise ValueError(
                f"Mixing Variables and positional-only parameters not supported by TPUStrategy. Received {named} "
                f"DistributedVariables in **kwargs and {sum(is_variable)} in *args, expected zero for both. Remove "
                f"the '/' from the parameters of {fn!r}, or use the variable in the function without passing it"
            )
        return
    count = kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        if len(args) > count:
            raise _too_many(fn, len(args), count)
    elif any(is_variable[count:]):
        raise ValueError(
            "TPUStrategy.run() cannot handle Variables passed to *args. Either name the function argument, or capture "
            f"the Variable implicitly, by using it in {fn!r} without passing it"
        )
    elif any(is_variable) and len(args) > count:
        raise ValueError(
            "TPUStrategy.run() cannot handle both Variables and a mix of positional args and *args. Either remove the "
            f"*args of {fn!r}, or capture the Variable implicitly, by using it there without passing it"
        )


def _begins_with_variable(arg: Any) -> bool:
    if isinstance(arg, DistributedValues):
        return getattr(arg, "is_distributed_variable", False)
    leaves = nest.flatten_containers(arg)[0] if nest.is_nested(arg) else []
    return bool(leaves) and getattr(leaves[0], "is_distributed_variable", False)


def _too_many(fn: Callable[..., Any], given: int, count: int) -> ValueError:
    return ValueError(
        f"Too many positional arguments passed to call to TPUStrategy.run(): {given} for {fn!r}, which takes {count}"
    )
