"""Layouts as text with the names of a mesh's axes, for arrays and reports."""

from __future__ import annotations

import itertools
from functools import lru_cache

import numpy as np

from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.layout import Cut, Layout, joint
from ringlet.sharding.layout.layout_of import sharding_of
from ringlet.sharding.layout.mesh import Mesh
from ringlet.sharding.layout.partition_spec import PartitionSpec


@lru_cache(maxsize=1024)
def spec_of(layout: Layout, mesh: Mesh) -> PartitionSpec | None:
    """Return the PartitionSpec of a layout on a mesh; None if the mesh's axes cannot describe the layout."""
    if layout.only is not None:
        return None
    order = np.argsort(mesh.devices, axis=None)
    places = np.unravel_index(order, mesh.devices.shape)
    free = {
        name: Cut(size, tuple(place.tolist()))
        for (name, size), place in zip(mesh.shape.items(), places, strict=True)
        if size > 1
    }
    entries = []
    for cut in (*layout.cuts, layout.parts):
        orders = itertools.chain.from_iterable(itertools.permutations(free, n) for n in range(len(free) + 1))
        found = next((names for names in orders if joint(tuple(free[name] for name in names)) == cut), None)
        if found is None:
            return None
        entries.append(found)
        free = {name: axis for name, axis in free.items() if name not in found}
    return PartitionSpec(*entries[:-1], unreduced=entries[-1])


def placement_text(layout: Layout, group: DeviceGroup | None, combined: str = "", *, is_short: bool = False) -> str:
    """Return text such as ``sharded ('x', None) on Mesh(x=4, y=2), unreduced over y``, else XLA's text.

    `combined` is the name of the operation that combines parts, if it is not a sum; a short text omits the mesh.
    """
    mesh = None if group is None else group.mesh
    spec = None if mesh is None else spec_of(layout, mesh)
    if spec is None:
        return str(sharding_of(layout))
    text = f"({', '.join(map(_entry, spec.entries))}{',' * (len(spec.entries) == 1)})" if any(spec.entries) else ""
    if text and not is_short:
        text = f"sharded {text}"
    elif not text and not spec.unreduced:
        text = "replicated"
    texts = [text] if is_short else [f"{text} on {mesh}".lstrip()]
    texts += [f"unreduced over {' and '.join(spec.unreduced)}{combined and f' ({combined})'}"] if spec.unreduced else []
    return (" " if is_short else ", ").join(filter(None, texts))


def _entry(axes: tuple[str, ...]) -> str:
    return repr(axes[0] if len(axes) == 1 else axes or None)


def array_text(dtype: object, shape: tuple[int, ...], placement: str = "") -> str:
    """Return a string such as ``float32[8,6]``, followed by the placement."""
    return f"{dtype}[{','.join(map(str, shape))}] {placement}".rstrip()
