"""ClusterCoordinator: runs functions on the workers of a cluster, whichever is free."""

from __future__ import annotations

import gc
import itertools
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ringlet import nest
from ringlet.cluster import Tasks
from ringlet.coordinator.argument_codec import Functions, Payload, SentFunction, pack_arguments, pack_value
from ringlet.coordinator.closures import Closure
from ringlet.coordinator.dispatcher import Dispatcher
from ringlet.coordinator.per_worker_dataset import PerWorkerDataset
from ringlet.coordinator.per_worker_values import PerWorkerValues
from ringlet.coordinator.remote_value import RemoteValue
from ringlet.coordinator.worker_resource import Resource
from ringlet.errors import FailedPreconditionError
from ringlet.ipc.call_codec import Unsendable
from ringlet.strategy.parameter_server.parameter_server_strategy import ParameterServerStrategy

__all__ = ["ClusterCoordinator"]

_lock = threading.RLock()
_claimed: weakref.WeakValueDictionary[int, ClusterCoordinator] = weakref.WeakValueDictionary()  # by the id of the tasks


class ClusterCoordinator:
    """Runs functions on the workers of a cluster (``tf.distribute.coordinator.ClusterCoordinator``).

    A function that is scheduled runs on whichever worker is free. When a worker is lost, what it had runs on another
    one, and the worker is started again, with its datasets; so a function may run more than once. A parameter server
    that is lost ends the job: every call raises `PSUnavailableError` from then on.

    Parameters
    ----------
    strategy : ParameterServerStrategy
        There is one coordinator for each: making another one gives the same. Its processes are started if need be.

    Raises
    ------
    ValueError
        If it is another strategy.

    Notes
    -----
    Functions, and what they refer to, are pickled when they are scheduled first, and sent to each worker once: Python's
    variables that change later do not change there, as in TensorFlow. Arguments are copied at every call.

    Examples
    --------
    >>> import ringlet
    >>> strategy = ringlet.ParameterServerStrategy(ringlet.cluster_resolver.LocalClusterResolver(workers=2, ps=1))
    >>> with strategy.scope():
    ...     total = ringlet.Variable(0)
    >>> def add(x):
    ...     total.assign_add(x)
    ...     return x * x
    >>> coordinator = ClusterCoordinator(strategy)
    >>> squares = [coordinator.schedule(add, args=(i,)) for i in range(4)]
    >>> coordinator.join()
    >>> coordinator.fetch(squares), int(total)
    ([0, 1, 4, 9], 6)
    >>> coordinator.shutdown()
    """

    _strategy: ParameterServerStrategy

    def __new__(cls, strategy: ParameterServerStrategy) -> ClusterCoordinator:
        """Give the coordinator of a strategy, which is made the first time."""
        if not isinstance(strategy, ParameterServerStrategy):
            raise ValueError(
                "Only `tf.distribute.experimental.ParameterServerStrategy` is supported to work with "
                f"`tf.distribute.experimental.coordinator.ClusterCoordinator` currently. Got {strategy!r}"
            )
        with _lock:
            if strategy._cluster_coordinator is None:
                coordinator = super().__new__(cls)
                coordinator._start(strategy)
            made: ClusterCoordinator = strategy._cluster_coordinator
        return made

    def __init__(self, strategy: ParameterServerStrategy) -> None:
        pass

    def _start(self, strategy: ParameterServerStrategy) -> None:
        servers = strategy._extended._servers()  # type: ignore[attr-defined]  # those of this strategy have it
        _claim(servers.tasks, self)
        self._strategy = strategy
        self._functions = Functions()
        self._numbers = itertools.count()
        self._dispatcher = Dispatcher(servers.tasks, pack_value(strategy), servers.mark_lost)
        try:
            self._dispatcher.start()
            self._finalizer = weakref.finalize(self, self._dispatcher.leave, _shut_down(), 1.0)
            strategy._cluster_coordinator = self
        except BaseException:  # else it would take half of what workers tell the next one
            del _claimed[id(servers.tasks)]
            self._dispatcher.leave(_shut_down(), 1.0)
            raise

    @property
    def strategy(self) -> ParameterServerStrategy:
        """The strategy whose cluster this is."""
        return self._strategy

    def schedule(
        self, fn: Callable[..., Any], args: Sequence[Any] | None = None, kwargs: Mapping[str, Any] | None = None
    ) -> RemoteValue:
        """Have a function run on some worker, and go on at once.

        At most 262144 functions wait for a worker: whoever schedules another one then waits, too.

        Parameters
        ----------
        fn : callable
        args : list or tuple, optional
        kwargs : mapping, optional
            For a `PerWorkerValues` in them the function is handed what its worker has.

        Returns
        -------
        RemoteValue
            Of what the function will return.

        Raises
        ------
        TypeError
            If `fn` cannot be called, or something in it or in its arguments cannot be sent: named.
        ValueError
            If a `RemoteValue` is among the arguments, as in TensorFlow.
        PSUnavailableError
            If a parameter server is lost.
        FailedPreconditionError
            After `shutdown`.
        Exception
            The first one that a function has raised which was scheduled before, after those that run have ended; what
            waits is cancelled. It is raised once.
        """
        self._check_function(fn)
        output = RemoteValue._promised()
        function, arguments = self._packed(fn, args, kwargs)
        closure = Closure(next(self._numbers), function, arguments, output)
        self._dispatcher.queue.put(closure)
        return output

    def join(self) -> None:
        """Wait until every function that was scheduled has run.

        Raises
        ------
        Exception
            As :meth:`schedule`.
        """
        self._dispatcher.queue.join()

    def done(self) -> bool:
        """Tell whether every function that was scheduled has run; raises as :meth:`schedule`.

        Returns
        -------
        bool
        """
        return self._dispatcher.queue.is_done()

    def fetch(self, val: Any) -> Any:
        """Wait for values.

        Parameters
        ----------
        val : nested structure
            With `RemoteValue` in it.

        Returns
        -------
        nested structure
            With what they came to in their place, as `RemoteValue.fetch` gives it; other leaves as they are.

        Raises
        ------
        Exception
            Which a function has raised whose value this is.
        """
        return nest.map_structure(_fetched, val) if nest.is_nested(val) else _fetched(val)

    def create_per_worker_dataset(self, dataset_fn: Any) -> PerWorkerDataset:
        """Give every worker a dataset of its own, whole.

        Parameters
        ----------
        dataset_fn : callable or ringlet.data.Dataset or DistributedDataset
            The dataset; or what makes it, or another iterable of arrays, on each worker. It is called once here before,
            as TensorFlow does, so that its mistakes are seen at once.

        Returns
        -------
        PerWorkerDataset
            ``iter`` of it gives an iterator for each worker, to pass to `schedule`.

        Raises
        ------
        ValueError
            If it is neither, or makes variables.
        TypeError
            If it cannot be sent.
        """
        return PerWorkerDataset(self, dataset_fn)

    def create_per_worker_resource(
        self, fn: Callable[..., Any], args: Sequence[Any] | None = None, kwargs: Mapping[str, Any] | None = None
    ) -> PerWorkerValues:
        """Have every worker make something, and keep it; a worker that was lost and comes back makes it again.

        Parameters
        ----------
        fn : callable
        args : list or tuple, optional
        kwargs : mapping, optional

        Returns
        -------
        PerWorkerValues
            To pass to `schedule`: a function is handed what its worker has made.
        """
        _check_callable(fn, "create_per_worker_resource")
        return PerWorkerValues(self._create_resources(fn, args, kwargs))

    def shutdown(self, timeout_seconds: float = 2.0) -> None:
        """End the workers and the parameter servers, whatever they do; what was not run is cancelled.

        Without it they end with this object, and with this process. What variables hold can still be read. Any thread
        may call this, and a handler of signals.

        Parameters
        ----------
        timeout_seconds : float
            How long it may take.
        """
        self._finalizer.detach()
        self._dispatcher.stop(_shut_down(), timeout_seconds)

    def __reduce__(self) -> Any:
        raise Unsendable(
            "cannot send a ClusterCoordinator to workers: functions there neither schedule nor fetch. Have them return "
            "what is to be done next, and schedule that in the coordinator"
        )

    def _check_function(self, fn: Any) -> None:
        _check_callable(fn, "schedule")

    def _packed(self, fn: Any, args: Any, kwargs: Any, name: str = "") -> tuple[SentFunction, Payload | None]:
        """Pickle a function, unless it is known, and its arguments; wait for values that are to be sent with them."""
        function = self._functions(fn)
        arguments = pack_arguments(args, kwargs, name or function.name)
        for payload in (function.payload, arguments):
            for values in () if payload is None else payload.values:
                values._check(len(self._dispatcher.links))
        return function, arguments

    def _create_resources(
        self, fn: Callable[..., Any], args: Any = None, kwargs: Any = None, name: str = ""
    ) -> list[Resource]:
        self._dispatcher.queue.check_open()
        function, arguments = self._packed(fn, args, kwargs, name)
        resources = []
        for link in self._dispatcher.links:
            resource = Resource(function, arguments, partial(_request_copy, self._dispatcher, link))
            self._dispatcher.call_soon(partial(link.make, resource))
            resources.append(resource)
        return resources


def _check_callable(fn: Any, caller: str) -> None:
    if not callable(fn):
        raise TypeError(f"{caller} takes a function, got {fn!r} of type {type(fn).__name__}: pass what to call")


def _claim(tasks: Tasks, coordinator: ClusterCoordinator) -> None:
    """Note whose cluster it is; refuse if that is another one."""
    if _claimed.get(id(tasks)) is not None:
        gc.collect()  # that of a strategy which nobody has any more
    if _claimed.get(id(tasks)) is not None:
        raise FailedPreconditionError(
            "the cluster of this resolver is that of another strategy, which has a coordinator: make another resolver, "
            "or delete the other strategy"
        )
    _claimed[id(tasks)] = coordinator


def _shut_down() -> FailedPreconditionError:
    return FailedPreconditionError(
        "this coordinator was shut down, and its processes have ended: make another strategy and another coordinator"
    )


def _request_copy(dispatcher: Dispatcher, link: Any, resource: Resource) -> RemoteValue:
    copy = RemoteValue._promised()
    dispatcher.call_soon(partial(link.request, resource, copy))
    return copy


def _fetched(leaf: Any) -> Any:
    return leaf.fetch() if isinstance(leaf, RemoteValue) else leaf
