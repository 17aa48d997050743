"""Strategies of parameter servers whose answers are tensors, and that of TensorFlow 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ringlet.cluster import ClusterResolver, TFConfigClusterResolver
from ringlet.cluster.cluster_queries import is_chief
from ringlet.cluster.worker_job_key import task_name
from ringlet.compat.tensorflow.strategies import StandsFor, StrategyV1, TensorCalls
from ringlet.strategy import Strategy, StrategyExtended
from ringlet.strategy.api.argument_checks import refuse_per_replica
from ringlet.strategy.api.one_device_strategy import OneDeviceExtended
from ringlet.strategy.api.reduce_semantics import parse_reduce_op
from ringlet.strategy.parameter_server import parameter_server_strategy

__all__ = ["ParameterServerStrategy", "ParameterServerStrategyV1"]


class ParameterServerStrategy(TensorCalls, parameter_server_strategy.ParameterServerStrategy, metaclass=StandsFor):
    """:class:`ringlet.ParameterServerStrategy`, whose answers are tensors (``tf.distribute.ParameterServerStrategy``).

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
    """``tf.compat.v1.distribute.experimental.ParameterServerStrategy``: in TensorFlow, too, it runs estimators only.

    Parameters
    ----------
    cluster_resolver : ClusterResolver, optional
        By default what ``TF_CONFIG`` says.

    Raises
    ------
    ValueError
        If there is a cluster, and it is not known which task of it this is, or it has no parameter servers.

    Examples
    --------
    >>> from ringlet.compat import tf
    >>> tf.compat.v1.distribute.experimental.ParameterServerStrategy().extended.worker_devices
    ('/job:chief/replica:0/task:0/device:CPU:0',)
    """

    def __init__(self, cluster_resolver: ClusterResolver | None = None) -> None:
        super().__init__(_ExtendedV1(self, cluster_resolver or TFConfigClusterResolver()))

    def run(self, fn: Callable[..., Any], args: Any = (), kwargs: Any = None, options: Any = None) -> NoReturn:
        """Refused, as by TensorFlow."""
        raise _for_estimators()

    def reduce(self, reduce_op: Any, value: Any, axis: Any = None) -> Any:
        """Combine the components of a value into one; refused along an axis, as by TensorFlow."""
        if axis is None:
            return super().reduce(reduce_op, value)
        parse_reduce_op(reduce_op)
        raise _for_estimators()

    def scope(self) -> NoReturn:
        """Refused, as by TensorFlow."""
        raise _for_estimators()

    def experimental_distribute_dataset(self, dataset: Any, options: Any = None, **kwargs: Any) -> NoReturn:
        """Refused, as by TensorFlow."""
        refuse_per_replica(self.extended, options)
        raise _for_estimators()

    def distribute_datasets_from_function(self, dataset_fn: Callable[..., Any], options: Any = None) -> NoReturn:
        """Refused, as by TensorFlow."""
        refuse_per_replica(self.extended, options)
        raise _for_estimators()


def _for_estimators() -> NotImplementedError:
    return NotImplementedError(
        "`tf.compat.v1.distribute.experimental.ParameterServerStrategy` currently only works with the tf.Estimator "
        "API: use tf.distribute.ParameterServerStrategy, with a ClusterCoordinator"
    )


class _ExtendedV1(OneDeviceExtended):
    """Where things would be."""

    def __init__(self, container_strategy: Strategy, resolver: ClusterResolver) -> None:
        spec, task_type, task_id = resolver.cluster_spec(), resolver.task_type, resolver.task_id
        self._is_chief = True
        worker = parameter_server_strategy.COORDINATOR
        self._parameter_devices: tuple[str, ...] = (worker,)
        if spec:
            if not task_type or task_id is None:
                raise ValueError(
                    "When `cluster_spec` is given, you must also specify `task_type` and `task_id`: which of its tasks "
                    "is this process?"
                )
            if "ps" not in spec.jobs or not spec.num_tasks("ps"):
                raise ValueError(f"The cluster spec needs to have `ps` jobs. It is {spec!r}")
            worker = task_name(task_type, task_id)
            self._parameter_devices = tuple(f"/job:ps/task:{index}" for index in range(spec.num_tasks("ps")))
            self._is_chief = is_chief(spec, task_type, task_id)
        super().__init__(container_strategy, worker)

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The parameter servers, in the form that TensorFlow 1 gives them."""
        return self._parameter_devices

    @property
    def experimental_between_graph(self) -> bool:
        """Yes: every worker runs a program of its own."""
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
        """Give the variable with the least name."""
        return StrategyExtended.non_slot_devices(self, var_list)
