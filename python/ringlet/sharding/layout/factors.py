"""Factor maps: which dimensions of an operation's operands and result correspond."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ringlet.collectives import Op
from ringlet.sharding.layout.layout import Shape

Factor = Hashable
Labels = tuple[Factor, ...]
Others = Literal["factors", "divisors", "terms"]

EVERY_OP = frozenset(Op)


@dataclass(frozen=True)
class FactorMap:
    """Correspondence of the dimensions of an operation, as in einsum.

    Attributes
    ----------
    operands : tuple of tuple of (hashable or None)
        A label, the factor, for each dimension of each operand. Dimensions with the same factor have the same division
        on the same devices; their sizes may differ. The label is None for a dimension that is never divided, such as
        one repeated by broadcasting. A factor occurs at most once in an operand.
    reduced : mapping of factor to Op
        Factors that the result lacks, and the operation that combines their tiles: if such a factor is divided, the
        result is partial. All factors have the same operation.
    whole : frozenset of factor
        Factors whose dimensions must not be divided.
    linear : tuple of frozenset of int
        Sets of operands that may be partial together while the other operands are not. The result is then partial,
        and its parts combine to the result for the combined operands. Addition has ``({0, 1}, {0}, {1})``,
        multiplication ``({0}, {1})``.
    linear_ops : frozenset of Op
        Operations that may combine the parts of `linear` operands: sums for arithmetic, any (`EVERY_OP`) if values are
        only moved.
    others : {"factors", "divisors", "terms"}
        Role of the operands that are not partial. Terms are added in the first part only.
    is_elementwise : bool
        Whether each element of the result needs one element of each operand, so that combining the result costs the
        same as combining an operand.
    """

    operands: tuple[Labels, ...]
    result: Labels
    reduced: Mapping[Factor, Op] = field(default_factory=dict)
    whole: frozenset[Factor] = frozenset()
    linear: tuple[frozenset[int], ...] = ()
    linear_ops: frozenset[Op] = frozenset({Op.SUM})
    others: Others = "factors"
    is_elementwise: bool = False
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Cached because each operation looks up its plan by this hash.
        object.__setattr__(self, "_hash", hash((self.operands, self.result, tuple(self.reduced), self.linear)))

    def __hash__(self) -> int:
        return self._hash

    @property
    def combine(self) -> Op:
        """Return the operation that combines the tiles of the reduced factors; a sum if there are none."""
        return next(iter(self.reduced.values()), Op.SUM)


def broadcast_factors(shapes: Sequence[Shape]) -> tuple[tuple[Labels, ...], Labels]:
    """Return the factors of broadcast operands and of their result: dimension numbers, None where one is repeated."""
    ndim = max(map(len, shapes), default=0)
    aligned = [(1,) * (ndim - len(shape)) + tuple(shape) for shape in shapes]
    repeated = [any(shape[d] != 1 for shape in aligned) for d in range(ndim)]

    def labels(shape: Shape) -> Labels:
        first = ndim - len(shape)
        return tuple(
            None if size == 1 and repeated[d] else d for d, size in zip(range(first, ndim), shape, strict=True)
        )

    return tuple(labels(shape) for shape in shapes), tuple(range(ndim))
