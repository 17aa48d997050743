"""UnionResolver: combines several clusters into one."""

from __future__ import annotations

from typing import Any

from ringlet.cluster.cluster_spec import ClusterSpec
from ringlet.cluster.resolvers.base_resolver import ClusterResolver, master_url


class UnionResolver(ClusterResolver):
    """Combines the clusters of several resolvers (``tf.distribute.cluster_resolver.UnionResolver``).

    The first resolver provides all other properties, and the task of this process by default.

    Parameters
    ----------
    *args : ClusterResolver
        The resolvers, at least one.
    **kwargs
        ``task_type``, ``task_id`` and ``rpc_layer``, which replace the values of the first resolver. As in TensorFlow,
        0 and the empty string count as not given; set the attribute instead.

    Raises
    ------
    ValueError
        If no resolver is given, or `kwargs` contains an unknown name.
    TypeError
        If one of `args` is not a resolver.

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
            raise ValueError(f"Unexpected kwargs provided {kwargs!r}: expected rpc_layer, task_type or task_id")
        if not args:
            raise ValueError("At least one ClusterResolver is required.")
        for resolver in args:
            if not isinstance(resolver, ClusterResolver):
                raise TypeError(f"All arguments must be a sub-class of `ClusterResolver.` One is {resolver!r}")
        self._resolvers = args

    def cluster_spec(self) -> ClusterSpec:
        """Return the tasks of all resolvers: lists of tasks are concatenated, and sparse jobs keep their indices.

        Raises
        ------
        KeyError
            If two resolvers have the same index in a job that is sparse in one of them.
        """
        clusters = [resolver.cluster_spec().as_dict() for resolver in self._resolvers]
        merged: dict[Any, Any] = {}
        for job in dict.fromkeys(job for cluster in clusters for job in cluster):
            parts = [cluster[job] for cluster in clusters if job in cluster]
            is_dense = all(isinstance(part, list) for part in parts)
            merged[job] = [address for part in parts for address in part] if is_dense else _merged(job, parts)
        return ClusterSpec(merged)

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """Return the address of a task; without a type or an index, the result of the first resolver."""
        if task_type is not None and task_id is not None:
            address = self.cluster_spec().task_address(task_type, task_id)
            return master_url(address, rpc_layer or self._rpc_layer)
        return self._resolvers[0].master(rpc_layer=rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: object = None
    ) -> dict[str, int]:
        """Return the result of the first resolver."""
        return self._resolvers[0].num_accelerators(task_type, task_id, config_proto)

    @property
    def environment(self) -> str | None:
        """Return the result of the first resolver."""
        return self._resolvers[0].environment

    def _default(self, name: str) -> Any:
        return getattr(self._resolvers[0], name)


def _merged(job: object, parts: list[list[str] | dict[int, str]]) -> dict[int, str]:
    merged: dict[int, str] = {}
    for part in parts:
        tasks = dict(enumerate(part)) if isinstance(part, list) else part
        twice = tasks.keys() & merged.keys()
        if twice:
            raise KeyError(
                f"Duplicate keys detected when merging two ClusterSpecs: {twice!r}. They are tasks of job {job!r}, "
                "which at least one resolver describes with task indices: use each index in one resolver only"
            )
        merged.update(tasks)
    return merged
