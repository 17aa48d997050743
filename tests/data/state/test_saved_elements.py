"""Elements as parts of a state."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ringlet.data import Dataset, Optional
from ringlet.data.graph.element_structure import as_element
from ringlet.data.state.saved_elements import (
    load_element,
    load_elements,
    load_value,
    save_element,
    save_elements,
    save_value,
)
from tests.data.state_cases import Point, through_a_file

NODE = Dataset.range(1).node

LEAVES = st.one_of(
    hnp.arrays(
        st.sampled_from(["i1", "u8", "f4", "c16", "?", "M8[s]", "U3"]), hnp.array_shapes(min_dims=0, max_side=3)
    ),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.lists(st.binary(max_size=2), min_size=1, max_size=3),
)
ELEMENTS = st.recursive(
    LEAVES,
    lambda children: st.one_of(
        st.lists(children, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=2) | st.just(3), children, max_size=1),
    ),
    max_leaves=4,
)


@given(value=ELEMENTS, count=st.integers(0, 3))
def test_elements_come_back_as_they_were(value, count):
    elements = [as_element(value)] * count
    restored = load_elements(through_a_file(save_elements(elements)), NODE)
    assert repr(restored) == repr(elements)


def test_restored_arrays_are_read_only():
    (one,) = load_elements(save_elements([(np.zeros(2),)]), NODE)[0]
    (column,) = load_elements(save_elements([(np.zeros(2),)] * 2), NODE)[1]
    assert not one.flags.writeable
    assert not column.flags.writeable


def test_arrays_that_are_alike_are_saved_as_one():
    state = save_elements([{"x": np.full(3, n, np.float32), "y": np.int64(n)} for n in range(5)])
    assert state["count"] == 5
    assert state["columns"]["dict"][0][1].shape == (5, 3)


def test_what_is_saved_does_not_change_with_its_source():
    buffer = np.zeros(2)
    state = save_elements([buffer.copy(), buffer.copy()])
    buffer[:] = 1
    assert load_elements(state, NODE)[0].tolist() == [0, 0]


def test_structures_of_other_classes_come_back_through_the_spec_of_the_node():
    node = Dataset.range(1).map(lambda x: Point(x, OrderedDict(b=x, a=x))).node
    element = Point(np.int64(1), OrderedDict(b=np.int64(2), a=np.int64(3)))
    assert load_element(through_a_file(save_element(element)), node) == element


@pytest.mark.parametrize(
    "wrapped",
    [
        Dataset.from_tensors,
        lambda point: Dataset.from_tensors(Dataset.from_tensors(point)),
        lambda point: next(iter(Dataset.from_tensors(Dataset.from_tensors(point)).batch(1))),
        Optional.from_value,
    ],
)
def test_datasets_and_optionals_of_other_structures_come_back_through_the_spec_of_the_node(wrapped):
    element = wrapped(Point(1, OrderedDict(b=2, a="x")))
    node = Dataset.from_tensors(0).map(lambda _: element).node
    assert contents(load_element(through_a_file(save_element(element)), node)) == contents(element)


def contents(value):
    """Return the elements of datasets, and the value of an Optional."""
    if isinstance(value, (Dataset, np.ndarray)):
        return [contents(element) for element in value]
    return value.get_value() if isinstance(value, Optional) else value


def test_what_is_neither_numbers_nor_text_is_refused_with_the_way_out():
    with pytest.raises(TypeError, match=r"holds a object: .*Convert it to an array in a map"):
        save_element((object(),))
    with pytest.raises(TypeError, match="several arrays"):
        save_element(np.zeros(2, [("a", int)]))


def test_plain_values_describe_themselves():
    value = {"a": [1, (None, True), "x", b"y"], 5: 2.5, "array": np.arange(2)}
    assert repr(load_value(through_a_file(save_value(value)))) == repr(value)
    with pytest.raises(TypeError, match="cannot save"):
        save_value({"a": Point(1, 2)})
