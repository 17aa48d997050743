"""Classes that are structures without registration: their children, and lossless rebuilding."""

from __future__ import annotations

import collections
import enum
import types
import weakref
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pytest

from ringlet import nest


class Stack(list):
    pass


class Named(list):
    def __init__(self, name, *items):
        super().__init__(items)
        self.name = name


class Pair(tuple):
    __slots__ = ()


class Two(tuple):
    __slots__ = ()

    def __new__(cls, first, second):
        return super().__new__(cls, (first, second))


class Table(dict):
    pass


class Configuration(dict):
    """A dictionary whose constructor requires an argument, and that has other attributes."""

    def __init__(self, path):
        super().__init__()
        self.path = path


class Attributes(dict):
    """A dictionary whose keys are also attributes."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.__dict__ = self


class Lists(collections.defaultdict):
    pass


class Ordered(collections.OrderedDict):
    pass


def configuration(**items):
    made = Configuration("model.json")
    made.update(items)
    return made


CONTAINERS = [
    Stack([1, 2]),
    Named("layer", 1, 2),
    Pair((1, 2)),
    Two(1, 2),
    Table(b=1, a=2),
    configuration(b=1, a=2),
    Attributes(b=1, a=2),
    Lists(list, {"b": 1, "a": 2}),
    Ordered([("b", 1), ("a", 2)]),
    collections.Counter(b=1, a=2),
    collections.UserDict(b=1, a=2),
    collections.UserList([1, 2]),
    collections.ChainMap({"b": 1, "a": 2}),
    types.MappingProxyType({"b": 1, "a": 2}),
    type("Window", (collections.deque,), {})([1, 2], 2),
    {1: 2, "a": 1, None: 3},
]


def items_of(container):
    return dict(container) if hasattr(container, "keys") else list(container)


@pytest.mark.parametrize("container", CONTAINERS, ids=lambda c: type(c).__name__)
def test_a_container_of_another_class_is_walked_and_rebuilt_as_that_class(container):
    doubled = nest.map_structure(lambda x: 2 * x, container)
    assert type(doubled) is type(container)
    assert doubled is not container
    expected = items_of(container)
    twice = {k: 2 * v for k, v in expected.items()} if isinstance(expected, dict) else [2 * v for v in expected]
    assert items_of(doubled) == twice
    assert list(items_of(doubled)) == list(twice), "the order of keys is kept"


def test_mappings_are_walked_in_the_order_of_their_keys():
    assert nest.flatten(Table(b=1, a=2))[0] == [2, 1]


def test_attributes_of_a_container_are_kept():
    assert nest.map_structure(lambda x: x, configuration(a=1)).path == "model.json"
    assert nest.map_structure(lambda x: x, Named("layer", 1)).name == "layer"
    assert nest.map_structure(lambda x: x, Lists(list, a=1)).default_factory is list


def test_keys_that_are_attributes_stay_the_same_as_their_items():
    doubled = nest.map_structure(lambda x: 2 * x, Attributes(a=1))
    assert (doubled["a"], doubled.a) == (2, 2)


class View(collections.abc.Mapping):
    """A mapping over data outside of memory: it cannot be created from items, and reading it is slow."""

    def __init__(self, file):
        self.file = file

    def __getitem__(self, key):
        raise AssertionError("the file was read")

    def __iter__(self):
        raise AssertionError("the file was read")

    def __len__(self):
        return 1


@pytest.mark.parametrize(
    "leaf",
    [
        View("a.h5"), range(3), {"a": 1}.keys(), {"a": 1}.values(), {1}, frozenset(), bytearray(b"a"), memoryview(b"a"),
        types.SimpleNamespace(a=1), (x for x in ()), Exception("a"), object, type("Text", (str,), {})("a"),
    ],
    ids=lambda leaf: type(leaf).__name__,
)  # fmt: skip
def test_views_sets_generators_and_other_objects_are_leaves(leaf):
    assert not nest.is_nested(leaf)
    assert nest.flatten(leaf)[0][0] is leaf


class WithProtocol:
    def __init__(self, name, value):
        self.name, self.value = name, value

    def __tf_flatten__(self):
        return (self.name,), (self.value,)

    @classmethod
    def __tf_unflatten__(cls, metadata, components):
        return cls(*metadata, *components)


def test_a_class_with_the_protocol_of_tf_nest_is_walked_by_it():
    doubled = nest.map_structure(lambda x: 2 * x, WithProtocol("a", 3))
    assert (doubled.name, doubled.value) == ("a", 6)
    with pytest.raises(ValueError, match="Mismatch"):
        nest.same_structure_leaves(nest.flatten(WithProtocol("a", 3))[1], WithProtocol("b", 3))


class WithInstanceMethod(WithProtocol):
    def __tf_unflatten__(self, metadata, components):
        rebuilt = WithInstanceMethod(*metadata, *components)
        rebuilt.origin = self.value
        return rebuilt


class WithStaticMethod(WithProtocol):
    @staticmethod
    def __tf_unflatten__(metadata, components):
        return WithStaticMethod(*metadata, *components)


@pytest.mark.parametrize("node_type", [WithProtocol, WithInstanceMethod, WithStaticMethod])
def test_the_method_that_rebuilds_is_one_of_the_class_or_of_an_instance(node_type):
    doubled = nest.map_structure(lambda x: 2 * x, [node_type("a", 3)])[0]
    assert (type(doubled), doubled.name, doubled.value) == (node_type, "a", 6)
    assert getattr(doubled, "origin", 3) == 3


def test_an_instance_is_kept_only_where_its_method_rebuilds():
    for node_type, is_kept in ((WithProtocol, False), (WithInstanceMethod, True)):
        instance = node_type("a", 3)
        _, shape = nest.flatten(instance)
        reference = weakref.ref(instance)
        del instance
        assert (reference() is not None) is is_kept, shape


# --- composites -----------------------------------------------------------------------------------------------------


@dataclass
class Plain:
    x: Any
    y: Any = 5
    scale: ClassVar[int] = 3


@dataclass(frozen=True)
class Frozen:
    x: Any
    y: Any


@dataclass(frozen=True, slots=True)
class Slotted:
    x: Any
    y: Any


@dataclass(kw_only=True)
class ByName:
    x: Any
    y: Any


@dataclass(repr=False)
class Checked:
    """A class whose constructor checks and computes, and expects arrays."""

    x: Any
    factor: InitVar[int]
    y: Any = field(init=False)

    def __post_init__(self, factor):
        if not isinstance(self.x, int):
            raise TypeError("x is an int")
        self.y = factor * self.x


class Attrs:
    """A class as attrs creates it; the name of the table is part of the interface of attrs."""

    __attrs_attrs__ = (types.SimpleNamespace(name="x"), types.SimpleNamespace(name="y"))

    def __init__(self, x, y):
        self.x, self.y = x, y


class Derived(Plain):
    def __init__(self, x, y, more):
        super().__init__(x, y)
        self.more = more


COMPOSITES = [Plain(1, 2), Frozen(1, 2), Slotted(1, 2), ByName(x=1, y=2), Checked(1, 2), Attrs(1, 2)]


@pytest.mark.parametrize("composite", COMPOSITES, ids=lambda c: type(c).__name__)
def test_a_dataclass_is_a_structure_of_its_fields(composite):
    assert nest.is_nested(composite)
    leaves, shape = nest.flatten([composite])
    assert leaves == [1, 2]
    (rebuilt,) = nest.unflatten(shape, "ab")
    assert type(rebuilt) is type(composite)
    assert (rebuilt.x, rebuilt.y) == ("a", "b")


@pytest.mark.parametrize("composite", COMPOSITES, ids=lambda c: type(c).__name__)
def test_containers_can_be_walked_without_looking_into_dataclasses(composite):
    leaves, _ = nest.flatten_containers({"a": [composite], "b": 1})
    assert leaves[0] is composite
    assert [nest.is_composite(leaf) for leaf in leaves] == [True, False]


def test_a_frozen_dataclass_stays_frozen():
    rebuilt = nest.map_structure(lambda x: x, Frozen(1, 2))
    with pytest.raises(AttributeError):
        rebuilt.x = 5


def test_fields_that_are_not_set_stay_so():
    composite = Plain.__new__(Plain)
    composite.x = 1
    leaves, shape = nest.flatten(composite)
    assert leaves == [1, 5], "a default of the class is the value of the field"
    unset = Checked.__new__(Checked)
    unset.x = 1
    leaves, shape = nest.flatten(unset)
    assert leaves == [1]
    assert not hasattr(nest.unflatten(shape, leaves), "y")


def test_attributes_beside_the_fields_are_children_too():
    leaves, shape = nest.flatten(Derived(1, 2, 3))
    assert leaves == [1, 2, 3]
    assert nest.unflatten(shape, "abc").more == "c"


def test_cached_properties_are_computed_again():
    @dataclass
    class Cached:
        x: int

        @cached_property
        def twice(self) -> int:
            return 2 * self.x

    composite = Cached(1)
    assert composite.twice == 2
    assert nest.map_structure(lambda x: 10 * x, composite).twice == 20


def test_dataclasses_with_other_fields_set_do_not_match():
    unset = Checked.__new__(Checked)
    unset.x = 1
    with pytest.raises(ValueError, match="x, y"):
        nest.same_structure_leaves(nest.flatten(Checked(1, 2))[1], unset)


@dataclass
class ArrayLike:
    x: Any

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.x, dtype=dtype)


class Member(Plain, enum.Enum):
    A = 1


@dataclass
class Stubborn:
    x: Any

    def __new__(cls, *args):
        if not args:
            raise ValueError("only with an argument")
        return object.__new__(cls)


@pytest.mark.parametrize("leaf", [ArrayLike(1), Member.A, Stubborn(1), Plain], ids=repr)
def test_arrays_enumerations_and_what_cannot_be_rebuilt_are_leaves(leaf):
    assert not nest.is_nested(leaf)
    assert not nest.is_composite(leaf)


def test_the_classes_of_this_library_are_values_not_structures():
    from ringlet.data import TensorSpec

    assert not nest.is_nested(TensorSpec((2,), np.float32))


def test_an_instance_may_say_how_it_is_rebuilt():
    class Scaled:
        def __init__(self, factor, values):
            self.factor, self.values = factor, values

        def __tf_flatten__(self):
            return (), self.values

        def __tf_unflatten__(self, metadata, leaves):
            return Scaled(self.factor, leaves)

    found = nest.map_structure(lambda x: x + 1, Scaled(5, (1, 2)))
    assert (found.factor, found.values) == (5, (2, 3))
