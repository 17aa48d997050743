"""Cache of the shapes of frequent structures, so that they need not be walked: rows and dictionaries of leaves."""

from __future__ import annotations

import operator
from functools import cache
from typing import Any

import optree
from optree import PyTreeSpec

__all__ = ["dictionary_shape", "row_shape"]

CachedShape = tuple[PyTreeSpec, "operator.itemgetter[Any] | None"]

# Length of the longest row whose shape is cached; the shapes of all lengths together must be small.
_LONGEST_ROW = 256

# Shapes of dictionaries by their keys; bounded, for programs with new keys in every step. Keys of other types may be
# equal and yet distinct, such as 1 and True.
_dictionaries: dict[tuple[Any, ...], CachedShape] = {}
_MOST_DICTIONARIES = 256
_KEY_TYPES = frozenset({str})


def row_shape(structure: Any) -> PyTreeSpec | None:
    """Return the shape of a list or tuple of leaves, the same object for each type and length; None for long ones."""
    kind = type(structure)
    if (kind is list or kind is tuple) and len(structure) <= _LONGEST_ROW:
        return _row_shape(kind is list, len(structure))
    return None


@cache
def _row_shape(is_list: bool, count: int) -> PyTreeSpec:
    return _shape_of([0] * count if is_list else (0,) * count)


def _shape_of(structure: Any) -> PyTreeSpec:
    return optree.tree_structure(structure, none_is_leaf=True)


def dictionary_shape(dictionary: dict[Any, Any]) -> CachedShape | None:
    """Return the shape of a dictionary of leaves; None if a key is not a string.

    The second value returns a dictionary's values in the order of the leaves; None if they are in that order.
    """
    keys = tuple(dictionary)
    if not _KEY_TYPES.issuperset(map(type, keys)):
        return None
    return _dictionaries.get(keys) or _cache_shape(keys)


def _cache_shape(keys: tuple[Any, ...]) -> CachedShape:
    # Numbers in place of the leaves reveal the order of the walk.
    numbered: Any = dict(zip(keys, range(len(keys)), strict=True))
    numbers: list[int] = optree.tree_leaves(numbered, none_is_leaf=True)
    is_sorted = numbers == sorted(numbers)
    shape = _shape_of(numbered), None if is_sorted else operator.itemgetter(*(keys[number] for number in numbers))
    if len(_dictionaries) >= _MOST_DICTIONARIES:
        _dictionaries.clear()
    _dictionaries[keys] = shape
    return shape
