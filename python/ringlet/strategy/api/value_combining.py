"""Reductions in cross-replica context: methods of ``strategy.extended``, and the hooks that implement them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ringlet.collectives import CommunicationOptions, ReduceOp
from ringlet.collectives.argument_parsing import shortened
from ringlet.strategy.api.extended_base import ExtendedBase
from ringlet.strategy.calls.call_options import check_options
from ringlet.strategy.calls.context_checks import require_cross_replica
from ringlet.strategy.calls.destinations import check_destinations
from ringlet.strategy.calls.reduce_semantics import parse_reduce_op


class ValueCombining(ExtendedBase):
    """Methods of ``strategy.extended`` that combine values."""

    def reduce_to(
        self, reduce_op: Any, value: Any, destinations: Any, options: CommunicationOptions | None = None
    ) -> Any:
        """Combine the components of a value, for the devices of `destinations`.

        Parameters
        ----------
        reduce_op : ReduceOp or str
            ``SUM`` or ``MEAN``; strings are case-insensitive.
        value : nested structure
            As for :meth:`ringlet.Strategy.reduce`.
        destinations : str, variable, DistributedValues or ndarray
            A device string, or a value that stands for its devices. All devices share host memory.
        options : CommunicationOptions, optional

        Returns
        -------
        nested structure of Mirrored
            One component for each replica of this process, in shared memory. With one replica: the component; in a
            CentralStorageStrategy and a TPUStrategy also if `destinations` is one device.

        Raises
        ------
        ValueError
            If the operation is unknown, or `destinations` is not a device; for the SUM of a nonzero value that several
            replicas of one worker share.
        TypeError
            If the operation, `destinations` or `options` has the wrong type.
        InvalidArgumentError
            If the components differ in shape or dtype.
        RuntimeError
            If called inside a replica, or inside the scope of another strategy.

        Examples
        --------
        >>> import numpy as np, ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> value = strategy.experimental_distribute_values_from_function(
        ...     lambda context: np.full(2, context.replica_id_in_sync_group))
        >>> print(strategy.extended.reduce_to("SUM", value, "CPU:0"))
        Mirrored:{
          0: [1 1],
          1: [1 1]
        }
        """
        require_cross_replica(self._container_strategy())
        op = parse_reduce_op(reduce_op)
        check_destinations(destinations)
        check_options(options)
        return self._reduce_to(op, value, destinations, options)

    def batch_reduce_to(
        self,
        reduce_op: Any,
        value_destination_pairs: Iterable[tuple[Any, Any]],
        options: CommunicationOptions | None = None,
    ) -> list[Any]:
        """Combine many values, each as :meth:`reduce_to` does.

        Parameters
        ----------
        reduce_op : ReduceOp or str
        value_destination_pairs : iterable of (value, destinations)
        options : CommunicationOptions, optional

        Returns
        -------
        list
            One result for each pair, in order.

        Raises
        ------
        ValueError
            If an entry is not a pair, and as for :meth:`reduce_to`.
        TypeError, InvalidArgumentError, RuntimeError
            As for :meth:`reduce_to`.

        Examples
        --------
        >>> import ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> value = strategy.run(lambda: float(ringlet.replica_context().replica_id_in_sync_group))
        >>> [float(mean) for mean in strategy.extended.batch_reduce_to("MEAN", [(value, "CPU:0"), (value, value)])]
        [0.5, 0.5]
        """
        require_cross_replica(self._container_strategy())
        op = parse_reduce_op(reduce_op)
        pairs = checked_pairs(value_destination_pairs)
        for _, destinations in pairs:
            check_destinations(destinations)
        check_options(options)
        return self._batch_reduce_to(op, pairs, options)

    def broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        """Copy a value to the devices of `destinations`.

        Parameters
        ----------
        tensor : array-like
        destinations : str, variable, DistributedValues or ndarray
            A distributed value or variable stands for its devices, an empty string for the devices of all replicas.

        Returns
        -------
        Mirrored or array-like
            One component for each device; the bare value for a single device, and in a TPUStrategy. Python numbers are
            returned unchanged.

        Raises
        ------
        ValueError, TypeError
            If `destinations` is not a device, or has the wrong type.
        RuntimeError
            If called inside a replica, or inside the scope of another strategy.

        Examples
        --------
        >>> import numpy as np, ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> strategy.extended.broadcast_to(np.array([1, 2]), "").values
        (array([1, 2]), array([1, 2]))
        """
        require_cross_replica(self._container_strategy())
        if not (isinstance(destinations, str) and not destinations):
            check_destinations(destinations)
        return self._broadcast_to(tensor, destinations)

    # --- hooks --------------------------------------------------------------------------------------------------------

    def _reduce(self, op: ReduceOp, value: Any) -> Any:
        """Implement ``strategy.reduce`` without an axis; by default, call :meth:`_reduce_to`."""
        return self._local_results(self._reduce_to(op, value, "CPU:0", None))[0]

    def _reduce_to(self, op: ReduceOp, value: Any, destinations: Any, options: CommunicationOptions | None) -> Any:
        """Implement :meth:`reduce_to`, which has checked the operation and the destinations."""
        raise NotImplementedError(f"{type(self).__name__} does not reduce values: define _reduce_to")

    def _batch_reduce_to(
        self, op: ReduceOp, pairs: list[tuple[Any, Any]], options: CommunicationOptions | None
    ) -> list[Any]:
        """Implement :meth:`batch_reduce_to`; by default, call :meth:`_reduce_to` for each pair."""
        return [self._reduce_to(op, value, destinations, options) for value, destinations in pairs]

    def _broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        """Implement :meth:`broadcast_to`; by default, return the value itself."""
        return tensor

    def _gather(self, value: Any, axis: int) -> Any:
        """Implement ``strategy.gather`` for a value that is not a structure."""
        raise NotImplementedError(f"{type(self).__name__} does not gather values: define _gather")


def checked_pairs(pairs: Any) -> list[tuple[Any, Any]]:
    """Check pairs of values and destinations, and return them as a list."""
    if not isinstance(pairs, Iterable):
        raise TypeError(
            "value_destination_pairs must be a list of tuples of a value and the destinations of its result, got "
            f"{shortened(pairs)} of type {type(pairs).__name__}: write [(value, destinations)]"
        )
    entries = list(pairs)
    for entry in entries:
        if not isinstance(entry, tuple) or len(entry) != 2:
            raise ValueError(
                "each element of value_destination_pairs should be a tuple of size 2, a value and the destinations of "
                f"its result, got {shortened(entry)} of type {type(entry).__name__}"
            )
    return entries
