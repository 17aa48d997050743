"""TensorFlow's functions for connecting to clusters; here they only check their arguments."""

from __future__ import annotations

import logging
from typing import Any

from ringlet.cluster.cluster_spec import ClusterSpec
from ringlet.cluster.resolvers.base_resolver import ClusterResolver

_log = logging.getLogger(__name__)


def experimental_connect_to_cluster(  # noqa: PLR0917  # TensorFlow's arguments
    cluster_spec_or_resolver: Any,
    job_name: str = "localhost",
    task_index: int = 0,
    protocol: str | None = None,
    make_master_device_default: bool = True,
    cluster_device_filters: Any = None,
) -> None:
    """Check that a cluster can be read (``tf.config.experimental_connect_to_cluster``).

    No connection is opened: the devices of a modelled slice are in this process, and workers connect when a strategy is
    first used.

    Parameters
    ----------
    cluster_spec_or_resolver : ClusterSpec or ClusterResolver
    job_name, task_index, protocol, make_master_device_default, cluster_device_filters : optional
        Accepted for compatibility; without effect.

    Raises
    ------
    ValueError
        If the argument is of a different type, or the resolver cannot determine its cluster.

    Examples
    --------
    >>> experimental_connect_to_cluster(ClusterSpec({"worker": ["a:2222"]}))
    """
    if isinstance(cluster_spec_or_resolver, ClusterSpec):
        cluster = cluster_spec_or_resolver
    elif isinstance(cluster_spec_or_resolver, ClusterResolver):
        if not cluster_spec_or_resolver.master():
            return
        cluster = cluster_spec_or_resolver.cluster_spec()
    else:
        raise ValueError(
            "`cluster_spec_or_resolver` must be a `ClusterSpec` or a `ClusterResolver`, got "
            f"{cluster_spec_or_resolver!r} of type {type(cluster_spec_or_resolver).__name__}: pass a resolver such as "
            "TPUClusterResolver()"
        )
    _log.debug("this process uses the devices of %r", cluster)


def experimental_connect_to_host(remote_host: Any = None, job_name: str = "worker") -> None:
    """Check that host addresses can be read (``tf.config.experimental_connect_to_host``).

    Parameters
    ----------
    remote_host : str or list of str
        One address or several.
    job_name : str

    Raises
    ------
    ValueError
        If `remote_host` is empty.

    Examples
    --------
    >>> experimental_connect_to_host("grpc://a:8470")
    """
    if not remote_host:
        raise ValueError("Must provide at least one remote_host, as in experimental_connect_to_host('host:port')")
    hosts = [remote_host] if isinstance(remote_host, str) else list(remote_host)
    experimental_connect_to_cluster(ClusterSpec({job_name: [host.removeprefix("grpc://") for host in hosts]}))
