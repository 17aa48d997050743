"""UnionResolver: the clusters of several resolvers as one."""

from __future__ import annotations

from typing import Any

from ringlet.cluster.cluster_spec import ClusterSpec
from ringlet.cluster.resolvers.base_resolver import ClusterResolver, master_url

__all__ = ["UnionResolver"]


class UnionResolver(ClusterResolver):
    """The clusters of several resolvers as one (``tf.distribute.cluster_resolver.UnionResolver``).

    The first resolver answers for everything but the cluster.

    Parameters
    ----------
    *args : ClusterResolver
        The resolvers, at least one.
    **kwargs
        ``task_type``, ``task_id`` and ``rpc_layer``, in place of those of the first resolver. As in TensorFlow, 0 and
        the empty text count as not given here; set the attribute instead.

    Raises
    ------
    ValueError
        If there is no resolver, or another name in `kwargs`.
    TypeError
        If one of `args` is no resolver.

    Examples
    --------
    >>> from ringlet.cluster_resolver import SimpleClusterResolver
    >>> workers = SimpleClusterResolver(ClusterSpec({"worker": ["a:1", "b:1"]}), task_type="worker", task_id=1)
    >>> servers = SimpleClusterResolver(ClusterSpec({"ps": ["c:1"], "worker": ["d:1"]}))
    >>> union = UnionResolver(workers, servers)
    >>> union.cluster_spec(), union.task_id
    (ClusterSpec({'ps': ['c:1'], 'worker': ['a:1', 'b:1', 'd:1']}), 1)
    """

    def __init__(self, *args: ClusterResolver, **kwargs: Any) -> None:
        self._rpc_layer = kwargs.pop("rpc_layer", None) or None
        self._task_type = kwargs.pop("task_type", None) or None
        self._task_id = kwargs.pop("task_id", None) or None
        if kwargs:
            raise ValueError(f"Unexpected kwargs provided {kwargs!r}: it takes rpc_layer, task_type and task_id")
        if not args:
            raise ValueError("At least one ClusterResolver is required.")
        for resolver in args:
            if not isinstance(resolver, ClusterResolver):
                raise TypeError(f"All arguments must be a sub-class of `ClusterResolver.` One is {resolver!r}")
        self._resolvers = args

    def cluster_spec(self) -> ClusterSpec:
        """Give the tasks of all resolvers.

        Returns
        -------
        ClusterSpec
            The lists of a job that several have stand behind each other; where one has a sparse job, indices count.

        Raises
        ------
        KeyError
            If two resolvers have a task of one index in a job that is sparse in one of them.
        """
        clusters = [resolver.cluster_spec().as_dict() for resolver in self._resolvers]
        merged: dict[Any, Any] = {}
        for job in dict.fromkeys(job for cluster in clusters for job in cluster):
            parts = [cluster[job] for cluster in clusters if job in cluster]
            is_dense = all(isinstance(part, list) for part in parts)
            merged[job] = [address for part in parts for address in part] if is_dense else _merged(job, parts)
        return ClusterSpec(merged)

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """Give the address of a task, or what the first resolver gives.

        Parameters
        ----------
        task_type, task_id : optional
            Which task; both, or neither counts.
        rpc_layer : str, optional
            Protocol to write in front of it.

        Returns
        -------
        str
        """
        if task_type is not None and task_id is not None:
            address = self.cluster_spec().task_address(task_type, task_id)
            return master_url(address, rpc_layer or self._rpc_layer)
        return self._resolvers[0].master(rpc_layer=rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: object = None
    ) -> dict[str, int]:
        """Give what the first resolver gives.

        Parameters
        ----------
        task_type, task_id, config_proto : optional
            Handed on to it.

        Returns
        -------
        dict of str to int
        """
        return self._resolvers[0].num_accelerators(task_type, task_id, config_proto)

    @property
    def environment(self) -> str | None:
        """Give what the first resolver gives."""
        return self._resolvers[0].environment

    @property
    def task_type(self) -> str | None:
        """Give the job of this process, by default what the first resolver gives."""
        return self._resolvers[0].task_type if self._task_type is None else self._task_type

    @task_type.setter
    def task_type(self, task_type: str | None) -> None:
        self._task_type = task_type

    @property
    def task_id(self) -> int | None:
        """Give the index of this process, by default what the first resolver gives."""
        return self._resolvers[0].task_id if self._task_id is None else self._task_id

    @task_id.setter
    def task_id(self, task_id: int | None) -> None:
        self._task_id = task_id

    @property
    def rpc_layer(self) -> str | None:
        """Give the protocol to write in front of addresses, by default what the first resolver gives."""
        return self._resolvers[0].rpc_layer if self._rpc_layer is None else self._rpc_layer

    @rpc_layer.setter
    def rpc_layer(self, rpc_layer: str | None) -> None:
        self._rpc_layer = rpc_layer


def _merged(job: object, parts: list[list[str] | dict[int, str]]) -> dict[int, str]:
    merged: dict[int, str] = {}
    for part in parts:
        tasks = dict(enumerate(part)) if isinstance(part, list) else part
        twice = tasks.keys() & merged.keys()
        if twice:
            raise KeyError(
                f"Duplicate keys detected when merging two ClusterSpecs: {twice!r}. They are tasks of job {job!r}, "
                "which one resolver gives as a dictionary: give each task an index of its own"
            )
        merged.update(tasks)
    return merged
