"""Deprecated calls of a strategy, kept for programs written for older versions of TensorFlow."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np

from ringlet.input_replication_mode import InputReplicationMode
from ringlet.strategy.calls.plain_names import PlainNames

if TYPE_CHECKING:
    from ringlet.data import InputContext
    from ringlet.strategy.api.extended import StrategyExtended
    from ringlet.strategy.api.strategy import Strategy


class DeprecatedCalls(PlainNames):
    """Deprecated methods of :class:`ringlet.Strategy`; they issue a `DeprecationWarning` if TensorFlow does."""

    _extended: StrategyExtended

    def experimental_run(self: Strategy, fn: Callable[..., Any], input_iterator: Any = None) -> Any:  # type: ignore[misc]
        """Call a function once on each replica, with the next element of an iterator; see :meth:`run`.

        Parameters
        ----------
        fn : callable
            Called with the replica's part of the next element; without an iterator, called with no arguments.
        input_iterator : object with ``get_next``, optional

        Returns
        -------
        nested structure
            As for :meth:`run`.

        Examples
        --------
        >>> import ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> iterator = strategy.make_dataset_iterator(ringlet.data.Dataset.range(4).batch(4))
        >>> strategy.experimental_run(lambda x: int(x.sum()), iterator).values
        (1, 5)
        """
        return self.run(fn, args=() if input_iterator is None else (input_iterator.get_next(),))

    def unwrap(self: Strategy, value: Any) -> tuple[Any, ...]:  # type: ignore[misc]
        """Return the components of a value; the older name of :meth:`experimental_local_results`.

        Parameters
        ----------
        value : nested structure

        Returns
        -------
        tuple

        Examples
        --------
        >>> import ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> with warnings.catch_warnings(action="ignore"):
        ...     strategy.unwrap(ringlet.values.PerReplica([1, 2]))
        (1, 2)
        """
        _warn("unwrap", "experimental_local_results")
        return self.experimental_local_results(value)

    def experimental_distribute_datasets_from_function(  # type: ignore[misc]
        self: Strategy, dataset_fn: Callable[[InputContext], Any], options: Any = None
    ) -> Any:
        """Distribute the batches of a dataset; the older name of :meth:`distribute_datasets_from_function`.

        Parameters
        ----------
        dataset_fn : callable
        options : ringlet.data.InputOptions, optional

        Returns
        -------
        DistributedDataset

        Examples
        --------
        >>> import ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> with warnings.catch_warnings(action="ignore"):
        ...     dataset = strategy.experimental_distribute_datasets_from_function(
        ...         lambda context: ringlet.data.Dataset.range(4).batch(2))
        >>> next(iter(dataset)).values
        (array([0, 1]), array([2, 3]))
        """
        _warn("experimental_distribute_datasets_from_function", "distribute_datasets_from_function")
        return self.distribute_datasets_from_function(dataset_fn, options)

    def colocate_vars_with(self, colocate_with_variable: Any) -> AbstractContextManager[None]:
        """Call :meth:`StrategyExtended.colocate_vars_with`, which replaces this method.

        Parameters
        ----------
        colocate_with_variable : Variable

        Returns
        -------
        context manager
        """
        _warn("colocate_vars_with", "extended.colocate_vars_with")
        return self._extended.colocate_vars_with(colocate_with_variable)

    def make_dataset_iterator(self: Strategy, dataset: Any) -> Any:  # type: ignore[misc]
        """Return an iterator that splits global batches over the replicas, as in TensorFlow 1.

        Parameters
        ----------
        dataset : ringlet.data.Dataset or iterable
            Its elements are global batches.

        Returns
        -------
        InputIterator
            For :meth:`experimental_run`. Its ``initialize()`` restarts it.

        Examples
        --------
        >>> import ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> strategy.make_dataset_iterator(ringlet.data.Dataset.range(4).batch(4)).get_next().values
        (array([0, 1]), array([2, 3]))
        """
        from ringlet.data.input_iterator import InputIterator

        return InputIterator(_built(self.experimental_distribute_dataset(dataset)))

    def make_input_fn_iterator(  # type: ignore[misc]
        self: Strategy,
        input_fn: Callable[[InputContext], Any],
        replication_mode: Any = InputReplicationMode.PER_WORKER,
    ) -> Any:
        """Return an iterator over batches that a function creates, as in TensorFlow 1.

        Parameters
        ----------
        input_fn : callable
            Called once, or once for each host of a TPU slice, with an :class:`~ringlet.data.InputContext`; returns a
            dataset of batches for one replica, or a function that is called once for each replica of each step.
        replication_mode : InputReplicationMode
            Must be PER_WORKER.

        Returns
        -------
        InputIterator
            For :meth:`experimental_run`. The last batches are dropped if they do not suffice for a step.

        Raises
        ------
        ValueError
            If the mode is not PER_WORKER, or `input_fn` returns neither a dataset nor a function.

        Examples
        --------
        >>> import ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> strategy.make_input_fn_iterator(lambda context: ringlet.data.Dataset.range(4).batch(2)).get_next().values
        (array([0, 1]), array([2, 3]))
        """
        if replication_mode is not InputReplicationMode.PER_WORKER:
            raise ValueError(
                f"Input replication mode not supported: {replication_mode!r}. Pass PER_WORKER, or call "
                "distribute_datasets_from_function with InputOptions"
            )
        from ringlet.data.input_iterator import FunctionSteps, InputIterator

        results = [(input_fn(context), count) for context, count in _pipelines(self._extended)]
        if all(callable(result) for result, _ in results):
            return InputIterator(FunctionSteps([result for result, count in results for _ in range(count)]))
        for result, _ in results:
            if callable(result) or isinstance(result, (str, bytes, np.ndarray)) or not isinstance(result, Iterable):
                raise ValueError(
                    "input_fn must return a tf.data.Dataset or a callable that returns a batch, the same kind for "
                    f"each host, got {result!r}"
                )
        datasets = iter(results)
        dataset = _built(self.distribute_datasets_from_function(lambda _: next(datasets)[0]))
        without_padding = getattr(dataset, "without_padding", None)  # absent in datasets of the default strategy
        return InputIterator(dataset if without_padding is None else without_padding())

    def experimental_make_numpy_dataset(self, numpy_input: Any, session: Any = None) -> Any:
        """Return a dataset of the rows of arrays; see :meth:`StrategyExtended.experimental_make_numpy_dataset`.

        Parameters
        ----------
        numpy_input : nest of array-like
        session : object, optional
            Accepted for compatibility; without effect.

        Returns
        -------
        ringlet.data.Dataset

        Examples
        --------
        >>> import ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0"])
        >>> [int(row) for row in strategy.experimental_make_numpy_dataset([1, 2])]
        [1, 2]
        """
        return self._extended.experimental_make_numpy_dataset(numpy_input, session)

    make_numpy_dataset = experimental_make_numpy_dataset

    def configure(
        self, session_config: Any = None, cluster_spec: Any = None, task_type: Any = None, task_id: Any = None
    ) -> None:
        """Do nothing: in TensorFlow 1, this prepares sessions, which Ringlet does not have.

        Parameters
        ----------
        session_config, cluster_spec, task_type, task_id : object, optional
            Accepted for compatibility; without effect.
        """

    def update_config_proto(self, config_proto: Any) -> Any:
        """Return the argument: in TensorFlow 1, this prepares sessions, which Ringlet does not have.

        Parameters
        ----------
        config_proto : object

        Returns
        -------
        object
            `config_proto`.
        """
        return config_proto


def _pipelines(extended: StrategyExtended) -> list[tuple[InputContext, int]]:
    """Return, for each input pipeline of this process, its context and the number of replicas that it feeds."""
    from ringlet.data import InputContext

    workers: Any = extended._workers
    hosts = extended._replicas_of_hosts()
    first, total = (0, len(hosts)) if workers is None else (workers.worker_index, workers.num_workers)
    replicas = extended._num_replicas_in_sync
    return [(InputContext(total, first + host, replicas), count) for host, count in enumerate(hosts)]


def _built(dataset: Any) -> Any:
    """Build a dataset here if workers would otherwise build it: deprecated iterators run in the coordinator."""
    build = getattr(dataset, "build", None)
    return dataset if build is None else build()


def _warn(name: str, instead: str) -> None:
    warnings.warn(f"strategy.{name} is deprecated: use strategy.{instead}", DeprecationWarning, stacklevel=3)
