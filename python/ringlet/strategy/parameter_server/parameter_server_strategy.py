"""ParameterServerStrategy: functions run on workers asynchronously, and update shared variables."""

from __future__ import annotations

import contextlib
import contextvars
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from ringlet import context
from ringlet.collectives import ReduceOp
from ringlet.collectives.argument_parsing import shortened
from ringlet.devices import canonicalize
from ringlet.devices.device_strings import Device
from ringlet.errors.exception_notes import with_usage
from ringlet.strategy.api.extended import StrategyExtended
from ringlet.strategy.api.one_device_strategy import OneDeviceExtended
from ringlet.strategy.api.strategy import Strategy
from ringlet.values.variables.variable_spec import VariableRequest

# Modules of clusters and servers are imported in functions, so that importing the class does not load them.
if TYPE_CHECKING:
    from ringlet.cluster import ClusterResolver
    from ringlet.data import InputContext
    from ringlet.strategy.calls.value_context import ValueContext
    from ringlet.strategy.parameter_server.parameter_server_client import ParameterServers

_log = logging.getLogger(__name__)

# The device of the coordinator, and a worker's name for its own CPU, as in TensorFlow.
COORDINATOR = "/job:chief/replica:0/task:0/device:CPU:0"
_WORKER_DEVICE = "/device:CPU:0"


class ParameterServerStrategy(Strategy):
    """Updates shared variables from workers asynchronously (``tf.distribute.ParameterServerStrategy``).

    Create the strategy in the coordinator, create variables in its scope, and schedule functions on the workers with a
    ``ClusterCoordinator``. Functions do not wait for each other: each reads the current values of variables.

    Variables are assigned to the parameter servers round-robin. They are in memory that all processes of the machine
    share, so reads and writes need no messages, unless the cluster spans hosts; each row is updated atomically.

    Parameters
    ----------
    cluster_resolver : ClusterResolver
        Describes the workers and parameter servers. With a :class:`~ringlet.cluster_resolver.LocalClusterResolver`, the
        first variable or coordinator starts them; with any other resolver, they are started separately, as servers.
    variable_partitioner : callable, optional
        Returns the number of shards of each variable; see :mod:`ringlet.experimental.partitioners`. By default
        variables are not sharded.

    Raises
    ------
    ValueError
        If the cluster is empty, has unknown jobs, or lacks a worker or a parameter server.
    TypeError
        If an argument has the wrong type.

    Examples
    --------
    >>> import ringlet
    >>> strategy = ParameterServerStrategy(ringlet.cluster_resolver.LocalClusterResolver(workers=2, ps=1))
    >>> strategy
    ParameterServerStrategy(workers=2, ps=1)
    """

    @with_usage("ParameterServerStrategy(ringlet.cluster_resolver.LocalClusterResolver(workers=2, ps=1))")
    def __init__(
        self, cluster_resolver: ClusterResolver, variable_partitioner: Callable[..., Any] | None = None
    ) -> None:
        _check_cluster(cluster_resolver)
        if variable_partitioner is not None and not callable(variable_partitioner):
            raise TypeError(
                f"variable_partitioner is called for each variable, but {variable_partitioner!r} is not callable: "
                "pass one of ringlet.experimental.partitioners"
            )
        super().__init__(ParameterServerExtended(self, cluster_resolver, variable_partitioner))
        # The only ClusterCoordinator of this strategy, once it exists.
        self._cluster_coordinator: Any = None
        from ringlet.values.variables.table_storage import new_table_key

        self._key = new_table_key()

    def _here(self) -> Strategy:
        """Return the strategy to use in this thread.

        In a worker's thread, which may belong to the coordinator's process, this is the strategy of the worker.
        """
        mode = context.current()
        here = None if mode is None else mode.strategy
        return here if isinstance(here, ParameterServerStrategy) and here._key == self._key else self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._extended.describe()})"  # type: ignore[attr-defined]  # set by __init__

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        raise TypeError(
            f"cannot copy {self!r}: its cluster has one coordinator. Create another strategy, with another resolver"
        )


class ParameterServerExtended(OneDeviceExtended):
    """Implementation of :class:`ParameterServerStrategy`, with one replica: the function that runs on a worker.

    In a worker process, `cluster_resolver` is None.
    """

    def __init__(
        self,
        container_strategy: Strategy,
        cluster_resolver: ClusterResolver | None,
        variable_partitioner: Callable[..., Any] | None,
    ) -> None:
        super().__init__(container_strategy, COORDINATOR)
        self._resolver, self._partitioner = cluster_resolver, variable_partitioner
        self._known_servers: ParameterServers | None = None
        self._lock = threading.Lock()
        # Number of variables and shards created, which determines the parameter server of the next variable or shard.
        self._variable_count = 0

    def describe(self) -> str:
        """Return the size of the cluster, or "in a worker", for messages."""
        if self._resolver is None:
            return "in a worker"
        from ringlet.cluster.task_validation import num_tasks

        spec = self._resolver.cluster_spec()
        return f"workers={num_tasks(spec, 'worker')}, ps={num_tasks(spec, 'ps')}"

    # --- properties ---------------------------------------------------------------------------------------------------

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The name of the device on which a worker runs functions, in a tuple."""
        return (_WORKER_DEVICE,)

    @property
    def experimental_between_graph(self) -> bool:
        """True, as in TensorFlow."""
        return True

    def non_slot_devices(self, var_list: Sequence[Any]) -> Any:
        """Return the variable whose name sorts first, as in the default strategy."""
        return StrategyExtended.non_slot_devices(self, var_list)

    # --- the cluster --------------------------------------------------------------------------------------------------

    def _servers(self) -> ParameterServers:
        """Return the parameter servers, after starting the cluster if necessary."""
        if self._resolver is None:
            raise RuntimeError(
                "a worker has no access to the other processes of the cluster: create the ClusterCoordinator in the "
                "coordinator"
            )
        if self._known_servers is None:
            from ringlet.strategy.parameter_server.parameter_server_client import servers_of

            self._known_servers = servers_of(self._resolver)
        return self._known_servers

    def _cluster(self) -> Any:
        """Return the processes of the cluster, after starting them if necessary."""
        return self._servers().tasks

    # --- variables ----------------------------------------------------------------------------------------------------

    def colocate_vars_with(self, colocate_with_variable: Any) -> AbstractContextManager[None]:
        """Return a context manager in which variables are created on another variable's server, without sharding."""
        super().colocate_vars_with(colocate_with_variable)
        first = getattr(colocate_with_variable, "variables", [colocate_with_variable])[0]
        return _fixed_server(Device.parse(first.device).task)

    def _create_variable(self, request: Any) -> Any:
        refusal = _refusal.get()
        if refusal is not None:
            raise ValueError(refusal)
        if self._resolver is None:
            raise ValueError(
                f"{request.describe()} cannot be created here: a function that runs on a worker uses variables "
                "created before it was scheduled. Create it in the coordinator, in the scope of its strategy"
            )
        server = _current_server.get()
        if server is not None or self._partitioner is None:
            return self._create_on(request, server)
        from ringlet.strategy.parameter_server.variable_partitioning import shard_requests
        from ringlet.values.variables.sharded_variable import ShardedVariable

        shards = shard_requests(request, self._partitioner)
        if not shards:
            return self._create_on(request, None)
        return ShardedVariable([self._create_on(shard, None) for shard in shards])

    def _copy_of(self, variable: Any) -> Any:
        """Create a copy of a variable on the same parameter server."""
        spec, server = variable._spec, Device.parse(variable.device).task
        request = VariableRequest(
            variable.read_value(),
            spec.trainable,
            name=spec.name.removesuffix(":0"),
            constraint=spec.constraint,
            synchronization=spec.synchronization,
            aggregation=spec.aggregation,
            array_type=variable._storage.array_type,
        )
        with _fixed_server(server):
            return self._create_variable(request)

    def _create_on(self, request: Any, server: int | None) -> Any:
        """Create a variable on a parameter server; None selects the next parameter server."""
        from ringlet.cluster.worker_job_key import task_name
        from ringlet.values.variables.variable_factory import create_on_table

        servers, strategy = self._servers(), self._container_strategy()
        with self._lock:
            index = self._variable_count % len(servers.tasks.ps) if server is None else server
            device = canonicalize(task_name("ps", index))
            variable = create_on_table(strategy, request, device, partial(servers.create, index))
            self._variable_count += server is None
        return variable

    def _check_updated(self, var: Any) -> None:
        StrategyExtended._check_updated(self, var)
        if not hasattr(var, "assign"):
            raise ValueError(
                f"You can not update `var` {shortened(var)}. It must be a Variable: create it in the scope of "
                f"{self._container_strategy()!r}"
            )

    # --- running ------------------------------------------------------------------------------------------------------

    def _warn_outside(self) -> None:
        if self._resolver is not None:  # the resolver is None on workers
            _log.warning(
                "A `tf.distribute.experimental.ParameterServerStrategy` method is invoked without using "
                "`ClusterCoordinator.schedule`: it runs in the coordinator, not on a worker"
            )

    def _call_with_options(
        self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], options: Any
    ) -> Any:
        self._warn_outside()
        return super()._call_with_options(fn, args, kwargs, options)

    def _reduce(self, op: ReduceOp, value: Any) -> Any:
        self._warn_outside()
        return super()._reduce(op, value)

    def _local_results(self, value: Any) -> tuple[Any, ...]:
        return StrategyExtended._local_results(self, value)

    def _distribute_values_from_function(self, value_fn: Callable[[ValueContext], Any]) -> Any:
        return StrategyExtended._distribute_values_from_function(self, value_fn)

    # --- datasets -----------------------------------------------------------------------------------------------------

    def _distribute_dataset(self, dataset: Any, options: Any, uneven: Literal["keep"] | None = None) -> Any:
        from ringlet.data.distribution.distribute import distribute_dataset

        return self._built_by_workers(partial(distribute_dataset, dataset, 1, options, uneven=uneven))

    def _distribute_datasets_from_function(self, dataset_fn: Callable[[InputContext], Any], options: Any) -> Any:
        from ringlet.data.distribution.distribute import distribute_datasets_from_function

        return self._built_by_workers(partial(distribute_datasets_from_function, dataset_fn, 1, options))

    def _built_by_workers(self, make: Callable[[], Any]) -> Any:
        from ringlet.strategy.parameter_server.dataset_for_workers import DatasetForWorkers

        return make() if self._resolver is None else DatasetForWorkers(make)


# --- the cluster ------------------------------------------------------------------------------------------------------


# Remedy in errors about the cluster.
_WITHOUT_CLUSTER = (
    "write ringlet.cluster_resolver.LocalClusterResolver(workers=2, ps=1), which starts processes on this machine"
)


def _check_cluster(resolver: Any) -> None:
    from ringlet.cluster import ClusterResolver
    from ringlet.cluster.config_errors import Fault
    from ringlet.cluster.task_validation import check_task, num_tasks

    if not isinstance(resolver, ClusterResolver):
        raise TypeError(
            f"cluster_resolver must be a ClusterResolver, got {resolver!r} of type {type(resolver).__name__}: "
            f"{_WITHOUT_CLUSTER}"
        )
    spec = resolver.cluster_spec()
    if not spec:
        raise ValueError(
            "Cluster spec must be non-empty in `tf.distribute.cluster_resolver.ClusterResolver`. Name the workers and "
            f"the parameter servers in it, for example in TF_CONFIG, or {_WITHOUT_CLUSTER}"
        )
    try:
        check_task(spec, resolver.task_type, resolver.task_id)
    except Fault as fault:
        raise resolver._error_of(fault) from None
    for job, hint in (("ps", "; `ringlet run` starts workers only"), ("worker", "")):
        if not num_tasks(spec, job):
            raise ValueError(
                f"There must be at least one {job}. The cluster is {spec!r}{hint}. Add the job {job!r}, or "
                f"{_WITHOUT_CLUSTER}"
            )


# --- creation of variables --------------------------------------------------------------------------------------------

_current_server: contextvars.ContextVar[int | None] = contextvars.ContextVar("_current_server", default=None)
_refusal: contextvars.ContextVar[str | None] = contextvars.ContextVar("_refusal", default=None)


@contextlib.contextmanager
def _fixed_server(index: int) -> Iterator[None]:
    token = _current_server.set(index)
    try:
        yield
    finally:
        _current_server.reset(token)


@contextlib.contextmanager
def refusing_variables(message: str) -> Iterator[None]:
    """Return a context manager in which creating a variable on parameter servers raises ValueError(message)."""
    token = _refusal.set(message)
    try:
        yield
    finally:
        _refusal.reset(token)


# --- in the process of a worker ---------------------------------------------------------------------------------------

_task_strategies: dict[int, ParameterServerStrategy] = {}


def reduce_strategy(strategy: ParameterServerStrategy) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return a ``__reduce__`` value that unpickles, on a worker, to the result of :func:`task_strategy`."""
    return task_strategy, (type(strategy), strategy._key)


def task_strategy(kind: type[ParameterServerStrategy], key: int) -> ParameterServerStrategy:
    """Return a worker's strategy, which cannot create variables; the same object for the same key."""
    strategy = _task_strategies.get(key)
    if strategy is None:
        strategy = kind.__new__(kind)
        Strategy.__init__(strategy, ParameterServerExtended(strategy, None, None))
        strategy._cluster_coordinator, strategy._key = None, key
        strategy = _task_strategies.setdefault(key, strategy)
    return strategy
