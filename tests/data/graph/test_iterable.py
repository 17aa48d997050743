"""Iterables of arrays as sources."""

from __future__ import annotations

import collections

import numpy as np
import pytest

import ringlet
from ringlet.data import Dataset, DistributedDataset, TensorSpec
from ringlet.data.graph.iterable import iterable_source
from ringlet.errors import FailedPreconditionError, InvalidArgumentError


class Tensor:
    """An array of another library: it has a shape and slices, and NumPy can view it."""

    def __init__(self, array):
        self.array = array

    @property
    def shape(self):
        return self.array.shape

    def __getitem__(self, key):
        return Tensor(self.array[key])

    def __array__(self, dtype=None, copy=None):
        return self.array


class Afresh:
    """Iterated any number of times, as a DataLoader is."""

    def __init__(self, *elements):
        self.elements = elements

    def __iter__(self):
        yield from self.elements


def test_arrays_become_read_only_views():
    array = np.zeros(3)
    (element,) = Dataset(iterable_source([array]))
    assert np.shares_memory(element, array)
    assert not element.flags.writeable


@pytest.mark.parametrize("make", [lambda x: x, lambda x: (x[:1], {"a": x})])
def test_a_generator_may_fill_one_buffer_for_all_of_its_elements(make):
    def generate():
        buffer = np.zeros(2)
        for number in range(3):
            buffer[:] = number
            yield make(buffer)

    (batch,) = Dataset(iterable_source(generate())).batch(3)
    whole = batch if isinstance(batch, np.ndarray) else batch[1]["a"]
    assert whole.tolist() == [[0, 0], [1, 1], [2, 2]]


def test_arrays_of_other_libraries_stay_what_they_are():
    tensor = Tensor(np.arange(4))
    (element,) = Dataset(iterable_source([{"x": tensor}]))
    assert element["x"] is tensor
    (step,) = DistributedDataset([{"x": tensor}], 2)
    assert [type(part) for part in step["x"].values] == [Tensor, Tensor]
    assert [part.array.tolist() for part in step["x"].values] == [[0, 1], [2, 3]]


def test_a_list_that_holds_arrays_is_a_structure_and_one_of_numbers_or_text_an_array():
    (element,) = Dataset(iterable_source(Afresh([Tensor(np.arange(2)), [1, 2], ["a", "b"]])))
    assert type(element) is list
    assert element[0].shape == (2,)
    np.testing.assert_array_equal(element[1], [1, 2])
    np.testing.assert_array_equal(element[2], ["a", "b"])


def test_each_iteration_iterates_afresh():
    distributed = DistributedDataset(Afresh(np.arange(3)), 2)
    assert len(list(distributed)) == len(list(distributed)) == 1


def test_an_iterator_can_be_distributed_once():
    distributed = DistributedDataset((np.arange(n) for n in (2, 3)), 2)
    assert [[len(part) for part in step.values] for step in distributed] == [[1, 1], [2, 1]]
    with pytest.raises(FailedPreconditionError, match="only once"):
        iter(distributed)


def test_the_spec_is_that_of_the_first_element_with_an_unknown_size():
    assert DistributedDataset(Afresh({"x": np.zeros((4, 3), np.int8)}), 1).element_spec == {
        "x": TensorSpec([None, 3], np.int8)
    }


def test_the_spec_of_an_iterator_is_not_known_because_reading_it_would_lose_an_element():
    distributed = DistributedDataset(iter([np.zeros(2)]), 2)
    with pytest.raises(FailedPreconditionError, match="only once"):
        _ = distributed.element_spec
    assert len(list(distributed)) == 1


def test_the_spec_of_nothing_is_an_error():
    with pytest.raises(
        InvalidArgumentError,
        match=r"is empty, so its element specs are unknown\. Pass an iterable",
    ):
        _ = DistributedDataset(Afresh(), 2).element_spec
    assert list(DistributedDataset([], 2)) == []


def test_closing_closes_a_generator():
    closed = []

    def generate():
        try:
            yield from (np.arange(2) for _ in range(5))
        finally:
            closed.append(True)

    iterator = iter(DistributedDataset(generate(), 2))
    next(iterator)
    iterator.close()
    assert closed == [True]
    assert list(iterator) == []


def test_an_exception_of_the_iterable_surfaces():
    def generate():
        yield np.arange(2)
        raise KeyError("broken")

    iterator = iter(DistributedDataset(generate(), 2))
    next(iterator)
    with pytest.raises(KeyError, match="broken"):
        next(iterator)


@pytest.mark.parametrize("value", [np.zeros((4, 2)), {"x": np.zeros(3)}, "text", b"bytes", 5, None, np.float64(1)])
def test_what_is_no_iterable_of_batches_is_refused_with_the_way_out(value):
    with pytest.raises(TypeError, match=r"(?s)is not a dataset.*(from_tensor_slices|iterable of batches)"):
        DistributedDataset(value, 2)


class Row(collections.UserDict):
    """A mapping that is no dictionary."""


@pytest.mark.parametrize("kind", [collections.UserDict, Row, collections.OrderedDict, dict])
def test_mappings_of_any_class_are_structures(kind):
    (batch,) = ringlet.MirroredStrategy(["CPU:0", "CPU:1"]).experimental_distribute_dataset([kind(a=np.arange(4))])
    assert type(batch) is kind
    assert [part.tolist() for part in batch["a"].values] == [[0, 1], [2, 3]]
    given = [kind(a=[np.arange(2)], b=[1, 2])]
    (element,) = Dataset.from_tensor_slices(np.arange(1)).map(lambda _: given[0])
    assert type(element) is kind
    assert element["b"].tolist() == [1, 2]
