"""TPUClusterResolver: the hosts of a TPU slice, which is modelled without TPU hardware."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from ringlet.cluster.cluster_spec import ClusterSpec
from ringlet.cluster.resolvers.base_resolver import ClusterResolver, master_url
from ringlet.cluster.resolvers.tf_config_base_resolver import environ_or_own
from ringlet.cluster.tf_connect import experimental_connect_to_cluster
from ringlet.errors import ClusterConfigError
from ringlet.tpu.topology.hardware_feature import HardwareFeatureMessage
from ringlet.tpu.topology.system_metadata import TPUSystemMetadata, cores_by_host, cores_per_host, metadata_of
from ringlet.tpu.topology.topology import Topology
from ringlet.tpu.topology.tpu_system import initialize_tpu_system, slice_topology, tpu_devices

# Environment variables that this file reads; ringlet.tpu.topology.tpu_system reads the variables of the slice itself.
_NAME_VARIABLES = ("KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS", "TPU_NAME")
_HOSTS_VARIABLE = "TPU_WORKER_HOSTNAMES"

_LOCAL = "local"
_PROTOCOL = "grpc"
_PORT = 8470


class TPUClusterResolver(ClusterResolver):
    """The hosts and devices of a TPU slice (``tf.distribute.cluster_resolver.TPUClusterResolver``).

    The type of the slice is the first available of the following: `accelerator_type`; the type in the TPU variables of
    the environment; a v4 slice with one host for each given address; the name of the slice, if it is a type such as
    ``v4-128``; ``v4-16``. No TPU is used, and addresses are names only.

    Parameters
    ----------
    tpu : str, optional
        Name of the slice, ``"grpc://host:port"`` with one or more addresses of its hosts, or ``"local"`` for a slice in
        this process. If None or empty, the value of ``KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS`` or ``TPU_NAME``, if set.
    zone, project : str, optional
        Accepted for compatibility; without effect.
    job_name : str
        The job of the hosts in the cluster.
    coordinator_name, coordinator_address : str, optional
        Job and address of this process, added to the cluster.
    credentials, service, discovery_url : optional
        Accepted for compatibility; without effect.
    accelerator_type : str, optional
        The slice to model, such as ``"v5p-128"``; keyword only.
    environ : mapping of str to str, optional
        Environment to read, by default the environment of this process; keyword only.

    Raises
    ------
    ValueError
        If `tpu` is an empty list.
    NotImplementedError
        If `tpu` is a list of several names.
    TypeError
        If `tpu` is neither a string nor a list of strings.

    Examples
    --------
    >>> resolver = TPUClusterResolver(accelerator_type="v4-16", environ={})
    >>> resolver.cluster_spec()
    ClusterSpec({'worker': ['localhost:8470', 'localhost:8471']})
    >>> resolver.get_tpu_system_metadata().num_cores
    16
    """

    def __init__(  # noqa: PLR0917  # TensorFlow's arguments
        self,
        tpu: Any = None,
        zone: str | None = None,
        project: str | None = None,
        job_name: str = "worker",
        coordinator_name: str | None = None,
        coordinator_address: str | None = None,
        credentials: Any = "default",
        service: Any = None,
        discovery_url: str | None = None,
        *,
        accelerator_type: str | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._environ = environ
        found = environ_or_own(environ)
        self._name = _name(tpu) or next((found[name] for name in _NAME_VARIABLES if found.get(name)), "")
        self._task_type = job_name
        self._task_id = 0
        self._coordinator_name = coordinator_name
        self._coordinator_address = coordinator_address or (f"localhost:{_PORT - 1}" if coordinator_name else None)
        self._accelerator_type = accelerator_type
        self._serialized: bytes | None = None

    @staticmethod
    def connect(tpu: Any = None, zone: str | None = None, project: str | None = None) -> TPUClusterResolver:
        """Create a resolver, connect to its cluster and initialize its TPUs.

        Parameters
        ----------
        tpu, zone, project : optional
            As for the class.

        Returns
        -------
        TPUClusterResolver

        Examples
        --------
        >>> import ringlet
        >>> resolver = TPUClusterResolver.connect("a slice")
        >>> sum(resolver.num_accelerators().values()) > 0
        True
        >>> ringlet.tpu.shutdown_tpu_system(resolver)
        """
        resolver = TPUClusterResolver(tpu, zone, project)
        experimental_connect_to_cluster(resolver)
        initialize_tpu_system(resolver)
        return resolver

    @property
    def tpu_name(self) -> str:
        """The name of the slice, or an empty string."""
        return self._name

    @cached_property
    def topology(self) -> Topology:
        """The topology of the slice, with the coordinates of each device.

        Raises
        ------
        ValueError
            If the slice does not exist, or the number of its hosts differs from the number of addresses given.
        """
        addresses = self._given_addresses()
        topology = slice_topology(
            self._accelerator_type, environ_or_own(self._environ), len(addresses) if addresses else None, self._name
        )
        if addresses and len(addresses) != topology.num_tasks:
            raise ClusterConfigError(
                f"the TPU slice {topology.accelerator_type} has {topology.num_tasks} hosts, but {len(addresses)} "
                f"addresses were given: {', '.join(addresses)}. Pass one address for each host, or name the slice that "
                "has these hosts with accelerator_type= or TPU_ACCELERATOR_TYPE",
                "$",
            )
        return topology

    def get_tpu_system_metadata(self) -> TPUSystemMetadata:
        """Return the devices of the slice.

        Returns
        -------
        TPUSystemMetadata
        """
        return metadata_of(self.topology, self._job_of_devices)

    @property
    def _job_of_devices(self) -> str:
        return "localhost" if self._name == _LOCAL else str(self.task_type)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: object = None
    ) -> dict[str, int]:
        """Return the number of TPU devices of each host; 0 before ``initialize_tpu_system``."""
        cores = cores_by_host(tpu_devices(self._name))
        return {"TPU": cores_per_host(cores.device_map) if cores.total_cores else 0}

    def set_tpu_topology(self, serialized_tpu_topology: bytes) -> None:
        """Set the topology of `tpu_hardware_feature`, a serialized ``TopologyProto``.

        Parameters
        ----------
        serialized_tpu_topology : bytes

        Raises
        ------
        ValueError
            If the bytes are not a TopologyProto.
        """
        HardwareFeatureMessage.of_topology(serialized_tpu_topology)
        self._serialized = bytes(serialized_tpu_topology)

    @property
    def tpu_hardware_feature(self) -> HardwareFeatureMessage | None:
        """The hardware described by the topology, for :class:`HardwareFeature`; None without a topology."""
        return None if self._serialized is None else HardwareFeatureMessage.of_topology(self._serialized)

    def cluster_spec(self) -> ClusterSpec:
        """Return the hosts of the slice, and the coordinator if given; the cluster is empty for ``"local"``."""
        if self._name == _LOCAL:
            return ClusterSpec({})
        addresses = self._given_addresses() or [f"localhost:{_PORT + host}" for host in range(self.topology.num_tasks)]
        jobs = {self.task_type: addresses}
        if self._coordinator_address:
            jobs[self._coordinator_name] = [self._coordinator_address]
        return ClusterSpec(jobs)

    def _given_addresses(self) -> list[str]:
        """Return the addresses of the hosts in the name of the slice or the environment; empty if none apply."""
        hosts = environ_or_own(self._environ).get(_HOSTS_VARIABLE, "")
        if self._name.startswith(f"{_PROTOCOL}://"):
            hosts = self._name
        elif self._name == _LOCAL or self._accelerator_type is not None:
            return []
        names = [host.strip().removeprefix(f"{_PROTOCOL}://") for host in hosts.split(",") if host.strip()]
        return [name if ":" in name else f"{name}:{_PORT}" for name in names]

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """Return the address of a host with ``grpc://``, by default of the first host; empty for ``"local"``.

        Raises
        ------
        ValueError
            If the host does not exist.
        """
        if self._name == _LOCAL:
            return ""
        if task_type is None or task_id is None:
            task_type, task_id = self.task_type, self.task_id
        return master_url(self.cluster_spec().task_address(task_type or "", task_id or 0), _PROTOCOL)

    def get_master(self) -> str:
        """Return the result of `master` without arguments."""
        return self.master()

    def get_job_name(self) -> str | None:
        """Return the job of the hosts."""
        return self.task_type

    def get_coordination_service_leader(self) -> str:
        """Return the name of the leading task, which is the first host."""
        return f"/job:{self.task_type}/task:0"

    def __enter__(self) -> None:
        """Do nothing: no connection is opened."""

    def __exit__(self, *_: object) -> None:
        """Do nothing: no connection is closed."""

    def __deepcopy__(self, memo: dict[int, Any]) -> TPUClusterResolver:
        return self


def _name(tpu: Any) -> str:
    if isinstance(tpu, list):
        if not tpu:
            raise ValueError(
                "At least one TPU must be specified: pass its name, or omit tpu to use the slice of the environment"
            )
        if len(tpu) != 1:
            raise NotImplementedError(
                f"Using multiple TPUs in a single session is not yet implemented: pass one name, got {tpu}"
            )
        tpu = tpu[0]
    if tpu is None:
        return ""
    if isinstance(tpu, bytes):
        return tpu.decode()
    if not isinstance(tpu, str):
        raise TypeError(
            f"tpu must be the name of a slice or 'grpc://host:port', got {tpu!r} of type {type(tpu).__name__}: omit "
            "tpu to use the slice of the environment"
        )
    return tpu
