"""Functions of elements."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import optree
import pytest

from ringlet.data import UNKNOWN_CARDINALITY, Dataset, TensorSpec
from ringlet.errors import InvalidArgumentError

Point = namedtuple("Point", "x y")


def test_the_function_gets_every_element_once_in_order():
    seen = []
    assert list(Dataset.range(4).map(lambda x: seen.append(int(x)) or x + 1)) == [1, 2, 3, 4]
    assert seen == [0, 1, 2, 3]


def test_a_plain_tuple_comes_as_several_arguments_and_nothing_else_does():
    assert list(Dataset.from_tensor_slices(([1], [2])).map(lambda x, y: x + y)) == [3]
    assert list(Dataset.from_tensor_slices({"x": [1]}).map(lambda e: e["x"])) == [1]
    assert list(Dataset.from_tensor_slices(Point([1], [2])).map(lambda p: p.x - p.y)) == [-1]
    assert list(Dataset.from_tensor_slices(([[1, 2]],)).map(lambda x: x.sum())) == [3]


def test_results_become_elements():
    (element,) = Dataset.range(1).map(lambda x: (x, {"a": [1, 2], "b": 2.5}, "text", b"bytes"))
    assert element[1]["a"].tolist() == [1, 2]
    assert type(element[1]["b"]) is np.float64
    assert element[2:] == ("text", b"bytes")


def test_elements_handed_to_the_function_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        list(Dataset.range(4).batch(2).map(lambda x: x.__iadd__(1)))


def test_an_array_that_the_function_keeps_cannot_be_changed_through_the_element():
    kept = np.zeros(3)
    (element,) = Dataset.range(1).map(lambda _: kept)
    assert not np.shares_memory(element, kept)
    assert not element.flags.writeable
    assert kept.flags.writeable


def test_a_given_array_and_a_view_of_it_are_handed_on_without_a_copy():
    rows = np.arange(6.0).reshape(2, 3)
    dataset = Dataset.from_tensor_slices((rows, rows)).map(lambda x, y: (x, {"part": y[1:]}))
    assert all(np.shares_memory(x, rows) and np.shares_memory(y["part"], rows) for x, y in dataset)
    first, second = dataset.map(lambda x, y: (x, y["part"])), dataset.batch(2).map(lambda x, y: x)
    assert np.shares_memory(next(iter(first))[0], rows)
    assert [x.tolist() for x in second] == [rows.tolist()]


REUSES = {
    "the buffer": lambda buffer: buffer,
    "a view of it": lambda buffer: buffer[:1],
    "a view that is read-only": lambda buffer: np.broadcast_to(buffer, (1, 2)),
    "it in a tuple": lambda buffer: (buffer, 1),
    "it in a dictionary": lambda buffer: {"a": [0], "b": (buffer,)},
    "it in a named tuple": lambda buffer: Point(buffer, buffer),
}
KEEPS = {
    "batch": lambda dataset: next(iter(dataset.batch(3))),
    "prefetch": lambda dataset: next(iter(dataset.prefetch(3).batch(3))),
    "shuffle": lambda dataset: next(iter(dataset.shuffle(2, seed=0).batch(3))),
}


@pytest.mark.parametrize("result", REUSES)
@pytest.mark.parametrize("keep", KEEPS)
def test_a_function_may_fill_one_buffer_for_all_of_its_results(result, keep):
    buffer = np.zeros(2)

    def fills(x):
        buffer[:] = x
        return REUSES[result](buffer)

    def makes(x):
        return REUSES[result](np.full(2, float(x)))

    reused, fresh = (KEEPS[keep](Dataset.range(3).map(function)) for function in (fills, makes))
    reused, fresh = (optree.tree_map(np.ndarray.tolist, found, namespace="ringlet") for found in (reused, fresh))
    assert reused == fresh


def test_an_exception_surfaces_with_the_number_of_its_element_and_iteration_goes_on_behind_it():
    def inverse(x):
        return 1 // x if x != 2 else 1 // int(x - 2)

    iterator = iter(Dataset.range(1, 5).map(inverse))
    assert next(iterator) == 1
    with pytest.raises(ZeroDivisionError) as caught:
        next(iterator)
    assert "inverse raised this for element 1" in caught.value.__notes__[0]
    assert [int(x) for x in iterator] == [0, 0]


def test_a_function_that_raises_stop_iteration_does_not_end_the_dataset_in_silence():
    def ends(_):
        raise StopIteration

    with pytest.raises(InvalidArgumentError, match="ends raised StopIteration for element 0"):
        list(Dataset.range(3).map(ends))


def test_a_function_must_be_callable():
    with pytest.raises(TypeError, match="got 3"):
        Dataset.range(3).map(3)


def test_the_function_is_not_called_before_an_element_or_the_spec_is_asked_for():
    calls = []
    dataset = Dataset.range(5).map(lambda x: calls.append(x) or x).batch(2).prefetch(1)
    iter(dataset)
    assert len(dataset) == 3
    assert calls == []
    assert dataset.element_spec == TensorSpec([None], np.int64)
    assert dataset.element_spec == dataset.element_spec
    assert calls == [0, 2, 4]


def test_a_size_that_depends_on_the_values_of_elements_is_not_known():
    dataset = Dataset.range(6).map(lambda x: np.zeros((x % 4, 2)))
    assert dataset.element_spec == TensorSpec([None, 2], np.float64)
    assert dataset.unbatch().cardinality() == UNKNOWN_CARDINALITY
    assert len(list(dataset.unbatch().repeat(2))) == 2 * 7
    assert Dataset.zip((Dataset.range(6), Dataset.range(2))).enumerate().map(
        lambda number, pair: np.zeros(pair[0])
    ).element_spec == TensorSpec([None], np.float64)


def test_an_example_on_which_the_function_raises_tells_nothing_about_sizes():
    assert Dataset.range(3).map(lambda x: np.zeros(6 // (2 - x))).element_spec == TensorSpec([None], np.float64)


def test_the_spec_does_not_take_an_element_or_an_order_from_a_run():
    def first_orders(ask):
        dataset = Dataset.range(50).shuffle(50, seed=3).map(lambda x: x)
        if ask:
            assert dataset.element_spec == TensorSpec([], np.int64)
        return [[int(x) for x in dataset] for _ in range(2)]

    assert first_orders(True) == first_orders(False)


@pytest.mark.parametrize(
    ("function", "spec"),
    [
        # function of a batch of unknown size, spec of its result
        (lambda x: x * 2.5, TensorSpec([None], np.float64)),
        (lambda x: x.sum(), TensorSpec([], np.int64)),
        (lambda x: np.zeros((3, len(x), 2)), TensorSpec([3, None, 2], np.float64)),
        (lambda x: x.reshape(-1, 2), TensorSpec([None, 2], np.int64)),
        (lambda x: "t", TensorSpec([], np.object_)),
        (lambda x: x.reshape([1] * len(x)) if len(x) == 1 else np.zeros([1] * len(x)), TensorSpec(None, np.float64)),
    ],
)
def test_sizes_that_depend_on_unknown_sizes_are_unknown(function, spec):
    assert Dataset.range(8).batch(4).map(function).element_spec == spec


def test_where_only_one_size_is_accepted_all_sizes_are_unknown():
    def of_four(x):
        assert len(x) == 4
        return np.zeros((2, 2))

    assert Dataset.range(8).batch(4).map(of_four).element_spec == TensorSpec([None, None], np.float64)


def test_sizes_are_known_where_those_of_the_input_are():
    assert Dataset.range(8).batch(4, True).map(lambda x: x[1:]).element_spec == TensorSpec([3], np.int64)


def test_the_spec_of_an_empty_dataset_is_found_on_zeros():
    dataset = Dataset.from_tensor_slices(np.zeros((0, 3), np.float32)).map(lambda x: x[:2])
    assert dataset.element_spec == TensorSpec([2], np.float32)


def test_text_is_batched_as_objects_in_the_spec_too():
    dataset = Dataset.range(3).map(lambda x: str(x).encode()).batch(2).map(lambda x: x)
    assert dataset.element_spec == TensorSpec([None], np.object_)
    assert [x.tolist() for x in dataset] == [[b"0", b"1"], [b"2"]]


@pytest.mark.parametrize(("value", "error"), [(None, InvalidArgumentError), (([[1], [1, 2]],), InvalidArgumentError)])
def test_a_result_that_is_no_element_is_an_error_with_its_element(value, error):
    with pytest.raises(error) as caught:
        list(Dataset.range(3).map(lambda _: value))
    assert "element 0" in caught.value.__notes__[0]


def test_a_list_is_a_tuple_of_components_and_inside_of_a_nest_an_array():
    dataset = Dataset.range(2).map(lambda x: [x, [x, x + 1]])
    assert dataset.element_spec == (TensorSpec([], np.int64), TensorSpec([2], np.int64))
    assert [(int(x), y.tolist()) for x, y in dataset] == [(0, [0, 1]), (1, [1, 2])]
    assert Dataset.range(2).map(lambda x: {"a": [x, x]}).element_spec == {"a": TensorSpec([2], np.int64)}


def test_a_synchronous_map_takes_no_parallel_calls():
    assert list(Dataset.range(2).map(lambda x: x + 1, synchronous=True)) == [1, 2]
    assert list(Dataset.range(2).map(lambda x: x + 1, None, None, False)) == [1, 2]
    with pytest.raises(ValueError, match=r"num_parallel_calls=2.*Omit one"):
        Dataset.range(2).map(lambda x: x, num_parallel_calls=2, synchronous=True)


def test_threads_are_bounded_whatever_pool_was_asked_for():
    assert list(Dataset.range(3).map(lambda x: x, num_parallel_calls=2, use_unbounded_threadpool=True)) == [0, 1, 2]
