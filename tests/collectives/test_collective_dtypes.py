"""Which dtypes are taken, which operations combine them, and what refusals say."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ringlet.collectives import Group, Member, Op, all_reduce_buffers
from ringlet.collectives.collective_dtypes import ML_NAMES, NUMPY_NAMES, as_result, is_known
from ringlet.errors import InvalidArgumentError
from ringlet.testing import reduce_in_tree_order
from tests.collectives.contract import DTYPES, KIND_OF, KINDS, OPERATIONS, cases, dtype_of, every_dtype, needs_ml_dtypes

# --- what is taken ----------------------------------------------------------------------------------------------------


def test_the_names_are_those_of_the_contract() -> None:
    assert set(NUMPY_NAMES) | set(ML_NAMES) == set(DTYPES)
    assert set(ML_NAMES) == set(KINDS["narrow"])


@every_dtype
def test_results_have_the_dtype_that_the_table_says(dtype: str) -> None:
    x = np.ones(3).astype(dtype_of(dtype))
    assert is_known(x.dtype)
    for op in OPERATIONS[KIND_OF[dtype]]:
        assert all_reduce_buffers([x, x], op).dtype == as_result(x.dtype, op) == reduce_in_tree_order([x], op).dtype


# character of a type of C: the dtype that it is
TWINS = [
    ("b", "int8"),
    ("h", "int16"),
    ("i", "int32"),
    ("l", "int64"),
    ("q", "int64"),
    ("Q", "uint64"),
    ("I", "uint32"),
]


@pytest.mark.parametrize(("character", "dtype"), TWINS)
def test_every_integer_type_of_c_is_the_one_of_its_size(character: str, dtype: str) -> None:
    x = np.array([1, 2], character)
    out = np.zeros(2, character)
    member = Group(1).member(0)
    assert member.all_reduce(x, Op.PROD).dtype == member.all_gather(x).dtype == np.dtype(dtype)
    assert member.all_reduce(x, out=out) is out
    assert out.tolist() == [1, 2]


def test_ml_dtypes_is_not_imported_on_anybodys_behalf() -> None:
    code = """
import sys
import numpy as np
from ringlet.collectives import Group
Group(1).member(0).all_reduce(np.ones(3, "float16"))
assert "ml_dtypes" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr


@needs_ml_dtypes
def test_a_dtype_of_ml_dtypes_is_known_from_its_first_array_on() -> None:
    code = """
import threading
import ml_dtypes
import numpy as np
from ringlet.testing import run_on_ranks
x = np.ones(3, ml_dtypes.bfloat16)
# A receiver has never seen one.
first = run_on_ranks(4, lambda m: m.broadcast(None if m.rank else x))
assert all(result.dtype == x.dtype for result in first)
assert run_on_ranks(4, lambda m: m.all_reduce(x))[3].tolist() == [4, 4, 4]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr


# --- what is refused --------------------------------------------------------------------------------------------------

REDUCING: dict[str, Callable[[Member, Any, Op], Any]] = {
    "all_reduce": lambda m, x, op: m.all_reduce(x, op),
    "all_reduce_many": lambda m, x, op: m.all_reduce_many([np.ones(1, int), x], op),
    "packs": lambda m, x, op: m.all_reduce_many([np.ones(1, int), x], op, bytes_per_pack=1),
    "reduce": lambda m, x, op: m.reduce(x, op),
    "reduce_scatter": lambda m, x, op: m.reduce_scatter(x, op),
    "exclusive_scan": lambda m, x, op: m.exclusive_scan(x, op),
    "plan_all_reduce": lambda m, x, op: m.plan_all_reduce(x, op),
    "all_reduce_buffers": lambda _, x, op: all_reduce_buffers([x, x], op),
    "all_reduce_all": lambda _, x, op: Group(2).all_reduce_all([x, x], op),
}
MISSING = [(dtype, op) for dtype in DTYPES for op in Op if op not in OPERATIONS[KIND_OF[dtype]]]


@pytest.mark.parametrize("is_strided", [False, True])
@pytest.mark.parametrize("name", REDUCING)
def test_every_other_pair_is_refused_before_anybody_takes_notice(name: str, is_strided: bool) -> None:
    member = Group(2, timeout_seconds=10).member(0)
    for dtype, op in MISSING:
        if KIND_OF[dtype] == "narrow" or (op is Op.MEAN and name == "exclusive_scan"):
            continue
        x = np.zeros(8, dtype)[:: 1 + is_strided]
        with pytest.raises(
            InvalidArgumentError, match=rf"{op.name} does not support {dtype}: .*(use|convert|View|Reduce)"
        ):
            REDUCING[name](member, x, op)
    assert member._core.calls == 0
    assert len(MISSING) == 22 * 8 - 130


@pytest.mark.parametrize(("dtype", "op"), cases(KINDS["narrow"], (Op.AND, Op.XOR)))
def test_bits_of_narrow_floats_are_not_combined(dtype: str, op: Op) -> None:
    bits = 8 * dtype_of(dtype).itemsize
    with pytest.raises(InvalidArgumentError, match=rf"{op.name} does not support {dtype}.*x\.view\('uint{bits}'\)"):
        all_reduce_buffers([np.zeros(2, dtype_of(dtype))] * 2, op)


# dtype, operation, what to do instead
INSTEAD = [
    ("bool", Op.SUM, r"use OR, or convert with x\.astype\('int32'\)"),
    ("bool", Op.PROD, r"use AND, or convert with x\.astype\('int32'\)"),
    ("bool", Op.MEAN, r"convert with x\.astype\('float32'\)"),
    ("float32", Op.AND, r"x\.view\('uint32'\)"),
    ("float16", Op.OR, r"x\.view\('uint16'\)"),
    ("complex128", Op.XOR, r"x\.view\('uint64'\)"),
    ("complex64", Op.MAX, r"Reduce abs\(x\), or x\.real and x\.imag"),
]


@pytest.mark.parametrize(("dtype", "op", "words"), INSTEAD)
def test_a_refusal_says_what_to_do_instead(dtype: str, op: Op, words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        Group(1).member(0).all_reduce(np.zeros(4, dtype), op)


# value, what to do instead
OTHERS: list[tuple[Any, str]] = [
    (np.array([object()]), r"dtype object: .*x\.astype\('float64'\)"),
    (np.array(["a"]), r"dtype <U1: .*x\.view\('uint8'\)"),
    (np.array([b"a"]), r"dtype \|S1: .*x\.view\('uint8'\)"),
    (np.array(["2020"], "M8[s]"), r"dtype datetime64\[s\]: .*x\.view\('int64'\)"),
    (np.array([1], "m8[s]"), r"dtype timedelta64\[s\]: .*x\.view\('int64'\)"),
    (np.zeros(2, np.longdouble), r"dtype float128: .*x\.astype\('float64'\)"),
    (np.zeros(2, np.clongdouble), r"dtype complex256: .*x\.astype\('complex128'\)"),
    (np.zeros(2, [("a", "f4"), ("b", "i4")]), r"dtype \[\('a'.*such as x\['a'\]"),
    (np.zeros(2, "V4"), r"dtype \|V4: .*x\.view\('uint8'\)"),
    (None, r"None of type NoneType: .*loss\.backward\(\)"),
    ("SUM", r"type str: .*first argument: all_reduce\(.SUM., value\)"),
    ("x", "'x' of type str: .*Pass numbers"),
    ({"a": 1}, r"\{'a': 1\} of type dict: .*Pass numbers"),
]


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize != 16, reason="long double is another type here")
@pytest.mark.parametrize(("value", "words"), OTHERS)
def test_other_dtypes_are_refused_with_those_that_are_taken(value: Any, words: str) -> None:
    member: Any = Group(1).member(0)
    taken = "collectives support bool, int8 to int64, .* float32, .* bfloat16 and float8 of ml_dtypes"
    calls = [member.all_reduce, member.reduce, member.reduce_scatter, member.exclusive_scan, member.all_gather]
    calls += [member.gather, member.all_to_all, lambda x: member.collective_permute(x, [])]
    for call in calls:
        with pytest.raises(InvalidArgumentError, match=words) as caught:
            call(value)
        caught.match(taken)


# name, what to convert it to
NARROWER = [("float8_e8m0fnu", "float32"), ("int4", "int8"), ("uint2", "int8"), ("float4_e2m1fn", "float32")]


@needs_ml_dtypes
@pytest.mark.parametrize(("name", "other"), NARROWER)
def test_the_other_dtypes_of_ml_dtypes_are_refused(name: str, other: str) -> None:
    import ml_dtypes

    x = np.ones(2).astype(getattr(ml_dtypes, name))
    with pytest.raises(InvalidArgumentError, match=rf"dtype {name}: .*x\.astype\('{other}'\)"):
        Group(1).member(0).all_reduce(x)
    with pytest.raises(InvalidArgumentError, match=rf"dtype {name}: "):
        Group(1).member(0).broadcast(out=x)
