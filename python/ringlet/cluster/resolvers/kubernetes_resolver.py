"""KubernetesClusterResolver: the pods selected by labels."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any

from ringlet.cluster.cluster_spec import ClusterSpec
from ringlet.cluster.resolvers.base_resolver import AddressResolver


class KubernetesExecutableLocation(enum.Enum):
    """Whether the program runs in the cluster; this determines where the client reads its settings.

    Examples
    --------
    >>> KubernetesExecutableLocation.OFF_CLUSTER
    <KubernetesExecutableLocation.OFF_CLUSTER: 1>
    """

    WITHIN_CLUSTER = 0
    OFF_CLUSTER = 1


class KubernetesClusterResolver(AddressResolver):
    """The pods selected by labels (``tf.distribute.cluster_resolver.KubernetesClusterResolver``).

    The task of this process is not detected: set the attributes `task_type` and `task_id`.

    Parameters
    ----------
    job_to_label_mapping : dict of str to list of str, optional
        Label selectors of the pods of each job, by default ``{"worker": ["job-name=tensorflow"]}``.
    tf_server_port : int
        Port of every task.
    rpc_layer : str, optional
        Protocol prefix of addresses.
    override_client : optional
        A client with ``list_pod_for_all_namespaces(label_selector=)``, by default a ``kubernetes.client.CoreV1Api``
        configured from inside the cluster or from the user's kubeconfig, depending on `executable_location`.
    executable_location : KubernetesExecutableLocation
        Where the program runs.

    Raises
    ------
    ImportError
        If `override_client` is not given and the package ``kubernetes`` is not installed.
    ValueError
        If `override_client` is not given and `executable_location` is not a KubernetesExecutableLocation.

    Examples
    --------
    >>> from types import SimpleNamespace as Record
    >>> class Client:
    ...     def list_pod_for_all_namespaces(self, label_selector):
    ...         pods = {"b": "10.0.0.2", "a": "10.0.0.1"}
    ...         return Record(items=[
    ...             Record(metadata=Record(name=name), status=Record(phase="Running", host_ip=address))
    ...             for name, address in pods.items()
    ...         ])
    >>> KubernetesClusterResolver(override_client=Client()).cluster_spec()
    ClusterSpec({'worker': ['10.0.0.1:8470', '10.0.0.2:8470']})
    """

    def __init__(
        self,
        job_to_label_mapping: Mapping[str, Sequence[str]] | None = None,
        tf_server_port: int = 8470,
        rpc_layer: str | None = "grpc",
        override_client: Any = None,
        executable_location: KubernetesExecutableLocation = KubernetesExecutableLocation.WITHIN_CLUSTER,
    ) -> None:
        self._selectors = job_to_label_mapping or {"worker": ["job-name=tensorflow"]}
        self._port = tf_server_port
        self._rpc_layer = rpc_layer
        self._client = override_client or _new_client(executable_location)

    def cluster_spec(self) -> ClusterSpec:
        """Query the pods, and return the cluster: the pods of each selector sorted by name.

        Raises
        ------
        RuntimeError
            If one of the pods is not running.
        """
        return ClusterSpec(
            {
                job: [address for selector in selectors for address in self._addresses(selector)]
                for job, selectors in self._selectors.items()
            }
        )

    def _addresses(self, selector: str) -> list[str]:
        pods = sorted(
            self._client.list_pod_for_all_namespaces(label_selector=selector).items, key=lambda pod: pod.metadata.name
        )
        for pod in pods:
            if pod.status.phase != "Running":
                raise RuntimeError(
                    f'Pod "{pod.metadata.name}" is not running; phase: "{pod.status.phase}". Wait until every pod of '
                    f"{selector} runs: kubectl wait --for=condition=Ready pod -l {selector}"
                )
        return [f"{pod.status.host_ip}:{self._port}" for pod in pods]


def _new_client(location: KubernetesExecutableLocation) -> Any:
    if not isinstance(location, KubernetesExecutableLocation):
        raise ValueError(
            f"The executable location provided is invalid. Expected a KubernetesExecutableLocation, got {location!r}"
        )
    try:
        from kubernetes import client, config
    except ImportError:
        raise ImportError(
            "The Kubernetes Python client must be installed before using the Kubernetes Cluster Resolver. To install "
            "the Kubernetes Python client, run `pip install kubernetes` on your command line. You can also pass your "
            "own client as override_client="
        ) from None
    if location is KubernetesExecutableLocation.WITHIN_CLUSTER:
        config.load_incluster_config()
    else:
        config.load_kube_config()
    return client.CoreV1Api()
