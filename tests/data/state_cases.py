"""Helpers for tests of saved iterators: datasets of every kind, and conversions of states."""

from __future__ import annotations

import json
from collections import namedtuple

import numpy as np
from hypothesis import strategies as st

from ringlet.data import Dataset

Point = namedtuple("Point", "x y")


def add_one(element):
    """Add one to an element; part of every chain."""
    return element + 1


def last(element):
    """Return the last number of a row."""
    return element[-1]


def count_up():
    """A generator function."""
    yield from range(11)


SOURCES = {
    "rows": lambda: Dataset.range(11),
    "elements": lambda: Dataset.range(11).map(add_one),
    "threads": lambda: Dataset.range(11).map(add_one, num_parallel_calls=2),
    "iterable": lambda: Dataset.from_iterable(list(range(11))),
    "list": lambda: Dataset.from_list([list(range(n + 1)) for n in range(11)]).map(last),
    "generator": lambda: Dataset.from_generator(count_up, np.int64),
}

# Not seeded where the seed is missing: a restored iterator brings the one that was chosen.
OPERATIONS = {
    "shuffle(4)": lambda d: d.shuffle(4),
    "shuffle(100, seed)": lambda d: d.shuffle(100, seed=5),
    "shuffle(3, one order)": lambda d: d.shuffle(3, reshuffle_each_iteration=False),
    "repeat(2)": lambda d: d.repeat(2),
    "take(7)": lambda d: d.take(7),
    "take(300)": lambda d: d.take(300),
    "batch(2)": lambda d: d.batch(2),
    "batch(3, rest dropped)": lambda d: d.batch(3, drop_remainder=True),
    "batch(2, threads)": lambda d: d.batch(2, num_parallel_calls=2),
    "map": lambda d: d.map(add_one),
    "map(threads)": lambda d: d.map(add_one, num_parallel_calls=3),
    "prefetch(2)": lambda d: d.prefetch(2),
}


def build(names):
    """Return a new dataset from the name of a source and the names of operations."""
    dataset = SOURCES[names[0]]()
    for name in names[1:]:
        # Batches that differ in size cannot be put together once more.
        if "batch" in name and any("batch" in n for n in names[: names.index(name)]):
            continue
        dataset = OPERATIONS[name](dataset)
    return dataset


CHAINS = st.tuples(
    st.sampled_from(sorted(SOURCES)), st.lists(st.sampled_from(sorted(OPERATIONS)), max_size=4, unique=True)
).map(lambda parts: (parts[0], *parts[1]))


def through_a_file(state):
    """Return a state as restored from a file: JSON text, with arrays of numbers beside it."""
    arrays = []

    def without_arrays(value):
        if isinstance(value, (np.ndarray, np.generic)):
            assert value.dtype.kind in "biufc" or value.dtype.isbuiltin == 2, value
            arrays.append(value.copy())
            return {"array": len(arrays) - 1}
        if isinstance(value, bytes):
            return {"bytes": value.hex()}
        if isinstance(value, dict):
            assert all(type(key) is str for key in value), value
            return {key: without_arrays(child) for key, child in value.items()}
        if isinstance(value, list):
            return [without_arrays(child) for child in value]
        assert value is None or type(value) in (bool, int, float, str), value
        return value

    def with_arrays(value):
        if list(value) == ["array"]:
            return arrays[value["array"]]
        return bytes.fromhex(value["bytes"]) if list(value) == ["bytes"] else value

    return json.loads(json.dumps(without_arrays(state)), object_hook=with_arrays)


def written(elements):
    """Return elements as text, including dtypes and types, for comparisons."""
    return [repr(element) for element in elements]
