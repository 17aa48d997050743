"""How values of several ranks become one, and by which algorithm."""

from __future__ import annotations

import enum

__all__ = ["Algorithm", "Op", "ReduceOp"]


class Op(enum.Enum):
    """Operation of a reducing collective.

    Examples
    --------
    >>> import ringlet
    >>> ringlet.collectives.Op.SUM
    <Op.SUM: 0>
    """

    SUM = 0
    """The sum. Integer sums wrap."""
    MEAN = 1
    """The sum divided once, at the end, by the number of ranks; of integers as a float64."""


class ReduceOp(enum.Enum):
    """Operation of a strategy's reductions, as ``tf.distribute.ReduceOp``.

    Examples
    --------
    >>> import ringlet
    >>> ringlet.ReduceOp.MEAN
    <ReduceOp.MEAN: 'MEAN'>
    """

    SUM = "SUM"
    MEAN = "MEAN"


class Algorithm(enum.Enum):
    """How a collective moves its bytes; all of them give every rank the same bits.

    Examples
    --------
    >>> import ringlet
    >>> [algorithm.name for algorithm in ringlet.collectives.Algorithm]
    ['AUTO', 'RING', 'DIRECT', 'SMALL']
    """

    AUTO = 0
    """SMALL where the payload fits into a slot, else DIRECT."""
    RING = 1
    """Reduce-scatter, then all-gather, between neighbours; the order of summation is the ring's."""
    DIRECT = 2
    """Each chunk is read from every rank and written once; the order of summation is a balanced tree."""
    SMALL = 3
    """The payload travels inside the slot, at most 2,000 bytes; the order is DIRECT's."""
