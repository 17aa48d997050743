"""Shapes of structures that come again in every step: rows and dictionaries of leaves, known without a walk."""

from __future__ import annotations

import operator
from functools import cache
from typing import Any

import optree
from optree import PyTreeSpec

__all__ = ["dictionary_shape", "row_shape"]

Known = tuple[PyTreeSpec, "operator.itemgetter[Any] | None"]

# Up to how many leaves the shape of a row of them is kept; those of all lengths together must stay small.
_LONGEST_ROW = 256

# Dictionaries by their keys; a program with new keys in every step must not fill the memory. Keys of other types may be
# equal and yet differ, as 1 and True do.
_dictionaries: dict[tuple[Any, ...], Known] = {}
_MOST_DICTIONARIES = 256
_KEY_TYPES = frozenset({str})


def row_shape(structure: Any) -> PyTreeSpec | None:
    """Give the shape of a list or a tuple of leaves; None for other types, and for long ones.

    Parameters
    ----------
    structure : object
        A list or a tuple must hold leaves only.

    Returns
    -------
    PyTreeSpec or None
        The same object for the same type and length.

    Examples
    --------
    >>> row_shape([1, 2]) is row_shape([3, 4]), row_shape({})
    (True, None)
    """
    kind = type(structure)
    if (kind is list or kind is tuple) and len(structure) <= _LONGEST_ROW:
        return _row_shape(kind is list, len(structure))
    return None


@cache
def _row_shape(is_list: bool, count: int) -> PyTreeSpec:
    return _shape_of([0] * count if is_list else (0,) * count)


def _shape_of(structure: Any) -> PyTreeSpec:
    return optree.tree_structure(structure, none_is_leaf=True)


def dictionary_shape(dictionary: dict[Any, Any]) -> Known | None:
    """Give the shape of a dictionary of leaves; None if its keys are not all text.

    Parameters
    ----------
    dictionary : dict
        Of leaves only.

    Returns
    -------
    shape : PyTreeSpec
    in_order : callable or None
        Gives the values of such a dictionary in the order of the leaves; None if that is the order that they are in.

    Examples
    --------
    >>> _, in_order = dictionary_shape({"b": 1, "a": 2})
    >>> in_order({"b": 3, "a": 4}), dictionary_shape({"a": 1, "b": 2})[1]
    ((4, 3), None)
    """
    keys = tuple(dictionary)
    if not _KEY_TYPES.issuperset(map(type, keys)):
        return None
    return _dictionaries.get(keys) or _learn(keys)


def _learn(keys: tuple[Any, ...]) -> Known:
    # Numbers in place of the leaves show in which order they are walked.
    numbered: Any = dict(zip(keys, range(len(keys)), strict=True))
    numbers: list[int] = optree.tree_leaves(numbered, none_is_leaf=True)
    is_sorted = numbers == sorted(numbers)
    known = _shape_of(numbered), None if is_sorted else operator.itemgetter(*(keys[number] for number in numbers))
    if len(_dictionaries) >= _MOST_DICTIONARIES:
        _dictionaries.clear()
    _dictionaries[keys] = known
    return known
