"""A state that keeps its kind."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data.operations.common.carried_state import CarriedState
from ringlet.errors import InvalidArgumentError


def test_the_next_state_may_have_another_shape():
    state = CarriedState({"a": np.zeros(2)}, "reduce_func")
    state.update({"a": [1.0]})
    assert state.value["a"].tolist() == [1.0]


@pytest.mark.parametrize(
    ("answer", "error"), [(1.5, TypeError), ((1, 2), InvalidArgumentError), ("a", TypeError), (None, TypeError)]
)
def test_a_state_of_another_kind_is_refused_and_changes_nothing(answer, error):
    state = CarriedState(3, "reduce_func")
    with pytest.raises(error):
        state.update(answer)
    assert state.value == 3


def test_a_buffer_that_is_filled_again_does_not_change_the_state():
    buffer = np.zeros(2)
    state = CarriedState(buffer, "reduce_func")
    buffer[:] = 1
    assert state.value.tolist() == [0, 0]
    state.update(buffer)
    buffer[:] = 2
    assert state.value.tolist() == [1, 1]
