"""Dimension numbers: the role of each dimension of a convolution's arrays."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from ringlet.collectives.argument_parsing import shortened
from ringlet.sharding.layout.partition import whole_number

Spec = tuple[int, ...]


class ConvDimensionNumbers(NamedTuple):
    """The dimensions of the arrays of a convolution, in canonical order.

    Parameters
    ----------
    lhs_spec : tuple of int
        Dimensions of the input: batch, features, then spatial dimensions.
    rhs_spec : tuple of int
        Dimensions of the kernel: output features, input features, then spatial dimensions.
    out_spec : tuple of int
        Dimensions of the result: batch, features, then spatial dimensions.

    References
    ----------
    jax-ml/jax, ``jax.lax.ConvDimensionNumbers``: the same fields.

    Examples
    --------
    Images with features last, kernels with output features last:

    >>> ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2)).rhs_spec
    (3, 2, 0, 1)
    """

    lhs_spec: Spec
    rhs_spec: Spec
    out_spec: Spec


# XLA's text has numbers for spatial dimensions, and its letters differ from those of JAX's strings.
_TEXT = re.compile(r"\s*([0-9bf]+)_([0-9io]+)->([0-9bf]+)\s*")
_LETTERS = str.maketrans("bfio", "NCIO")


def dimension_numbers_of(given: Any, ndim: int) -> ConvDimensionNumbers:
    """Parse dimension numbers; raise ValueError for any form not listed here.

    None means batch (or output features), features, spatial dimensions. One string has XLA's form,
    ``"b01f_01io->b01f"``. Three strings consist of letters: N and C for batch and features of input and result, O and I
    for output and input features of the kernel, any other letter for a spatial dimension, in the kernel's order.
    Three sequences of numbers are as in ConvDimensionNumbers.
    """
    if given is None:
        return ConvDimensionNumbers(*(tuple(range(ndim)),) * 3)
    specs: Sequence[Spec] = ()
    if isinstance(given, str):
        match = _TEXT.fullmatch(given)
        if match:
            texts = [text.translate(_LETTERS) for text in match.groups()]
            specs = _positions(texts, sorted(set(texts[1]) - {*"OI"}))
    elif not isinstance(given, Sequence):
        pass
    elif len(given) == 3 and all(isinstance(text, str) for text in given):
        specs = _positions(given, [letter for letter in given[1] if letter not in "OI"])
    elif all(isinstance(spec, Sequence) for spec in given):
        specs = [tuple([-1 if (n := whole_number(d)) is None else n for d in spec]) for spec in given]
    if len(specs) != 3 or any(sorted(spec) != list(range(ndim)) for spec in specs):
        raise ValueError(
            f"dimension_numbers {shortened(given)} do not name each of the {ndim} dimensions of input, kernel "
            "and result "
            "once: pass three strings such as ('NHWC', 'HWIO', 'NHWC'), XLA's text, 'b01f_01io->b01f', or "
            "ConvDimensionNumbers"
        )
    return ConvDimensionNumbers(*specs)


def _positions(texts: Sequence[str], spatial: Sequence[str]) -> list[Spec]:
    orders = ("NC", "OI", "NC")
    if any(sorted(text) != sorted([*order, *spatial]) for text, order in zip(texts, orders, strict=True)):
        return []
    return [tuple(map(text.index, [*order, *spatial])) for text, order in zip(texts, orders, strict=True)]
