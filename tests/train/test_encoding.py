"""Everything that is saved comes back as it was."""

from __future__ import annotations

import collections
import dataclasses
import os
import stat

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ringlet.train import Checkpoint
from tests.train.objects import Frozen, Point, Settings, same, there_and_back

VALUES = [
    None, True, 3, -(1 << 63), 1 << 200, -(1 << 64), 2.5, float("inf"), -0.0, float("nan"), 1e-320, 2 - 3j, "", "text",
    "a\0b\ud800 \u20ac", "long" * 5000, b"", b"\0\xff", b"long" * 5000, bytearray(b"ab"), [], (), {}, set(), {1, 2},
    frozenset("ab"), [1, (2, [3])], {"a": {1: "x", (2, "b"): None, None: 3, 2.5: True, b"k": 1}},
    {1: "number", "1": "text"}, {"a/b": np.ones(1), "a": {"b": np.zeros(2)}}, {"__metadata__": np.ones(2)},
    collections.OrderedDict(b=1, a=2) | {},
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES)
def test_plain_values_come_back_as_they_were(tmp_path, value):
    restored = there_and_back(tmp_path, value)
    if isinstance(value, collections.OrderedDict):
        value = dict(value)
    assert same(value, restored), restored


DTYPES = [
    "?",
    "i1",
    "<i2",
    ">i4",
    "<u8",
    "<f2",
    ">f4",
    "<f8",
    "<c8",
    ">c16",
    "<U3",
    ">U2",
    "S4",
    "<M8[ns]",
    ">m8[D]",
    "g",
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3)])
def test_arrays_of_every_dtype_and_shape_come_back_as_they_were(tmp_path, dtype, shape):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    assert same(array, there_and_back(tmp_path, array))


@pytest.mark.parametrize(
    "name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3", "float8_e3m4", "float8_e8m0fnu", "int4"]
)
def test_arrays_of_ml_dtypes_come_back_as_they_were(tmp_path, name):
    array = np.array([[1, 2], [4, 0.5]]).astype(getattr(ml_dtypes, name))
    assert same(array, there_and_back(tmp_path, array))
    assert same(array[0, 1], there_and_back(tmp_path, array[0, 1]))


@given(
    array=hnp.arrays(
        st.sampled_from(["<f8", ">i2", "u1", "<c8", "<U2"]), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0)
    ),
    order=st.sampled_from(["as it is", "transposed", "every other", "backwards"]),
)
def test_arrays_of_every_layout_come_back_as_they_were(tmp_path_factory, array, order):
    if array.ndim and order != "as it is":
        array = {"transposed": array.T, "every other": array[::2], "backwards": array[::-1]}[order]
    assert same(array, there_and_back(tmp_path_factory.mktemp("it"), array))


plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers(), inner)
        | st.fixed_dictionaries({"array": hnp.arrays("<f4", 3)})
    ),
    max_leaves=10,
)


@given(value=plain_values)
def test_any_nest_of_plain_values_comes_back_as_it_was(tmp_path_factory, value):
    assert same(value, there_and_back(tmp_path_factory.mktemp("it"), value))


def test_numpy_scalars_keep_their_types(tmp_path):
    for value in (np.float32(1.5), np.int8(-3), np.bool_(True), np.str_("ab"), np.datetime64("2020-01-01")):
        assert same(value, there_and_back(tmp_path, value))


def test_dataclasses_and_namedtuples_take_their_class_from_what_is_there(tmp_path):
    value = {"point": Point(1, np.ones(2)), "settings": Settings(0.5, ["a"]), "frozen": Frozen(0.25)}
    there = {"point": Point(0, 0), "settings": Settings(0.0, []), "frozen": Frozen(0.0)}
    settings = there["settings"]
    restored = there_and_back(tmp_path, value, there)
    assert restored["settings"] is settings
    assert (settings.rate, settings.names, restored["frozen"]) == (0.5, ["a"], Frozen(0.25))
    assert restored["point"].x == 1
    with pytest.raises(ValueError, match="no object that determines its class"):
        there_and_back(tmp_path, Point(1, 2), None)


def test_lists_and_dictionaries_get_new_items_and_stay_the_same_objects(tmp_path):
    history, table = [1, 2, 3], {"a": [1], "b": 2}
    checkpoint = Checkpoint(history=history, table=table)
    path = checkpoint.save(tmp_path / "ckpt")
    history[:] = [9]
    table.clear()
    checkpoint.restore(path).assert_consumed()
    assert history == [1, 2, 3]
    assert table == {"a": [1], "b": 2}
    assert checkpoint.history is history
    assert checkpoint.table is table


def test_arrays_are_replaced_and_those_that_the_program_holds_do_not_change(tmp_path):
    held = np.ones(3)
    checkpoint = Checkpoint(array=held)
    path = checkpoint.save(tmp_path / "ckpt")
    held[...] = 5
    checkpoint.restore(path).assert_consumed()
    assert (held.tolist(), checkpoint.array.tolist()) == ([5, 5, 5], [1, 1, 1])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (object(), "expecting value to be a trackable object.*get_state"),
        (lambda: None, "trackable"),
        (dataclasses.field, "trackable"),
        (stat.S_IRUSR.__class__, "trackable"),
        (np.ma.masked_array([1, 2], [True, False]), "its data and its mask"),
    ],
)
def test_what_has_no_state_is_refused_when_it_is_given(value, words):
    with pytest.raises(ValueError, match=words):
        Checkpoint(value=value)


def test_what_has_no_state_is_refused_by_its_place(tmp_path):
    with pytest.raises(ValueError, match=r"expecting a/0/b\.c to be"):
        Checkpoint(a=[{"b.c": object()}]).save(tmp_path / "ckpt")
    with pytest.raises(TypeError, match=r"a/b: .*Python objects"):
        Checkpoint(a={"b": np.array([{}])}).save(tmp_path / "ckpt")
    with pytest.raises(TypeError, match="fields"):
        Checkpoint(a=np.zeros(2, [("x", "f4")])).save(tmp_path / "ckpt")
    with pytest.raises(ValueError, match=r"a/3: the key np\.int64\(3\) of type int64"):
        Checkpoint(a={np.int64(3): 1}).save(tmp_path / "ckpt")
    assert os.listdir(tmp_path) == []


def test_what_contains_itself_is_refused(tmp_path):
    loop = [1]
    loop.append({"again": loop})
    with pytest.raises(ValueError, match="contains itself"):
        Checkpoint(loop=loop).save(tmp_path / "ckpt")


def test_names_that_would_be_alike_in_the_file_are_kept_apart(tmp_path):
    value = {"a/b": np.ones(1), "a.Sb": np.zeros(1), "a": {"b": np.full(1, 2.0)}, 1: np.ones(2), "1": np.zeros(2)}
    assert same(value, there_and_back(tmp_path, value))
