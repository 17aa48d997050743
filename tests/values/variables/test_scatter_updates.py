"""Variables of all kinds change rows by the same methods."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet import IndexedSlices, Variable
from ringlet.values.indexed_slices import SCATTERS
from ringlet.values.variables.scatter_updates import Scatters
from ringlet.values.variables.sharded_variable import ShardedVariable


@pytest.mark.parametrize("name", SCATTERS)
def test_shards_together_change_as_one_variable_does(name):
    rows = np.arange(12.0).reshape(6, 2) + 1
    whole, sharded = Variable(rows), ShardedVariable([Variable(rows[:3]), Variable(rows[3:])])
    slices = IndexedSlices(np.array([[3.0, 4.0], [5.0, 0.5], [2.0, 2.0]]), [5, 0, 2])
    assert getattr(whole, name)(slices) is whole
    assert getattr(sharded, name)(slices) is sharded
    assert np.asarray(sharded).tolist() == whole.numpy().tolist() != rows.tolist()


def test_there_is_a_method_for_each_change_and_no_other():
    assert [name for name in vars(Scatters) if name.startswith("scatter_")] == list(SCATTERS)


def test_who_has_the_methods_says_what_they_do():
    with pytest.raises(NotImplementedError, match="Scatters does not say how its rows are changed"):
        Scatters().scatter_add(None)
