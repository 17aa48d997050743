"""The base of all strategies: what users call."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from ringlet import context, nest
from ringlet.strategy.api.argument_checks import check_arguments, check_function, check_input_options
from ringlet.strategy.api.context_checks import require_cross_replica
from ringlet.strategy.api.deprecated_calls import DeprecatedCalls
from ringlet.strategy.api.extended import StrategyExtended
from ringlet.strategy.api.gather_semantics import refuse_slices
from ringlet.strategy.api.reduce_semantics import parse_reduce_op, reduce_over_axis
from ringlet.strategy.api.value_context import ValueContext

if TYPE_CHECKING:
    from ringlet.data import InputContext

__all__ = ["Strategy"]


class Strategy(DeprecatedCalls):
    """How a step function is run on replicas and how their values are combined (``tf.distribute.Strategy``).

    Use one of its subclasses, or write one around an extended object of your own.

    Parameters
    ----------
    extended : StrategyExtended
        What the strategy does; its hooks answer the calls below.

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
        """Return the strategy that stands for this one in this thread."""
        return self

    def _checked(self, *method: str) -> StrategyExtended:
        """Return what calls of this thread use, outside of replicas and of other strategies' scopes."""
        strategy = self._here()
        require_cross_replica(strategy, *method)
        return strategy._extended

    @property
    def extended(self) -> StrategyExtended:
        """The lower-level methods of this strategy."""
        return self._extended

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas take part in a step, over all workers."""
        return self._extended._num_replicas_in_sync

    @property
    def cluster_resolver(self) -> Any:
        """The resolver of the cluster that this strategy runs on; None for one process."""
        return None

    def scope(self) -> context.Scope:
        """Give a context manager that makes this strategy current.

        Returns
        -------
        context manager
            ``with`` gives the strategy. The scope of the same strategy may be entered again inside.

        Raises
        ------
        RuntimeError
            On entering: inside a replica, or inside the scope of another strategy.

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
            Runs in replica context: :func:`ringlet.get_replica_context` tells which replica it is. It must not rely on
            the thread it runs in.
        args : list or tuple
            Positional arguments. A distributed value in them, at any depth, becomes that replica's component; other
            values are shared by the replicas.
        kwargs : mapping, optional
            Keyword arguments, likewise.
        options : RunOptions, optional
            ``RunOptions(writable_results=True)`` gives replicas arrays of their own from ``all_reduce``. As in
            TensorFlow, strategies ignore what they have no use for.

        Returns
        -------
        nested structure
            Of the shape of what `fn` gave. A leaf that is the identical object on all replicas comes back as itself,
            others as :class:`~ringlet.values.PerReplica`. With one replica: what `fn` gave.

        Raises
        ------
        ValueError
            If `args` is no list or tuple, or if the replicas' answers differ in structure.
        TypeError
            If `kwargs` is no mapping, or `fn` is an ``async def``.
        RuntimeError
            Inside a replica, or inside the scope of another strategy.
        Exception
            The first one that a replica raised; a note names the replica. The others are stopped at their next
            collective, and the strategy stays usable.

        Examples
        --------
        >>> import ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> strategy.run(lambda text: (text, int(ringlet.get_replica_context().replica_id_in_sync_group)), args=("a",))
        ('a', PerReplica:{
          0: 0,
          1: 1
        })
        """
        check_arguments(args, kwargs)
        check_function(fn)
        extended = self._checked()
        if options is None:
            return extended._call_for_each_replica(fn, args, kwargs or {})
        return extended._call_with_options(fn, args, kwargs or {}, options)

    def reduce(self, reduce_op: Any, value: Any, axis: int | tuple[int, ...] | None) -> Any:
        """Combine the components of a value into one.

        Parameters
        ----------
        reduce_op : ReduceOp or str
            ``SUM`` or ``MEAN``, in any case as a string.
        value : nested structure
            Usually a :class:`~ringlet.values.PerReplica`. A value that is the same on all replicas has itself as MEAN.
        axis : int, tuple of int, or None
            None: element by element over the replicas; MEAN divides by their number. Otherwise each component is
            reduced along that axis first, and MEAN divides by the total number of elements, so that unequal and empty
            components weigh as much as they have.

        Returns
        -------
        nested structure of ndarray
            Read-only. MEAN of integers is float32 (8 and 16 bits) or float64. With one replica and no axis: `value`.

        Raises
        ------
        ValueError
            If the operation is unknown, SUM was asked of a value that is no distributed one, or the components are
            different structures.
        TypeError
            If the operation or the axis is of the wrong type.
        InvalidArgumentError
            If the components differ in shape or dtype.
        RuntimeError
            Inside a replica, or inside the scope of another strategy.

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

    def gather(self, value: Any, axis: int) -> Any:
        """Join the components of a value, one behind the other.

        Parameters
        ----------
        value : nested structure
            Usually a :class:`~ringlet.values.PerReplica` of arrays. Sizes along `axis` may differ between replicas; all
            else of their shapes, and their dtypes, are equal.
        axis : int
            Negative ones count from the last.

        Returns
        -------
        nested structure of ndarray
            Read-only. With one replica its component, and a value that is no distributed one as it is.

        Raises
        ------
        InvalidArgumentError
            If the components cannot be joined, or have no such axis.
        NotImplementedError
            If there are IndexedSlices in the structure.
        RuntimeError
            Inside a replica, or inside the scope of another strategy.

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
        if nest.is_nested(value):
            return nest.map_structure(lambda leaf: extended._gather(leaf, axis), value)
        return extended._gather(value, axis)

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """Give the components of a value that belong to this process.

        Parameters
        ----------
        value : nested structure
            What :meth:`run` gave.

        Returns
        -------
        tuple
            One entry per local replica for a distributed value, and for a structure; ``(value,)`` for a plain leaf.

        Raises
        ------
        ValueError
            If a distributed value in a structure has not one component for each replica.

        Examples
        --------
        >>> import ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> ids = strategy.run(lambda: int(ringlet.get_replica_context().replica_id_in_sync_group))
        >>> strategy.experimental_local_results(ids), strategy.experimental_local_results("text")
        ((0, 1), ('text',))
        """
        return self._extended._local_results(value)

    def experimental_distribute_values_from_function(self, value_fn: Callable[[ValueContext], Any]) -> Any:
        """Make a distributed value, one component at a time.

        Parameters
        ----------
        value_fn : callable
            Takes a :class:`~ringlet.strategy.ValueContext`; gives that replica's component, or a nested structure.

        Returns
        -------
        nested structure of PerReplica
            Wrapped even where all components are equal.

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
        """Cut the batches of a dataset over the replicas.

        Parameters
        ----------
        dataset : ringlet.data.Dataset or iterable
            Gives global batches.
        options : ringlet.data.InputOptions, optional
        uneven : "keep" or None
            None, the default, treats batches that cannot be cut evenly as TensorFlow does. "keep" gives every row
            exactly once, in pairs of a global batch and the weights of its parts in the mean.

        Returns
        -------
        DistributedDataset
            Each element is one global batch, as a nested structure of :class:`~ringlet.values.PerReplica`.

        Raises
        ------
        TypeError
            If `options` are no InputOptions.

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

    def distribute_datasets_from_function(self, dataset_fn: Callable[[InputContext], Any], options: Any = None) -> Any:
        """Deal the batches of a dataset that a function makes to the replicas.

        Parameters
        ----------
        dataset_fn : callable
            Takes a :class:`ringlet.data.InputContext`; gives a dataset of batches for one replica. It is called once
            per worker, or, where the options say PER_REPLICA, once per replica.
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
            If they are no InputOptions.

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
        raise RuntimeError(f"Must only deepcopy a strategy: a shallow copy of {self!r} would share its threads")

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"cannot pickle {self!r}: its replicas are threads of this process. Make a strategy in each process, from "
            "the same arguments"
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Strategy:
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        for name, value in vars(self).items():
            setattr(twin, name, copy.deepcopy(value, memo))
        twin._extended._bind(twin)
        return twin
