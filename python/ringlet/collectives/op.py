"""Reduction operations and all-reduce algorithms."""

from __future__ import annotations

import enum
from typing import Any


class Op(enum.Enum):
    """Operation of a reducing collective, and of :meth:`~ringlet.collectives.Member.exclusive_scan`.

    Integers of any size support every operation; floats all but AND, OR and XOR; complex numbers SUM, MEAN and PROD;
    bool MIN, MAX, AND, OR and XOR. Floats of 8 and 16 bits are combined as float32 and rounded once, at the end.

    Examples
    --------
    >>> import ringlet
    >>> ringlet.collectives.Op.SUM
    <Op.SUM: 0>
    >>> [op.name for op in ringlet.collectives.Op]
    ['SUM', 'MEAN', 'MIN', 'MAX', 'PROD', 'AND', 'OR', 'XOR']
    """

    SUM = 0
    """The sum. Integer sums wrap."""
    MEAN = 1
    """The sum, divided once, at the end, by the number of ranks. The mean of integers divides their wrapped sum; it is
    float32 for 8 and 16 bits, else float64."""
    MIN = 2
    """The minimum. NaN propagates; -0 is less than +0."""
    MAX = 3
    """The maximum. NaN propagates; +0 is greater than -0."""
    PROD = 4
    """The product. Integer products wrap."""
    AND = 5
    """Bitwise AND; for bool, logical AND."""
    OR = 6
    """Bitwise OR; for bool, logical OR."""
    XOR = 7
    """Bitwise XOR; for bool, logical XOR."""


class ReduceOp(enum.Enum):
    """Operation of a strategy's reductions (``tf.distribute.ReduceOp``).

    Examples
    --------
    >>> import ringlet
    >>> ringlet.ReduceOp.MEAN
    <ReduceOp.MEAN: 'MEAN'>
    """

    SUM = "SUM"
    MEAN = "MEAN"

    @staticmethod
    def from_variable_aggregation(aggregation: Any) -> ReduceOp:
        """Return the reduction that corresponds to a variable aggregation.

        Parameters
        ----------
        aggregation : VariableAggregation

        Returns
        -------
        ReduceOp

        Raises
        ------
        ValueError
            If the aggregation is neither SUM nor MEAN.

        Examples
        --------
        >>> import enum
        >>> ReduceOp.from_variable_aggregation(enum.Enum("Aggregation", ["NONE", "SUM"]).SUM)
        <ReduceOp.SUM: 'SUM'>
        """
        name = getattr(aggregation, "name", None)
        if name in ("SUM", "MEAN"):
            return ReduceOp[name]
        raise ValueError(
            f"Could not convert from `tf.VariableAggregation` {aggregation} to`tf.distribute.ReduceOp` type: only SUM "
            "and MEAN combine the values of replicas"
        )


class Algorithm(enum.Enum):
    """Algorithm of an all-reduce; with each algorithm, all ranks receive the same bits.

    Examples
    --------
    >>> import ringlet
    >>> [algorithm.name for algorithm in ringlet.collectives.Algorithm]
    ['AUTO', 'RING', 'DIRECT', 'SMALL']
    """

    AUTO = 0
    """SMALL if the payload fits into a slot, else DIRECT."""
    RING = 1
    """As DIRECT, but in the order of the ring: the reduction of chunk c begins at rank c."""
    DIRECT = 2
    """Each chunk is read from every rank and written once; the order of summation is a balanced tree."""
    SMALL = 3
    """Each rank stores its payload, of at most 2,000 bytes, in a slot; the order of summation is as for DIRECT."""
