"""tf.nest takes structures apart as TensorFlow's does; test_answers.py has more."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ringlet.compat import tf
from ringlet.values import PerReplica, ShardedVariable


@dataclass
class Point:
    x: int


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
