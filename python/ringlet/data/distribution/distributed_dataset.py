"""DistributedDataset: a dataset whose steps have a part for each replica."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from ringlet.data.distribution.distributed_iterator import DistributedIterator
from ringlet.data.graph.cardinality import cardinality_text
from ringlet.data.graph.element_structure import Nest

if TYPE_CHECKING:
    from ringlet.data.dataset import Dataset
    from ringlet.data.distribution.distribution_plan import Decision, Uneven
    from ringlet.data.graph.node import Node

D = TypeVar("D", bound="DistributedDataset")


class DistributedDataset:
    """A dataset of steps with a part for each replica (``tf.distribute.DistributedDataset``).

    Created by strategies. With one replica, the steps are the elements of the dataset. With several replicas, the steps
    are the same nests with a ``PerReplica`` in place of each array; its components are views where possible.

    Parameters
    ----------
    dataset : Dataset or iterable
        The global batches: a dataset, or any iterable of arrays or nests of arrays. Each iteration of the distributed
        dataset starts a new iteration of `dataset`.
    num_replicas : int
        Number of replicas of this worker.
    rebatch : bool, default True
        Whether to shard the dataset across workers by the policy in its options, and to split its batches for the
        replicas. Otherwise, whole elements are distributed to the replicas in turn.
    num_workers, worker_index : int, optional
        Number of workers, and index of this worker. By default, there is one worker.
    sum_over_workers : callable, optional
        Returns the sum of an int over all workers; a collective call in each step, unless the dataset is infinite.
        Without it, workers end independently.
    exchange : callable, optional
        Takes bytes, and returns the bytes of every worker; a collective call. With it, the workers compare the
        structures and dtypes of their elements at the first step, and an exception in the dataset of one worker is
        raised on all workers at the next step.
    buffer_size : int, default 1
        Number of elements prefetched for each replica, if computing an element takes longer than passing it between
        threads. With 0, elements are computed on request.
    uneven : "keep" or None
        None, the default, is TensorFlow's behavior. "keep" yields every element once; each step becomes a pair of the
        step and the weights of its parts in the mean.

    Raises
    ------
    TypeError
        If `dataset` is not iterable, or is an array.
    InvalidArgumentError
        If elements have no batch dimension to split; raised as soon as this is known.
    NotFoundError
        If there are several workers and the policy of the dataset is FILE, but the dataset reads no files.

    See Also
    --------
    ringlet.data.explain : prints how a dataset is distributed.

    Notes
    -----
    ``docs/datasets.md`` describes how batches are split and distributed, with examples.

    If too few elements are left for a step, replicas without data receive arrays without rows. On a single worker, if
    the `element_spec` of the dataset determines all sizes (after a batch with ``drop_remainder=True``), the remaining
    elements are dropped instead.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> distributed = DistributedDataset(Dataset.range(8).batch(5), 2)
    >>> for step in distributed:
    ...     print([part.tolist() for part in step.values])
    [[0, 1, 2], [3, 4]]
    [[5, 6], [7]]
    """

    def __init__(
        self,
        dataset: Dataset | Iterable[Any],
        num_replicas: int,
        *,
        rebatch: bool = True,
        num_workers: int = 1,
        worker_index: int = 0,
        sum_over_workers: Callable[[int], int] | None = None,
        exchange: Callable[[bytes], list[bytes]] | None = None,
        buffer_size: int = 1,
        uneven: Uneven = None,
    ) -> None:
        # Imported here, because every program imports this module and few programs distribute datasets.
        from ringlet.data.distribution.distribution_plan import decide, decide_dealing
        from ringlet.data.distribution.input_placement import InputPlacement

        place = InputPlacement(num_replicas, num_workers, worker_index, sum_over_workers, exchange)
        if rebatch:
            self._decision = decide(_node(dataset), place, buffer_size=buffer_size, uneven=uneven)
        else:
            self._decision = decide_dealing(_node(dataset), place, buffer_size=buffer_size)

    @classmethod
    def of_replicas(cls, datasets: Iterable[Dataset | Iterable[Any]], *, buffer_size: int = 1) -> DistributedDataset:
        """Create a distributed dataset with one dataset for each replica.

        Parameters
        ----------
        datasets : iterable
            One dataset for each replica. The end of data is handled as with ``rebatch=False``.
        buffer_size : int, default 1
            As for the class.

        Examples
        --------
        >>> from ringlet.data import Dataset
        >>> distributed = DistributedDataset.of_replicas([Dataset.range(2).batch(1), Dataset.range(5).batch(1)])
        >>> [[part.tolist() for part in step.values] for step in distributed][1:3]
        [[[1], [1]], [[], [2]]]
        """
        from ringlet.data.distribution.distribution_plan import decide_per_replica

        return cls._decided(decide_per_replica(list(map(_node, datasets)), buffer_size=buffer_size))

    @classmethod
    def _decided(cls: type[D], decision: Decision) -> D:
        distributed = cls.__new__(cls)
        distributed._decision = decision
        return distributed

    def without_padding(self) -> DistributedDataset:
        """Return a copy that drops the last elements if they are too few for a step, as TensorFlow 1 does.

        Global batches that are split one by one, as under AutoShardPolicy.DATA, always fill a step.

        Examples
        --------
        >>> from ringlet.data import Dataset
        >>> distributed = DistributedDataset(Dataset.range(5).batch(2), 2, rebatch=False)
        >>> len(list(distributed)), len(list(distributed.without_padding()))
        (2, 1)
        """
        from dataclasses import replace

        from ringlet.data.distribution.element_distribution import ElementDistribution

        plan = self._decision.plan
        if isinstance(plan, ElementDistribution):
            plan = replace(plan, may_pad=False)
        return self._decided(replace(self._decision, plan=plan))

    @property
    def decision(self) -> Decision:
        """The distribution plan and the reasons for it, for `ringlet.data.explain`."""
        return self._decision

    @property
    def element_spec(self) -> Nest:
        """The specs of a step, a nest of PerReplicaSpec; with one replica, the specs of the dataset."""
        return self._decision.plan.element_spec

    @property
    def cardinality(self) -> int:
        """The cardinality of the dataset before distribution."""
        return self._decision.plan.cardinality

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Nest], Any]) -> Any:
        """Combine all steps into one state.

        Parameters
        ----------
        initial_state : object
        reduce_func : callable
            Takes the state and a step, and returns the next state.

        Returns
        -------
        object
            The last state.

        Notes
        -----
        As in TensorFlow, `reduce` never drops the last elements, even if they are too few for a step: replicas without
        data receive arrays without rows.

        Examples
        --------
        >>> from ringlet.data import Dataset
        >>> DistributedDataset(Dataset.range(8).batch(5), 2).reduce(0, lambda n, step: n + len(step.values[1]))
        3
        """
        state = initial_state
        with iter(self) as iterator:
            while (step := iterator.get_next_as_optional()).has_value():
                state = reduce_func(state, step.get_value())
        return state

    def __iter__(self) -> DistributedIterator:
        return DistributedIterator(self._decision.plan)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} for {self._decision.place.total} replicas>"

    def _repr_html_(self) -> str:
        from ringlet.values.notebook_repr import facts_table

        facts = {"replicas": self._decision.place.total, **self._decision.facts}
        return facts_table(type(self).__name__, {**facts, "elements": cardinality_text(self.cardinality)})

    if not TYPE_CHECKING:  # type checkers report these calls

        def __len__(self) -> NoReturn:
            raise TypeError(
                "object of type 'DistributedDataset' has no len(): its number of steps is known only at the end. "
                "Use dataset.cardinality, the number of elements before distribution"
            )

        def __getitem__(self, key: Any) -> NoReturn:
            raise TypeError(
                f"'DistributedDataset' object is not subscriptable: got dataset[{key!r}]. Write for step in dataset: "
                "strategy.run(fn, args=(step,)), or next(iter(dataset)) for the first step"
            )

    def __bool__(self) -> bool:  # otherwise bool() would call __len__
        return True

    def __getattr__(self, name: str) -> NoReturn:
        from ringlet.data.dataset import Dataset

        hint = ". Transform the dataset before distributing it." if hasattr(Dataset, name) else ""
        raise AttributeError(f"a {type(self).__name__} has no {name!r}{hint}", name=name, obj=self)


def _node(dataset: Any) -> Node:
    if isinstance(dataset, DistributedDataset):
        raise TypeError("the dataset is already distributed. Pass the original Dataset instead.")
    from ringlet.data.dataset import Dataset
    from ringlet.data.graph.iterable import iterable_source

    return dataset.node if isinstance(dataset, Dataset) else iterable_source(dataset)
