"""Server: runs a task of a cluster in the calling process."""

from __future__ import annotations

import dataclasses
import logging
import os
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ringlet.collectives.timeouts import resolve_timeout
from ringlet.errors import ClusterConfigError, DeadlineExceededError, FailedPreconditionError, NotFoundError

# Modules of clusters and channels are imported in functions, so that importing the class does not load them.
if TYPE_CHECKING:
    from ringlet.cluster import ClusterSpec, ServerDef
    from ringlet.cluster.registration import Task
    from ringlet.cluster.remote_tasks import RemoteCluster, TaskListener
    from ringlet.ipc import LocalChannel
    from ringlet.ipc.deadline import Deadline
    from ringlet.strategy.parameter_server.parameter_server_client import ParameterServers

_log = logging.getLogger(__name__)
_SERVING = ("worker", "ps")
# Maximum time for connecting a worker to the parameter servers, which are already running.
_CONNECT_SECONDS = 10.0


class Server:
    """A task of a cluster in this process, which serves a coordinator (``tf.distribute.Server``).

    The server waits in a thread for the coordinator: the process that creates a ``ParameterServerStrategy`` with the
    same cluster and ``RINGLET_JOB_ID``. If the environment has ``RINGLET_SECRET``, which a cluster of several hosts
    needs, the server listens at the address of its task; otherwise all tasks run on one machine, and addresses are only
    names.

    Parameters
    ----------
    server_or_cluster_def : ClusterResolver, ClusterSpec, ServerDef or dict
        The cluster. A resolver or a ServerDef also determines the task, unless the next arguments do.
    job_name : str, optional
        ``"worker"`` or ``"ps"``. May be left out if the cluster has one job.
    task_index : int, optional
        May be left out if the job has one task.
    protocol : str, optional
        ``"grpc"``, the default; the prefix of `target`, without other effect.
    config : object, optional
        Ignored.
    start : bool
        Whether to start at once.
    timeout_seconds : float, optional
        Maximum wait for the coordinator; by default ``RINGLET_TIMEOUT_SECONDS``, or 600. 0 for no limit.

    Raises
    ------
    TypeError
        If the first argument is not a cluster, `job_name` not a str or `task_index` not an int.
    ValueError
        If the task is ambiguous.
    ClusterConfigError
        If the task is not in the cluster; or if ``RINGLET_SECRET`` is missing or too short.
    OSError
        If the server cannot listen at its address.
    NotFoundError
        If the protocol is not ``"grpc"``.

    Examples
    --------
    >>> server = Server({"worker": ["localhost:2222", "localhost:2223"]}, "worker", 1, start=False)
    >>> server.target
    'grpc://localhost:2223'
    """

    def __init__(  # noqa: PLR0917 - as TensorFlow has them
        self,
        server_or_cluster_def: Any,
        job_name: str | None = None,
        task_index: int | None = None,
        protocol: str | None = None,
        config: Any = None,
        start: bool = True,
        *,
        timeout_seconds: float | None = None,
    ) -> None:
        from ringlet.cluster import ClusterSpec

        self._server_def = _server_def(server_or_cluster_def, job_name, task_index, protocol)
        self._spec = ClusterSpec(self._server_def.cluster)
        self._task: Task = (self._server_def.job_name, self._server_def.task_index)
        _check(self._spec, *self._task, self._server_def.protocol)
        self._timeout_seconds = resolve_timeout(timeout_seconds)
        self._error: BaseException | None = None
        self._is_joined = False
        self._thread: threading.Thread | None = None
        self._listener: TaskListener | None = None  # in clusters of several hosts
        if start:
            self.start()

    @staticmethod
    def create_local_server(config: Any = None, start: bool = True) -> Server:
        """Return the server of a cluster of one task (``tf.distribute.Server.create_local_server``).

        Parameters
        ----------
        config : object, optional
            Ignored.
        start : bool
            Whether to start at once.

        Returns
        -------
        Server
        """
        return Server({"localhost": ["localhost:0"]}, protocol="grpc", config=config, start=start)

    @property
    def server_def(self) -> ServerDef:
        """The cluster and the task."""
        return self._server_def

    @property
    def target(self) -> str:
        """The address of this task, with the protocol."""
        return f"{self._server_def.protocol}://{self._spec.task_address(*self._task)}"

    def start(self) -> None:
        """Start waiting for the coordinator; idempotent.

        No effect unless the task is a worker or a parameter server, in a cluster that has both jobs.
        """
        from ringlet.cluster import ServersJob
        from ringlet.cluster.registration import register
        from ringlet.cluster.remote_tasks import RemoteCluster, TaskListener
        from ringlet.coordinator.task_main import serve_tables
        from ringlet.values.variables.table_server import TableServer

        if self._thread is None and self._task[0] in _SERVING and all(job in self._spec.jobs for job in _SERVING):
            if (cluster := RemoteCluster.of(self._spec)) is not None:
                tables = TableServer()
                self._listener = TaskListener(cluster, self._task, partial(serve_tables, tables))
                connect = partial(_connect_servers, cluster, self._task)
                run = partial(self._run, self._listener.coordinator, tables, connect)
            else:
                job = ServersJob.of(self._spec, os.environ.get("RINGLET_JOB_ID", ""))
                run = partial(self._run, partial(register, job, self._task))
            self._thread = threading.Thread(target=run, name="ringlet-server", daemon=True)
            self._thread.start()

    def join(self) -> None:
        """Wait until a coordinator in another process has ended.

        Coordinators in this process are also served; after one of them, the wait ends when the time-out expires.

        Raises
        ------
        FailedPreconditionError
            If the server was not started, or its task is not served; or if the coordinator refuses the task, because
            the task is registered already or the versions differ.
        DeadlineExceededError
            If no coordinator has connected within the time-out.
        """
        if self._thread is None:
            from ringlet.cluster.worker_job_key import task_name

            raise FailedPreconditionError(
                f"{task_name(*self._task)} does not accept coordinators: call start() first, in a cluster with the "
                f"jobs {' and '.join(_SERVING)}, for a task of one of these jobs"
            )
        self._is_joined = True
        self._thread.join()
        if self._error is not None:
            raise self._error.with_traceback(None)

    def _run(self, wait_for_coordinator: Callable[[Deadline], LocalChannel], *resources: Any) -> None:
        from ringlet.cluster.worker_job_key import task_name
        from ringlet.coordinator.task_main import serve
        from ringlet.ipc.deadline import Deadline

        has_served = False
        try:
            while True:
                channel = wait_for_coordinator(Deadline.after(self._timeout_seconds))
                is_last = not channel.leads_to_this_process
                serve(channel, *self._task, *resources)
                if is_last:
                    return
                has_served = True
        except BaseException as error:
            if has_served and isinstance(error, DeadlineExceededError):
                return
            self._error = error
            if not self._is_joined:  # logged, because join() may never be called
                _log.error("%s: %s", task_name(*self._task), error)
        finally:
            if self._listener is not None:
                self._listener.close()


def _connect_servers(cluster: RemoteCluster, worker: Task) -> ParameterServers:
    from ringlet.cluster.remote_tasks import RemoteTasks
    from ringlet.strategy.parameter_server.parameter_server_client import ParameterServers

    return ParameterServers(RemoteTasks(cluster, _CONNECT_SECONDS, jobs=("ps",), name=cluster.name_of(worker)))


def _server_def(given: Any, job_name: str | None, task_index: int | None, protocol: str | None) -> ServerDef:
    from ringlet.cluster import ClusterResolver, ClusterSpec, ServerDef

    if isinstance(given, ServerDef):
        changes: dict[str, Any] = {"job_name": job_name, "task_index": task_index, "protocol": protocol}
        return dataclasses.replace(given, **{key: value for key, value in changes.items() if value is not None})
    if isinstance(given, ClusterResolver):
        job_name = given.task_type if job_name is None else job_name
        task_index = given.task_id if task_index is None else task_index
        given = given.cluster_spec()
    try:
        spec = ClusterSpec(given)
    except TypeError as error:
        raise TypeError(
            "Could not convert `server_or_cluster_def` to a `tf.train.ServerDef` or `tf.train.ClusterSpec`. "
            f"It is {given!r}: {error}"
        ) from None
    if job_name is None:
        if len(spec.jobs) != 1:
            known = f"has the jobs {', '.join(spec.jobs)}" if spec.jobs else "is empty: is TF_CONFIG set?"
            raise ValueError(f"Must specify an explicit `job_name`. The cluster {known}")
        job_name = spec.jobs[0]
    if task_index is None:
        indices = _indices(spec, job_name)
        if len(indices) != 1:
            raise ValueError(f"Must specify an explicit `task_index`. Job {job_name!r} has {len(indices)} tasks")
        task_index = indices[0]
    return ServerDef(spec.as_cluster_def(), job_name, task_index, "grpc" if protocol is None else protocol)


def _indices(spec: ClusterSpec, job_name: str) -> list[int]:
    if job_name not in spec.jobs:
        raise ClusterConfigError(f'Job "{job_name}" was not defined in cluster. Its jobs: {", ".join(spec.jobs)}')
    return spec.task_indices(job_name)


def _check(spec: ClusterSpec, job_name: Any, task_index: Any, protocol: str) -> None:
    if not isinstance(job_name, str) or not isinstance(task_index, int):
        raise TypeError(f"job_name must be a str and task_index an int, got {job_name!r} and {task_index!r}")
    if task_index not in _indices(spec, job_name):
        raise ClusterConfigError(
            f'Task {task_index} was not defined in job "{job_name}". Its tasks: {_indices(spec, job_name)}'
        )
    if protocol != "grpc":
        raise NotFoundError(
            f"No server factory registered for protocol {protocol!r}: omit protocol, or pass 'grpc'. The protocol does "
            "not affect how processes connect"
        )
