"""How a strategy combines values: the argument ``cross_device_ops``, and the base of ways that users write."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ringlet.collectives import Algorithm, CommunicationOptions, ReduceOp
from ringlet.collectives.adapters.array_adapters import kind_of, own_copy
from ringlet.strategy.api.destinations import check_destinations
from ringlet.strategy.api.reduce_semantics import parse_reduce_op, reduce_components, settled
from ringlet.strategy.api.value_combining import checked_pairs
from ringlet.values import DistributedValues, Mirrored, PerReplica

__all__ = [
    "CoreAllReduce",
    "CrossDeviceOps",
    "DirectAllReduce",
    "HierarchicalCopyAllReduce",
    "NcclAllReduce",
    "RingAllReduce",
    "copies",
]

_log = logging.getLogger(__name__)


class CrossDeviceOps:
    """Base of the ways in which a strategy combines the values of its replicas (``tf.distribute.CrossDeviceOps``).

    A subclass overrides :meth:`reduce_implementation`, and :meth:`batch_reduce_implementation` where it can do many
    values at once; both take arguments that are checked. A strategy that is given one uses it for ``reduce``,
    ``extended.reduce_to``, ``extended.batch_reduce_to`` and the replicas' ``all_reduce``.

    Attributes
    ----------
    algorithm : Algorithm
        What collectives of the core run, where they are used.

    Examples
    --------
    >>> import numpy as np, ringlet
    >>> class Largest(ringlet.CrossDeviceOps):
    ...     def reduce_implementation(self, reduce_op, per_replica_value, destinations, options):
    ...         return ringlet.values.Mirrored([max(per_replica_value.values)] * len(per_replica_value.values))
    >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=Largest())
    >>> print(strategy.reduce("SUM", ringlet.values.PerReplica([3.0, 5.0]), axis=None))
    5.0
    """

    algorithm = Algorithm.AUTO

    # Whether a SUM and a MEAN are those of the core, so that a strategy may take a shorter way to them.
    _is_core = False

    def reduce(
        self,
        reduce_op: Any,
        per_replica_value: Any,
        destinations: Any,
        options: CommunicationOptions | None = None,
    ) -> Any:
        """Combine the components of one value.

        Parameters
        ----------
        reduce_op : ReduceOp or str
        per_replica_value : DistributedValues or array-like
            An array counts as one component.
        destinations : str, variable, DistributedValues or ndarray
            A device string, or a value on whose devices the result is wanted.
        options : CommunicationOptions, optional

        Returns
        -------
        Mirrored
            With one component: that component.

        Raises
        ------
        ValueError, TypeError
            If the operation or `destinations` are none.

        Examples
        --------
        >>> import ringlet
        >>> print(ringlet.DirectAllReduce().reduce("SUM", ringlet.values.PerReplica([1.5, 2.0]), "CPU:0"))
        Mirrored:{
          0: 3.5,
          1: 3.5
        }
        """
        op = parse_reduce_op(reduce_op)
        check_destinations(destinations)
        value = _as_distributed(per_replica_value)
        if len(value.values) == 1:
            return settled(value.values[0])
        return self.reduce_implementation(op, value, destinations, options or CommunicationOptions())

    def batch_reduce(
        self,
        reduce_op: Any,
        value_destination_pairs: Iterable[tuple[Any, Any]],
        options: CommunicationOptions | None = None,
    ) -> list[Any]:
        """Combine the components of many values.

        Parameters
        ----------
        reduce_op : ReduceOp or str
        value_destination_pairs : iterable of (value, destinations)
            As for :meth:`reduce`.
        options : CommunicationOptions, optional

        Returns
        -------
        list
            One result for each pair, in order.

        Raises
        ------
        ValueError
            If an entry is no tuple of two, or a subclass gives another number of results; and as :meth:`reduce`.
        TypeError
            As :meth:`reduce`.

        Examples
        --------
        >>> import ringlet
        >>> value = ringlet.values.PerReplica([1.0, 2.0])
        >>> [float(mean) for mean in ringlet.RingAllReduce().batch_reduce("MEAN", [(value, "CPU:0"), (value, value)])]
        [1.5, 1.5]
        """
        op = parse_reduce_op(reduce_op)
        pairs = [(_as_distributed(value), places) for value, places in checked_pairs(value_destination_pairs)]
        for _, destinations in pairs:
            check_destinations(destinations)
        if all(len(value.values) == 1 for value, _ in pairs):
            return [settled(value.values[0]) for value, _ in pairs]
        results = list(self.batch_reduce_implementation(op, pairs, options or CommunicationOptions()))
        if len(results) != len(pairs):
            raise ValueError(
                f"{type(self).__name__}.batch_reduce_implementation gave {len(results)} results for {len(pairs)} "
                "values: give one for each, in order"
            )
        return results

    def broadcast(self, tensor: Any, destinations: Any) -> Any:
        """Give all destinations the same value.

        Parameters
        ----------
        tensor : array-like
        destinations : str, variable, DistributedValues or ndarray

        Returns
        -------
        Mirrored or ndarray
            One component for each component of the destinations; bare with one.

        Raises
        ------
        ValueError, TypeError
            If `destinations` are none.

        Examples
        --------
        >>> import numpy as np, ringlet
        >>> ringlet.DirectAllReduce().broadcast(np.array([1, 2]), ringlet.values.PerReplica([0.0, 0.0])).values
        (array([1, 2]), array([1, 2]))
        """
        check_destinations(destinations)
        return self.broadcast_implementation(tensor, destinations)

    def reduce_implementation(
        self, reduce_op: ReduceOp, per_replica_value: Any, destinations: Any, options: CommunicationOptions
    ) -> Any:
        """Combine the components of one value, of which there are several; subclasses override this."""
        raise NotImplementedError(f"{type(self).__name__} does not combine values: it lacks reduce_implementation")

    def batch_reduce_implementation(
        self, reduce_op: ReduceOp, value_destination_pairs: Sequence[tuple[Any, Any]], options: CommunicationOptions
    ) -> Sequence[Any]:
        """Combine the components of many values: of each by itself, unless a subclass overrides this."""
        return [
            self.reduce_implementation(reduce_op, value, destinations, options)
            for value, destinations in value_destination_pairs
        ]

    def broadcast_implementation(self, tensor: Any, destinations: Any) -> Any:
        """Give all destinations the same value; subclasses may override this."""
        return copies(tensor, len(destinations.values) if isinstance(destinations, DistributedValues) else 1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class CoreAllReduce(CrossDeviceOps):
    """The collectives of the core, by the algorithm that they find best: what strategies use unless they are told.

    Examples
    --------
    >>> CoreAllReduce().algorithm.name
    'AUTO'
    """

    _is_core = True

    def reduce_implementation(
        self, reduce_op: ReduceOp, per_replica_value: Any, destinations: Any, options: CommunicationOptions
    ) -> Any:
        """Combine the components; every one of them gets the result, wherever it is wanted besides."""
        count = len(per_replica_value.values)
        return copies(reduce_components(reduce_op, per_replica_value, count), count)


class DirectAllReduce(CoreAllReduce):
    """Reads each chunk from every replica and writes it once, in the balanced tree order.

    Examples
    --------
    >>> import ringlet
    >>> ringlet.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=ringlet.DirectAllReduce()).num_replicas_in_sync
    2
    """

    algorithm = Algorithm.DIRECT


class RingAllReduce(CoreAllReduce):
    """The textbook ring: reduce-scatter, then all-gather, in the order of the ring.

    Examples
    --------
    >>> import ringlet
    >>> ringlet.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=ringlet.RingAllReduce()).num_replicas_in_sync
    2
    """

    algorithm = Algorithm.RING


class HierarchicalCopyAllReduce(CoreAllReduce):
    """A tree of copies (``tf.distribute.HierarchicalCopyAllReduce``): here every order of additions is a tree.

    Parameters
    ----------
    num_packs : int
        Kept for TensorFlow's sake: all arrays of a call travel together.

    Raises
    ------
    ValueError
        If `num_packs` is negative.

    Examples
    --------
    >>> HierarchicalCopyAllReduce(num_packs=2)
    HierarchicalCopyAllReduce(num_packs=2)
    """

    _name = "HierarchicalCopy"

    def __init__(self, num_packs: int = 1) -> None:
        if not isinstance(num_packs, (int, np.integer)):
            raise TypeError(
                f"{self._name} takes num_packs, a whole number, got {num_packs!r} of type {type(num_packs).__name__}: "
                "leave it out, or write num_packs=1"
            )
        if num_packs < 0:
            raise ValueError(
                f"{self._name} requires num_packs >= 0, but {num_packs} is specified. 0 and 1 pack all arrays together"
            )
        self.num_packs = num_packs

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_packs={self.num_packs})"


class NcclAllReduce(HierarchicalCopyAllReduce):
    """A name for programs that were written for GPUs (``tf.distribute.NcclAllReduce``); says so once in the log.

    Parameters
    ----------
    num_packs : int
        Kept for TensorFlow's sake.

    Raises
    ------
    ValueError
        If `num_packs` is negative.

    Examples
    --------
    >>> NcclAllReduce().algorithm.name
    'AUTO'
    """

    _name = "NCCL all-reduce"

    def __init__(self, num_packs: int = 1) -> None:
        super().__init__(num_packs)
        _say_once("NcclAllReduce: there is no NCCL here, where all devices share host memory; the core combines values")


def copies(value: Any, count: int) -> Any:
    """Give a value once for each of so many replicas, in memory that they share unless they may write to it.

    Parameters
    ----------
    value : array-like
    count : int

    Returns
    -------
    Mirrored or object
        The value itself for one replica.

    Examples
    --------
    >>> copies(2.5, 2).values
    (2.5, 2.5)
    """
    if count == 1:
        return value
    # An object for each: identical ones would come back bare from replicas.
    if kind_of(value) is not None:
        return Mirrored([value, *(own_copy(value) for _ in range(count - 1))])
    return Mirrored([value.view() if isinstance(value, np.ndarray) else value for _ in range(count)])


_said: set[str] = set()


def _say_once(text: str) -> None:
    if text not in _said:
        _said.add(text)
        _log.warning(text)


def _as_distributed(value: Any) -> DistributedValues[Any]:
    return value if isinstance(value, DistributedValues) else PerReplica([value])
