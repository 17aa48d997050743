"""ClusterCoordinator of ``tf.distribute``: schedules functions decorated with ``tf.function``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringlet import coordinator
from ringlet.compat.tensorflow.elements import as_tensors
from ringlet.compat.tensorflow.strategies import AliasType
from ringlet.tf_function import Function


class ClusterCoordinator(coordinator.ClusterCoordinator, metaclass=AliasType):
    """:class:`ringlet.coordinator.ClusterCoordinator`, limited to functions decorated with ``tf.function``.

    Parameters
    ----------
    strategy : ParameterServerStrategy

    Examples
    --------
    >>> import ringlet
    >>> from ringlet.compat import tf
    >>> resolver = ringlet.cluster_resolver.LocalClusterResolver(workers=1, ps=1)
    >>> coordinator = ClusterCoordinator(tf.distribute.ParameterServerStrategy(resolver))
    >>> coordinator.schedule(tf.function(lambda x: x + 1.5), args=(tf.constant(2.0),)).fetch()
    np.float32(3.5)
    >>> coordinator.shutdown()
    """

    _stands_for = coordinator.ClusterCoordinator

    def _check_function(self, fn: Any) -> None:
        if not isinstance(fn, Function):
            raise TypeError(
                "`tf.distribute.experimental.coordinator.ClusterCoordinator.schedule` only accepts a `tf.function` or "
                f"a concrete function. Decorate {fn!r} with @tf.function."
            )


def experimental_get_current_worker_index() -> Any:
    """Return the index of the worker that runs the calling function, as a tensor of int64.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> with coordinator.current_worker.as_worker(3):
    ...     experimental_get_current_worker_index()
    <tf.Tensor: shape=(), dtype=int64, numpy=3>
    """
    return as_tensors(np.int64(coordinator.experimental_get_current_worker_index()))
