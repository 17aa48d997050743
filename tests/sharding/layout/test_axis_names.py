"""Layouts in the names of axes: the names describe the same layout."""

from __future__ import annotations

import itertools

import pytest

from ringlet.sharding import Mesh, Sharding
from ringlet.sharding.layout.axis_names import array_text, placement_text, spec_of
from ringlet.sharding.layout.layout import WHOLE, Cut, Layout
from ringlet.sharding.layout.layout_of import layout_of

MESH = Mesh({"x": 2, "y": 2, "z": 3}, [5, 3, 1, 0, 2, 4, 6, 7, 11, 10, 9, 8])
PLACES = [None, "x", "z", ("x", "y"), ("y", "x"), ("z", "x")]


@pytest.mark.parametrize("entries", list(itertools.product(PLACES, PLACES)))
@pytest.mark.parametrize("unreduced", [(), ("y",), ("x", "z")])
def test_the_axes_of_a_layout_make_that_layout(entries, unreduced):
    named = [axis for entry in entries for axis in ((entry,) if isinstance(entry, str) else entry or ())]
    if len({*named, *unreduced}) < len(named) + len(unreduced):
        return
    layout = layout_of(MESH.sharding(*entries, unreduced=unreduced), 2)
    spec = spec_of(layout, MESH)
    assert layout_of(MESH.sharding(*(axes or None for axes in spec.entries), unreduced=spec.unreduced), 2) == layout


def test_layouts_that_no_axes_make_have_xlas_text():
    assert spec_of(Layout(12, (Cut(2, (0, 1) * 6),)), MESH) is None
    assert spec_of(Layout(12, (WHOLE,), only=3), MESH) is None
    assert placement_text(Layout(12, (WHOLE,), only=3), MESH.group) == "{maximal device=3}"
    assert placement_text(layout_of(Sharding.tiled((2, 1)), 2), None) == "{devices=[2,1]<=[2]}"


def test_a_short_text_leaves_the_mesh_out():
    layout = layout_of(MESH.sharding("x", unreduced=["y"]), 1)
    assert placement_text(layout, MESH.group, "MAX", is_short=True) == "('x',) unreduced over y (MAX)"
    assert array_text("float32", (8, 6), "replicated") == "float32[8,6] replicated"
    assert array_text("float32", ()) == "float32[]"
