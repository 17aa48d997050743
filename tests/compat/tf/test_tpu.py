"""tf.tpu has ringlet's names for slices, and those of TensorFlow 1 are the same."""

from __future__ import annotations

import pytest

import ringlet
from ringlet.compat import tf
from ringlet.compat.tf.tpu import NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_names_are_those_of_ringlet(name):
    assert getattr(tf.tpu.experimental, name) is getattr(ringlet.tpu, name)
    assert getattr(tf.compat.v1.tpu.experimental, name) is getattr(ringlet.tpu, name)
    assert name in dir(tf.tpu.experimental)


def test_names_that_are_not_here_say_what_to_do():
    with pytest.raises(AttributeError, match="delete it: functions are not compiled"):
        tf.tpu.XLAOptions  # noqa: B018  # asked for to fail
    with pytest.raises(AttributeError, match="use arrays"):
        tf.tpu.experimental.embedding  # noqa: B018
    assert dir(tf.tpu) == ["experimental"]
