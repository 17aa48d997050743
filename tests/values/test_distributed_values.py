"""Distributed values: immutable tuples of components that print as users know them."""

from __future__ import annotations

import copy
import pickle
import weakref

import numpy as np
import pytest

from ringlet.context import Mode, Scope
from ringlet.values import DistributedValues, Mirrored, PerReplica

KINDS = [DistributedValues, PerReplica, Mirrored]


@pytest.mark.parametrize("kind", KINDS)
def test_components_are_kept_in_order_and_not_copied(kind):
    parts = [np.zeros(2), np.ones(3)]
    value = kind(iter(parts))
    assert type(value.values) is tuple
    assert all(found is part for found, part in zip(value.values, parts, strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_it_prints_one_component_a_line(kind):
    value = kind(["a", (1, "b")])
    assert repr(value) == f"{kind.__name__}:{{\n  0: 'a',\n  1: (1, 'b')\n}}"
    assert str(value) == f"{kind.__name__}:{{\n  0: a,\n  1: (1, 'b')\n}}"


@pytest.mark.parametrize("kind", KINDS)
def test_there_is_at_least_one_component(kind):
    with pytest.raises(ValueError, match=f"a {kind.__name__} requires the component of at least one replica"):
        kind([])


@pytest.mark.parametrize("kind", KINDS)
def test_it_cannot_be_changed(kind):
    value = kind([1, 2])
    with pytest.raises(AttributeError):
        value.values = (3, 4)
    with pytest.raises(AttributeError):
        value.name = "x"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_it_can_be_copied_and_pickled(kind, duplicate):
    twin = duplicate(kind([np.ones(2), (2, 3)]))
    assert type(twin) is kind
    assert twin.values[0].tolist() == [1, 1]
    assert twin.values[1] == (2, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_it_can_be_referred_to_weakly_and_hashed(kind):
    value = kind([1])
    assert weakref.ref(value)() is value
    assert {value: 1}[value] == 1


def test_its_type_names_the_type_of_its_components():
    assert PerReplica[int].__origin__ is PerReplica


def test_each_replica_receives_its_component():
    assert [DistributedValues(["a", "b"]).component(i) for i in range(2)] == ["a", "b"]


@pytest.mark.parametrize("given", ["ab", b"ab", {"a": 1}, 5, None], ids=repr)
def test_what_is_no_list_of_components_is_refused(given):
    with pytest.raises(TypeError, match=r"a PerReplica takes a list with the component of each replica, got .*: write"):
        PerReplica(given)
    assert PerReplica(iter([1, 2])).values == (1, 2)


@pytest.mark.parametrize("kind", [PerReplica, Mirrored])
def test_numpy_takes_the_component_of_the_current_replica(kind):
    value = kind([np.array([1, 2]), np.array([3, 4])])
    with Scope(Mode("strategy", 1)):
        assert np.asarray(value) is value.values[1]
        assert (np.ones(2) + value).tolist() == [4, 5]
        assert np.array(value, dtype=np.float32, copy=True).dtype == np.float32
        assert not np.shares_memory(np.array(value, copy=True), value.values[1])
