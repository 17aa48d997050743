"""The graph that a dataset is."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from ringlet.data import Dataset
from ringlet.data.graph.node import ElementTransform, IterationContext, RowElements
from ringlet.data.graph.sources import TableSource
from ringlet.data.operations.batch import Batch
from ringlet.data.operations.shuffle import Shuffle
from ringlet.data.operations.take import Take


def chain(dataset):
    node, found = dataset.node, []
    while node is not None:
        found.insert(0, type(node))
        node = node.inputs[0] if node.inputs else None
    return found


def test_the_graph_lists_the_operations_from_the_source_on():
    assert chain(Dataset.range(5).shuffle(3).take(2).batch(2)) == [TableSource, Shuffle, Take, Batch]


def test_a_node_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Dataset.range(5).take(2).node.count = 3


def test_a_node_can_be_put_behind_another_input():
    batch = Dataset.range(6).batch(2).node
    (source,) = batch.inputs
    rewritten = batch.with_inputs(Take(source, 3))
    assert [x.tolist() for x in Dataset(rewritten)] == [[0, 1], [2]]
    assert [x.tolist() for x in Dataset(batch)] == [[0, 1], [2, 3], [4, 5]]


def test_a_rewritten_node_needs_as_many_inputs_as_it_has():
    node = Dataset.range(6).batch(2).node
    with pytest.raises(ValueError, match=r"shorter|longer"):
        node.with_inputs()


def test_nodes_compare_by_identity():
    node = Dataset.from_tensor_slices(np.arange(3)).node
    assert node == node  # noqa: PLR0124 - arrays inside must not be compared
    assert node != Dataset.from_tensor_slices(np.arange(3)).node


@pytest.mark.parametrize("size", [0, 1, RowElements.AT_ONCE - 1, RowElements.AT_ONCE, RowElements.AT_ONCE + 1, 1000])
def test_elements_are_read_one_by_one_to_the_last(size):
    assert [int(x) for x in Dataset.range(size)] == list(range(size))


def test_a_stream_stays_at_its_end():
    for dataset in (Dataset.range(1), Dataset.range(1).map(lambda x: x), Dataset.range(2).batch(2)):
        stream = dataset.node.open(IterationContext())
        assert len([*stream]) == 1
        assert [*stream] == []


def test_a_closed_stream_has_no_more_elements():
    dataset = Dataset.range(1000)
    for operation in (
        lambda d: d,
        lambda d: d.batch(2),
        lambda d: d.map(lambda x: x),
        lambda d: d.map(lambda x: x).take(500),
        lambda d: d.map(lambda x: x).batch(2),
        lambda d: d.map(lambda x: x).repeat(),
        lambda d: d.map(lambda x: x).shuffle(7),
        lambda d: d.map(lambda x: x).prefetch(2),
    ):
        stream = operation(dataset).node.open(IterationContext())
        next(stream)
        stream.close()
        stream.close()
        assert [*stream] == []


OPERATIONS = [lambda d: d.filter(bool), lambda d: d.unbatch(), lambda d: d.ignore_errors(), lambda d: d.window(2)]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_there_is_no_table_behind_it(operation):
    node = operation(Dataset.range(6).batch(2)).node
    assert isinstance(node, ElementTransform)
    assert node.table is None
    assert not node.in_order
    assert not node.from_row_zero
