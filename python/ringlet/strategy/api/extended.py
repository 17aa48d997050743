"""StrategyExtended: the base class of strategy implementations, with the hooks that a new strategy overrides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from ringlet.strategy.api.multi_step import MultiStepContext, run_steps
from ringlet.strategy.api.value_combining import ValueCombining
from ringlet.strategy.api.variable_updates import VariableUpdates
from ringlet.strategy.calls.argument_checks import check_arguments, check_function
from ringlet.strategy.calls.context_checks import require_cross_replica
from ringlet.strategy.calls.gather_semantics import gather_single
from ringlet.strategy.calls.reduce_semantics import reduce_components
from ringlet.strategy.calls.value_context import ValueContext
from ringlet.values import DistributedValues, regroup

if TYPE_CHECKING:
    from ringlet.collectives import CommunicationOptions, ReduceOp
    from ringlet.data import InputContext


class StrategyExtended(ValueCombining, VariableUpdates):
    """Base class of strategy implementations (``tf.distribute.StrategyExtended``).

    Parameters
    ----------
    container_strategy : Strategy
        The strategy that this object belongs to; not kept alive.

    Examples
    --------
    >>> import ringlet
    >>> class OneAtATime(StrategyExtended):
    ...     _num_replicas_in_sync = 1
    ...     def _call_for_each_replica(self, fn, args, kwargs):
    ...         return fn(*args, **kwargs)
    >>> class OneAtATimeStrategy(ringlet.Strategy):
    ...     def __init__(self):
    ...         super().__init__(OneAtATime(self))
    >>> OneAtATimeStrategy().run(lambda x: x + 1, args=(1,))
    2

    Notes
    -----
    Calls check their arguments and the context, and then call a hook. A strategy needs `_num_replicas_in_sync` and
    `_call_for_each_replica`; it overrides the hooks of other features that it supports: `_reduce_to` and
    `_batch_reduce_to` (and `_reduce` for a faster path), `_broadcast_to`, `_gather`, `_update`, `_update_non_slot`,
    `_create_variable`, `_distribute_values_from_function`, `_distribute_dataset`, `_distribute_datasets_from_function`,
    `_local_results`, `_call_with_options`, `_run_steps`, `_scope`, and, with several workers, `_num_local_replicas` and
    `_first_replica`. Properties such as `worker_devices` are overridden directly; variables need `parameter_devices`.
    """

    # --- properties ---------------------------------------------------------------------------------------------------

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """Full names of the devices that replicas of this process run on, in replica order."""
        raise NotImplementedError(f"{type(self).__name__} does not define worker_devices: override this property")

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """Full names of the devices that hold variables."""
        raise NotImplementedError(f"{type(self).__name__} does not define parameter_devices: override this property")

    @property
    def experimental_require_static_shapes(self) -> bool:
        """True if step functions need arrays of constant shapes."""
        return False

    @property
    def experimental_between_graph(self) -> bool:
        """True if every worker runs its own program."""
        return False

    @property
    def experimental_should_init(self) -> bool:
        """True if this process initializes variables."""
        return True

    require_static_shapes = experimental_require_static_shapes
    between_graph = experimental_between_graph
    should_init = experimental_should_init

    @property
    def should_checkpoint(self) -> bool:
        """True if this process writes checkpoints."""
        return True

    @property
    def should_save_summary(self) -> bool:
        """True if this process writes summaries."""
        return True

    def call_for_each_replica(
        self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call a function once on each replica; the lower-level form of ``strategy.run``.

        Parameters
        ----------
        fn : callable
        args : sequence
        kwargs : mapping, optional

        Returns
        -------
        nested structure

        Examples
        --------
        >>> import ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0"])
        >>> strategy.extended.call_for_each_replica(lambda: 3)
        3
        """
        check_arguments(args, kwargs)
        check_function(fn)
        require_cross_replica(self._container_strategy())
        return self._call_for_each_replica(fn, args, kwargs or {})

    def experimental_run_steps_on_iterator(
        self,
        fn: Callable[[MultiStepContext, Any], Any],
        iterator: Any,
        iterations: int = 1,
        initial_loop_values: Any = None,
    ) -> MultiStepContext:
        """Call a function for several steps with the elements of an iterator, as in TensorFlow 1.

        Parameters
        ----------
        fn : callable
            Called with a :class:`MultiStepContext` and the next element, in cross-replica context; it usually calls
            ``extended.call_for_each_replica`` and ``context.set_last_step_output``.
        iterator : InputIterator or other object with ``get_next``
        iterations : int
            Number of steps; a TPUStrategy runs one if its `steps_per_run` is 1, which is the default.
        initial_loop_values : nested structure, optional
            Accepted for compatibility; without effect.

        Returns
        -------
        MultiStepContext
            Its `last_step_outputs` are the outputs of the last step.

        Raises
        ------
        OutOfRangeError
            If the iterator ends before the last step.
        RuntimeError
            If called inside a replica, or inside the scope of another strategy.

        Examples
        --------
        >>> import ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> iterator = strategy.make_dataset_iterator(ringlet.data.Dataset.range(8).batch(4))
        >>> def step(context, batch):
        ...     sums = strategy.extended.call_for_each_replica(lambda x: x.sum(), args=(batch,))
        ...     context.set_last_step_output("sum", sums, "SUM")
        >>> int(strategy.extended.experimental_run_steps_on_iterator(step, iterator, 2).last_step_outputs["sum"])
        22
        """
        require_cross_replica(self._container_strategy())
        return self._run_steps(fn, iterator, iterations)

    def experimental_make_numpy_dataset(self, numpy_input: Any, session: Any = None) -> Any:
        """Return a dataset with the rows of arrays as elements.

        Parameters
        ----------
        numpy_input : nest of array-like
            Arrays with equal numbers of rows; a list is one array, as in datasets.
        session : object, optional
            Accepted for compatibility; without effect.

        Returns
        -------
        ringlet.data.Dataset
            Each element has one row of each array.

        Examples
        --------
        >>> import numpy as np, ringlet
        >>> extended = ringlet.MirroredStrategy(["CPU:0"]).extended
        >>> len(extended.experimental_make_numpy_dataset((np.ones((3, 2)), np.arange(3))))
        3
        """
        from ringlet.data import Dataset

        return Dataset.from_tensor_slices(numpy_input)

    run_steps_on_iterator = experimental_run_steps_on_iterator
    make_numpy_dataset = experimental_make_numpy_dataset

    # --- hooks, in addition to the hooks of the base classes ----------------------------------------------------------

    def _call_for_each_replica(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Implement ``strategy.run``, with checked arguments."""
        raise NotImplementedError(f"{type(self).__name__} does not run replicas: define _call_for_each_replica")

    def _call_with_options(
        self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], options: Any
    ) -> Any:
        """Implement ``strategy.run`` with `options`, which have no effect unless this method is overridden."""
        return self._call_for_each_replica(fn, args, kwargs)

    def _run_steps(
        self, fn: Callable[[MultiStepContext, Any], Any], iterator: Any, iterations: int
    ) -> MultiStepContext:
        """Implement :meth:`experimental_run_steps_on_iterator`."""
        return run_steps(self, fn, iterator, iterations)

    def _distribute_values_from_function(self, value_fn: Callable[[ValueContext], Any]) -> Any:
        """Implement ``strategy.experimental_distribute_values_from_function``."""
        total, first = self._num_replicas_in_sync, self._first_replica
        values = [value_fn(ValueContext(first + i, total)) for i in range(self._num_local_replicas)]
        return regroup(values, always_wrap=True)

    def _distribute_dataset(self, dataset: Any, options: Any, uneven: Literal["keep"] | None = None) -> Any:
        """Implement ``strategy.experimental_distribute_dataset``, with checked options."""
        from ringlet.data.distribution.distribute import distribute_dataset

        return distribute_dataset(dataset, self._num_local_replicas, options, uneven=uneven, **self._worker_arguments())

    def _distribute_datasets_from_function(self, dataset_fn: Callable[[InputContext], Any], options: Any) -> Any:
        """Implement ``strategy.distribute_datasets_from_function``, with checked options."""
        from ringlet.data.distribution.distribute import distribute_datasets_from_function

        return distribute_datasets_from_function(
            dataset_fn, self._num_local_replicas, options, **self._worker_arguments()
        )

    def _worker_arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of a distributed dataset for this worker; empty if there is only one worker."""
        return {}


class SingleReplicaExtended(StrategyExtended):
    """Base class of implementations with one replica, whose values are not wrapped."""

    @property
    def _num_replicas_in_sync(self) -> int:
        return 1

    def _reduce(self, op: ReduceOp, value: Any) -> Any:
        return reduce_components(op, value, 1) if isinstance(value, DistributedValues) else value

    def _reduce_to(self, op: ReduceOp, value: Any, destinations: Any, options: CommunicationOptions | None) -> Any:
        return self._reduce(op, value)

    def _gather(self, value: Any, axis: int) -> Any:
        return gather_single(value)

    def _local_results(self, value: Any) -> tuple[Any, ...]:
        return (value,)

    def _distribute_values_from_function(self, value_fn: Callable[[ValueContext], Any]) -> Any:
        return value_fn(ValueContext())
