"""Functions under TensorFlow's names answer what TensorFlow 2.21 answers.

The expressions of ``array_function_answers.json`` were evaluated with ``import tensorflow as tf`` (tensorflow-cpu
2.21.0) and the variables of `NAMES`; an answer is a dtype, a shape and values, or the class of the error.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ringlet.compat import tf
from ringlet.compat.tensorflow.array_functions import array_functions
from ringlet.compat.tensorflow.names import TENSORFLOW_NAMES

RECORDED = json.loads((Path(__file__).parents[1] / "array_function_answers.json").read_text(encoding="utf-8"))
NAMES = {
    "tf": tf,
    "x": tf.constant([[0.0, 1.0], [-0.5, 2.0]]),
    "i": tf.constant([1, 2, 3]),
    "b": tf.constant([True, False, True]),
}


def check(found: Any, wanted: Any) -> None:
    if isinstance(wanted, list) and wanted and isinstance(wanted[0], str):
        dtype, shape, values = wanted
        array = np.asarray(found)
        assert isinstance(found, tf.Tensor)
        assert (found.dtype.name.replace("object", "string"), list(array.shape)) == (dtype, shape)
        if dtype == "string":
            assert [str(text) for text in array.ravel().tolist()] == values
        else:
            np.testing.assert_allclose(array, np.array(values, dtype).reshape(shape), rtol=1e-5, atol=1e-7)
    elif isinstance(wanted, list):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            check(one, other)
    else:
        assert repr(found) == wanted


@pytest.mark.parametrize(("expression", "wanted"), RECORDED, ids=[expression for expression, _ in RECORDED])
def test_the_answer_is_tensorflow_s(expression, wanted):
    if isinstance(wanted, str) and wanted.endswith("Error"):
        with pytest.raises(Exception) as raised:  # noqa: PT011  # the class is compared below
            eval(expression, NAMES)
        assert wanted in [kind.__name__ for kind in type(raised.value).__mro__]
    else:
        check(eval(expression, NAMES), wanted)


def test_every_function_is_recorded():
    text = " ".join(expression for expression, _ in RECORDED)
    missing = {
        name for path in ("tf", "tf.math", "tf.linalg", "tf.nn") for name in array_functions(path) if name not in text
    }
    assert missing <= {"acosh", "asinh", "atanh", "floormod", "logical_xor", "reshape"}


def test_functions_are_those_of_the_namespaces_of_tensorflow():
    assert array_functions("tf.math").keys() <= TENSORFLOW_NAMES["tf.math"]
    assert tf.math.reduce_sum is tf.reduce_sum is array_functions("tf")["reduce_sum"]
    assert list(inspect.signature(tf.reduce_sum).parameters) == ["input_tensor", "axis", "keepdims", "name"]
    assert tf.reduce_sum.__name__ == "reduce_sum"
    with pytest.raises(TypeError, match="input_tensor"):
        tf.reduce_sum()


def test_an_error_names_the_function_and_says_what_to_do():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"^tf\.matmul cannot multiply .* Set or omit transpose_a"):
        tf.matmul([[1.0]], [[1.0], [2.0]])
    with pytest.raises(TypeError, match=r"tf\.exp does not support tensors of int32.*tf\.cast\(x, tf\.float32\)"):
        tf.exp(1)


def test_a_loss_is_averaged_over_the_global_batch():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    losses = strategy.run(lambda: tf.nn.compute_average_loss([1.0, 2.0]))
    assert strategy.reduce("SUM", losses, axis=None).numpy() == 1.5
    penalty = strategy.run(lambda: tf.nn.scale_regularization_loss([1.0, 2.0]))
    assert strategy.reduce("SUM", penalty, axis=None).numpy() == 3.0
    with strategy.scope(), pytest.raises(RuntimeError, match="step function"):
        tf.nn.compute_average_loss([1.0, 2.0])
    with strategy.scope(), pytest.raises(RuntimeError, match="step function"):
        tf.nn.scale_regularization_loss(1.0)


def test_values_of_replicas_are_read_in_a_step_function():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        weights = tf.Variable([[1.0], [2.0]])
    found = strategy.run(lambda: tf.reduce_sum(tf.matmul([[1.0, 1.0]], weights)))
    assert [float(x) for x in strategy.experimental_local_results(found)] == [3.0, 3.0]


def test_what_is_not_a_tensor_is_refused():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    parts = strategy.run(lambda: tf.distribute.get_replica_context().replica_id_in_sync_group)
    for wrong in (None, {}, parts):
        with pytest.raises(ValueError, match="unsupported type"):
            tf.reduce_sum(wrong)
    with pytest.raises(TypeError, match=r"reduce_sum\(\) got an unexpected keyword argument 'axes'"):
        tf.reduce_sum([1], axes=0)


def test_gradients_of_rows_are_clipped_as_rows():
    rows = tf.IndexedSlices(tf.constant([[3.0]]), tf.constant([0]))
    (clipped, dense), norm = tf.clip_by_global_norm([rows, tf.constant([4.0])], 1.0)
    assert norm.numpy() == 5
    assert isinstance(clipped, tf.IndexedSlices)
    assert clipped.values.numpy().tolist() == [[pytest.approx(0.6)]]
    assert dense.numpy().tolist() == [pytest.approx(0.8)]
