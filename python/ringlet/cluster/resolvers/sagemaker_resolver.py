"""SageMakerClusterResolver: the machines of a training job of Amazon SageMaker."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ringlet.cluster.config_errors import ClusterConfigJSONError, ClusterConfigTypeError, shown
from ringlet.cluster.resolvers.tf_config_base_resolver import TFConfigBaseResolver, environ_or_own
from ringlet.cluster.tf_config_parser import TFConfig
from ringlet.errors import ClusterConfigError

# SageMaker sets these variables in every container of a job.
_HOSTS = "SM_HOSTS"  # JSON: the names of all hosts
_CURRENT_HOST = "SM_CURRENT_HOST"

_EXAMPLE = """For example: SM_HOSTS='["algo-1", "algo-2"]' SM_CURRENT_HOST=algo-1"""


class SageMakerClusterResolver(TFConfigBaseResolver):
    """The machines of a training job of SageMaker, as workers sorted by name.

    The environment is read at each call.

    Parameters
    ----------
    port : int
        Port of every task.
    task_type : str, optional
        Replaces ``"worker"``.
    task_id : int, optional
        Replaces the index of this machine.
    rpc_layer : str, optional
        Protocol prefix of addresses.
    environment : str, optional
        The environment in which the program runs.
    environ : mapping of str to str, optional
        The environment to read; by default, the environment of this process.

    Raises
    ------
    RuntimeError
        At each call, if ``SM_HOSTS`` or ``SM_CURRENT_HOST`` is not set.
    ClusterConfigError
        At each call, if their values are invalid.

    References
    ----------
    tensorflow/tensorflow, ``tensorflow/python/distribute/cluster_resolver/sagemaker_cluster_resolver.py``.

    Examples
    --------
    >>> environ = {"SM_HOSTS": '["algo-2", "algo-1"]', "SM_CURRENT_HOST": "algo-2"}
    >>> resolver = SageMakerClusterResolver(environ=environ)
    >>> resolver.cluster_spec(), resolver.task_type, resolver.task_id
    (ClusterSpec({'worker': ['algo-1:2223', 'algo-2:2223']}), 'worker', 1)
    """

    def __init__(
        self,
        port: int = 2223,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
        environment: str | None = None,
        *,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(task_type, task_id, rpc_layer, environment, environ)
        self._port = port

    def _config(self) -> TFConfig:
        hosts, own = _hosts(environ_or_own(self._environ))
        if not hosts:
            return TFConfig.of("{}")
        return TFConfig.of(
            json.dumps(
                {
                    "cluster": {"worker": [f"{host}:{self._port}" for host in hosts]},
                    "task": {"type": "worker", "index": hosts.index(own)},
                }
            )
        )


def _hosts(environ: Mapping[str, str]) -> tuple[list[str], str]:
    """Return the sorted names of all hosts, and the name of this host."""
    missing = [name for name in (_HOSTS, _CURRENT_HOST) if name not in environ]
    if missing:
        raise RuntimeError(f"Not a SageMaker Environment: {' and '.join(missing)} not set. {_EXAMPLE}")
    text, own = environ[_HOSTS], environ[_CURRENT_HOST]
    try:
        hosts = json.loads(text) if text else []
    except json.JSONDecodeError as error:
        raise ClusterConfigJSONError(error.msg, error.doc, error.pos, f"{_HOSTS} must be JSON. {_EXAMPLE}") from None
    except (RecursionError, ValueError) as error:
        raise ClusterConfigError(f"{_HOSTS}, at $: {str(error)[:100]}. {_EXAMPLE}") from None
    if not isinstance(hosts, list) or any(not isinstance(host, str) for host in hosts):
        raise ClusterConfigTypeError(f"{_HOSTS}, at $: found {shown(hosts)}; allowed: a list of host names. {_EXAMPLE}")
    if hosts and own not in hosts:
        raise ClusterConfigError(
            f"{_CURRENT_HOST} is {shown(own)}, which is not in {_HOSTS}: {shown(hosts)}. Every machine would train "
            f"separately. {_EXAMPLE}"
        )
    return sorted(hosts), own
