"""GCEClusterResolver: the machines of an instance group of Google Compute Engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ringlet.cluster.cluster_spec import ClusterSpec
from ringlet.cluster.resolvers.base_resolver import AddressResolver


class GCEClusterResolver(AddressResolver):
    """The machines of an instance group (``tf.distribute.cluster_resolver.GCEClusterResolver``).

    The machines are the tasks of one job, sorted by address as strings; `task_id` identifies this process.

    Parameters
    ----------
    project, zone, instance_group : str
        The instance group and its location.
    port : int
        Port of every task.
    task_type : str
        Name of the job.
    task_id : int
        Index of this process in the job.
    rpc_layer : str, optional
        Protocol prefix of addresses.
    credentials : optional
        Credentials of the default client; by default the credentials of the machine or of the user.
    service : optional
        A client of version 1 of the API ``compute``, by default created by ``googleapiclient.discovery.build``.

    Raises
    ------
    ImportError
        If `service` is not given and the package ``google-api-python-client`` is not installed.

    Examples
    --------
    >>> class Request:
    ...     def __init__(self, answer):
    ...         self.execute = lambda: answer
    >>> class Service:
    ...     def instanceGroups(self):
    ...         return self
    ...     def instances(self):
    ...         return self
    ...     def listInstances(self, **names):
    ...         return Request({"items": [{"instance": "zones/z/instances/a"}]})
    ...     def listInstances_next(self, previous_request, previous_response):
    ...         return None
    ...     def get(self, project, zone, instance):
    ...         return Request({"networkInterfaces": [{"networkIP": "10.0.0.1"}]})
    >>> GCEClusterResolver("project", "zone", "group", 8470, service=Service()).cluster_spec()
    ClusterSpec({'worker': ['10.0.0.1:8470']})
    """

    def __init__(  # noqa: PLR0917 - TensorFlow's arguments
        self,
        project: str,
        zone: str,
        instance_group: str,
        port: int,
        task_type: str = "worker",
        task_id: int = 0,
        rpc_layer: str | None = "grpc",
        credentials: Any = "default",
        service: Any = None,
    ) -> None:
        self._project = project
        self._zone = zone
        self._instance_group = instance_group
        self._port = port
        self._task_type = task_type
        self._task_id = task_id
        self._rpc_layer = rpc_layer
        self._service = _new_service(credentials) if service is None else service

    def cluster_spec(self) -> ClusterSpec:
        """Query the running machines, and return the cluster."""
        addresses = [f"{self._network_address(name)}:{self._port}" for name in self._instance_names()]
        return ClusterSpec({self._task_type: sorted(addresses)})

    @property
    def task_type(self) -> str | None:
        """Return the name of the job, which cannot be changed."""
        return self._task_type

    @task_type.setter
    def task_type(self, task_type: str | None) -> None:
        raise RuntimeError(
            "You cannot reset the task_type of the GCEClusterResolver after it has been created. Pass task_type= "
            "when creating it."
        )

    def _instance_names(self) -> Iterator[str]:
        groups = self._service.instanceGroups()
        request = groups.listInstances(
            project=self._project,
            zone=self._zone,
            instanceGroup=self._instance_group,
            body={"instanceState": "RUNNING"},
            orderBy="name",
        )
        while request is not None:
            response = request.execute()
            for item in response.get("items", []):
                yield item["instance"].rpartition("/")[2]
            request = groups.listInstances_next(previous_request=request, previous_response=response)

    def _network_address(self, name: str) -> str:
        request = self._service.instances().get(project=self._project, zone=self._zone, instance=name)
        address: str = request.execute()["networkInterfaces"][0]["networkIP"]
        return address


def _new_service(credentials: Any) -> Any:
    try:
        from googleapiclient import discovery
    except ImportError:
        raise ImportError(
            "googleapiclient must be installed before using the GCE cluster resolver: run `pip install "
            "google-api-python-client`, or pass your own client as service="
        ) from None
    if credentials == "default":
        # The client uses the credentials of the machine or of the user.
        return discovery.build("compute", "v1")
    return discovery.build("compute", "v1", credentials=credentials)
