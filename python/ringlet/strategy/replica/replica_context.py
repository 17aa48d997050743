"""What a replica can ask and do while its step function runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ringlet import context, nest
from ringlet.collectives import Algorithm, ReduceOp
from ringlet.strategy.api.argument_checks import check_arguments
from ringlet.strategy.api.call_options import read_options
from ringlet.strategy.api.context_checks import refuse_stale, require_replica
from ringlet.strategy.api.gather_semantics import refuse_slices
from ringlet.strategy.api.reduce_semantics import NUMBER_TYPES, parse_reduce_op
from ringlet.strategy.api.structure_agreement import LEAF, with_kinds
from ringlet.strategy.replica.replica_collectives import (
    all_gather_leaves,
    all_reduce_leaves,
    gather_alone,
    reduce_alone,
)
from ringlet.values import check_components, regroup, select_replica

if TYPE_CHECKING:
    from ringlet.strategy.api.strategy import Strategy
    from ringlet.strategy.replica.step_execution import ReplicaRun

__all__ = ["ReplicaContext", "merge_alone"]

Array = NDArray[Any]

_id_arrays: list[Array] = []


def _id_array(replica_id: int) -> Array:
    """The read-only int32 scalar that stands for a replica id; one object per id, so that asking costs nothing."""
    while replica_id >= len(_id_arrays):
        array = np.array(len(_id_arrays), np.int32)
        array.setflags(write=False)
        _id_arrays.append(array)
    return _id_arrays[replica_id]


class ReplicaContext(context.Mode):
    """One replica of a step (``tf.distribute.ReplicaContext``): :func:`ringlet.get_replica_context` gives it.

    Parameters
    ----------
    strategy : Strategy
        The strategy that runs the step.
    replica_id_in_sync_group : int, array of one integer, or None
        The replica, counted over all workers.

    Raises
    ------
    ValueError
        If the id is anything else.

    Examples
    --------
    >>> import ringlet
    >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    >>> strategy.run(lambda: int(ringlet.get_replica_context().replica_id_in_sync_group))
    PerReplica:{
      0: 0,
      1: 1
    }
    """

    # A replica context is the mode of its replica: one object for each replica of each run.
    __slots__ = ("_id", "_run", "_writable_results")

    strategy: Strategy
    local_replica_id: int
    """Which of the replicas of this process this is."""

    def __init__(self, strategy: Strategy, replica_id_in_sync_group: Any) -> None:
        super().__init__(strategy, 0)
        self._id = _checked_id(replica_id_in_sync_group)
        self._run: ReplicaRun | None = None
        self._writable_results = False

    @classmethod
    def _of_run(cls, run: ReplicaRun, local_replica_id: int) -> ReplicaContext:
        """The context of one replica of a run."""
        replica = cls.__new__(cls)
        replica.strategy = run.strategy
        replica.local_replica_id = local_replica_id
        replica._id = run.first_replica + local_replica_id
        replica._run = run
        replica._writable_results = run.writable_results
        return replica

    @classmethod
    def _alone(cls, strategy: Strategy, writable_results: bool) -> ReplicaContext:
        """The context of the one replica of a strategy."""
        replica = cls(strategy, 0)
        replica._writable_results = writable_results
        return replica

    @property
    def is_given_up(self) -> bool:
        """Whether the run has raised while this replica was busy: what it writes is not wanted any more."""
        return self._run is not None and self._run.is_given_up

    @property
    def replica_id_in_sync_group(self) -> Any:
        """Which replica this is, counted over all workers: a read-only int32 array without dimensions."""
        return None if self._id is None else _id_array(self._id)

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas take part in a step, over all workers."""
        return self.strategy.num_replicas_in_sync

    @property
    def devices(self) -> tuple[str, ...]:
        """The full name of the device of this replica, in a tuple; only inside the replica."""
        self._require_current()
        return (self.strategy.extended.worker_devices[self.local_replica_id],)

    def all_reduce(self, reduce_op: Any, value: Any, options: Any = None, *, out: Any = None) -> Any:
        """Combine the arrays of all replicas; every replica gets the result.

        All arrays of a nested structure travel in one pass, so combine many in one call.

        Parameters
        ----------
        reduce_op : ReduceOp or str
            ``SUM`` or ``MEAN``, in any case as a string. As in TensorFlow, an object that is neither stands for SUM.
        value : nested structure of array-like
            This replica's arrays: the same structure, shapes and dtypes on all replicas, any memory layout. They must
            not be written to while the call lasts. An IndexedSlices becomes one with the rows of all replicas, one
            behind the other.
        options : CommunicationOptions, optional
            RING as its ``implementation`` chooses the ring; ``bytes_per_pack`` cuts the structure into passes; after
            ``timeout_seconds`` this replica waits no longer.
        out : nested structure of ndarray, optional
            Where to put the results: the structure of `value`. All replicas give one or none does. The MEAN of
            integers is a float64, except with one replica, which gets its integers back as in TensorFlow.

        Returns
        -------
        nested structure of ndarray
            `out`; or arrays that refuse to be written to, because replicas share their memory: copy one to change it,
            or run the step with ``RunOptions(writable_results=True)``. Tensors of PyTorch and arrays of JAX come back
            as such; each replica may write to its tensors.

        Raises
        ------
        CollectiveMismatchError
            On all replicas, if they did not make the same call; it lists who called what. On those whose value has
            another structure than that of replica 0, if only the structures differ.
        CollectiveAborted
            If another replica failed.
        DeadlineExceededError
            If the options set a time and it is over.
        InvalidArgumentError
            If a dtype is not supported, or an array of `out` does not fit.
        ValueError
            If a string names no operation, or `out` has another structure.
        RuntimeError
            Outside of this replica.

        Examples
        --------
        >>> import numpy as np, ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> def step(gradients):
        ...     return ringlet.get_replica_context().all_reduce("MEAN", gradients)
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

    def all_gather(self, value: Any, axis: int, options: Any = None) -> Any:
        """Join the arrays of all replicas, one behind the other; every replica gets the result.

        Parameters
        ----------
        value : nested structure of array-like
            This replica's arrays: the same structure and dtypes on all replicas. Sizes along `axis` may differ; all
            else of their shapes is equal.
        axis : int
            Same on all replicas; negative ones count from the last.
        options : CommunicationOptions, optional
            After ``timeout_seconds`` this replica waits no longer.

        Returns
        -------
        nested structure of ndarray
            Read-only, because replicas share the memory. One replica gets its own arrays back, whatever the axis.
            Tensors of PyTorch and arrays of JAX come back as such; each replica may write to its tensors.

        Raises
        ------
        CollectiveMismatchError
            On all replicas, if they did not make the same call.
        CollectiveAborted
            If another replica failed.
        DeadlineExceededError
            If the options set a time and it is over.
        InvalidArgumentError
            If an array has no such axis.
        NotImplementedError
            If there are IndexedSlices in the structure.
        RuntimeError
            Outside of this replica.

        Examples
        --------
        >>> import numpy as np, ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> def step():
        ...     replica = ringlet.get_replica_context()
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
            return nest.unflatten(shape, gather_alone(leaves))
        self._run.begin_collective()
        run, replica = self._run, self.local_replica_id
        told = with_kinds(shape, leaves)
        return nest.unflatten(shape, all_gather_leaves(run, replica, leaves, axis, shape=told, options=options))

    def merge_call(
        self, merge_fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Leave the replicas for one call of a function in cross-replica context.

        All replicas of this process call this together. One of them calls `merge_fn`; the others wait.

        Parameters
        ----------
        merge_fn : callable
            Takes the strategy and then the arguments, in which the replicas' values are regrouped: identical objects
            arrive bare, others as :class:`~ringlet.values.PerReplica`. Replica 0's function is the one that is called.
        args : list or tuple
        kwargs : mapping, optional
            This replica's arguments.

        Returns
        -------
        nested structure
            What `merge_fn` gave; distributed values in it are replaced by this replica's component.

        Raises
        ------
        CollectiveMismatchError
            On all replicas that wait, if another one returned or called something else.
        RuntimeError
            Outside of this replica.
        ValueError
            If `args` is no list or tuple, or `merge_fn` gave a value that has not one component for each replica.
        TypeError
            If `kwargs` is no mapping.
        Exception
            What `merge_fn` raised, on all replicas.

        Examples
        --------
        >>> import ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> def step():
        ...     replica = ringlet.get_replica_context()
        ...     number = float(replica.replica_id_in_sync_group) + 1
        ...     return replica.merge_call(lambda strategy, x: strategy.reduce("SUM", x, axis=None), args=(number,))
        >>> print(strategy.run(step))
        3.0
        """
        check_arguments(args, kwargs)
        return self._merge_named("merge_call", merge_fn, args, kwargs)

    def _merge_named(
        self, name: str, merge_fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """What :meth:`merge_call` gives; replicas that give other names are told what each of them called."""
        self._require_current()
        if self._run is not None:
            return self._run.merge_call(self.local_replica_id, merge_fn, args, kwargs or {}, name)
        return merge_alone(self.strategy, merge_fn, args, kwargs or {})

    def _require_current(self) -> None:
        require_replica(self)
        # A thread of the step function's own may be left when its replica has ended, and even when another run is on.
        if self._run is not None and self._run.ended[self.local_replica_id]:
            refuse_stale()

    def _combine(self, op: ReduceOp, leaves: list[Any], shape: Any, options: Any, outs: list[Any] | None) -> list[Any]:
        if self._run is None:
            read_options(options, Algorithm.AUTO)
            return reduce_alone(leaves, outs, self._writable_results)
        self._run.begin_collective()
        told = shape if shape is LEAF else with_kinds(shape, leaves)
        return all_reduce_leaves(self._run, self.local_replica_id, op, leaves, shape=told, options=options, outs=outs)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of replica {self._id} of {self.strategy!r}>"


def merge_alone(
    strategy: Strategy, merge_fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Give what :meth:`ReplicaContext.merge_call` gives to the only replica of a process.

    Examples
    --------
    >>> import ringlet
    >>> merge_alone(ringlet.MirroredStrategy(["CPU:0"]), lambda strategy, x: x + 1, (2,), {})
    3
    """
    merged = context.call_in(
        context.Mode(strategy),
        merge_fn,
        strategy,
        *(regroup([arg]) for arg in args),
        **{name: regroup([value]) for name, value in kwargs.items()},
    )
    check_components(merged, 1, "merge_fn gave")
    return select_replica(0, merged)


def _checked_id(replica_id: Any) -> int | None:
    if replica_id is None:
        return None
    array = np.asarray(replica_id)
    if array.shape != () or array.dtype.kind not in "iu":
        raise ValueError(
            f"replica_id_in_sync_group can only be an integer, an integer array of no dimensions, or None, "
            f"got {replica_id!r}"
        )
    return int(array)


def _op_or_sum(op: Any) -> ReduceOp:
    """TensorFlow reads names and takes every other object for SUM; enumerations are read by name here."""
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
