"""A tensor answers as TensorFlow's tensors do, and is an array of NumPy in everything else."""

from __future__ import annotations

import copy
import operator
import pickle

import numpy as np
import pytest

import ringlet
from ringlet.compat.tensorflow.operators import DtypeError
from ringlet.compat.tensorflow.tensor import Tensor, as_tensor, tensor_of
from ringlet.errors import InvalidArgumentError

FLOATS = as_tensor([1.0, 2.0])
INTS = as_tensor([1, 2])


def assert_tensor(found, dtype, expected):
    assert type(found) is Tensor, repr(found)
    assert (found.dtype, found.tolist()) == (np.dtype(dtype), expected)
    assert not found.flags.writeable


# --- operators --------------------------------------------------------------------------------------------------------

# operator, left, right, dtype and list that TensorFlow gives
OPERATIONS = [
    (operator.mul, FLOATS, 2.0, "float32", [2.0, 4.0]),
    (operator.mul, FLOATS, 2, "float32", [2.0, 4.0]),
    (operator.mul, 2, FLOATS, "float32", [2.0, 4.0]),
    (operator.mul, FLOATS, np.float64(2), "float32", [2.0, 4.0]),
    (operator.mul, np.float64(2), FLOATS, "float32", [2.0, 4.0]),
    (operator.mul, FLOATS, np.array([1.0, 2.0]), "float32", [1.0, 4.0]),
    (operator.mul, np.array([1.0, 2.0]), FLOATS, "float32", [1.0, 4.0]),
    (operator.add, FLOATS, [1, 2], "float32", [2.0, 4.0]),
    (operator.add, FLOATS, np.array([1, 2]), "float32", [2.0, 4.0]),
    (operator.sub, 1.0, FLOATS, "float32", [0.0, -1.0]),
    (operator.truediv, INTS, INTS, "float64", [1.0, 1.0]),
    (operator.truediv, as_tensor([1, 2], "int8"), 2, "float32", [0.5, 1.0]),
    (operator.floordiv, INTS, INTS, "int32", [1, 1]),
    (operator.mod, INTS, 2, "int32", [1, 0]),
    (operator.pow, FLOATS, 2, "float32", [1.0, 4.0]),
    (operator.pow, 2, INTS, "int32", [2, 4]),
    (operator.add, INTS, np.array([1, 2]), "int32", [2, 4]),
    (operator.lt, FLOATS, 2, "bool", [True, False]),
    (operator.ge, FLOATS, 2, "bool", [False, True]),
    (operator.eq, FLOATS, 1.0, "bool", [True, False]),
    (operator.ne, FLOATS, 1.0, "bool", [False, True]),
    (operator.eq, FLOATS, [1, 2, 3], "bool", False),
    (operator.ne, FLOATS, [1, 2, 3], "bool", True),
    (operator.and_, as_tensor([True, False]), True, "bool", [True, False]),
    (operator.matmul, as_tensor([[1.0, 2.0]]), as_tensor([[1.0], [1.0]]), "float32", [[3.0]]),
]


@pytest.mark.parametrize(("function", "left", "right", "dtype", "expected"), OPERATIONS)
def test_operators_keep_the_dtype_of_the_tensor(function, left, right, dtype, expected):
    assert_tensor(function(left, right), dtype, expected)


def test_results_without_dimensions_stay_tensors():
    three = as_tensor(3.0)
    for found in (three * 2.0, 2.0 * three, three + three, +three * 2, FLOATS[0] * 6, abs(-three) * 2):
        assert_tensor(found, "float32", 6.0)
    assert_tensor(~as_tensor(True), "bool", False)


@pytest.mark.parametrize(
    ("function", "left", "right", "error"),
    [
        (operator.add, FLOATS, INTS, InvalidArgumentError),
        (operator.mul, FLOATS, as_tensor([1.0, 2.0], "float64"), InvalidArgumentError),
        (operator.eq, FLOATS, INTS, InvalidArgumentError),
        (operator.mul, INTS, 2.5, TypeError),
        (operator.mul, 2.5, INTS, TypeError),
        (operator.add, INTS, np.array([1.5, 2.0]), TypeError),
        (operator.add, FLOATS, None, ValueError),
        (operator.add, FLOATS, ringlet.values.PerReplica([1.0, 2.0]), TypeError),
    ],
)
def test_what_would_lose_something_does_not_go_together(function, left, right, error):
    with pytest.raises(error):
        function(left, right)


def test_an_operator_that_looks_in_place_makes_a_new_tensor():
    g = first = as_tensor([1.0, 2.0])
    g *= 0.5
    assert_tensor(g, "float32", [0.5, 1.0])
    assert first.tolist() == [1.0, 2.0]


def test_variables_and_tensors_go_together():
    v = ringlet.Variable([1.0, 2.0], dtype="float32")
    assert_tensor(FLOATS * v, "float32", [1.0, 4.0])
    assert_tensor(v * FLOATS, "float32", [1.0, 4.0])


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64", "complex64"])
def test_true_and_false_are_one_and_zero_of_the_tensor_s_dtype(dtype):
    assert_tensor(as_tensor([7, -3], dtype) * True, dtype, [7, -3])
    assert_tensor([True, False] * as_tensor([7, -3], dtype), dtype, [7, 0])


def test_a_number_of_numpy_on_the_left_is_no_other_than_on_the_right():
    assert_tensor(np.int64(2) - INTS, "int32", [1, 0])
    assert_tensor(np.float64(2) < as_tensor([1.0, 3.0]), "bool", [False, True])
    with pytest.raises(DtypeError, match=r"tf\.cast\(tensor, tf\.float64\)"):
        np.float64(2.5) * INTS


def test_text_is_joined_and_compared_as_bytes():
    assert_tensor(as_tensor("a") + "b\0", object, b"ab\0")
    assert_tensor("b" + as_tensor(["a"]), object, [b"ba"])
    assert_tensor(as_tensor(["a", "b"]) == "a", "bool", [True, False])
    with pytest.raises(DtypeError, match="strings"):
        as_tensor("a") < "b"  # noqa: B015  # what is refused
    with pytest.raises(DtypeError, match="dtype string, which cannot represent it"):
        as_tensor("a") * np.array(2)


def test_comparing_with_none_is_a_question_with_one_answer():
    assert (FLOATS == None) is False  # noqa: E711  # what programs write
    assert (FLOATS != None) is True  # noqa: E711


# --- as an object -----------------------------------------------------------------------------------------------------


def test_text_keeps_the_zeros_at_its_end_wherever_it_is_taken_out():
    texts = as_tensor([b"a\0", b"b"])
    for found in (texts[0], next(iter(texts)), texts[:1][0], tensor_of(b"a\0")):
        assert_tensor(found, object, b"a\0")
        assert type(found.numpy()) is bytes
    assert b"a\0" in texts


def test_lines_of_it_stand_below_one_another():
    assert str(FLOATS[:, None]) == "tf.Tensor(\n[[1.]\n [2.]], shape=(2, 1), dtype=float32)"


def test_a_number_is_written_in_full_by_repr_and_shortly_by_str():
    assert repr(as_tensor(0.1)) == "<tf.Tensor: shape=(), dtype=float32, numpy=0.10000000149011612>"
    assert str(as_tensor(1e-10)) == "tf.Tensor(1e-10, shape=(), dtype=float32)"


def test_it_is_written_as_tensorflow_writes_it():
    assert repr(as_tensor(6.0)) == "<tf.Tensor: shape=(), dtype=float32, numpy=6.0>"
    assert repr(as_tensor(True)) == "<tf.Tensor: shape=(), dtype=bool, numpy=True>"
    assert repr(as_tensor("a")) == "<tf.Tensor: shape=(), dtype=string, numpy=b'a'>"
    assert repr(INTS) == "<tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 2], dtype=int32)>"
    assert repr(FLOATS[:, None]) == (
        "<tf.Tensor: shape=(2, 1), dtype=float32, numpy=\narray([[1.],\n       [2.]], dtype=float32)>"
    )
    assert str(FLOATS) == "tf.Tensor([1. 2.], shape=(2,), dtype=float32)"
    assert f"{FLOATS[0]:.2f} {FLOATS[0]}" == "1.00 1.0"


def test_numpy_gives_a_copy_to_write_to():
    array = FLOATS.numpy()
    assert type(array) is np.ndarray
    array[0] = 9.0
    assert FLOATS.tolist() == [1.0, 2.0]
    assert type(as_tensor(1.5).numpy()) is np.float32
    assert as_tensor("a").numpy() == b"a"


def test_it_cannot_be_changed():
    with pytest.raises(TypeError, match="item assignment"):
        FLOATS[0] = 3.0
    with pytest.raises(ValueError, match="read-only"):
        np.add(FLOATS, 1, out=FLOATS)
    with pytest.raises(ValueError, match="read-only"):
        FLOATS.sort()


def test_the_memory_of_an_array_that_may_change_is_copied_and_that_of_others_shared():
    array = np.zeros(2)
    tensor = as_tensor(array)
    array[:] = 1.0
    assert tensor.tolist() == [0.0, 0.0]
    array.setflags(write=False)
    assert np.shares_memory(as_tensor(array), array)
    assert np.shares_memory(np.asarray(tensor), tensor)


def test_a_number_stands_for_itself():
    one = as_tensor(1)
    assert (bool(one), int(one), float(one), range(3)[one], [5, 6][one]) == (True, 1, 1.0, 1, 6)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(FLOATS)


def test_no_elements_are_false():
    assert not as_tensor([])


@pytest.mark.parametrize("key", [2, -3, (0, 0), "a", 1.5])
@pytest.mark.parametrize("error", [InvalidArgumentError, IndexError, TypeError])
def test_a_part_that_is_not_there_is_refused_in_tensorflow_s_and_in_numpy_s_way(key, error):
    with pytest.raises(error, match=r"in tensor\[.*\] of shape \(2,\)"):
        FLOATS[key]


def test_it_is_a_key_by_reference_only():
    with pytest.raises(TypeError, match=r"unhashable.*ref\(\)"):
        hash(FLOATS)
    assert {FLOATS.ref(): "floats"}[FLOATS.ref()] == "floats"
    assert FLOATS.ref().deref() is FLOATS


def test_parts_of_it_are_tensors():
    assert_tensor(FLOATS[INTS[0]], "float32", 2.0)
    assert_tensor(FLOATS[as_tensor([True, False])], "float32", [1.0])
    assert [type(x) for x in FLOATS] == [Tensor, Tensor]
    assert max(FLOATS).tolist() == 2.0
    assert 2.0 in FLOATS


def test_it_tells_shape_dtype_and_device():
    assert (FLOATS.shape, FLOATS.get_shape(), FLOATS.dtype, FLOATS.ndim) == ((2,), (2,), np.float32, 1)
    assert FLOATS.device == "/job:localhost/replica:0/task:0/device:CPU:0"


def test_it_is_copied_and_pickled_as_arrays_are():
    for twin in (copy.deepcopy(FLOATS), pickle.loads(pickle.dumps(FLOATS))):
        assert type(twin) is Tensor
        assert twin.tolist() == [1.0, 2.0]


def test_memory_without_values_is_no_tensor():
    with pytest.raises(TypeError, match=r"tf\.constant"):
        Tensor((2, 2))


# --- NumPy's functions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "dtype", "expected"),
    [
        (np.sum, "float32", 3.0),
        (np.mean, "float32", 1.5),
        (np.std, "float32", 0.5),
        (np.exp2, "float32", [2.0, 4.0]),
        (lambda x: x.mean(), "float32", 1.5),
        (lambda x: x.sum(), "float32", 3.0),
        (lambda x: np.add(x, 1.0), "float32", [2.0, 3.0]),
        (lambda x: np.multiply(np.float64(2), x), "float32", [2.0, 4.0]),
        (lambda x: np.multiply(x[0], 2.0), "float32", 2.0),
        (lambda x: np.concatenate([x, x]), "float32", [1.0, 2.0, 1.0, 2.0]),
        (lambda x: np.where(x > 1, x, 0.0), "float32", [0.0, 2.0]),
        (lambda x: x.reshape(2, 1), "float32", [[1.0], [2.0]]),
        (lambda x: x.astype("int64"), "int64", [1, 2]),
        (lambda x: np.split(x, 2)[1], "float32", [2.0]),
        (lambda x: np.linalg.norm(x - x), "float32", 0.0),
    ],
)
def test_functions_of_numpy_give_tensors(function, dtype, expected):
    assert_tensor(function(FLOATS), dtype, expected)


def test_functions_that_give_no_arrays_give_what_they_give():
    assert np.array_equal(FLOATS, FLOATS) is True
    assert np.shape(FLOATS) == (2,)
    np.testing.assert_array_equal(FLOATS, [1.0, 2.0])


# --- in the library ---------------------------------------------------------------------------------------------------


def test_collectives_and_reductions_of_tensors_are_tensors():
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    value = strategy.experimental_distribute_values_from_function(lambda _: as_tensor([1.0, 2.0]))
    assert_tensor(strategy.reduce("SUM", value, axis=None), "float32", [2.0, 4.0])
    assert_tensor(strategy.reduce("MEAN", value, axis=0), "float32", 1.5)
    assert_tensor(strategy.gather(value, axis=0), "float32", [1.0, 2.0, 1.0, 2.0])

    def step(x):
        replica = ringlet.get_replica_context()
        return replica.all_reduce("SUM", {"x": x}), replica.all_gather(x, axis=0)

    (total, joined) = strategy.run(step, args=(value,))
    assert_tensor(total["x"].values[1], "float32", [2.0, 4.0])
    assert_tensor(joined.values[1], "float32", [1.0, 2.0, 1.0, 2.0])


def test_a_tensor_is_made_in_the_memory_of_a_result():
    array = np.arange(2)
    assert np.shares_memory(tensor_of(array), array)
    assert_tensor(tensor_of(np.float32(1.5)), "float32", 1.5)
