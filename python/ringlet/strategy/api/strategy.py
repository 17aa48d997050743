"""Strategy: the base class of all strategies, with their public methods."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, TypeVar, overload

from ringlet import _core, context, nest
from ringlet.devices import short_list
from ringlet.errors.exception_notes import with_usage, without
from ringlet.observe import trace_hook
from ringlet.strategy.api.deprecated_calls import DeprecatedCalls
from ringlet.strategy.api.extended import StrategyExtended
from ringlet.strategy.calls.argument_checks import check_arguments, check_function, check_input_options
from ringlet.strategy.calls.context_checks import require_cross_replica
from ringlet.strategy.calls.gather_semantics import refuse_slices
from ringlet.strategy.calls.reduce_semantics import parse_reduce_op, reduce_over_axis
from ringlet.strategy.calls.value_context import ValueContext
from ringlet.strategy.replica.replica_context import traced_on_replicas

K = TypeVar("K")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import TypeVarTuple, Unpack

    from ringlet.collectives import ReduceOp
    from ringlet.data import InputContext
    from ringlet.values import DistributedValues, PerReplica

    Arrays = TypeVarTuple("Arrays")
    Result: TypeAlias = T | PerReplica[T]  # with one replica, `run` returns the value itself


@without(
    all_reduce="strategy.reduce('SUM', value, axis=None)",
    devices="strategy.extended.worker_devices",
    num_replicas="strategy.num_replicas_in_sync",
)
class Strategy(DeprecatedCalls):
    """Base class of strategies, which run a step function on replicas and combine values (``tf.distribute.Strategy``).

    Use one of its subclasses, or derive a class that has its own extended object.

    Parameters
    ----------
    extended : StrategyExtended
        The implementation, whose hooks the methods below call.

    Notes
    -----
    Methods named ``experimental_NAME`` in TensorFlow are also available as ``NAME``, here and in other classes.

    Examples
    --------
    >>> import ringlet
    >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    >>> isinstance(strategy, Strategy)
    True
    """

    def __init__(self, extended: StrategyExtended) -> None:
        self._extended = extended

    def _here(self) -> Strategy:
        """Return the strategy to use in the current thread: this strategy, unless a subclass overrides the method."""
        return self

    def _checked(self, *method: str) -> StrategyExtended:
        """Check that a call is allowed in this context, and return the extended object."""
        strategy = self._here()
        require_cross_replica(strategy, *method)
        return strategy._extended

    def _check_run(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> None:
        check_arguments(args, kwargs)
        check_function(fn)

    @property
    def extended(self) -> StrategyExtended:
        """The lower-level methods of this strategy."""
        return self._extended

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas in a step, over all workers."""
        return self._extended._num_replicas_in_sync

    def _repr_html_(self) -> str:
        from ringlet.values.notebook_repr import facts_table

        devices = short_list(self._extended.worker_devices).replace("'", "")[1:-1]
        return facts_table(type(self).__name__, {"replicas in sync": self.num_replicas_in_sync, "devices": devices})

    @property
    def cluster_resolver(self) -> Any:
        """The resolver of a TPUStrategy or MultiWorkerMirroredStrategy; None for other strategies."""
        return None

    def scope(self) -> context.Scope:
        """Return a context manager that makes this strategy current.

        Returns
        -------
        context manager
            Entering it returns the strategy. Scopes of the same strategy may be nested.

        Raises
        ------
        RuntimeError
            On entering, inside a replica or inside the scope of another strategy.

        Examples
        --------
        >>> import ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0"])
        >>> with strategy.scope():
        ...     ringlet.get_strategy() is strategy
        True
        """
        strategy = self._here()
        return strategy._extended._scope(strategy)

    @overload
    def run(
        self,
        fn: Callable[..., None],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        options: Any = None,
    ) -> None: ...
    @overload
    def run(
        self,
        fn: Callable[..., dict[K, T]],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        options: Any = None,
    ) -> dict[K, Result[T]]: ...
    @overload
    def run(
        self,
        fn: Callable[..., tuple[S, T]],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        options: Any = None,
    ) -> tuple[Result[S], Result[T]]: ...
    @overload
    def run(
        self,
        fn: Callable[..., T],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        options: Any = None,
    ) -> Result[T]: ...
    def run(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        options: Any = None,
    ) -> Any:
        """Call a function once on each replica of this process.

        Parameters
        ----------
        fn : callable
            Runs in replica context: :func:`ringlet.replica_context` returns the replica. It must not rely on the
            thread it runs in.
        args : list or tuple
            Positional arguments. Each replica receives its component of a distributed value, at any depth; replicas
            share other values.
        kwargs : mapping, optional
            Keyword arguments, treated in the same way.
        options : RunOptions, optional
            ``RunOptions(writable_results=True)`` makes ``all_reduce`` return separate arrays to each replica. As in
            TensorFlow, strategies ignore options that they do not use.

        Returns
        -------
        nested structure
            The structure that `fn` returns. A leaf that is the identical object on all replicas is returned bare,
            any other leaf as :class:`~ringlet.values.PerReplica`. With one replica: the return value of `fn`.

        Raises
        ------
        ValueError
            If `args` is not a list or tuple, or if replica 0 returns a structure and another replica a different
            result. `TPUStrategy` also raises it for more positional arguments than parameters, and for a variable in
            ``*args``, as in TensorFlow.
        TypeError
            If `kwargs` is not a mapping, or `fn` is not callable or an ``async def`` function.
        RuntimeError
            If called inside a replica, or inside the scope of another strategy.
        Exception
            The exception of the failed replica, the lowest if several failed by themselves; a note names the replica.
            Other replicas are stopped at their next collective, and the strategy stays usable.

        Examples
        --------
        >>> import ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> strategy.run(lambda text: (text, int(ringlet.replica_context().replica_id_in_sync_group)), args=("a",))
        ('a', PerReplica:{
          0: 0,
          1: 1
        })
        """
        self._check_run(fn, args, kwargs)
        extended = self._checked()
        _core.count_run()
        if (trace := trace_hook.current) is not None:
            fn = traced_on_replicas(trace, fn)
        if options is None:
            return extended._call_for_each_replica(fn, args, kwargs or {})
        return extended._call_with_options(fn, args, kwargs or {}, options)

    def map(
        self,
        fn: Callable[[Unpack[Arrays]], R],
        *arrays: Unpack[Arrays],
        batch_size: int | None = None,
        progress: Callable[[int, int], object] | None = None,
        **unknown: NoReturn,
    ) -> R:
        """Apply a function to batches of rows, on the replicas of this process.

        Each replica takes the next batch when it has finished one; results are in the order of the rows.

        Parameters
        ----------
        fn : callable
            Called with a batch of rows, not with single rows: the same rows of each of `arrays`. The result of a row
            must not depend on other rows. `fn` runs in replica context; with several replicas, not in the caller's
            thread. It must not call collectives, because replicas run different numbers of batches.
        *arrays : nested structure of array
            Split along axis 0; all have the same number of rows. Lists are not accepted. Without rows, `fn` is called
            once with empty arrays.
        batch_size : int, optional
            Rows of each batch; the last batch may have fewer. By default there are up to four batches for each replica.
        progress : callable, optional
            Called after each batch with the number of finished rows and the total number of rows, in the thread of any
            replica, but never concurrently.
        **unknown
            Other keywords raise TypeError.

        Returns
        -------
        nested structure of array
            The results of the batches, which have the same structure, joined along axis 0.

        Raises
        ------
        TypeError
            If an argument is not an array of at least one dimension.
        InvalidArgumentError
            If an argument is a list of arrays, or a result is a list: pass or return one array, or a tuple for a
            structure.
        ValueError
            If the numbers of rows differ, `batch_size` is not positive, or the results cannot be joined.
        RuntimeError
            If called inside a replica or the scope of another strategy, or if `fn` calls a collective.
        Exception
            The first exception of `fn`; a note names the batch and its rows.

        Examples
        --------
        >>> import numpy as np, ringlet
        >>> strategy = ringlet.MirroredStrategy(2)
        >>> strategy.map(lambda x, y: {"sum": (x + y).sum(axis=1)}, np.ones((5, 3)), np.ones((5, 3)), batch_size=2)
        {'sum': array([6., 6., 6., 6., 6.])}
        """
        from ringlet.strategy.api.batch_map import map_batches

        return map_batches(self, fn, arrays, batch_size, progress, unknown=unknown)

    @overload
    def reduce(
        self, reduce_op: ReduceOp | str, value: float | DistributedValues[float], axis: int | tuple[int, ...] | None
    ) -> NDArray[Any]: ...
    @overload
    def reduce(
        self, reduce_op: ReduceOp | str, value: dict[K, Result[T]], axis: int | tuple[int, ...] | None
    ) -> dict[K, T]: ...
    @overload
    def reduce(
        self, reduce_op: ReduceOp | str, value: T | DistributedValues[T], axis: int | tuple[int, ...] | None
    ) -> T: ...
    @with_usage("strategy.reduce('SUM', value, axis=None), or axis=0 to combine the rows of each replica, too")
    def reduce(self, reduce_op: Any, value: Any, axis: int | tuple[int, ...] | None) -> Any:
        """Combine the components of a value into one.

        Parameters
        ----------
        reduce_op : ReduceOp or str
            ``SUM`` or ``MEAN``; strings are case-insensitive.
        value : nested structure
            Usually a :class:`~ringlet.values.PerReplica`. With MEAN, a value that all replicas share is returned
            unchanged.
        axis : int, tuple of int, or None
            None: element by element over the replicas; MEAN divides by their number. Otherwise each component is
            reduced along that axis first, and MEAN divides by the total number of elements, so that components are
            weighted by their size.

        Returns
        -------
        nested structure of ndarray
            Read-only. MEAN of integers is float32 (8 and 16 bits) or float64. With one replica and no axis, `value` or
            its component.

        Raises
        ------
        ValueError
            If the operation is unknown; for the SUM of a nonzero value that several replicas of one worker share; or if
            the components have different structures.
        TypeError
            If the operation or the axis has the wrong type.
        InvalidArgumentError
            If the components differ in shape or dtype.
        RuntimeError
            If called inside a replica, or inside the scope of another strategy.

        Examples
        --------
        >>> import numpy as np, ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> rows = strategy.experimental_distribute_values_from_function(
        ...     lambda context: np.ones(context.replica_id_in_sync_group + 1))
        >>> float(strategy.reduce("SUM", rows, axis=0))
        3.0
        """
        extended = self._checked()
        op = parse_reduce_op(reduce_op)
        if axis is None:
            return extended._reduce(op, value)
        return reduce_over_axis(extended, op, value, axis)

    @with_usage("strategy.gather(value, axis=0) to join the rows of all replicas")
    def gather(self, value: T | DistributedValues[T], axis: int) -> T:
        """Concatenate the components of a value.

        Parameters
        ----------
        value : nested structure
            Usually a :class:`~ringlet.values.PerReplica` of arrays. Their dtypes are equal, and their shapes differ at
            most in the size along `axis`.
        axis : int
            Negative values count from the last axis.

        Returns
        -------
        nested structure of ndarray
            Read-only. With one replica, its component; with one worker, a value that is not distributed is returned
            unchanged.

        Raises
        ------
        InvalidArgumentError
            If the components cannot be concatenated, or do not have this axis.
        NotImplementedError
            If the structure contains IndexedSlices.
        RuntimeError
            If called inside a replica, or inside the scope of another strategy.

        Examples
        --------
        >>> import numpy as np, ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> rows = strategy.experimental_distribute_values_from_function(
        ...     lambda context: np.arange(context.replica_id_in_sync_group + 1))
        >>> strategy.gather(rows, axis=0)
        array([0, 0, 1])
        """
        extended = self._checked("gather", "get_replica_context().all_gather()")
        refuse_slices(value, "gather")
        is_nested = nest.is_nested(value)
        gather = extended._gather
        result: T = nest.map_structure(lambda leaf: gather(leaf, axis), value) if is_nested else gather(value, axis)
        return result

    @overload
    def experimental_local_results(self, value: dict[K, Result[T]]) -> tuple[dict[K, T], ...]: ...
    @overload
    def experimental_local_results(self, value: T | DistributedValues[T]) -> tuple[T, ...]: ...
    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """Return the components of a value that belong to this process.

        Parameters
        ----------
        value : nested structure
            The result of :meth:`run`.

        Returns
        -------
        tuple
            One entry per local replica for a distributed value or a structure; ``(value,)`` for a plain leaf.

        Raises
        ------
        ValueError
            If a distributed value in a structure does not have one component for each replica.

        Examples
        --------
        >>> import ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> ids = strategy.run(lambda: int(ringlet.replica_context().replica_id_in_sync_group))
        >>> strategy.experimental_local_results(ids), strategy.experimental_local_results("text")
        ((0, 1), ('text',))
        """
        return self._extended._local_results(value)

    def group(self, value: Any, name: str | None = None) -> Any:
        """Return without waiting: functions run eagerly, so the components of a value are ready.

        Parameters
        ----------
        value : nested structure
            The result of :meth:`run` or of an assignment.
        name : str, optional
            If given, the result is None, as in TensorFlow.

        Returns
        -------
        object
            The leaf if `value` has exactly one leaf and there is no `name`; else None, as in TensorFlow.

        Examples
        --------
        >>> import ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> strategy.group(strategy.run(lambda: ringlet.replica_context().replica_id_in_sync_group))
        """
        leaves = nest.flatten(self.experimental_local_results(value))[0]
        return leaves[0] if len(leaves) == 1 and name is None else None

    def experimental_distribute_values_from_function(self, value_fn: Callable[[ValueContext], Any]) -> Any:
        """Create a distributed value, one component at a time.

        Parameters
        ----------
        value_fn : callable
            Takes a :class:`~ringlet.strategy.ValueContext` and returns that replica's component, or a nested structure.

        Returns
        -------
        nested structure of PerReplica
            Wrapped even if all components are equal; bare in a OneDeviceStrategy and in the default strategy.

        Examples
        --------
        >>> import ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> strategy.experimental_distribute_values_from_function(lambda context: context.num_replicas_in_sync)
        PerReplica:{
          0: 2,
          1: 2
        }
        """
        return self._extended._distribute_values_from_function(value_fn)

    def experimental_distribute_dataset(
        self, dataset: Any, options: Any = None, *, uneven: Literal["keep"] | None = None
    ) -> Any:
        """Split the batches of a dataset over the replicas.

        Parameters
        ----------
        dataset : ringlet.data.Dataset or iterable
            Its elements are global batches.
        options : ringlet.data.InputOptions, optional
        uneven : "keep" or None
            None, the default, treats batches that cannot be split evenly as TensorFlow does. "keep" returns every row
            exactly once, in pairs of a global batch and the replicas' weights in the mean.

        Returns
        -------
        DistributedDataset
            Each element is one global batch, as a nested structure of :class:`~ringlet.values.PerReplica`.

        Raises
        ------
        TypeError
            If `options` is not an InputOptions.

        Examples
        --------
        >>> import ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> dataset = ringlet.data.Dataset.range(4).batch(4)
        >>> for batch in strategy.experimental_distribute_dataset(dataset):
        ...     print(batch)
        PerReplica:{
          0: [0 1],
          1: [2 3]
        }
        """
        check_input_options(options)
        return self._extended._distribute_dataset(dataset, options, uneven)

    local_results = experimental_local_results
    distribute_values_from_function = experimental_distribute_values_from_function
    distribute_dataset = experimental_distribute_dataset

    def distribute_datasets_from_function(self, dataset_fn: Callable[[InputContext], Any], options: Any = None) -> Any:
        """Create datasets with a function, and distribute their batches over the replicas.

        Parameters
        ----------
        dataset_fn : callable
            Takes a :class:`ringlet.data.InputContext` and returns a dataset of batches for one replica. It is called
            once per worker, or once per replica if the options request PER_REPLICA.
        options : ringlet.data.InputOptions, optional

        Returns
        -------
        DistributedDataset
            Consecutive batches go to consecutive replicas.

        Raises
        ------
        ValueError
            If the options contradict each other.
        TypeError
            If `options` is not an InputOptions.

        Examples
        --------
        >>> import ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> def dataset_fn(context):
        ...     return ringlet.data.Dataset.range(4).batch(context.get_per_replica_batch_size(4))
        >>> next(iter(strategy.distribute_datasets_from_function(dataset_fn))).values[1]
        array([2, 3])
        """
        check_input_options(options)
        return self._extended._distribute_datasets_from_function(dataset_fn, options)

    def __copy__(self) -> Strategy:
        raise RuntimeError(
            f"Must only deepcopy a strategy: a shallow copy of {self!r} would share its threads; use copy.deepcopy"
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"cannot pickle {self!r}: its replicas are threads of this process. Create a strategy in each process, "
            "from the same arguments"
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Strategy:
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        for name, value in vars(self).items():
            setattr(twin, name, copy.deepcopy(value, memo))
        twin._extended._bind(twin)
        return twin
