"""CrossDeviceOps: the base class of reductions over the replicas, and the predefined reductions."""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ringlet.collectives import Algorithm, CommunicationOptions, ReduceOp
from ringlet.collectives.adapters.array_adapters import kind_of, own_copy
from ringlet.strategy.api.value_combining import checked_pairs
from ringlet.strategy.calls.destinations import check_destinations
from ringlet.strategy.calls.reduce_semantics import parse_reduce_op, read_component, reduce_components
from ringlet.values import DistributedValues, Mirrored, PerReplica

_log = logging.getLogger(__name__)


class CrossDeviceOps:
    """Base class of reductions over the replicas (``tf.distribute.CrossDeviceOps``).

    A subclass overrides :meth:`reduce_implementation`, and :meth:`batch_reduce_implementation` if it can combine many
    values at once; both receive checked arguments. A strategy uses its ``cross_device_ops`` for ``reduce``,
    ``extended.reduce_to``, ``extended.batch_reduce_to`` and the replicas' ``all_reduce``.

    Attributes
    ----------
    algorithm : Algorithm
        The algorithm of the core's collectives, if they are used.

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

    # Whether the core computes SUM and MEAN, so that a strategy may call the core directly.
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
            A device string, or a value that stands for its devices.
        options : CommunicationOptions, optional

        Returns
        -------
        Mirrored
            Or what a subclass returns. With one component, the component itself.

        Raises
        ------
        ValueError, TypeError
            If the operation or `destinations` is invalid.

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
            return read_component(value.values[0])
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
            If an entry is not a pair, or a subclass returns the wrong number of results; also as for :meth:`reduce`.
        TypeError
            If the pairs are not iterable; also as for :meth:`reduce`.

        Examples
        --------
        >>> import ringlet
        >>> value = ringlet.values.PerReplica([1.0, 2.0])
        >>> [float(mean) for mean in ringlet.RingAllReduce().batch_reduce("MEAN", [(value, "CPU:0"), (value, value)])]
        [1.5, 1.5]
        """
        op = parse_reduce_op(reduce_op)
        pairs = [(_as_distributed(value), target) for value, target in checked_pairs(value_destination_pairs)]
        for _, destinations in pairs:
            check_destinations(destinations)
        if all(len(value.values) == 1 for value, _ in pairs):
            return [read_component(value.values[0]) for value, _ in pairs]
        results = list(self.batch_reduce_implementation(op, pairs, options or CommunicationOptions()))
        if len(results) != len(pairs):
            raise ValueError(
                f"{type(self).__name__}.batch_reduce_implementation returned {len(results)} results for {len(pairs)} "
                "values: return one for each, in order"
            )
        return results

    def broadcast(self, tensor: Any, destinations: Any) -> Any:
        """Copy a value to all destinations.

        Parameters
        ----------
        tensor : array-like
        destinations : str, variable, DistributedValues or ndarray

        Returns
        -------
        Mirrored or ndarray
            One component for each component of the destinations; a single component is returned as the bare array.

        Raises
        ------
        ValueError, TypeError
            If `destinations` is invalid.

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
        """Combine the components of a value that has at least two; subclasses override this method."""
        raise NotImplementedError(f"{type(self).__name__} does not combine values: define reduce_implementation")

    def batch_reduce_implementation(
        self, reduce_op: ReduceOp, value_destination_pairs: Sequence[tuple[Any, Any]], options: CommunicationOptions
    ) -> Sequence[Any]:
        """Combine the components of many values, one value after the other; subclasses may override this method."""
        return [
            self.reduce_implementation(reduce_op, value, destinations, options)
            for value, destinations in value_destination_pairs
        ]

    def broadcast_implementation(self, tensor: Any, destinations: Any) -> Any:
        """Copy a value to all destinations; subclasses may override this method."""
        return copies(tensor, len(destinations.values) if isinstance(destinations, DistributedValues) else 1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class CoreAllReduce(CrossDeviceOps):
    """The collectives of the core, with the fastest algorithm for each call: the default of strategies.

    Examples
    --------
    >>> CoreAllReduce().algorithm.name
    'AUTO'
    """

    _is_core = True

    def reduce_implementation(
        self, reduce_op: ReduceOp, per_replica_value: Any, destinations: Any, options: CommunicationOptions
    ) -> Any:
        """Combine the components; every replica receives the result, regardless of the destinations."""
        count = len(per_replica_value.values)
        return copies(reduce_components(reduce_op, per_replica_value, count), count)


class DirectAllReduce(CoreAllReduce):
    """The direct algorithm: reads each chunk from every replica, adds in balanced tree order, and writes the sum once.

    Examples
    --------
    >>> import ringlet
    >>> ringlet.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=ringlet.DirectAllReduce()).num_replicas_in_sync
    2
    """

    algorithm = Algorithm.DIRECT


class RingAllReduce(CoreAllReduce):
    """The direct algorithm in the order of a ring: the sum of each chunk begins at a different replica.

    Examples
    --------
    >>> import ringlet
    >>> ringlet.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=ringlet.RingAllReduce()).num_replicas_in_sync
    2
    """

    algorithm = Algorithm.RING


class HierarchicalCopyAllReduce(CoreAllReduce):
    """The default algorithm, which adds in tree order, like ``tf.distribute.HierarchicalCopyAllReduce``.

    Parameters
    ----------
    num_packs : int
        Accepted for compatibility; all arrays of a call are combined in one pass.

    Raises
    ------
    ValueError, TypeError
        If `num_packs` is negative, or not an integer.

    Examples
    --------
    >>> HierarchicalCopyAllReduce(num_packs=2)
    HierarchicalCopyAllReduce(num_packs=2)
    """

    _name = "HierarchicalCopy"

    def __init__(self, num_packs: int = 1) -> None:
        if not isinstance(num_packs, (int, np.integer)):
            raise TypeError(
                f"{self._name} requires an integer num_packs, got {num_packs!r} of type {type(num_packs).__name__}: "
                "omit it, or pass num_packs=1"
            )
        if num_packs < 0:
            raise ValueError(
                f"{self._name} requires num_packs >= 0, but {num_packs} is specified. 0 and 1 pack all arrays together"
            )
        self.num_packs = num_packs

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_packs={self.num_packs})"


class NcclAllReduce(HierarchicalCopyAllReduce):
    """The default algorithm, in place of ``tf.distribute.NcclAllReduce`` in GPU programs; logs a warning once.

    Parameters
    ----------
    num_packs : int
        Accepted for compatibility; without effect.

    Raises
    ------
    ValueError, TypeError
        If `num_packs` is negative, or not an integer.

    Examples
    --------
    >>> NcclAllReduce().algorithm.name
    'AUTO'
    """

    _name = "NCCL all-reduce"

    def __init__(self, num_packs: int = 1) -> None:
        super().__init__(num_packs)
        _warn_of_nccl()


def copies(value: Any, count: int) -> Any:
    """Return a value for each replica, as a Mirrored of separate array objects; with one replica, the value itself."""
    if count == 1:
        return value
    # A separate object for each replica, because `run` returns a bare value if all replicas return the same object.
    if kind_of(value) is not None:
        return Mirrored([value, *(own_copy(value) for _ in range(count - 1))])
    return Mirrored([value.view() if isinstance(value, np.ndarray) else value for _ in range(count)])


@functools.cache
def _warn_of_nccl() -> None:
    _log.warning("NcclAllReduce: NCCL is not used, because all devices share host memory; ringlet combines the values")


def _as_distributed(value: Any) -> DistributedValues[Any]:
    return value if isinstance(value, DistributedValues) else PerReplica([value])
