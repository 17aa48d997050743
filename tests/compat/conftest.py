"""The strategy of TensorFlow's documented programs."""

from __future__ import annotations

import pytest

from ringlet.compat import tf


@pytest.fixture
def strategy():
    return tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
