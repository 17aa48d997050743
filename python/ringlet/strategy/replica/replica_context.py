"""ReplicaContext: the calls that a replica can make while its step function runs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from ringlet import context, nest
from ringlet.collectives import Algorithm, ReduceOp
from ringlet.collectives.argument_parsing import shortened
from ringlet.errors.exception_notes import with_usage, without
from ringlet.strategy.calls.argument_checks import check_arguments
from ringlet.strategy.calls.call_options import read_options
from ringlet.strategy.calls.context_checks import refuse_stale, require_replica
from ringlet.strategy.calls.gather_semantics import refuse_slices
from ringlet.strategy.calls.reduce_semantics import NUMBER_TYPES, parse_reduce_op
from ringlet.strategy.calls.structure_agreement import LEAF, with_kinds
from ringlet.strategy.replica.replica_collectives import (
    all_gather_leaves,
    all_gather_single,
    all_reduce_leaves,
    all_reduce_single,
)
from ringlet.values import check_components, regroup, select_replica

if TYPE_CHECKING:
    from ringlet.observe.trace_file import Trace
    from ringlet.strategy.api.strategy import Strategy
    from ringlet.strategy.replica.step_execution import ReplicaRun

Array = NDArray[Any]
T = TypeVar("T")

_id_arrays: dict[int, Array] = {}


def _id_array(replica_id: int) -> Array:
    """Return a replica id as a read-only 0-d int32 array, the same object every time."""
    if replica_id not in _id_arrays:
        array = np.array(replica_id, np.int32)
        array.setflags(write=False)
        _id_arrays.setdefault(replica_id, array)  # another replica may have added an array
    return _id_arrays[replica_id]


@without(
    rank="replica.replica_id_in_sync_group",
    reduce="replica.all_reduce('SUM', value)",
    replica_id="replica.replica_id_in_sync_group",
)
class ReplicaContext(context.Mode):
    """One replica of a step (``tf.distribute.ReplicaContext``), returned by :func:`ringlet.get_replica_context`.

    Parameters
    ----------
    strategy : Strategy
        The strategy that runs the step.
    replica_id_in_sync_group : int, array of one integer, or None
        Index of the replica, counted over all workers.

    Raises
    ------
    ValueError
        If the id is something else.

    Examples
    --------
    >>> import ringlet
    >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    >>> strategy.run(lambda: int(ringlet.replica_context().replica_id_in_sync_group))
    PerReplica:{
      0: 0,
      1: 1
    }
    """

    # For speed: each run creates a context for each replica. It is also the replica's entry in the mode stack.
    __slots__ = ("_id", "_run", "_writable_results")

    strategy: Strategy
    local_replica_id: int
    """The index of this replica among the replicas of this process."""

    def __init__(self, strategy: Strategy, replica_id_in_sync_group: Any) -> None:
        super().__init__(strategy, 0)
        self._id = _checked_id(replica_id_in_sync_group)
        self._run: ReplicaRun | None = None
        self._writable_results = False

    @classmethod
    def _of_run(cls, run: ReplicaRun, local_replica_id: int) -> ReplicaContext:
        replica = cls.__new__(cls)
        replica.strategy = run.strategy
        replica.local_replica_id = local_replica_id
        replica._id = run.first_replica + local_replica_id
        replica._run = run
        replica._writable_results = run.writable_results
        return replica

    @classmethod
    def _single(cls, strategy: Strategy, writable_results: bool) -> ReplicaContext:
        """Return the context of the only replica of a strategy."""
        replica = cls(strategy, 0)
        replica._writable_results = writable_results
        return replica

    @property
    def is_abandoned(self) -> bool:
        """Whether the run has raised while replicas were busy, whose results are then discarded."""
        return self._run is not None and self._run.is_abandoned

    @property
    def replica_id_in_sync_group(self) -> Any:
        """The index of this replica over all workers, a read-only 0-d int32 array; None if the context has none."""
        if self._run is not None:
            self._run.whole_batch = 0
        return None if self._id is None else _id_array(self._id)

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas in a step, over all workers."""
        return self.strategy.num_replicas_in_sync

    @property
    def devices(self) -> tuple[str, ...]:
        """The full name of the device of this replica, in a tuple; available only inside the replica."""
        self._require_current()
        if self._run is not None:
            self._run.whole_batch = 0
        return (self.strategy.extended.worker_devices[self.local_replica_id],)

    @overload
    def all_reduce(self, reduce_op: ReduceOp | str, value: float, options: Any = None, *, out: Any = None) -> Array: ...
    @overload
    def all_reduce(self, reduce_op: ReduceOp | str, value: T, options: Any = None, *, out: Any = None) -> T: ...
    @with_usage("all_reduce('SUM', value), or 'MEAN'")
    def all_reduce(self, reduce_op: Any, value: Any, options: Any = None, *, out: Any = None) -> Any:
        """Combine the arrays of all replicas; every replica gets the result.

        All arrays of a nested structure are combined in one pass, so pass many arrays in one call.

        Parameters
        ----------
        reduce_op : ReduceOp or str
            ``SUM`` or ``MEAN``; strings are case-insensitive. As in TensorFlow, objects without a name are read as SUM.
        value : nested structure of array-like
            This replica's arrays: the same structure, shapes and dtypes on all replicas, any memory layout. They must
            not be written to during the call. The IndexedSlices of all replicas are joined: their rows are
            concatenated.
        options : CommunicationOptions, optional
            ``implementation="RING"`` selects the ring; ``bytes_per_pack`` splits the structure into passes;
            ``timeout_seconds`` limits how long this replica waits.
        out : nested structure of ndarray, optional
            Arrays for the results, in the structure of `value`. Pass `out` on all replicas or on none. The MEAN of
            integers is float32 (8 and 16 bits) or float64; a single replica gets its integers back, as in TensorFlow.

        Returns
        -------
        nested structure of ndarray
            `out`; or read-only arrays, whose memory replicas may share: for writable arrays, copy them, or run the step
            with ``RunOptions(writable_results=True)``. PyTorch tensors and JAX arrays have results of the same type;
            each replica may write to its tensors.

        Raises
        ------
        CollectiveMismatchError
            On all replicas, if they did not make the same call; the message lists the calls. If only the
            structures differ, on the replicas whose structure differs from replica 0's.
        CollectiveAborted
            If another replica raised an exception.
        DeadlineExceededError
            If a time-out, such as ``timeout_seconds`` of the options, has passed.
        InvalidArgumentError
            If a dtype is not supported, or an array of `out` does not fit.
        ValueError
            If a string is not the name of an operation, or `out` has a different structure.
        RuntimeError
            If called outside of this replica.

        Examples
        --------
        >>> import numpy as np, ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> def step(gradients):
        ...     return ringlet.replica_context().all_reduce("MEAN", gradients)
        >>> strategy.run(step, args=({"w": np.ones(2), "b": np.float32(3)},))["b"]
        PerReplica:{
          0: array(3., dtype=float32),
          1: array(3., dtype=float32)
        }
        """
        self._require_current()
        op = _op_or_sum(reduce_op)
        if type(value) is np.ndarray:
            return self._combine(op, [value], LEAF, options, None if out is None else [out])[0]
        if type(value) in NUMBER_TYPES:
            return self._combine(op, [np.asarray(value)], LEAF, options, None if out is None else [out])[0]
        leaves, shape = nest.flatten(value)
        outs = None if out is None else _same_structure(shape, out)
        return nest.unflatten(shape, self._combine(op, leaves, shape, options, outs))

    @with_usage("all_gather(value, axis=0) to join the rows of all replicas")
    def all_gather(self, value: T, axis: int, options: Any = None) -> T:
        """Concatenate the arrays of all replicas; every replica gets the result.

        Parameters
        ----------
        value : nested structure of array-like
            This replica's arrays: the same structure and dtypes on all replicas. Shapes may differ only in their size
            along `axis`.
        axis : int
            The same on all replicas; negative values count from the last axis.
        options : CommunicationOptions, optional
            ``timeout_seconds`` limits how long this replica waits.

        Returns
        -------
        nested structure of ndarray
            Read-only, because replicas may share the memory. A single replica gets copies of its arrays, whatever the
            axis. PyTorch tensors and JAX arrays have results of the same type; each replica may write to its tensors.

        Raises
        ------
        CollectiveMismatchError
            On all replicas, if they did not make the same call.
        CollectiveAborted
            If another replica raised an exception.
        DeadlineExceededError
            If a time-out, such as ``timeout_seconds`` of the options, has passed.
        InvalidArgumentError
            If an array does not have this axis.
        NotImplementedError
            If the structure contains IndexedSlices.
        RuntimeError
            If called outside of this replica.

        Examples
        --------
        >>> import numpy as np, ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> def step():
        ...     replica = ringlet.replica_context()
        ...     return replica.all_gather(np.arange(replica.replica_id_in_sync_group + 1), axis=0)
        >>> print(strategy.run(step))
        PerReplica:{
          0: [0 0 1],
          1: [0 0 1]
        }
        """
        self._require_current()
        refuse_slices(value, "all_gather")
        leaves, shape = nest.flatten(value)
        if self._run is None:
            read_options(options, Algorithm.AUTO)
            results = all_gather_single(leaves)
        else:
            self._run.begin_collective()
            run, replica, typed_shape = self._run, self.local_replica_id, with_kinds(shape, leaves)
            results = all_gather_leaves(run, replica, leaves, axis, shape=typed_shape, options=options)
        gathered: T = nest.unflatten(shape, results)
        return gathered

    def merge_call(
        self, merge_fn: Callable[..., T], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> T:
        """Call a function once for all replicas of this process, in cross-replica context.

        All replicas of this process make this call; one of them runs `merge_fn` while the others wait.

        Parameters
        ----------
        merge_fn : callable
            Called with the strategy and the regrouped arguments: objects identical on all replicas are passed bare,
            other objects as :class:`~ringlet.values.PerReplica`. The function of replica 0 is called.
        args : list or tuple
        kwargs : mapping, optional
            This replica's arguments.

        Returns
        -------
        nested structure
            The return value of `merge_fn`, with this replica's component in place of each distributed value.

        Raises
        ------
        CollectiveMismatchError
            On all waiting replicas, if another replica returned or made a different call.
        RuntimeError
            If called outside of this replica.
        ValueError
            If `args` is not a list or tuple, or a value in the result does not have one component for each replica.
        TypeError
            If `kwargs` is not a mapping.
        Exception
            The exception of `merge_fn`, on all replicas.

        Examples
        --------
        >>> import ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> def step():
        ...     replica = ringlet.replica_context()
        ...     number = float(replica.replica_id_in_sync_group) + 1
        ...     return replica.merge_call(lambda strategy, x: strategy.reduce("SUM", x, axis=None), args=(number,))
        >>> print(strategy.run(step))
        3.0
        """
        check_arguments(args, kwargs)
        merged: T = self._merge_named("merge_call", merge_fn, args, kwargs)
        return merged

    def _merge_named(
        self,
        name: str,
        merge_fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        any_thread: bool = False,
    ) -> Any:
        """Make a :meth:`merge_call` under another name, which mismatch errors show.

        With `any_thread`, any replica may run `merge_fn`; otherwise replica 0 does.
        """
        self._require_current()
        if self._run is not None:
            return self._run.merge_call(
                self.local_replica_id, merge_fn, args, kwargs or {}, name, any_thread=any_thread
            )
        return merge_call_single(self.strategy, merge_fn, args, kwargs or {})

    def _require_current(self) -> None:
        require_replica(self)
        # A thread that the step function started may outlive the replica, and make this call during a later run.
        if self._run is not None and self._run.ended[self.local_replica_id]:
            refuse_stale()

    def _combine(self, op: ReduceOp, leaves: list[Any], shape: Any, options: Any, outs: list[Any] | None) -> list[Any]:
        if self._run is None:
            read_options(options, Algorithm.AUTO)
            return all_reduce_single(leaves, outs, self._writable_results)
        self._run.begin_collective()
        typed_shape = shape if shape is LEAF else with_kinds(shape, leaves)
        return all_reduce_leaves(
            self._run, self.local_replica_id, op, leaves, shape=typed_shape, options=options, outs=outs
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of replica {self._id} of {self.strategy!r}>"


def merge_call_single(
    strategy: Strategy, merge_fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Run a :meth:`ReplicaContext.merge_call` for the only replica of a process."""
    merged = context.call_in(
        context.Mode(strategy),
        merge_fn,
        strategy,
        *(regroup([arg]) for arg in args),
        **{name: regroup([value]) for name, value in kwargs.items()},
    )
    check_components(merged, 1, "merge_fn returned")
    return select_replica(0, merged)


def _checked_id(replica_id: Any) -> int | None:
    if replica_id is None:
        return None
    array = np.asarray(replica_id)
    if array.shape != () or array.dtype.kind not in "iu":
        raise ValueError(
            "replica_id_in_sync_group can only be an integer, a 0-dimensional integer array or None, got "
            f"{shortened(replica_id)}"
        )
    return int(array)


def _op_or_sum(op: Any) -> ReduceOp:
    """Interpret an operation as TensorFlow does: strings and enumeration members by name, any other object as SUM."""
    if isinstance(op, ReduceOp):
        return op
    name = getattr(op, "name", op)
    return parse_reduce_op(name) if isinstance(name, str) else ReduceOp.SUM


def _same_structure(shape: nest.PyTreeSpec, out: Any) -> list[Any]:
    try:
        return nest.same_structure_leaves(shape, out)
    except ValueError as error:
        raise ValueError(
            f"out must have the structure of the value, which is {nest.describe(shape)}: {error}"
        ) from error


def traced_on_replicas(trace: Trace, fn: Callable[..., T]) -> Callable[..., T]:
    """Wrap a step function so that its calls are traced under the name of their replica."""

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> T:
        mode = context.current()
        number = mode._id if isinstance(mode, ReplicaContext) else 0
        return trace.timed(f"replica {number}", "replica", fn, number)(*args, **kwargs)

    return call
