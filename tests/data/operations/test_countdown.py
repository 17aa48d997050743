"""Streams that count down go on from a saved count."""

from __future__ import annotations

import pytest

from ringlet.data import Dataset


@pytest.mark.parametrize("kind", ["rows", "elements"])
@pytest.mark.parametrize("operation", ["skip", "take"])
@pytest.mark.parametrize("taken", [0, 1, 3])
def test_what_is_left_to_count_is_saved(kind, operation, taken):
    source = Dataset.range(9) if kind == "rows" else Dataset.range(9).map(lambda x: x)
    dataset = getattr(source, operation)(5)
    iterator, later = iter(dataset), iter(dataset)
    for _ in range(taken):
        next(iterator)
    later.set_state(iterator.get_state())
    assert list(later) == list(iterator) == list(range(9))[slice(5, 9) if operation == "skip" else slice(0, 5)][taken:]
