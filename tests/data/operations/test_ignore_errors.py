"""Elements that raise, left out."""

from __future__ import annotations

import logging

import pytest

from ringlet.data import UNKNOWN_CARDINALITY, Dataset

FAULTY = Dataset.range(5).map(lambda x: 6 // int(x - 1))


@pytest.mark.parametrize("calls", [None, 2])
def test_elements_at_fault_are_left_out(calls):
    dataset = Dataset.range(5).map(lambda x: 6 // int(x - 1), num_parallel_calls=calls).ignore_errors()
    assert [int(x) for x in dataset] == [-6, 6, 3, 2]
    assert dataset.cardinality() == UNKNOWN_CARDINALITY


def test_a_batch_at_fault_is_left_out_whole():
    assert [x.tolist() for x in FAULTY.batch(2).ignore_errors()] == [[6, 3], [2]]


@pytest.mark.parametrize("logs", [True, False])
def test_what_is_left_out_may_be_logged(caplog, logs):
    with caplog.at_level(logging.WARNING, "ringlet"):
        list(FAULTY.ignore_errors(log_warning=logs))
    assert [record.levelname for record in caplog.records] == ["WARNING"] * logs
    assert not logs or "ZeroDivisionError" in caplog.text
