"""Datasets whose every step has a part for each replica."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NoReturn

from ringlet.data.dataset import Dataset
from ringlet.data.distribution.distributed_iterator import DistributedIterator
from ringlet.data.distribution.distribution_plan import Decision, Uneven, decide, decide_dealing, decide_per_replica
from ringlet.data.distribution.element_distribution import DealElements
from ringlet.data.distribution.input_placement import Place
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.iterable import iterable_source
from ringlet.data.graph.node import Node

__all__ = ["DistributedDataset"]


class DistributedDataset:
    """A dataset whose every step has a part for each replica (``tf.distribute.DistributedDataset``).

    Strategies make it. With one replica its steps are the elements of the dataset; with more they are the same nests
    with a ``PerReplica`` for each array, whose components are views: cutting copies nothing.

    Parameters
    ----------
    dataset : Dataset or iterable
        Of global batches. Any iterable of arrays, or of nests of arrays, will do; each iteration of the distributed
        dataset iterates it afresh.
    num_replicas : int
        Number of replicas of this worker.
    rebatch : bool, default True
        Shard the dataset to workers and cut its batches for the replicas, by the policy that its options name. False
        deals whole elements to the replicas in turn.
    num_workers, worker_index : int, optional
        Number of workers, and which of them this is. Without, there is one.
    sum_over_workers : callable, optional
        Gives the sum of an int over all workers, which call it together, once for each step. Without it a worker of
        several ends by itself.
    exchange : callable, optional
        Gives the bytes that all workers bring, which call it together. With it they compare what their elements look
        like at the first step, and an exception in the dataset of one is raised on all that wait for its next step.
    buffer_size : int, default 1
        How many elements are made ahead for each replica, where making them takes longer than handing them from a
        thread to another. 0 makes each when it is asked for.
    uneven : "keep" or None
        None, the default, is what TensorFlow does. "keep" gives every element exactly once, in pairs of a step and the
        weights of its parts in the mean.

    Raises
    ------
    TypeError
        If `dataset` cannot be iterated, or is an array.
    InvalidArgumentError
        If elements have no batch dimension to cut, as soon as that is known.
    NotFoundError
        If the policy of the dataset is FILE, and it reads no files.

    See Also
    --------
    ringlet.data.explain : tells how a dataset is distributed.

    Notes
    -----
    ``docs/datasets.md`` has the rules by which batches are cut and dealt, and examples.

    When there are too few elements for a step, replicas without data get arrays without rows; but where all sizes are
    known to the `element_spec` of the dataset (a batch with ``drop_remainder=True``), those elements are left out.

    Examples
    --------
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
        place = Place(num_replicas, num_workers, worker_index, sum_over_workers, exchange)
        if rebatch:
            self._decision = decide(_node(dataset), place, buffer_size=buffer_size, uneven=uneven)
        else:
            self._decision = decide_dealing(_node(dataset), place, buffer_size=buffer_size)

    @classmethod
    def of_replicas(cls, datasets: Iterable[Dataset | Iterable[Any]], *, buffer_size: int = 1) -> DistributedDataset:
        """Give every replica a dataset of its own.

        Parameters
        ----------
        datasets : iterable
            One for each replica. Their ends are treated as those of ``rebatch=False``.
        buffer_size : int, default 1
            As above.

        Examples
        --------
        >>> distributed = DistributedDataset.of_replicas([Dataset.range(2).batch(1), Dataset.range(5).batch(1)])
        >>> [[part.tolist() for part in step.values] for step in distributed][1:3]
        [[[1], [1]], [[], [2]]]
        """
        distributed = cls.__new__(cls)
        distributed._decision = decide_per_replica(list(map(_node, datasets)), buffer_size=buffer_size)
        return distributed

    def without_padding(self) -> DistributedDataset:
        """Give the same dataset, which leaves out elements that are too few for a step, as TensorFlow 1 does.

        Elements are dealt: this is for datasets that a function made.

        Examples
        --------
        >>> distributed = DistributedDataset(Dataset.range(5).batch(2), 2, rebatch=False)
        >>> len(list(distributed)), len(list(distributed.without_padding()))
        (2, 1)
        """
        plan = self._decision.plan
        twin = type(self).__new__(type(self))
        vars(twin).update(vars(self))
        if isinstance(plan, DealElements):
            twin._decision = replace(self._decision, plan=replace(plan, may_pad=False))
        return twin

    @property
    def decision(self) -> Decision:
        """How the dataset is distributed, for `ringlet.data.explain`."""
        return self._decision

    @property
    def element_spec(self) -> Nest:
        """The nest of PerReplicaSpec that every step follows; that of the dataset with one replica."""
        return self._decision.plan.element_spec

    @property
    def cardinality(self) -> int:
        """That of the dataset before it is distributed."""
        return self._decision.plan.cardinality

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Nest], Any]) -> Any:
        """Go through all steps once, with a state.

        Parameters
        ----------
        initial_state : object
        reduce_func : callable
            Takes the state and a step, and gives the next state.

        Returns
        -------
        object
            The last state.

        Notes
        -----
        As in TensorFlow, elements that are too few for a step count here whatever their sizes: replicas without data
        get arrays without rows.

        Examples
        --------
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

    def __getattr__(self, name: str) -> NoReturn:
        hint = ": transform the dataset before you distribute it" if hasattr(Dataset, name) else ""
        raise AttributeError(f"a {type(self).__name__} has no {name!r}{hint}", name=name, obj=self)


def _node(dataset: Any) -> Node:
    if isinstance(dataset, DistributedDataset):
        raise TypeError("this dataset is distributed already: distribute the Dataset that it was made of")
    return dataset.node if isinstance(dataset, Dataset) else iterable_source(dataset)
