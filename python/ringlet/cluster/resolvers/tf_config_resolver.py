"""TFConfigClusterResolver: the cluster that the environment variable ``TF_CONFIG`` describes."""

from __future__ import annotations

from collections.abc import Mapping

from ringlet.cluster.resolvers.tf_config_base_resolver import TFConfigBaseResolver, environ_or_own
from ringlet.cluster.tf_config_parser import TFConfig

# JSON with the cluster and the task of this process.
_VARIABLE = "TF_CONFIG"


class TFConfigClusterResolver(TFConfigBaseResolver):
    """Reads ``TF_CONFIG`` from the environment (``tf.distribute.cluster_resolver.TFConfigClusterResolver``).

    The variable is read at each call, not when the resolver is created. If it is not set, the cluster is empty, for a
    single process.

    Parameters
    ----------
    task_type : str, optional
        Replaces the value in ``TF_CONFIG``.
    task_id : int, optional
        Replaces the value in ``TF_CONFIG``.
    rpc_layer : str, optional
        Replaces the value in ``TF_CONFIG``.
    environment : str, optional
        The environment in which the program runs.
    environ : mapping of str to str, optional
        The environment to read; by default, the environment of this process.

    Examples
    --------
    >>> environ = {"TF_CONFIG": '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}}'}
    >>> resolver = TFConfigClusterResolver(environ=environ)
    >>> resolver.task_type, resolver.task_id, resolver.cluster_spec(), resolver.master()
    ('worker', 1, ClusterSpec({'worker': ['a:1', 'b:1']}), 'b:1')
    """

    def __init__(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
        environment: str | None = None,
        *,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(task_type, task_id, rpc_layer, environment, environ)

    def _config(self) -> TFConfig:
        return TFConfig.of(environ_or_own(self._environ).get(_VARIABLE, "{}"))
