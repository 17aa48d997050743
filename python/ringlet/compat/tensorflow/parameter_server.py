"""Parameter server strategies that return tensors, and the parameter server strategy of TensorFlow 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ringlet.cluster import ClusterResolver, TFConfigClusterResolver
from ringlet.cluster.cluster_queries import is_chief
from ringlet.cluster.worker_job_key import task_name
from ringlet.compat.tensorflow.strategies import AliasType, StrategyV1, TensorCalls
from ringlet.strategy.api.extended import StrategyExtended
from ringlet.strategy.api.one_device_strategy import OneDeviceExtended
from ringlet.strategy.api.strategy import Strategy
from ringlet.strategy.calls.argument_checks import refuse_per_replica
from ringlet.strategy.calls.reduce_semantics import parse_reduce_op
from ringlet.strategy.parameter_server import parameter_server_strategy


class ParameterServerStrategy(TensorCalls, parameter_server_strategy.ParameterServerStrategy, metaclass=AliasType):
    """:class:`ringlet.ParameterServerStrategy` that returns tensors (``tf.distribute.ParameterServerStrategy``).

    Parameters
    ----------
    cluster_resolver : ClusterResolver
    variable_partitioner : callable, optional

    Examples
    --------
    >>> import ringlet
    >>> from ringlet.compat import tf
    >>> strategy = tf.distribute.ParameterServerStrategy(ringlet.cluster_resolver.LocalClusterResolver(2, 1))
    >>> strategy.num_replicas_in_sync
    1
    """

    _stands_for = parameter_server_strategy.ParameterServerStrategy


class ParameterServerStrategyV1(StrategyV1, TensorCalls):
    """``tf.compat.v1.distribute.experimental.ParameterServerStrategy``, for estimators only, as in TensorFlow.

    Parameters
    ----------
    cluster_resolver : ClusterResolver, optional
        By default, the cluster in ``TF_CONFIG``.

    Raises
    ------
    ValueError
        If the cluster has no parameter servers, or the task of this process is unknown.

    Examples
    --------
    >>> from ringlet.compat import tf
    >>> tf.compat.v1.distribute.experimental.ParameterServerStrategy().extended.worker_devices
    ('/job:chief/replica:0/task:0/device:CPU:0',)
    """

    def __init__(self, cluster_resolver: ClusterResolver | None = None) -> None:
        super().__init__(_ExtendedV1(self, cluster_resolver or TFConfigClusterResolver()))

    def run(self, fn: Callable[..., Any], args: Any = (), kwargs: Any = None, options: Any = None) -> NoReturn:
        """Raise NotImplementedError, as in TensorFlow."""
        raise _for_estimators()

    def reduce(self, reduce_op: Any, value: Any, axis: Any = None) -> Any:
        """Combine the components of a value; as in TensorFlow, an axis raises NotImplementedError."""
        if axis is None:
            return super().reduce(reduce_op, value)
        parse_reduce_op(reduce_op)
        raise _for_estimators()

    def scope(self) -> NoReturn:
        """Raise NotImplementedError, as in TensorFlow."""
        raise _for_estimators()

    def experimental_distribute_dataset(self, dataset: Any, options: Any = None, **kwargs: Any) -> NoReturn:
        """Raise NotImplementedError, as in TensorFlow."""
        refuse_per_replica(self.extended, options)
        raise _for_estimators()

    def distribute_datasets_from_function(self, dataset_fn: Callable[..., Any], options: Any = None) -> NoReturn:
        """Raise NotImplementedError, as in TensorFlow."""
        refuse_per_replica(self.extended, options)
        raise _for_estimators()


def _for_estimators() -> NotImplementedError:
    return NotImplementedError(
        "`tf.compat.v1.distribute.experimental.ParameterServerStrategy` currently only works with the tf.Estimator "
        "API. Use tf.distribute.ParameterServerStrategy with a ClusterCoordinator."
    )


class _ExtendedV1(OneDeviceExtended):
    def __init__(self, container_strategy: Strategy, resolver: ClusterResolver) -> None:
        spec, task_type, task_id = resolver.cluster_spec(), resolver.task_type, resolver.task_id
        self._is_chief = True
        worker = parameter_server_strategy.COORDINATOR
        self._parameter_devices: tuple[str, ...] = (worker,)
        if spec:
            if not task_type or task_id is None:
                raise ValueError(
                    "When `cluster_spec` is given, you must also specify `task_type` and `task_id`, got "
                    f'{task_type!r} and {task_id!r}. Pass them to the cluster resolver, or as "task" in TF_CONFIG.'
                )
            if "ps" not in spec.jobs or not spec.num_tasks("ps"):
                raise ValueError(f"The cluster spec needs to have `ps` jobs, got {spec!r}")
            worker = task_name(task_type, task_id)
            self._parameter_devices = tuple(f"/job:ps/task:{index}" for index in range(spec.num_tasks("ps")))
            self._is_chief = is_chief(spec, task_type, task_id)
        super().__init__(container_strategy, worker)

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """TensorFlow 1's device strings of the parameter servers; without a cluster, of this process."""
        return self._parameter_devices

    @property
    def experimental_between_graph(self) -> bool:
        """True, because every worker runs its own program."""
        return True

    @property
    def experimental_should_init(self) -> bool:
        """Whether this process is the chief."""
        return self._is_chief

    should_checkpoint = should_save_summary = experimental_should_init

    def _call_for_each_replica(self, *arguments: Any) -> NoReturn:
        raise _for_estimators()

    def _update(self, *arguments: Any) -> NoReturn:
        raise _for_estimators()

    def _update_non_slot(self, *arguments: Any) -> NoReturn:
        raise _for_estimators()

    def non_slot_devices(self, var_list: Sequence[Any]) -> Any:
        """Return the variable whose name sorts first."""
        return StrategyExtended.non_slot_devices(self, var_list)
