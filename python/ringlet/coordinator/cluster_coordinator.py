"""ClusterCoordinator: runs functions on any free worker of a cluster."""

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
from ringlet.errors.exception_notes import without
from ringlet.ipc.pickle_codec import Unsendable
from ringlet.strategy.parameter_server.parameter_server_strategy import ParameterServerStrategy

_lock = threading.RLock()
_claimed: weakref.WeakValueDictionary[int, ClusterCoordinator] = weakref.WeakValueDictionary()  # keyed by id(tasks)


@without(close="coordinator.shutdown()", stop="coordinator.shutdown()")
class ClusterCoordinator:
    """Runs functions on the workers of a cluster (``tf.distribute.coordinator.ClusterCoordinator``).

    A scheduled function runs on any free worker. When a worker is lost, its functions are queued again, and the worker
    is restarted with its datasets; so a function may run more than once. The loss of a parameter server ends the job:
    later calls of `schedule`, `join` and `done` raise `PSUnavailableError`.

    Parameters
    ----------
    strategy : ParameterServerStrategy
        A strategy has one coordinator, which a second call returns. The cluster is started if necessary.

    Raises
    ------
    ValueError
        If the strategy is not a ParameterServerStrategy.
    FailedPreconditionError
        If the coordinator of another strategy uses the same cluster.

    Notes
    -----
    A function and the objects it refers to are pickled when it is first scheduled: later changes of Python variables
    have no effect on workers, as in TensorFlow. Arguments are copied at every call.

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
        """Return the coordinator of a strategy; the first call creates it."""
        if not isinstance(strategy, ParameterServerStrategy):
            raise ValueError(
                "Only `tf.distribute.experimental.ParameterServerStrategy` is supported to work with "
                f"`tf.distribute.experimental.coordinator.ClusterCoordinator` currently. Got {strategy!r}. "
                "Write ringlet.ParameterServerStrategy(ringlet.cluster_resolver.LocalClusterResolver(workers=2, ps=1)) "
                "or call run() of this strategy instead of schedule()"
            )
        with _lock:
            if strategy._cluster_coordinator is None:
                coordinator = super().__new__(cls)
                coordinator._start(strategy)
            made: ClusterCoordinator = strategy._cluster_coordinator
        return made

    def __init__(self, strategy: ParameterServerStrategy) -> None:
        pass

    def __repr__(self) -> str:
        return f"<ClusterCoordinator of {self._strategy!r}>"

    def _start(self, strategy: ParameterServerStrategy) -> None:
        servers = strategy._extended._servers()  # type: ignore[attr-defined]  # defined by this strategy's class
        _claim(servers.tasks, self)
        self._strategy = strategy
        self._functions = Functions()
        self._numbers = itertools.count()
        self._dispatcher = Dispatcher(servers.tasks, pack_value(strategy), servers.mark_lost)
        try:
            self._dispatcher.start()
            self._finalizer = weakref.finalize(self, self._dispatcher.leave, _shut_down(), 1.0)
            strategy._cluster_coordinator = self
        except BaseException:  # stop the dispatcher, because the next coordinator reads from the same channels
            del _claimed[id(servers.tasks)]
            self._dispatcher.leave(_shut_down(), 1.0)
            raise

    @property
    def strategy(self) -> ParameterServerStrategy:
        """The strategy of this coordinator."""
        return self._strategy

    def schedule(
        self, fn: Callable[..., Any], args: Sequence[Any] | None = None, kwargs: Mapping[str, Any] | None = None
    ) -> RemoteValue:
        """Schedule a function on any worker and return immediately.

        The queue holds at most 262144 functions; the call blocks while it is full, or `join` runs in another thread.

        Parameters
        ----------
        fn : callable
        args : list or tuple, optional
        kwargs : mapping, optional
            A `PerWorkerValues` in the arguments is passed to the function as its worker's value.

        Returns
        -------
        RemoteValue
            The future result.

        Raises
        ------
        TypeError
            If `fn` is not callable, or if `fn` or an argument contains an object that cannot be sent; the message names
            the object.
        ValueError
            If a `RemoteValue` is among the arguments, as in TensorFlow, or `PerWorkerValues` of another number of
            workers.
        PSUnavailableError
            If a parameter server is lost.
        WorkerLostError
            If no worker is left.
        FailedPreconditionError
            After `shutdown`.
        Exception
            The first error of an earlier function, even if :meth:`fetch` has raised it, as in TensorFlow. The error is
            raised once, after the running functions have ended; queued functions are cancelled.
        """
        self._check_function(fn)
        output = RemoteValue._promised()
        function, arguments = self._packed(fn, args, kwargs)
        closure = Closure(next(self._numbers), function, arguments, output)
        self._dispatcher.queue.put(closure)
        return output

    def join(self) -> None:
        """Wait until every scheduled function has run.

        Raises
        ------
        Exception
            As for :meth:`schedule`.
        """
        self._dispatcher.queue.join()

    def done(self) -> bool:
        """Return whether every scheduled function has run; raise the same errors as :meth:`schedule`.

        Returns
        -------
        bool
        """
        return self._dispatcher.queue.is_done()

    def fetch(self, val: Any) -> Any:
        """Wait for the values of scheduled functions.

        Parameters
        ----------
        val : nested structure
            A structure with `RemoteValue` leaves.

        Returns
        -------
        nested structure
            The same structure with each `RemoteValue` replaced by its `fetch()`; other leaves unchanged.

        Raises
        ------
        Exception
            The error of a function whose value is fetched. Fetching does not clear it for `schedule`, `join` and
            `done`.
        """
        return nest.map_structure(_fetched, val) if nest.is_nested(val) else _fetched(val)

    def create_per_worker_dataset(self, dataset_fn: Any) -> PerWorkerDataset:
        """Return a dataset that each worker creates; the elements are not divided among the workers.

        Parameters
        ----------
        dataset_fn : callable or ringlet.data.Dataset or DistributedDataset
            The dataset, or a function that returns a dataset or another iterable of arrays on each worker. The function
            is first called once on the coordinator, as in TensorFlow, to raise its errors early.

        Returns
        -------
        PerWorkerDataset
            ``iter(dataset)`` creates the dataset on each worker, and returns an iterator for each worker, to pass to
            `schedule`. It raises TypeError if `dataset_fn` cannot be sent.

        Raises
        ------
        ValueError
            If the result is not iterable, or the function creates variables.
        """
        return PerWorkerDataset(self.strategy, self._create_resources, dataset_fn)

    def create_per_worker_resource(
        self, fn: Callable[..., Any], args: Sequence[Any] | None = None, kwargs: Mapping[str, Any] | None = None
    ) -> PerWorkerValues:
        """Create an object on each worker, which keeps it; a restarted worker creates it again.

        Parameters
        ----------
        fn : callable
        args : list or tuple, optional
        kwargs : mapping, optional

        Returns
        -------
        PerWorkerValues
            The objects; a scheduled function receives its worker's object.
        """
        _check_callable(fn, "create_per_worker_resource")
        return PerWorkerValues(self._create_resources(fn, args, kwargs))

    def shutdown(self, timeout_seconds: float = 2.0) -> None:
        """Stop the workers and the parameter servers; queued functions are cancelled.

        Done automatically when the process exits; if this object is collected, the workers are only disconnected.
        Variables remain readable. Safe in any thread and in signal handlers.

        Parameters
        ----------
        timeout_seconds : float
            Time limit.
        """
        self._finalizer.detach()
        self._dispatcher.stop(_shut_down(), timeout_seconds)

    def __reduce__(self) -> Any:
        raise Unsendable(
            "cannot send a ClusterCoordinator to workers: functions there cannot schedule or fetch. Return from the "
            "function, and schedule the next call in the coordinator"
        )

    def _check_function(self, fn: Any) -> None:
        _check_callable(fn, "schedule")

    def _packed(self, fn: Any, args: Any, kwargs: Any, name: str = "") -> tuple[SentFunction, Payload | None]:
        """Pickle a function, unless it is cached, and its arguments; wait for the values that they refer to."""
        function = self._functions(fn)
        arguments = pack_arguments(args, kwargs, name or function.name)
        for payload in (function.payload, arguments):
            for values in () if payload is None else payload.values:
                values._check(len(self._dispatcher.connections))
        return function, arguments

    def _create_resources(
        self, fn: Callable[..., Any], args: Any = None, kwargs: Any = None, name: str = ""
    ) -> list[Resource]:
        self._dispatcher.queue.check_open()
        function, arguments = self._packed(fn, args, kwargs, name)
        resources = []
        for connection in self._dispatcher.connections:
            resource = Resource(function, arguments, partial(_request_copy, self._dispatcher, connection))
            self._dispatcher.call_soon(partial(connection.make, resource))
            resources.append(resource)
        return resources


def _check_callable(fn: Any, caller: str) -> None:
    if not callable(fn):
        raise TypeError(
            f"{caller} takes a function, got {fn!r} of type {type(fn).__name__}: write "
            f"{caller}(fn, ...) with the function, not with its result fn(...)"
        )


def _claim(tasks: Tasks, coordinator: ClusterCoordinator) -> None:
    """Record the coordinator of a cluster; raise an error if the cluster has another coordinator."""
    if _claimed.get(id(tasks)) is not None:
        gc.collect()  # frees the recorded coordinator if it is unreachable
    if _claimed.get(id(tasks)) is not None:
        raise FailedPreconditionError(
            "the cluster of this resolver is used by the coordinator of another strategy: create a resolver for this "
            "strategy, or delete the other strategy"
        )
    _claimed[id(tasks)] = coordinator


def _shut_down() -> FailedPreconditionError:
    return FailedPreconditionError(
        "this coordinator was shut down, and its processes have exited: create another strategy and coordinator"
    )


def _request_copy(dispatcher: Dispatcher, connection: Any, resource: Resource) -> RemoteValue:
    copy = RemoteValue._promised()
    dispatcher.call_soon(partial(connection.request, resource, copy))
    return copy


def _fetched(leaf: Any) -> Any:
    return leaf.fetch() if isinstance(leaf, RemoteValue) else leaf
