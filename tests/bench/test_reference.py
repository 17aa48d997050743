import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import reference
from bench.reference import Inputs, WrongAnswerError, left_to_right, tree_reduce

DTYPES = ("float32", "float64", "int32", "int64", "int8", "uint16", "float16", "complex64")


def filled(inputs):
    arrays = [np.empty(inputs.count, inputs.dtype) for _ in range(inputs.num_ranks)]
    for rank, array in enumerate(arrays):
        inputs.fill(rank, array)
    return arrays


def test_the_tree_pairs_neighbours_and_moves_a_lone_one_up():
    a, b, c, d, e = (np.array([x], np.float32) for x in (1e8, 3.0, -1e8, 5.0, 7.0))
    assert tree_reduce([a, b, c, d, e], "SUM").tobytes() == (((a + b) + (c + d)) + e).tobytes()


def test_integer_sums_wrap():
    assert tree_reduce([np.array([2**31 - 1], np.int32), np.array([1], np.int32)], "SUM").tolist() == [-(2**31)]


@pytest.mark.parametrize(
    # input, result
    ("dtype", "result"),
    [("int8", "float32"), ("uint16", "float32"), ("int32", "float64"), ("uint64", "float64"), ("float16", "float16"),
     ("float32", "float32"), ("complex64", "complex64")],
)  # fmt: skip
def test_the_mean_of_integers_is_a_float_that_holds_them(dtype, result):
    mean = tree_reduce([np.array([1], dtype), np.array([2], dtype)], "MEAN")
    assert (mean.dtype, mean.tolist()) == (np.dtype(result), [1.5])


def test_a_mean_of_integers_is_of_their_wrapped_sum():
    assert tree_reduce([np.int8([127]), np.int8([1])], "MEAN").tolist() == [-64.0]


def test_narrow_floats_are_rounded_once_at_the_end():
    parts = [np.float16([x]) for x in (2048, 1, 1, 0)]  # 2049 is no float16
    assert tree_reduce(parts, "SUM").tolist() == [2050.0]
    assert left_to_right(parts, "SUM").tolist() == [2050.0]


def test_a_scan_goes_from_left_to_right():
    a, b, c, d = (np.array([x], np.float32) for x in (1e8, 3.0, -1e8, 5.0))
    assert left_to_right([a, b, c, d], "SUM").tobytes() == (((a + b) + c) + d).tobytes()


def is_of_ml_dtypes(name):
    return "float8" in name or name == "bfloat16"


def scans(name):
    """Operations that there is a scan of, for a dtype that may not be installed."""
    dtype = np.dtype("float16" if is_of_ml_dtypes(name) else name)
    return [op for op in reference.OPS if reference.is_supported(dtype, op) and op != "MEAN"]


@pytest.mark.parametrize(("name", "op"), [(name, op) for name in reference.DTYPES for op in scans(name)])
def test_the_identity_changes_nothing(name, op):
    if is_of_ml_dtypes(name):
        pytest.importorskip("ml_dtypes")
    dtype = reference.dtype_named(name)
    x = np.empty(100, dtype)
    Inputs(1, 100, dtype, False, op).fill(0, x)
    nothing = np.full(100, reference.identity(dtype, op), dtype)
    assert tree_reduce([nothing, x], op).tobytes() == x.tobytes()
    assert tree_reduce([x, nothing], op).tobytes() == x.tobytes()


@pytest.mark.parametrize(
    # dtype, operations
    ("dtype", "ops"),
    [
        ("bool", {"MIN", "MAX", "AND", "OR", "XOR"}),
        ("uint8", set(reference.OPS)),
        ("float16", {"SUM", "MEAN", "MIN", "MAX", "PROD"}),
        ("complex128", {"SUM", "MEAN", "PROD"}),
    ],
)
def test_operations_go_with_some_dtypes(dtype, ops):
    assert {op for op in reference.OPS if reference.is_supported(np.dtype(dtype), op)} == ops


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", ["SUM", "MEAN", "PROD"])
@pytest.mark.parametrize("count", [1, 1000, (1 << 18) + 3])
def test_the_right_answer_passes(dtype, op, count):
    inputs = Inputs(3, count, np.dtype(dtype), False, op)
    inputs.check(tree_reduce(filled(inputs), op), "tree")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("place", [0, 1 << 18, (1 << 18) + 2])
def test_one_wrong_element_is_refused_and_named(dtype, place):
    inputs = Inputs(2, (1 << 18) + 3, np.dtype(dtype), is_exact=False)
    wrong = tree_reduce(filled(inputs), "SUM")
    wrong[place] += 1
    with pytest.raises(WrongAnswerError, match=rf"^ring: element {place} is .*No time is reported"):
        inputs.check(wrong, "ring")


def test_another_order_of_rounding_is_refused():
    inputs = Inputs(4, 1000, np.dtype("float32"), is_exact=False)
    a, b, c, d = filled(inputs)
    with pytest.raises(WrongAnswerError):
        inputs.check(((a + b) + c) + d, "left to right")


def test_exact_inputs_have_one_sum_in_any_order():
    inputs = Inputs(4, 1000, np.dtype("float32"), is_exact=True)
    a, b, c, d = filled(inputs)
    inputs.check(((d + b) + c) + a, "any order")


def test_a_missing_rank_is_refused():
    inputs = Inputs(3, 1000, np.dtype("float32"), is_exact=True)
    a, b, _ = filled(inputs)
    with pytest.raises(WrongAnswerError):
        inputs.check(a + b, "two of three")


def test_a_block_in_the_place_of_another_is_refused():
    block = 1 << 18
    inputs = Inputs(2, 2 * block, np.dtype("float32"), is_exact=True)
    right = tree_reduce(filled(inputs), "SUM")
    with pytest.raises(WrongAnswerError):
        inputs.check(np.concatenate([right[block:], right[:block]]), "swapped")


@pytest.mark.parametrize("change", [lambda x: x[:-1], lambda x: x.astype(np.float64), lambda x: x.astype(np.int32)])
def test_another_shape_or_dtype_is_refused(change):
    inputs = Inputs(2, 10, np.dtype("float32"), is_exact=True)
    with pytest.raises(WrongAnswerError, match="gave"):
        inputs.check(change(tree_reduce(filled(inputs), "SUM")), "changed")


@given(ranks=st.integers(1, 9), count=st.integers(1, 100))
def test_every_rank_contributes_other_values(ranks, count):
    arrays = filled(Inputs(ranks, count + 10, np.dtype("float64"), is_exact=False))
    assert len({array.tobytes() for array in arrays}) == ranks


@pytest.mark.parametrize("op", ["SUM", "PROD"])
def test_exact_products_and_sums_of_narrow_floats_have_one_value_in_any_order(op):
    inputs = Inputs(4, 1000, np.dtype("float16"), True, op)
    a, b, c, d = (array.astype(np.float32) for array in filled(inputs))
    combine = np.add if op == "SUM" else np.multiply
    inputs.check(combine(combine(combine(d, b), c), a).astype(np.float16), "any order")


def test_a_part_of_the_combination_is_checked_at_its_place():
    inputs = Inputs(2, 1000, np.dtype("float32"), is_exact=False)
    total = tree_reduce(filled(inputs), "SUM")
    inputs.check(total[600:800], "block", first=600, count=200)
    with pytest.raises(WrongAnswerError, match="element 0 is"):
        inputs.check(total[600:800], "block", first=400, count=200)
    with pytest.raises(WrongAnswerError, match=r"gave \[200\], expected \[100\]"):
        inputs.check(total[600:800], "block", first=600, count=100)


def test_what_one_rank_gave_is_told_from_what_others_gave():
    inputs = Inputs(2, 1000, np.dtype("int32"), is_exact=False)
    _, b = filled(inputs)
    inputs.check_from(b[10:], 1, "gather", first=10)
    with pytest.raises(WrongAnswerError):
        inputs.check_from(b[10:], 0, "gather", first=10)


def test_a_scan_is_of_the_ranks_before():
    inputs = Inputs(3, 100, np.dtype("float32"), is_exact=False)
    a, b, _ = filled(inputs)
    for rank, right in enumerate((np.zeros_like(a), a, a + b)):
        inputs.check_scan(right, rank, "scan")
        with pytest.raises(WrongAnswerError):
            inputs.check_scan(right, (rank + 1) % 3, "scan")


def test_a_place_a_power_of_two_away_holds_something_else():
    inputs = Inputs(1, 1 << 20, np.dtype("int64"), is_exact=False)
    (x,) = filled(inputs)
    for shift in (1 << bit for bit in range(19)):
        assert not np.array_equal(x[:1000], x[shift : shift + 1000])
