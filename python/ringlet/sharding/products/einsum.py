"""``np.einsum`` and ``np.linalg.multi_dot``: subscript labels, the cheapest order, products of pairs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.layout.factors import Factor, Labels
from ringlet.sharding.layout.layout import Shape
from ringlet.sharding.ops.diagonals import merged
from ringlet.sharding.products.contraction import contract, numpy_error, operand

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

    The labels of an ellipsis are numbers, counted from its last dimension. Without an arrow the result has the
    dimensions of the ellipsis and then, in alphabetical order, the letters that occur once. `text` has no blanks.
    """
    given, arrow, wanted = text.partition("->")
    terms = given.split(",")
    if len(terms) != len(ndims):
        return None
    labels = [_term_labels(term, ndim) for term, ndim in zip(terms, ndims, strict=True)]
    if any(label is None for label in labels):
        return None
    known = [label for term in labels for label in term or ()]
    repeated = tuple(range(max((label for label in known if isinstance(label, int)), default=0), 0, -1))
    if not arrow:
        once = sorted(label for label in known if isinstance(label, str) and known.count(label) == 1)
        return (*(term or () for term in labels), (*repeated, *once))
    if "..." not in wanted and repeated:
        return None
    result = _term_labels(wanted, len(wanted) - 3 + len(repeated) if "..." in wanted else len(wanted))
    if result is None or len(set(result)) < len(result) or not set(result) <= {*known, *repeated}:
        return None
    return (*(term or () for term in labels), result)


def _term_labels(term: str, ndim: int) -> Labels | None:
    before, ellipsis, after = term.partition("...")
    count = ndim - len(before) - len(after)
    letters = before + after
    if count < 0 or (count > 0 and not ellipsis) or not all(letter in _LETTERS for letter in letters):
        return None
    return (*before, *range(count, 0, -1), *after)


# Maximum number of arrays for which every order is tried; with more, the cheapest pair is chosen in each step.
_MOST_TRIED = 5

Pairs = tuple[tuple[int, int], ...]


def product_order(labels: Sequence[Labels], shapes: Sequence[Shape], wanted: Labels) -> Pairs:
    """Choose pairs of arrays that minimize the number of multiplications, approximately for many arrays.

    Pairs are positions in the list of arrays; each pair is removed, and its product is appended.
    """
    if len(labels) == 2:
        return ((0, 1),)
    sizes: dict[Factor, int] = {}
    for given, shape in zip(labels, shapes, strict=True):
        for label, size in zip(given, shape, strict=True):
            sizes[label] = max(size, sizes.get(label, 1))
    terms = tuple(frozenset(given) for given in labels)
    return _best(terms, frozenset(wanted), tuple(sizes.items()))[1]


@lru_cache(maxsize=1024)
def _best(
    terms: tuple[frozenset[Any], ...], wanted: frozenset[Any], sizes: tuple[tuple[Any, int], ...]
) -> tuple[int, Pairs]:
    if len(terms) < 2:
        return 0, ()
    size_of = dict(sizes)
    steps = []
    for i, j in itertools.combinations(range(len(terms)), 2):
        rest = tuple(term for n, term in enumerate(terms) if n not in (i, j))
        both = terms[i] | terms[j]
        left = both & wanted.union(*rest)
        steps.append((math.prod(size_of[label] for label in both), (i, j), (*rest, left)))
    if len(terms) > _MOST_TRIED:
        steps = [min(steps, key=lambda step: step[0])]
    found = []
    for cost, pair, left_terms in steps:
        more, pairs = _best(left_terms, wanted, sizes)
        found.append((cost + more, (pair, *pairs)))
    return min(found, key=lambda order: order[0])


Term = tuple[Any, Labels]


@implements(np.einsum)
def einsum(*operands: Any, out: Any = None, optimize: Any = False, **kwargs: Any) -> Any:
    """Run ``np.einsum``. Operands are multiplied in pairs even without `optimize`; `order` has no effect."""
    text, arrays = text_and_operands(operands)
    arrays = [operand(x) for x in arrays]
    labels = _labels(text, tuple(x.shape for x in arrays))
    if labels is None:
        raise numpy_error(np.einsum, text, *arrays, **kwargs)
    if len(arrays) == 1 and out is None and set(labels[0]) == set(labels[1]):
        dtype = arrays[0].dtype  # options have no effect, since NumPy returns a view
    else:
        dtype = _dtype(tuple(x.dtype for x in arrays), None if out is None else out.dtype, **kwargs)
    terms = [merged(x, given) for x, given in zip(arrays, labels, strict=False)]
    return _product("einsum", terms, labels[-1], dtype, out)


@lru_cache(maxsize=1024)
def _labels(text: str, shapes: tuple[Shape, ...]) -> tuple[Labels, ...] | None:
    labels = labels_of(text, [len(shape) for shape in shapes])
    return labels if labels is not None and _are_compatible(labels, shapes) else None


def _are_compatible(labels: tuple[Labels, ...], shapes: Sequence[Shape]) -> bool:
    sizes: dict[Any, int] = {}
    for given, shape in zip(labels, shapes, strict=False):
        if len(set(zip(given, shape, strict=True))) > len(set(given)):
            return False
        for label, size in zip(given, shape, strict=True):
            if size != 1 and sizes.setdefault(label, size) != size:
                return False
    return True


@lru_cache(maxsize=1024)
def _dtype(dtypes: tuple[Any, ...], out_dtype: Any, **options: Any) -> np.dtype[Any]:
    ones = [np.zeros(1, dtype) for dtype in dtypes]
    if out_dtype is not None:
        options["out"] = np.empty((), out_dtype)
    found: Any = np.einsum(",".join("i" * len(ones)) + "->", *ones, **options)
    dtype: np.dtype[Any] = np.asarray(found).dtype
    return dtype


def _product(name: str, terms: list[Term], wanted: Labels, dtype: np.dtype[Any], out: Any) -> Any:
    """Multiply arrays, two at a time, and sum along each label as soon as no other operand has it."""
    for i, j in product_order([given for _, given in terms], [x.shape for x, _ in terms], wanted):
        (a, a_labels), (b, b_labels) = terms[i], terms[j]
        rest = [term for n, term in enumerate(terms) if n not in (i, j)]
        if not rest:
            return contract(name, [a, b], (a_labels, b_labels, wanted), dtype, out=out)
        needed = {*wanted, *(label for _, given in rest for label in given)}
        left = tuple(label for label in dict.fromkeys((*a_labels, *b_labels)) if label in needed)
        terms = [*rest, _pair(name, (a, a_labels), (b, b_labels), left, dtype)]
    (x, given) = terms[0]
    return contract(name, [x], (given, wanted), dtype, out=out)


def _pair(name: str, a: Term, b: Term, left: Labels, dtype: np.dtype[Any]) -> Term:
    if isinstance(a[0], np.ndarray) and isinstance(b[0], np.ndarray):
        letters = {label: number for number, label in enumerate(dict.fromkeys((*a[1], *b[1])))}
        lists = [[letters[label] for label in given] for given in (a[1], b[1], left)]
        product = np.einsum(a[0], lists[0], b[0], lists[1], lists[2], dtype=dtype, casting="unsafe")
        return np.asarray(product), left
    return contract(name, [a[0], b[0]], (a[1], b[1], left), dtype), left


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """Multiply a chain of matrices; the first and the last may be vectors."""
    matrices = [operand(x) for x in arrays]
    ndims = [x.ndim for x in matrices]
    inner = [x.shape for x in matrices]
    fits = len(matrices) > 1 and all(ndim == 2 for ndim in ndims[1:-1]) and {ndims[0], ndims[-1]} <= {1, 2}
    if not fits or any(a[-1] != b[0] for a, b in itertools.pairwise(inner)):
        raise numpy_error(np.linalg.multi_dot, matrices)
    sizes = (
        1 if ndims[0] == 1 else inner[0][0],
        *(shape[0] for shape in inner[1:]),
        inner[-1][-1] if ndims[-1] > 1 else 1,
    )
    return _chained(matrices, sizes, out)


def _chained(matrices: list[Any], sizes: tuple[int, ...], out: Any = None) -> Any:
    """Multiply matrices in the order with the fewest multiplications."""
    if len(matrices) == 1:
        return matrices[0]
    _, middle = _cheapest(sizes)
    left, right = _chained(matrices[:middle], sizes[: middle + 1]), _chained(matrices[middle:], sizes[middle:])
    return np.dot(left, right, out)


@lru_cache(maxsize=1024)
def _cheapest(sizes: tuple[int, ...]) -> tuple[int, int]:
    """Return the minimum number of multiplications of a matrix chain and the split that attains it."""
    rows, *_, columns = sizes
    return min(
        (
            (_cheapest(sizes[: k + 1])[0] + _cheapest(sizes[k:])[0] + rows * sizes[k] * columns, k)
            for k in range(1, len(sizes) - 1)
        ),
        default=(0, 0),
    )
