"""Strategies that return tensors, and the strategies of TensorFlow 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ringlet import data, nest
from ringlet.cluster import ClusterResolver
from ringlet.collectives import CommunicationImplementation, CommunicationOptions, ReduceOp
from ringlet.compat.tensorflow.elements import TensorElements, as_tensors
from ringlet.compat.tensorflow.tensor import as_tensor
from ringlet.errors.exception_notes import with_usage
from ringlet.strategy.api import central_storage_strategy, current_strategy, mirrored_strategy, one_device_strategy
from ringlet.strategy.api.strategy import Strategy
from ringlet.strategy.calls.reduce_semantics import parse_reduce_op
from ringlet.strategy.multi_worker import multi_worker_strategy
from ringlet.strategy.parameter_server.dataset_for_workers import DatasetForWorkers
from ringlet.strategy.replica import replica_context
from ringlet.values import PerReplica, Variable

# Types that TensorFlow converts to tensors before values are combined.
_VALUES = (bool, int, float, complex, np.ndarray, np.generic)


# --- distributed datasets ---------------------------------------------------------------------------------------------


class DistributedIterator(TensorElements, data.DistributedIterator):
    """Iterator over the steps of a distributed dataset as tensors; created by ``iter(distributed_dataset)``."""

    __slots__ = ()


class DistributedDataset(data.DistributedDataset):
    """A distributed dataset whose steps hold tensors for each replica; created by strategies."""

    def __iter__(self) -> DistributedIterator:
        return DistributedIterator(super().__iter__()._source)


def _with_tensors(distributed: Any) -> Any:
    if isinstance(distributed, DatasetForWorkers):
        return distributed.then(_with_tensors)
    if type(distributed) is data.DistributedDataset:
        return DistributedDataset._decided(distributed.decision)
    return distributed


# --- strategies -------------------------------------------------------------------------------------------------------


class AliasType(type):
    """Metaclass of a class derived from ringlet's: an instance of ringlet's class counts as an instance of both."""

    def __instancecheck__(cls, instance: Any) -> bool:
        original = vars(cls).get("_stands_for")
        return type.__instancecheck__(cls, instance) or (original is not None and isinstance(instance, original))


class TensorCalls(Strategy):
    """Mixin that makes a strategy return tensors; must precede the strategy class in the list of bases."""

    @with_usage("strategy.reduce('SUM', value, axis=None)")
    def reduce(self, reduce_op: Any, value: Any, axis: Any) -> Any:
        """Combine the components of a value; arrays in the result are tensors; see :meth:`ringlet.Strategy.reduce`."""
        result = _results(super().reduce(reduce_op, _components(value), axis))
        # As in TensorFlow, the mean of a number is the number itself, but its sum on a mirrored strategy is a tensor.
        if parse_reduce_op(reduce_op) is ReduceOp.SUM and isinstance(self.extended, mirrored_strategy.MirroredExtended):
            return nest.map_structure(_as_tensor, result)
        return result

    def gather(self, value: Any, axis: int) -> Any:
        """Concatenate the components of a value into tensors; see :meth:`ringlet.Strategy.gather`."""
        return _results(super().gather(_components(value), axis))

    def experimental_distribute_dataset(self, dataset: Any, options: Any = None, **kwargs: Any) -> Any:
        """Split the batches of a dataset across the replicas; each step holds tensors."""
        return _with_tensors(super().experimental_distribute_dataset(dataset, options, **kwargs))

    def distribute_datasets_from_function(self, dataset_fn: Callable[..., Any], options: Any = None) -> Any:
        """Create a dataset with a function, and distribute its batches to the replicas; each step holds tensors."""
        return _with_tensors(super().distribute_datasets_from_function(dataset_fn, options))


def _components(value: Any) -> Any:
    """Convert the numbers and plain arrays in PerReplica values to tensors."""
    return nest.map_structure(_of_tensors, value) if nest.is_nested(value) else _of_tensors(value)


def _of_tensors(leaf: Any) -> Any:
    if type(leaf) is not PerReplica:
        return leaf
    return PerReplica([nest.map_structure(_as_tensor, component) for component in leaf.values])


def _as_tensor(leaf: Any) -> Any:
    return as_tensor(leaf) if isinstance(leaf, _VALUES) else leaf


def _results(value: Any) -> Any:
    return nest.map_structure(
        lambda leaf: as_tensors(leaf) if isinstance(leaf, (np.ndarray, np.generic)) else leaf, value
    )


class MirroredStrategy(TensorCalls, mirrored_strategy.MirroredStrategy, metaclass=AliasType):
    """:class:`ringlet.MirroredStrategy` that returns tensors (``tf.distribute.MirroredStrategy``).

    Parameters
    ----------
    devices : sequence of str, optional
    cross_device_ops : CrossDeviceOps, optional

    Examples
    --------
    >>> import ringlet
    >>> from ringlet.compat import tf
    >>> isinstance(ringlet.MirroredStrategy(["CPU:0"]), tf.distribute.MirroredStrategy)
    True
    """

    _stands_for = mirrored_strategy.MirroredStrategy


class OneDeviceStrategy(TensorCalls, one_device_strategy.OneDeviceStrategy, metaclass=AliasType):
    """:class:`ringlet.OneDeviceStrategy` that returns tensors (``tf.distribute.OneDeviceStrategy``).

    Parameters
    ----------
    device : str
    """

    _stands_for = one_device_strategy.OneDeviceStrategy


class CentralStorageStrategy(TensorCalls, central_storage_strategy.CentralStorageStrategy, metaclass=AliasType):
    """``ringlet.experimental.CentralStorageStrategy`` that returns tensors.

    Parameters
    ----------
    compute_devices : sequence of str, optional
    parameter_device : str, optional
    """

    _stands_for = central_storage_strategy.CentralStorageStrategy


class MultiWorkerMirroredStrategy(TensorCalls, multi_worker_strategy.MultiWorkerMirroredStrategy, metaclass=AliasType):
    """:class:`ringlet.MultiWorkerMirroredStrategy` that returns tensors.

    Parameters
    ----------
    cluster_resolver : ClusterResolver, optional
    communication_options : CommunicationOptions, optional

    Examples
    --------
    >>> from ringlet.compat import tf
    >>> tf.distribute.MultiWorkerMirroredStrategy().cluster_resolver.task_type is None
    True
    """

    _stands_for = multi_worker_strategy.MultiWorkerMirroredStrategy


class MultiWorkerMirroredStrategyExperimental(MultiWorkerMirroredStrategy):
    """``tf.distribute.experimental.MultiWorkerMirroredStrategy``: the same strategy with other arguments.

    Parameters
    ----------
    communication : CommunicationImplementation
    cluster_resolver : ClusterResolver, optional
    """

    _stands_for = multi_worker_strategy.MultiWorkerMirroredStrategy

    def __init__(
        self,
        communication: CommunicationImplementation = CommunicationImplementation.AUTO,
        cluster_resolver: ClusterResolver | None = None,
    ) -> None:
        super().__init__(cluster_resolver, CommunicationOptions(implementation=communication))


# --- TensorFlow 1 -----------------------------------------------------------------------------------------------------


class StrategyV1(Strategy):
    """Base class of TensorFlow 1's strategies (``tf.compat.v1.distribute.Strategy``).

    Parameters
    ----------
    extended : StrategyExtended
    """

    def reduce(self, reduce_op: Any, value: Any, axis: Any = None) -> Any:
        """Combine the components of a value into one value; the axis is optional."""
        return super().reduce(reduce_op, value, axis)

    @property
    def gather(self) -> NoReturn:
        """Raise AttributeError, because TensorFlow 1 does not have this method."""
        raise _not_in_v1(self, "gather")

    @property
    def experimental_distribute_values_from_function(self) -> NoReturn:
        """Raise AttributeError, because TensorFlow 1 does not have this method."""
        raise _not_in_v1(self, "experimental_distribute_values_from_function")


def _not_in_v1(strategy: Any, name: str) -> AttributeError:
    return AttributeError(
        f"{type(strategy).__name__!r} object has no attribute {name!r}: strategies of tf.compat.v1 do not have it. "
        "Use the strategy of tf.distribute.",
        name=name,
        obj=strategy,
    )


class MirroredStrategyV1(StrategyV1, MirroredStrategy):
    """``tf.compat.v1.distribute.MirroredStrategy``.

    Parameters
    ----------
    devices : sequence of str, optional
    cross_device_ops : CrossDeviceOps, optional

    Examples
    --------
    >>> from ringlet.compat import tf
    >>> strategy = tf.compat.v1.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    >>> strategy.reduce("MEAN", strategy.run(lambda: tf.constant([1.0, 2.0])))
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>
    """


class MultiWorkerMirroredStrategyV1(StrategyV1, MultiWorkerMirroredStrategyExperimental):
    """``tf.compat.v1.distribute.experimental.MultiWorkerMirroredStrategy``.

    Parameters
    ----------
    communication : CommunicationImplementation
    cluster_resolver : ClusterResolver, optional
    """


class OneDeviceStrategyV1(StrategyV1, OneDeviceStrategy):
    """``tf.compat.v1.distribute.OneDeviceStrategy``.

    Parameters
    ----------
    device : str
    """


class CentralStorageStrategyV1(StrategyV1, CentralStorageStrategy):
    """``tf.compat.v1.distribute.experimental.CentralStorageStrategy``.

    Parameters
    ----------
    compute_devices : sequence of str, optional
    parameter_device : str, optional
    """


# --- replicas ---------------------------------------------------------------------------------------------------------


class ReplicaContext(replica_context.ReplicaContext):
    """Context of one replica, whose methods return tensors. Created by ``tf.distribute.get_replica_context``."""

    __slots__ = ()

    @property
    def replica_id_in_sync_group(self) -> Any:
        """Index of this replica among the replicas of all workers, as a tensor of int32."""
        return as_tensors(super().replica_id_in_sync_group)

    def all_reduce(self, reduce_op: Any, value: Any, options: Any = None, *, out: Any = None) -> Any:
        """Combine the arrays of all replicas into tensors; see :meth:`ringlet.ReplicaContext.all_reduce`."""
        return super().all_reduce(reduce_op, _all_tensors(value), options, out=out)

    def all_gather(self, value: Any, axis: int, options: Any = None) -> Any:
        """Concatenate the arrays of all replicas into tensors; see :meth:`ringlet.ReplicaContext.all_gather`."""
        return super().all_gather(_all_tensors(value), axis, options)


def _all_tensors(value: Any) -> Any:
    return nest.map_structure(_combined_as_tensor, value)


def _combined_as_tensor(leaf: Any) -> Any:
    return as_tensor(leaf) if isinstance(leaf, (*_VALUES, Variable)) else leaf


def get_replica_context() -> replica_context.ReplicaContext | None:
    """Return the replica context, whose methods return tensors, or None; see :func:`ringlet.get_replica_context`.

    Examples
    --------
    >>> from ringlet.compat import tf
    >>> strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    >>> strategy.run(lambda: tf.distribute.get_replica_context().replica_id_in_sync_group)
    PerReplica:{
      0: <tf.Tensor: shape=(), dtype=int32, numpy=0>,
      1: <tf.Tensor: shape=(), dtype=int32, numpy=1>
    }
    """
    replica = current_strategy.get_replica_context()
    if type(replica) is replica_context.ReplicaContext:
        # The class is changed in place, because the object's identity identifies the replica.
        replica.__class__ = ReplicaContext
    return replica
