"""Subscripts of einsum, parsed to labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ringlet.sharding.layout.factors import Labels

__all__ = ["labels_of", "text_and_operands"]

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def text_and_operands(arguments: Sequence[Any]) -> tuple[str, list[Any]]:
    """Return the subscripts as text and the operands, for either form of the arguments of ``np.einsum``."""
    if isinstance(arguments[0], str):
        return arguments[0].replace(" ", ""), list(arguments[1:])
    operands, lists = list(arguments[0 : len(arguments) // 2 * 2 : 2]), arguments[1::2]
    text = ",".join(map(_letters, lists))
    return text if len(arguments) % 2 == 0 else f"{text}->{_letters(arguments[-1])}", operands


def _letters(numbers: Sequence[Any]) -> str:
    if any(number is not Ellipsis and not 0 <= number < len(_LETTERS) for number in numbers):
        raise ValueError(
            f"subscripts are {list(numbers)}: expected numbers from 0 to {len(_LETTERS) - 1}, or an ellipsis"
        )
    return "".join("..." if number is Ellipsis else _LETTERS[number] for number in numbers)


def labels_of(text: str, ndims: Sequence[int]) -> tuple[Labels, ...] | None:
    """Return one label for each dimension of each operand and, last, of the result; None for invalid text.

    Dimensions of an ellipsis are numbers, counted from the last. Without an arrow the result has the dimensions of the
    ellipsis and then, in alphabetical order, the letters that occur once. `text` has no blanks.
    """
    given, arrow, wanted = text.partition("->")
    terms = given.split(",")
    if len(terms) != len(ndims):
        return None
    labels = [_labels(term, ndim) for term, ndim in zip(terms, ndims, strict=True)]
    if any(label is None for label in labels):
        return None
    known = [label for term in labels for label in term or ()]
    repeated = tuple(range(max((label for label in known if isinstance(label, int)), default=0), 0, -1))
    if not arrow:
        once = sorted(label for label in known if isinstance(label, str) and known.count(label) == 1)
        return (*(term or () for term in labels), (*repeated, *once))
    if "..." not in wanted and repeated:
        return None
    result = _labels(wanted, len(wanted) - 3 + len(repeated) if "..." in wanted else len(wanted))
    if result is None or len(set(result)) < len(result) or not set(result) <= {*known, *repeated}:
        return None
    return (*(term or () for term in labels), result)


def _labels(term: str, ndim: int) -> Labels | None:
    """Label the dimensions of one array."""
    before, ellipsis, after = term.partition("...")
    count = ndim - len(before) - len(after)
    letters = before + after
    if count < 0 or (count > 0 and not ellipsis) or not all(letter in _LETTERS for letter in letters):
        return None
    return (*before, *range(count, 0, -1), *after)
