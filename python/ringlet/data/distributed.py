"""Datasets whose every step has a part for each replica."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import index
from types import TracebackType
from typing import Any, NoReturn, Protocol

from ringlet import context
from ringlet.data.cutting import CutBatches
from ringlet.data.dataset import Dataset
from ringlet.data.dealing import DealElements
from ringlet.data.iterable import iterable_source
from ringlet.data.node import Node, Run, Stream
from ringlet.data.optional import Optional
from ringlet.data.structure import Nest
from ringlet.errors import InvalidArgumentError, OutOfRangeError

__all__ = ["DistributedDataset", "DistributedIterator"]


class Plan(Protocol):
    """How the elements of datasets become steps. A node is the plan of one replica: elements stay as they are."""

    @property
    def cardinality(self) -> int:
        """What a user is told as the cardinality of the distributed dataset."""
        ...

    @property
    def element_spec(self) -> Nest:
        """What a step looks like."""
        ...

    def open(self, run: Run) -> Stream:
        """Start a run: a stream of steps."""
        ...


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
        Number of replicas of this process, which is the only worker.
    rebatch : bool, default True
        Cut each element into chunks of ``ceil(size / num_replicas)`` rows, the last ones short or empty. False deals
        whole elements to the replicas in turn.

    Raises
    ------
    TypeError
        If `dataset` cannot be iterated, or is an array.
    InvalidArgumentError
        If elements have no batch dimension to cut, as soon as that is known.

    Notes
    -----
    When there are too few elements for a step of ``rebatch=False``, replicas without data get arrays without rows; but
    where all sizes are known to `element_spec` (a batch with ``drop_remainder=True``), those elements are left out.

    Examples
    --------
    >>> distributed = DistributedDataset(Dataset.range(8).batch(5), 2)
    >>> for step in distributed:
    ...     print([part.tolist() for part in step.values])
    [[0, 1, 2], [3, 4]]
    [[5, 6], [7]]
    """

    def __init__(self, dataset: Dataset | Iterable[Any], num_replicas: int, *, rebatch: bool = True) -> None:
        self._num_replicas = _count(num_replicas)
        node = _node(dataset)
        if num_replicas == 1:
            self._plan: Plan = node
        else:
            self._plan = CutBatches(node, num_replicas) if rebatch else DealElements((node,), num_replicas)

    @classmethod
    def of_replicas(cls, datasets: Iterable[Dataset | Iterable[Any]]) -> DistributedDataset:
        """Give every replica a dataset of its own.

        Parameters
        ----------
        datasets : iterable
            One for each replica. Their ends are treated as those of ``rebatch=False``.

        Examples
        --------
        >>> distributed = DistributedDataset.of_replicas([Dataset.range(2).batch(1), Dataset.range(5).batch(1)])
        >>> [[part.tolist() for part in step.values] for step in distributed][1:3]
        [[[1], [1]], [[], [2]]]
        """
        nodes = tuple(map(_node, datasets))
        distributed = cls.__new__(cls)
        distributed._num_replicas = _count(len(nodes))
        distributed._plan = nodes[0] if len(nodes) == 1 else DealElements(nodes, len(nodes))
        return distributed

    @property
    def element_spec(self) -> Nest:
        """The nest of PerReplicaSpec that every step follows; that of the dataset with one replica."""
        return self._plan.element_spec

    @property
    def cardinality(self) -> int:
        """That of the dataset before it is distributed."""
        return self._plan.cardinality

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

        Examples
        --------
        >>> DistributedDataset(Dataset.range(8).batch(5), 2).reduce(0, lambda n, step: n + len(step.values[1]))
        3
        """
        state = initial_state
        with iter(self) as iterator:
            for step in iterator:
                state = reduce_func(state, step)
        return state

    def __iter__(self) -> DistributedIterator:
        return DistributedIterator(self._plan)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} for {self._num_replicas} replicas>"

    def __getattr__(self, name: str) -> NoReturn:
        hint = ": transform the dataset before you distribute it" if hasattr(Dataset, name) else ""
        raise AttributeError(f"a {type(self).__name__} has no {name!r}{hint}", name=name, obj=self)


class DistributedIterator(Iterator[Nest]):
    """The steps of a distributed dataset, once through; ``iter(distributed_dataset)`` makes it.

    It belongs outside of replicas: ``strategy.run(fn, args=(next(iterator),))`` gives each of them its part.

    Parameters
    ----------
    plan : Plan

    Examples
    --------
    >>> iterator = iter(DistributedDataset(Dataset.range(2).batch(2), 2))
    >>> iterator.get_next()
    PerReplica:{
      0: array([0]),
      1: array([1])
    }
    >>> iterator.get_next_as_optional().has_value()
    False
    """

    __slots__ = ("__weakref__", "_plan", "_stream")

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._stream = plan.open(Run())

    def __next__(self) -> Nest:
        mode = context.current()
        if mode is not None and not mode.is_cross_replica:
            raise ValueError(
                "next(iterator) was called by a replica, and it gives the parts of all of them: call it outside, as in "
                "strategy.run(replica_fn, args=(next(iterator),)), where each replica receives its own part."
            )
        return next(self._stream)

    def get_next(self) -> Nest:
        """Give the next step.

        Raises
        ------
        OutOfRangeError
            If no replica has data left, or what is left is too little for a step of known sizes.
        ValueError
            If a replica calls it.

        Examples
        --------
        >>> iter(DistributedDataset([[1.5, 2.5]], 1)).get_next()
        array([1.5, 2.5])
        """
        try:
            return next(self)
        except StopIteration:
            raise OutOfRangeError(
                "end of the distributed dataset: make a new iterator to go through it again"
            ) from None

    def get_next_as_optional(self) -> Optional[Nest]:
        """Give the next step, or an empty Optional at the end.

        Raises
        ------
        ValueError
            If a replica calls it.

        Examples
        --------
        >>> iter(DistributedDataset([[1.5, 2.5]], 1)).get_next_as_optional()
        Optional(array([1.5, 2.5]))
        """
        try:
            return Optional(next(self))
        except StopIteration:
            return Optional()

    @property
    def element_spec(self) -> Nest:
        """The nest of PerReplicaSpec that every step follows."""
        return self._plan.element_spec

    def close(self) -> None:
        """End now: threads and files of the pipeline are let go, and there are no more steps.

        Examples
        --------
        >>> iterator = iter(DistributedDataset(Dataset.range(8).batch(2), 2))
        >>> iterator.close()
        >>> list(iterator)
        []
        """
        self._stream.close()

    def __enter__(self) -> DistributedIterator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _node(dataset: Any) -> Node:
    if isinstance(dataset, DistributedDataset):
        raise TypeError("this dataset is distributed already: distribute the Dataset that it was made of")
    return dataset.node if isinstance(dataset, Dataset) else iterable_source(dataset)


def _count(num_replicas: Any) -> int:
    count = index(num_replicas)
    if count < 1:
        raise InvalidArgumentError(f"a dataset is distributed to one replica or more, not to {count}")
    return count
