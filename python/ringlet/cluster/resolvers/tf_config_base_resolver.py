"""TFConfigBaseResolver: base class of resolvers that read a configuration in the format of ``TF_CONFIG``."""

from __future__ import annotations

import abc
import os
from collections.abc import Mapping

from ringlet.cluster.cluster_spec import ClusterSpec
from ringlet.cluster.config_errors import Fault
from ringlet.cluster.resolvers.base_resolver import ClusterResolver, master_url
from ringlet.cluster.tf_config_parser import TFConfig
from ringlet.errors import ClusterConfigError


def environ_or_own(environ: Mapping[str, str] | None) -> Mapping[str, str]:
    """Return `environ`; by default ``os.environ`` itself, so that later changes are visible."""
    return os.environ if environ is None else environ


class TFConfigBaseResolver(ClusterResolver):
    """Base class of resolvers that read a configuration in the format of ``TF_CONFIG`` at each call.

    Parameters
    ----------
    task_type, task_id, rpc_layer : optional
        Override the values of the configuration.
    environment : str, optional
        The environment in which the program runs.
    environ : mapping of str to str, optional
        The environment to read; by default, the environment of this process.
    """

    def __init__(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
        environment: str | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._task_type = task_type
        self._task_id = task_id
        self._rpc_layer = rpc_layer
        self._environment = environment
        self._environ = environ

    @abc.abstractmethod
    def _config(self) -> TFConfig: ...

    def cluster_spec(self) -> ClusterSpec:
        """Return the cluster; it is empty if the configuration has none.

        Raises
        ------
        ClusterConfigError
            If the configuration is invalid; properties and other methods also raise this error.
        """
        return self._config().cluster_spec

    @property
    def task_type(self) -> str | None:
        """Return the job of this process; None if unknown."""
        return self._config().task_type if self._task_type is None else str(self._task_type)

    @task_type.setter
    def task_type(self, task_type: str | None) -> None:
        self._task_type = task_type

    @property
    def task_id(self) -> int | None:
        """Return the index of this process in its job; None if unknown."""
        return self._config().task_id if self._task_id is None else int(self._task_id)

    @task_id.setter
    def task_id(self, task_id: int | None) -> None:
        self._task_id = task_id

    @property
    def rpc_layer(self) -> str | None:
        """Return the protocol prefix of addresses, or None."""
        return self._config().text_of("rpc_layer") if self._rpc_layer is None else self._rpc_layer

    @rpc_layer.setter
    def rpc_layer(self, rpc_layer: str | None) -> None:
        self._rpc_layer = rpc_layer

    @property
    def environment(self) -> str | None:
        """Return the `environment` passed to the constructor, or None."""
        return self._environment

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """Return the address of a task, by default this task; empty if the cluster has at most one task.

        If the configuration has a ``session_master``, it is returned instead.

        Raises
        ------
        ClusterConfigError
            If the task does not exist.
        """
        config = self._config()
        session_master = config.text_of("session_master")
        if session_master is not None:
            return session_master
        spec = config.cluster_spec
        if not spec.jobs or (len(spec.jobs) == 1 and spec.task_indices(spec.jobs[0]) == [0]):
            return ""
        return master_url(self._address(config, task_type, task_id), self.rpc_layer if rpc_layer is None else rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: object = None
    ) -> dict[str, int]:
        """Return an empty dictionary, because all devices are CPUs."""
        task_type = self.task_type if task_type is None else task_type
        task_id = self.task_id if task_id is None else task_id
        return super().num_accelerators(task_type, task_id, config_proto)

    def _error_of(self, fault: Fault) -> ClusterConfigError:
        own = {"type": self._task_type, "index": self._task_id}
        is_of_program = fault.keys[0] == "task" and any(own.get(str(key)) is not None for key in fault.keys[1:])
        return super()._error_of(fault) if is_of_program else self._config().error_of(fault)

    def _address(self, config: TFConfig, task_type: str | None, task_id: int | None) -> str:
        named_type = self.task_type if task_type is None else task_type
        named_id = self.task_id if task_id is None else task_id
        try:
            return config.cluster_spec.task_address(named_type, named_id)  # type: ignore[arg-type]
        except ClusterConfigError as error:
            # Errors name the configuration only for values that were read from it, not for arguments of the program.
            if named_type not in config.cluster_spec.jobs and task_type is None and self._task_type is None:
                raise config.no_task(str(error), "type", named_type) from None
            if named_type in config.cluster_spec.jobs and task_id is None and self._task_id is None:
                raise config.no_task(str(error), "index", named_id) from None
            raise
