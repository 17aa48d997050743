"""ClusterResolver: what tells a process which cluster it is in, and which of its tasks it is."""

from __future__ import annotations

import abc

from ringlet.cluster.cluster_spec import ClusterSpec
from ringlet.cluster.config_errors import Fault
from ringlet.errors import ClusterConfigError

__all__ = ["ClusterResolver", "master_url"]


def master_url(address: str, rpc_layer: str | None = None) -> str:
    """Write the address of a task with the protocol to use, if one is given.

    Examples
    --------
    >>> master_url("a:1", "grpc"), master_url("a:1")
    ('grpc://a:1', 'a:1')
    """
    return f"{rpc_layer}://{address}" if rpc_layer else address


class ClusterResolver(abc.ABC):
    """Tells which cluster a process is in, and which task of it it is (``tf.distribute.cluster_resolver``'s).

    Derive from it to read a cluster from a place of your own: write `cluster_spec` and `master`, and set the attributes
    ``_task_type`` and ``_task_id`` (and ``_rpc_layer``), or write properties `task_type` and `task_id`.

    Examples
    --------
    >>> class FileClusterResolver(ClusterResolver):
    ...     def __init__(self, lines, task_id):
    ...         self._lines = lines
    ...         self._task_type, self._task_id = "worker", task_id
    ...     def cluster_spec(self):
    ...         return ClusterSpec({"worker": self._lines})
    ...     def master(self, task_type=None, task_id=None, rpc_layer=None):
    ...         return ""
    >>> resolver = FileClusterResolver(["localhost:2222", "localhost:2223"], 1)
    >>> resolver.task_type, resolver.task_id, resolver.cluster_spec().num_tasks("worker")
    ('worker', 1, 2)
    """

    _task_type: str | None = None
    _task_id: int | None = None
    _rpc_layer: str | None = None

    @abc.abstractmethod
    def cluster_spec(self) -> ClusterSpec:
        """Give the cluster as it is now.

        Returns
        -------
        ClusterSpec
        """
        raise NotImplementedError

    @abc.abstractmethod
    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """Give the address of a task, which programs of TensorFlow 1 open sessions with.

        Parameters
        ----------
        task_type, task_id : optional
            Which task.
        rpc_layer : str, optional
            Protocol to write in front of it.

        Returns
        -------
        str
        """
        raise NotImplementedError

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: object = None
    ) -> dict[str, int]:
        """Give how many accelerators a task has, by kind: none, for devices are CPUs here.

        Parameters
        ----------
        task_type, task_id : optional
            Which task.
        config_proto : optional
            Makes no difference.

        Returns
        -------
        dict of str to int
        """
        self.master(task_type, task_id)  # a task that there is not is an error, as TensorFlow's
        return {}

    @property
    def environment(self) -> str | None:
        """Give where the program runs: an empty text, if nothing else was said."""
        return ""

    @property
    def task_type(self) -> str | None:
        """Give the job that this process belongs to, such as ``"worker"``; None if that is not known."""
        return self._task_type

    @task_type.setter
    def task_type(self, task_type: str | None) -> None:
        self._task_type = task_type

    @property
    def task_id(self) -> int | None:
        """Give the index of this process in its job; None if that is not known."""
        return self._task_id

    @task_id.setter
    def task_id(self, task_id: int | None) -> None:
        self._task_id = task_id

    @property
    def rpc_layer(self) -> str | None:
        """Give the protocol to write in front of addresses; None for none."""
        return self._rpc_layer

    @rpc_layer.setter
    def rpc_layer(self, rpc_layer: str | None) -> None:
        self._rpc_layer = rpc_layer

    def _error_of(self, fault: Fault) -> ClusterConfigError:
        """Make the error about what this resolver says."""
        return fault.as_error(f"What {type(self).__name__} says", "")

    def _master_of(self, task_type: str | None, task_id: int | None, rpc_layer: str | None) -> str:
        """Give the address of a task, by default of this one; an empty text if it is not known which."""
        task_type = self.task_type if task_type is None else task_type
        task_id = self.task_id if task_id is None else task_id
        if task_type is None or task_id is None:
            return ""
        return master_url(self.cluster_spec().task_address(task_type, task_id), rpc_layer or self.rpc_layer)
