"""Transformations that give no rows."""

from __future__ import annotations

import pytest

from ringlet.data import Dataset
from ringlet.data.operations.element_transform import Rowless

OPERATIONS = [lambda d: d.filter(bool), lambda d: d.unbatch(), lambda d: d.ignore_errors(), lambda d: d.window(2)]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_there_is_no_table_behind_it(operation):
    node = operation(Dataset.range(6).batch(2)).node
    assert isinstance(node, Rowless)
    assert node.table is None
    assert not node.in_order
    assert not node.from_row_zero
