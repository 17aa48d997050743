"""SimpleClusterResolver: a cluster and a task given as arguments."""

from __future__ import annotations

from ringlet.cluster.cluster_spec import ClusterSpec
from ringlet.cluster.resolvers.base_resolver import ClusterResolver, master_url


class SimpleClusterResolver(ClusterResolver):
    """A cluster and a task given as arguments (``tf.distribute.cluster_resolver.SimpleClusterResolver``).

    Parameters
    ----------
    cluster_spec : ClusterSpec
        The cluster.
    master : str
        Address that :meth:`master` returns if no task is given.
    task_type : str, optional
        Job of this process, such as ``"worker"``.
    task_id : int, optional
        Index of this process in its job.
    environment : str
        The environment in which the program runs.
    num_accelerators : dict of str to int, optional
        Number of accelerators of every task, by kind.
    rpc_layer : str, optional
        Protocol prefix of addresses.

    Raises
    ------
    TypeError
        If `cluster_spec` is not a ClusterSpec, or `master` not a string.

    Examples
    --------
    >>> spec = ClusterSpec({"worker": ["localhost:2222", "localhost:2223"]})
    >>> resolver = SimpleClusterResolver(spec, task_type="worker", task_id=1)
    >>> resolver.task_type, resolver.task_id, resolver.master("worker", 0, rpc_layer="grpc")
    ('worker', 1, 'grpc://localhost:2222')
    """

    def __init__(  # noqa: PLR0917 - TensorFlow's arguments
        self,
        cluster_spec: ClusterSpec,
        master: str = "",
        task_type: str | None = None,
        task_id: int | None = None,
        environment: str = "",
        num_accelerators: dict[str, int] | None = None,
        rpc_layer: str | None = None,
    ) -> None:
        if not isinstance(cluster_spec, ClusterSpec):
            raise TypeError(
                f"cluster_spec must be a `tf.train.ClusterSpec`, got {cluster_spec!r}: write "
                "ringlet.train.ClusterSpec({'worker': ['host:port']})"
            )
        if not isinstance(master, str):
            raise TypeError(f"master must be a string, got {master!r}")
        self._cluster_spec = cluster_spec
        self._master = master
        self._task_type = task_type
        self._task_id = task_id
        self._environment = environment
        self._num_accelerators = num_accelerators
        self._rpc_layer = rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        """Return the cluster passed to the constructor."""
        return self._cluster_spec

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """Return the address of a task; without a task type or a task id, the `master` passed to the constructor.

        Raises
        ------
        ClusterConfigError
            If the task does not exist.
        """
        named = task_type is not None and task_id is not None
        address = self._cluster_spec.task_address(task_type, task_id) if named else self._master  # type: ignore[arg-type]
        return master_url(address, rpc_layer or self.rpc_layer)

    @property
    def environment(self) -> str | None:
        """Return the `environment` passed to the constructor."""
        return self._environment

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: object = None
    ) -> dict[str, int]:
        """Return the `num_accelerators` passed to the constructor, for any task."""
        return {} if self._num_accelerators is None else self._num_accelerators
