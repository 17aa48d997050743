"""Which axes cut which dimensions."""

from __future__ import annotations

import pytest

from ringlet.errors import ShardingError
from ringlet.sharding import PartitionSpec


def test_an_axis_alone_is_a_list_of_one():
    assert PartitionSpec("x", None) == PartitionSpec(("x",), ())
    assert PartitionSpec("x").entries == (("x",),)


def test_a_specification_is_shown_as_it_is_written():
    spec = PartitionSpec("x", None, ("y", "z"), unreduced=["w"])
    assert repr(spec) == "PartitionSpec('x', None, ('y', 'z'), unreduced=('w',))"
    assert eval(repr(spec)) == spec


@pytest.mark.parametrize("entries", [("x", "x"), (("x", "x"),), ("y", ("z", "x"), "x")])
def test_an_axis_cuts_one_dimension(entries):
    with pytest.raises(ShardingError, match="names the axis 'x' 2 times"):
        PartitionSpec(*entries)


def test_an_axis_that_cuts_is_not_summed_over():
    with pytest.raises(ShardingError, match="names the axis 'x' 2 times"):
        PartitionSpec("x", unreduced=["x"])


def test_axes_that_are_summed_over_have_no_order():
    spec = PartitionSpec(unreduced={"y", "x"})
    assert spec == PartitionSpec(unreduced=("y", "x")) == PartitionSpec(unreduced=("x", "y"))
    assert spec.unreduced == ("x", "y")


@pytest.mark.parametrize("entry", [3, 1.5, (None,), ("x", 2), [("x",)], {"x", "y"}])
def test_entries_are_names_of_axes(entry):
    with pytest.raises(ShardingError, match="is no entry of a PartitionSpec"):
        PartitionSpec(entry)
