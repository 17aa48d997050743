"""ClusterResolver: base class of resolvers, which determine the cluster and the task of a process."""

from __future__ import annotations

import abc
from typing import Any

from ringlet.cluster.cluster_spec import ClusterSpec
from ringlet.cluster.config_errors import Fault
from ringlet.errors import ClusterConfigError


def master_url(address: str, rpc_layer: str | None = None) -> str:
    """Return the address of a task, prefixed with the protocol if there is one."""
    return f"{rpc_layer}://{address}" if rpc_layer else address


class ClusterResolver(abc.ABC):
    """Base class of cluster resolvers (``tf.distribute.cluster_resolver.ClusterResolver``).

    A resolver determines the cluster and the task of a process. Subclasses define `cluster_spec` and `master`, and set
    the attributes ``_task_type`` and ``_task_id`` (and ``_rpc_layer``), or define properties `task_type` and `task_id`.

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
        """Return the current cluster.

        Returns
        -------
        ClusterSpec
        """
        raise NotImplementedError

    @abc.abstractmethod
    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """Return the address of a task, used by TensorFlow 1 programs to open sessions.

        Parameters
        ----------
        task_type, task_id : optional
            Select the task.
        rpc_layer : str, optional
            Protocol prefix.

        Returns
        -------
        str
        """
        raise NotImplementedError

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: object = None
    ) -> dict[str, int]:
        """Return the number of accelerators of a task, by kind; empty unless overridden, because devices are CPUs.

        Parameters
        ----------
        task_type, task_id : optional
            Select the task.
        config_proto : optional
            Ignored.

        Returns
        -------
        dict of str to int
        """
        self.master(task_type, task_id)  # raises an error if the task does not exist, as in TensorFlow
        return {}

    @property
    def environment(self) -> str | None:
        """The environment in which the program runs; empty by default."""
        return ""

    @property
    def task_type(self) -> str | None:
        """The job of this process, such as ``"worker"``; None if unknown."""
        return self._default("task_type") if self._task_type is None else self._task_type

    @task_type.setter
    def task_type(self, task_type: str | None) -> None:
        self._task_type = task_type

    @property
    def task_id(self) -> int | None:
        """The index of this process in its job; None if unknown."""
        return self._default("task_id") if self._task_id is None else self._task_id

    @task_id.setter
    def task_id(self, task_id: int | None) -> None:
        self._task_id = task_id

    @property
    def rpc_layer(self) -> str | None:
        """The protocol prefix of addresses, or None."""
        return self._default("rpc_layer") if self._rpc_layer is None else self._rpc_layer

    @rpc_layer.setter
    def rpc_layer(self, rpc_layer: str | None) -> None:
        self._rpc_layer = rpc_layer

    def _default(self, name: str) -> Any:
        """Return the value of a property that was not set; None unless overridden."""
        return None

    def _error_of(self, fault: Fault) -> ClusterConfigError:
        return fault.as_error(type(self).__name__, "")


class AddressResolver(ClusterResolver):
    """Base class of resolvers whose `master` is the address of a task."""

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """Return the address of a task, by default this task; empty if the task is unknown.

        Raises
        ------
        ClusterConfigError
            If the task does not exist.
        """
        task_type = self.task_type if task_type is None else task_type
        task_id = self.task_id if task_id is None else task_id
        if task_type is None or task_id is None:
            return ""
        return master_url(self.cluster_spec().task_address(task_type, task_id), rpc_layer or self.rpc_layer)
