"""tf.nest takes structures apart as TensorFlow's does; test_answers.py has more."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import pytest

import ringlet
from ringlet.compat import tf
from ringlet.values import PerReplica, ShardedVariable


@dataclass
class Point:
    x: Any


def test_dataclasses_are_leaves_unless_composites_are_expanded():
    assert tf.nest.flatten([Point(1)]) == [Point(1)]
    assert tf.nest.flatten([Point(1)], expand_composites=True) == [1]
    assert tf.nest.pack_sequence_as([Point(1)], [2], expand_composites=True) == [Point(2)]
    assert not tf.nest.is_nested(Point(1))


def test_structures_that_differ_are_shown():
    with pytest.raises(ValueError, match=r"\[\*\] and \[\*, \*\]"):
        tf.nest.assert_same_structure([1], [1, 2])
    with pytest.raises(TypeError, match=r"\[\*\] and \(\*,\)"):
        tf.nest.assert_same_structure([1], (1,))
    tf.nest.assert_same_structure([1], (1,), check_types=False)


def test_wrong_arguments_are_refused():
    with pytest.raises(TypeError, match="callable"):
        tf.nest.map_structure(3, [1])
    with pytest.raises(ValueError, match="check_typos"):
        tf.nest.map_structure(abs, [1], check_typos=True)
    with pytest.raises(ValueError, match=r"1 atoms.*2 items"):
        tf.nest.pack_sequence_as([0], [1, 2])


def test_values_of_replicas_are_taken_apart_where_composites_are_expanded():
    value = PerReplica([1, 2])
    assert tf.nest.flatten([value, 3]) == [value, 3]
    assert tf.nest.flatten([value, 3], expand_composites=True) == [1, 2, 3]
    larger = tf.nest.map_structure(lambda x, y: x + y, [value], [PerReplica([10, 20])], expand_composites=True)[0]
    assert (type(larger), larger.values) == (PerReplica, (11, 22))
    packed = tf.nest.pack_sequence_as(value, [7, 8], expand_composites=True)
    assert (type(packed), packed.values) == (PerReplica, (7, 8))
    tf.nest.assert_same_structure(value, packed, expand_composites=True)
    tf.nest.assert_same_structure(value, 1)
    with pytest.raises(ValueError, match="same nested structure"):
        tf.nest.assert_same_structure(value, 1, expand_composites=True)


def test_indexed_slices_are_taken_apart_where_composites_are_expanded():
    rows = tf.IndexedSlices(tf.constant([1.0]), tf.constant([2]))
    assert [leaf.numpy().tolist() for leaf in tf.nest.flatten(rows, expand_composites=True)] == [[1.0], [2]]
    again = tf.nest.map_structure(lambda leaf: leaf, rows, expand_composites=True)
    assert (type(again), again.indices.numpy().tolist()) == (tf.IndexedSlices, [2])


def test_sharded_variables_are_taken_apart_where_composites_are_expanded():
    shards = [ringlet.Variable([1.0, 2.0]), ringlet.Variable([3.0])]
    variable = ShardedVariable(shards)
    assert tf.nest.flatten(variable) == [variable]
    assert list(map(id, tf.nest.flatten([variable, 1], expand_composites=True)[:2])) == list(map(id, shards))
    again = tf.nest.map_structure(lambda shard: shard, variable, expand_composites=True)
    assert type(again) is ShardedVariable
    assert again is not variable
    assert list(map(id, again.variables)) == list(map(id, shards))
    with pytest.raises(TypeError):
        tf.nest.map_structure(lambda shard: shard + 1, variable, expand_composites=True)


def test_a_dataset_of_user_composites_calls_the_method_of_an_instance():
    class Pair:
        def __init__(self, x, name):
            self.x, self.name = x, name

        def __tf_flatten__(self):
            return (self.name,), (self.x,)

        def __tf_unflatten__(self, metadata, components):
            return Pair(components[0], metadata[0])

    dataset = tf.data.Dataset.from_tensor_slices(Pair([1, 2], "m")).map(lambda pair: Pair(pair.x + 1, "n")).batch(2)
    assert dataset.element_spec.x == tf.TensorSpec([None], tf.int32)
    assert [(pair.x.numpy().tolist(), pair.name) for pair in dataset] == [([2, 3], "n")]
    assert [int(pair.x) for pair in dataset.unbatch()] == [2, 3]


def test_distributed_values_are_composites():
    values, shards = PerReplica([1, [2, 3]]), ShardedVariable([tf.Variable([1.0]), tf.Variable([2.0])])
    assert tf.nest.flatten([values, shards]) == [values, shards]
    assert tf.nest.flatten({"a": values}, expand_composites=True) == [1, 2, 3]
    found = tf.nest.flatten(shards, expand_composites=True)
    assert [part is shard for part, shard in zip(found, shards.variables, strict=True)] == [True, True]
    packed = tf.nest.pack_sequence_as([0, values, shards], [4, 5, 6, 7, *found], expand_composites=True)
    assert (packed[0], packed[1].values, packed[2].variables[1] is found[1]) == (4, (5, [6, 7]), True)
    mapped = tf.nest.map_structure(lambda x, y: x + y, values, values, expand_composites=True)
    assert (type(mapped), mapped.values) == (PerReplica, (2, [4, 6]))
    tf.nest.assert_same_structure([values], [PerReplica([4, [5, 6]])], expand_composites=True)
    with pytest.raises(ValueError, match="same nested structure"):
        tf.nest.assert_same_structure([values], [1], expand_composites=True)
    with pytest.raises(ValueError, match=r"3 atoms.*1 items"):
        tf.nest.pack_sequence_as(values, [1], expand_composites=True)


def test_an_ordered_dictionary_is_walked_in_key_order_and_keeps_its_own():
    given = OrderedDict(b=[2, OrderedDict(d=4, c=3)], a=1)
    assert tf.nest.flatten(given) == [1, 2, 3, 4]
    packed = tf.nest.pack_sequence_as(given, "wxyz")
    assert packed == OrderedDict(b=["x", OrderedDict(d="z", c="y")], a="w")
    assert type(packed["b"][1]) is OrderedDict
    tf.nest.assert_same_structure(given, tf.nest.map_structure(str, given))
    part = Point(OrderedDict(b=1, a=2))
    assert tf.nest.flatten(part)[0] is part
    assert tf.nest.flatten(part, expand_composites=True) == [2, 1]
