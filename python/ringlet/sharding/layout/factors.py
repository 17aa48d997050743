"""Which dimensions of an operation's operands and result go together: all that planning needs to know about it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from ringlet.collectives import Op

__all__ = ["EVERY_OP", "Factor", "FactorMap", "broadcast_factors"]

Factor = Hashable
Labels = tuple[Factor, ...]

EVERY_OP = frozenset(Op)


@dataclass(frozen=True)
class FactorMap:
    """The dimensions of an operation, as an einsum has them.

    Attributes
    ----------
    operands : tuple of tuple of (hashable or None)
        A label, the factor, for each dimension of each operand. Dimensions that share one are cut into as many tiles,
        on the same devices; their sizes are equal in most operations, and need not be. None for a dimension that is
        never cut: those that broadcasting repeats, above all. No factor twice in one operand.
    result : tuple of (hashable or None)
        The same for the result.
    reduced : mapping of factor to Op
        Factors that the result lacks, and how the results of their tiles combine: where one is cut, the result is
        partial. The same operation for all.
    whole : frozenset of factor
        Factors whose dimensions must not be cut.
    linear : tuple of frozenset of int
        Sets of operands that may be partial together, the others not, and the result is partial then as they are: the
        operation of the combined operands is what the results combine to. Addition has ``({0, 1},)``; multiplication,
        which is linear in each operand, ``({0}, {1})``.
    linear_ops : frozenset of Op
        How such operands may combine: by sums in arithmetic, by any operation (`EVERY_OP`) where values only move.

    Examples
    --------
    >>> matmul = FactorMap((("i", "j"), ("j", "k")), ("i", "k"), {"j": Op.SUM}, linear=(frozenset({0}), frozenset({1})))
    >>> matmul.combine
    <Op.SUM: 0>
    """

    operands: tuple[Labels, ...]
    result: Labels
    reduced: Mapping[Factor, Op] = field(default_factory=dict)
    whole: frozenset[Factor] = frozenset()
    linear: tuple[frozenset[int], ...] = ()
    linear_ops: frozenset[Op] = frozenset({Op.SUM})
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Plans are looked up by it, in each operation.
        object.__setattr__(self, "_hash", hash((self.operands, self.result, tuple(self.reduced), self.linear)))

    def __hash__(self) -> int:
        return self._hash

    @property
    def combine(self) -> Op:
        """How the tiles of the reduced factors combine; a sum if there are none."""
        return next(iter(self.reduced.values()), Op.SUM)


def broadcast_factors(shapes: Sequence[tuple[int, ...]]) -> tuple[tuple[Labels, ...], Labels]:
    """Give the factors of operands that are broadcast together, and of the result: its dimensions, numbered.

    Examples
    --------
    >>> broadcast_factors([(8, 1, 3), (5, 3)])
    (((0, None, 2), (1, 2)), (0, 1, 2))
    """
    ndim = max(map(len, shapes), default=0)
    aligned = [(1,) * (ndim - len(shape)) + tuple(shape) for shape in shapes]
    repeated = [any(shape[d] != 1 for shape in aligned) for d in range(ndim)]

    def labels(shape: tuple[int, ...]) -> Labels:
        first = ndim - len(shape)
        return tuple(
            None if size == 1 and repeated[d] else d for d, size in zip(range(first, ndim), shape, strict=True)
        )

    return tuple(labels(shape) for shape in shapes), tuple(range(ndim))
