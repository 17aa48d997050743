"""``map`` in a first program: lists with an item for each row, ragged arrays, one row that fails, a tuple."""

from __future__ import annotations

import re
import signal
import threading

import numpy as np
import pytest

import ringlet

X = np.arange(9.0).reshape(9, 1) * np.ones((9, 3))


@pytest.mark.parametrize("batch_size", [1, 3, 4, 100])
@pytest.mark.parametrize("row", [lambda row: 2 * row, sum, lambda row: {"mean": row.mean()}])
def test_a_list_with_an_item_for_each_row_is_refused(batch_size, row):
    with pytest.raises(ValueError, match=r"returned a list, .*return np\.array\(items\) for one item per row"):
        ringlet.map(lambda rows: [row(each) for each in rows], X, batch_size=batch_size)


@pytest.mark.parametrize("batch_size", [1, 2, 4])
def test_a_list_of_columns_is_refused_in_batches_of_any_size(batch_size):
    with pytest.raises(ValueError, match="or a tuple for a structure of arrays"):
        ringlet.map(lambda rows: [rows.min(1), rows.max(1)], X, batch_size=batch_size)
    low, high = ringlet.map(lambda rows: (rows.min(1), rows.max(1)), X, batch_size=batch_size)
    assert (low.tolist(), high.tolist()) == (X[:, 0].tolist(), X[:, 0].tolist())


def test_ragged_arrays_are_mapped_as_the_error_says():
    ragged = [np.ones(3), np.ones(5), np.ones(2)]
    with pytest.raises(ValueError, match=re.escape("np.fromiter(images, object) if their shapes differ")):
        ringlet.map(len, ragged)
    sizes = ringlet.map(lambda rows: np.array([len(row) for row in rows]), np.fromiter(ragged, object), batch_size=2)
    assert sizes.tolist() == [3, 5, 2]


def test_the_error_of_a_function_of_one_row_has_no_cause_inside_ringlet():
    # Errors with a cause are printed with all frames.
    with pytest.raises(ValueError, match="one row for each of them, such as np") as caught:
        ringlet.map(np.sum, X)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_ctrl_c_names_map(capfd):
    strategy, may_end = ringlet.MirroredStrategy(2), threading.Event()

    def batch(rows):
        if rows[0] == 0:
            signal.raise_signal(signal.SIGINT)
        may_end.wait(60)
        return rows

    try:
        with pytest.raises(KeyboardInterrupt):
            strategy.map(batch, np.arange(2), batch_size=1)
        assert "ringlet: map was interrupted while replica " in capfd.readouterr().err
    finally:
        may_end.set()


def test_the_note_names_a_single_row():
    with pytest.raises(np.linalg.LinAlgError) as caught:
        ringlet.map(np.linalg.inv, np.stack([np.eye(2), np.zeros((2, 2))]), batch_size=1)
    assert "raised in batch 1 of 2: one call of the function with row 1" in caught.value.__notes__


def test_a_tuple_for_a_function_of_two_arrays_is_answered_with_a_star():
    with pytest.raises(TypeError) as caught:
        ringlet.map(lambda a, b: a + b, (X, X))
    assert "map passes a tuple as one argument: write map(fn, *arrays)" in caught.value.__notes__
