"""Every operation gives what NumPy gives for the whole, however its operands lie on the devices (see `sweep`)."""

from __future__ import annotations

import pytest

from tests.sharding.rows import contractions, elementwise, halo, indices, reductions, shapes
from tests.sharding.sweep import Row, check

pytestmark = pytest.mark.slow

# One list for each kind of operation; a new one is a file in ``rows`` and a line here.
TABLES = (indices.ROWS, shapes.ROWS, reductions.ROWS, elementwise.ROWS, contractions.ROWS, halo.ROWS)

ROWS = [row for table in TABLES for row in table]


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.name}-{'x'.join(map(str, row.shapes[0]))}" for row in ROWS])
def test_an_operation_gives_what_it_gives_for_the_whole(row: Row):
    check(row)
