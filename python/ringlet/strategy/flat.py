"""Structures of arrays that come again in every step: taken apart without a walk."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringlet import nest

__all__ = ["flatten"]

Known = tuple[nest.PyTreeSpec, tuple[Any, ...] | None]

# What was seen before, dictionaries by their keys, others by their type and length: the shape, and the order of the
# leaves where that is not the order of the keys. A program with new keys in every step must not fill the memory.
_dictionaries: dict[Any, Known] = {}
_sequences: dict[Any, Known] = {}
_MOST_KNOWN = 256
# Below that a walk is as quick.
_FEWEST_LEAVES = 4
_ARRAY_TYPES = frozenset({np.ndarray})


def flatten(value: Any) -> tuple[list[Any], nest.PyTreeSpec]:
    """Take a nested structure apart into its leaves and its shape.

    Dictionaries, lists and tuples of arrays and nothing else, which gradients often are, are looked up by their keys.

    Parameters
    ----------
    value : nested structure

    Returns
    -------
    leaves : list
    shape : PyTreeSpec
        The same as ``ringlet.nest.flatten`` gives.

    Examples
    --------
    >>> leaves, shape = flatten({name: np.array(name == "a") for name in "dcba"})
    >>> leaves[0], shape == nest.flatten(dict.fromkeys("abcd"))[1]
    (array(True), True)
    """
    kind = type(value)
    if kind is dict:
        leaves, key, known = list(value.values()), tuple(value), _dictionaries
    elif kind is list or kind is tuple:
        leaves, key, known = list(value), (kind, len(value)), _sequences
    else:
        return nest.flatten(value)
    if len(leaves) < _FEWEST_LEAVES or not _ARRAY_TYPES.issuperset(map(type, leaves)):
        return nest.flatten(value)
    shape, order = known.get(key) or _learn(value, key, known)
    return leaves if order is None else [value[name] for name in order], shape


def _learn(value: Any, key: tuple[Any, ...], known: dict[Any, Known]) -> Known:
    shape, order = nest.flatten(value)[1], None
    if known is _dictionaries:
        # Numbers in place of the arrays show in which order they are walked.
        numbers = nest.flatten(dict(zip(key, range(len(key)), strict=True)))[0]
        order = None if numbers == sorted(numbers) else tuple(key[number] for number in numbers)
    if len(known) >= _MOST_KNOWN:
        known.clear()
    known[key] = shape, order
    return shape, order
