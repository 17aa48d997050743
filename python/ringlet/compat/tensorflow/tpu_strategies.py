"""TPU strategies that return tensors, and the TPU strategy of TensorFlow 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ringlet.compat.tensorflow.strategies import AliasType, StrategyV1, TensorCalls
from ringlet.compat.tensorflow.tensor import Tensor, as_tensor
from ringlet.sharding import ShardedArray
from ringlet.strategy.tpu import tpu_strategy
from ringlet.strategy.tpu.tpu_extended import TPUExtended
from ringlet.values import PerReplica


class TPUStrategy(TensorCalls, tpu_strategy.TPUStrategy, metaclass=AliasType):
    """:class:`ringlet.TPUStrategy` that returns tensors (``tf.distribute.TPUStrategy``).

    Parameters
    ----------
    tpu_cluster_resolver : TPUClusterResolver, optional
    experimental_device_assignment : DeviceAssignment, optional
    experimental_spmd_xla_partitioning : bool

    Examples
    --------
    >>> from ringlet.compat import tf
    >>> resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="", accelerator_type="v4-8")
    >>> strategy = tf.distribute.TPUStrategy(resolver)
    >>> print(strategy.experimental_replicate_to_logical_devices(3.0) * 2.0)
    6.0
    """

    _stands_for = tpu_strategy.TPUStrategy

    def experimental_split_to_logical_devices(self, tensor: Any, partition_dimensions: Sequence[int]) -> ShardedArray:
        """Split a tensor into tiles; see :meth:`ringlet.TPUStrategy.experimental_split_to_logical_devices`."""
        return super().experimental_split_to_logical_devices(_tensor(tensor), partition_dimensions)

    def experimental_assign_to_logical_device(self, tensor: Any, logical_device_id: int) -> ShardedArray:
        """Place a tensor on one logical device; functions and operators applied to the result return tensors."""
        return super().experimental_assign_to_logical_device(_tensor(tensor), logical_device_id)

    def experimental_replicate_to_logical_devices(self, tensor: Any) -> ShardedArray:
        """Replicate a tensor to all logical devices; functions and operators applied to the result return tensors."""
        return super().experimental_replicate_to_logical_devices(_tensor(tensor))


class ExperimentalTPUStrategy(TensorCalls, tpu_strategy.ExperimentalTPUStrategy, metaclass=AliasType):
    """``ringlet.experimental.TPUStrategy`` that returns tensors.

    Parameters
    ----------
    tpu_cluster_resolver : TPUClusterResolver, optional
    device_assignment : DeviceAssignment, optional
    """

    _stands_for = tpu_strategy.ExperimentalTPUStrategy


class TPUStrategyV1(StrategyV1, TensorCalls, tpu_strategy.TPUStrategyBase):
    """``tf.compat.v1.distribute.experimental.TPUStrategy``.

    Parameters
    ----------
    tpu_cluster_resolver : TPUClusterResolver, optional
    steps_per_run : int, optional
        Default 1: ``extended.experimental_run_steps_on_iterator`` runs one step. With a greater number, it runs as many
        steps as its argument `iterations`.
    device_assignment : DeviceAssignment, optional

    Examples
    --------
    >>> from ringlet.compat import tf
    >>> resolver = tf.compat.v1.distribute.cluster_resolver.TPUClusterResolver(accelerator_type="v4-8")
    >>> strategy = tf.compat.v1.distribute.experimental.TPUStrategy(resolver, steps_per_run=4)
    >>> strategy.steps_per_run, strategy.extended.steps_per_run, strategy.num_replicas_in_sync
    (4, 4, 8)
    """

    def __init__(
        self, tpu_cluster_resolver: Any = None, steps_per_run: int | None = None, device_assignment: Any = None
    ) -> None:
        super().__init__(TPUExtended(self, tpu_cluster_resolver, steps_per_run, device_assignment))

    @property
    def steps_per_run(self) -> int:
        """The argument `steps_per_run`, or 1; equal to ``extended.steps_per_run``."""
        return self._extended.steps_per_run


def _tensor(value: Any) -> Any:
    if isinstance(value, (Tensor, ShardedArray, PerReplica)):  # the strategy raises an error for a PerReplica
        return value
    if type(value) is np.ndarray and value.dtype.kind not in "OSU":
        # A view instead of a copy, so that tiles share the argument's memory.
        whole = value.view(Tensor)
        whole.flags.writeable = False
        return whole
    return as_tensor(value)
