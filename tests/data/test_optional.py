"""Values that may be missing."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.compat import tf
from ringlet.data import Optional, TensorSpec
from ringlet.errors import InvalidArgumentError


def test_a_value_that_is_none_is_a_value():
    assert Optional(None).has_value()
    assert Optional(None).get_value() is None


def test_asking_an_empty_optional_for_its_value_is_an_error():
    with pytest.raises(InvalidArgumentError, match="has_value"):
        Optional().get_value()


def test_an_optional_holds_one_value():
    with pytest.raises(TypeError, match="got 2"):
        Optional(1, 2)


def test_the_spec_is_that_of_the_value():
    assert Optional({"x": np.zeros(3)}).element_spec == {"x": TensorSpec([3], np.float64)}


def test_optionals_are_made_of_values_and_of_specs():
    assert Optional.from_value((1, "a")).get_value() == (1, "a")
    empty = Optional.empty(TensorSpec([], np.int32))
    assert not empty.has_value()
    assert empty.element_spec == TensorSpec([], np.int32)
    with pytest.raises(InvalidArgumentError):
        empty.get_value()


def test_the_compat_spelling_holds_tensors_of_tensorflow_s_dtypes():
    one = tf.data.experimental.Optional.from_value((1, 2.0))
    assert [x.dtype for x in one.get_value()] == [tf.int32, tf.float32]
    assert isinstance(iter(tf.data.Dataset.range(1)).get_next_as_optional(), tf.data.experimental.Optional)
