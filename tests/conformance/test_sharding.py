"""Shardings are read, written and cut as XLA does.

``golden/hlo_sharding.json`` was recorded from jaxlib 0.10.2's ``HloSharding``, and ``golden/spmd_collectives_*.json``
from jax's ``NamedSharding`` on eight devices: texts, devices in the order of the tiles, and what each device has.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ringlet.errors import ShardingError
from ringlet.sharding import Mesh, PartitionSpec, Sharding
from ringlet.sharding.layout.layout_of import layout_of, sharding_of

GOLDEN = Path(__file__).parent / "golden"
HLO = json.loads((GOLDEN / "hlo_sharding.json").read_text())
NAMED = [
    case
    for name in ("shardy", "gspmd")
    for case in json.loads((GOLDEN / f"spmd_collectives_{name}.json").read_text())["shardings"]
]
# Texts that XLA reads although they do not say where all tiles are, each on one device of its own.
REFUSED = {"{devices=[2,2]0,1,2}": 19, "{devices=[2,2]<=[5]}": 17, "{devices=[2,2]0,0,1,2}": 16}


@pytest.mark.parametrize(("text", "expected"), HLO["parse"])
def test_a_text_is_read_as_xla_reads_it(text, expected):
    if expected is None or text in REFUSED:
        with pytest.raises(ShardingError, match=f"at position {REFUSED.get(text, '')}"):
            Sharding.parse(text)
    else:
        assert str(Sharding.parse(text)) == expected


@pytest.mark.parametrize(("text", "other", "is_equal"), HLO["equal"])
def test_shardings_are_equal_if_devices_have_the_same(text, other, is_equal):
    assert (Sharding.parse(text) == Sharding.parse(other)) is is_equal


def bounds(sharding: Sharding, shape: list[int]) -> list[list[list[int]]]:
    """What each device has."""
    boxes = layout_of(sharding, len(shape)).boxes(tuple(shape))
    return [[[cut.start, cut.stop] for cut in box] for box in boxes]


def check(mesh: dict[str, int], spec: Any, order: list[int] | None, case: dict[str, Any]) -> None:
    ndim = len(case["shape"])
    written = Mesh(mesh).sharding(*spec).for_ndim(ndim)
    assert str(written) == case["hlo"]
    assert Sharding.parse(case["hlo"], written.num_devices) == written
    assert sharding_of(layout_of(written, ndim)) == written
    assert Sharding.from_serialized(written.serialized(), written.num_devices) == written
    placed = Mesh(mesh, order).sharding(*spec).for_ndim(ndim)
    if "slices" in case:  # jax cuts no dimension unevenly
        assert bounds(placed, case["shape"]) == case["slices"]
    if "tile_dims" in case and written.kind == "tiled":
        assert list(written.tile_assignment_devices) == case["tile_devices"]
        assert list(written.tile_assignment_dimensions) == case["tile_dims"]


@pytest.mark.parametrize("case", HLO["tilings"], ids=lambda case: case["hlo"])
def test_a_tiling_of_a_mesh_is_that_of_jax(case):
    mesh = dict(zip("abcd", case["mesh"], strict=False))
    check(mesh, case["spec"], case["device_order"], case)


@pytest.mark.parametrize("case", NAMED, ids=lambda case: f"{case['hlo']} of {case['spec']}")
def test_a_named_sharding_is_that_of_jax(case):
    entries = eval(case["spec"], {"P": PartitionSpec}).entries  # a text of the golden file
    check(case["mesh"], entries, None, case)
