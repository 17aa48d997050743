"""A tree gives the values that it was made from, and one that nobody wrote is no value."""

from __future__ import annotations

import sys

import pytest

from ringlet.train import Checkpoint
from ringlet.train.checkpoint_reader import open_file
from ringlet.train.decoding import Malformed, children_of_node, decode, kind_of_node, rebuilt
from ringlet.train.trackable_types import Kind
from tests.train.objects import Frozen, Point


@pytest.fixture
def file(tmp_path):
    """A file without tensors."""
    path = Checkpoint().write(tmp_path / "it")
    with open_file(path + ".safetensors") as opened:
        yield opened


NODES = [
    # node, value
    (["int", "0x10000000000000000"], 1 << 64),
    (["int", "-0x8"], -8),
    (["complex", 1.5, -2.0], 1.5 - 2j),
    (["bytes", "AAE="], b"\0\1"),
    (["bytearray", ""], bytearray()),
    (["tuple", [1, ["list", [None]]]], (1, [None])),
    (["frozenset", [1, 2]], frozenset({1, 2})),
    (["dict", [[["tuple", [1, "x"]], True], [None, 2.5]]], {(1, "x"): True, None: 2.5}),
]


@pytest.mark.parametrize(("node", "value"), NODES, ids=str)
def test_a_node_is_a_value(file, node, value):
    found = decode(file, node)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("node", [
    [], {}, ["what"], ["int"], ["int", "x"], ["int", 3], ["complex", "a", 1], ["bytes", "?"], ["bytes", 3], ["list"],
    ["list", 3], ["dict", [1]], ["dict", [[["list", []], 1]]], ["set", [["list", []]]], ["array", "gone"], ["str", 0],
    ["state", 1], ["group", []], ["variable", "plain", "NONE", ["gone"]], ["frozenset", [["list", [1]]]],
], ids=str)  # fmt: skip
def test_what_nobody_wrote_is_refused(file, node):
    with pytest.raises(Malformed):
        decode(file, node)


def test_names_are_texts():
    assert children_of_node(["group", [["v", 1]]], Kind.GROUP) == [("v", 1)]
    with pytest.raises(Malformed, match="a Checkpoint has a field name that is not text"):
        children_of_node(["group", [[3, 1]]], Kind.GROUP)
    assert kind_of_node(None) is Kind.NONE


def test_a_class_comes_from_the_program_and_never_from_the_file(file):
    modules = set(sys.modules)
    node = ["namedtuple", [["x", 1], ["y", 2]]]
    assert decode(file, node, Point(0, 0)) == Point(1, 2)
    with pytest.raises(ValueError, match="fields x, y, but the program has no object that determines its class"):
        decode(file, node)
    assert set(sys.modules) == modules


def test_an_object_of_other_fields_tells_no_class():
    assert rebuilt(Frozen(0.1), {"rate": 0.2}, Kind.DATACLASS) == Frozen(0.2)
    with pytest.raises(ValueError, match="the fields a, but the program has one with rate"):
        rebuilt(Frozen(0.1), {"a": 1}, Kind.DATACLASS)
