from __future__ import annotations

import numpy as np
import pytest

from ringlet.sharding import Sharding, explain, shard

QUARTERS = Sharding.tiled((4,))


def test_a_difference_takes_a_row_from_the_next_device():
    with explain() as report:
        np.diff(shard(np.arange(8), QUARTERS))
    (permute,) = report.operations[0].collectives
    assert permute.pairs == ((1, 0), (2, 1), (3, 2))
    assert permute.nbytes == 3 * 8


def test_no_difference_is_the_array_itself():
    x = shard(np.arange(8), QUARTERS)
    assert np.diff(x, 0) is x


@pytest.mark.parametrize("options", [{"n": -1}, {"axis": 1}, {"prepend": np.ones((2, 2))}])
def test_errors_are_numpys(options):
    with pytest.raises(Exception) as expected:  # noqa: PT011
        np.diff(np.arange(8), **options)
    with pytest.raises(type(expected.value)) as found:
        np.diff(shard(np.arange(8), QUARTERS), **options)
    assert str(found.value) == str(expected.value)
