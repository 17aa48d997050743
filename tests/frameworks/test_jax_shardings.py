"""Random tilings are read and written as XLA does."""

from __future__ import annotations

import os
import random
from functools import lru_cache
from typing import Any

import pytest

from ringlet.sharding import Sharding
from ringlet.sharding.layout.tile_assignment import SUBGROUPS
from tests.frameworks.libraries import library

xla_client = library("jaxlib.xla_client")

COUNT = 10_000 if os.environ.get("RINGLET_CI_NIGHTLY") else 1_000


def factors(choose: random.Random, number: int) -> list[int]:
    """Some factors of a number, with ones among them, in any order."""
    found = []
    while number > 1 and len(found) < 5:
        found.append(choose.choice([factor for factor in range(2, number + 1) if number % factor == 0]))
        number //= found[-1]
    found += [number] * (number > 1) + [1] * choose.randrange(3)
    choose.shuffle(found)
    return found


def text(choose: random.Random) -> str:
    """A tiling with groups of any kind, its devices in a list or a grid."""
    count = choose.choice([2, 3, 4, 5, 6, 8, 12, 16, 18, 24, 32, 36, 64])
    dimensions, grid = factors(choose, count), factors(choose, count)
    groups = [choose.choice(SUBGROUPS) for _ in range(choose.choice([0, 0, choose.randrange(len(dimensions) + 1)]))]
    devices = ",".join(map(str, choose.sample(range(count), count)))
    if choose.random() < 0.6:
        axes = choose.sample(range(len(grid)), len(grid))
        devices = f"<=[{','.join(map(str, grid))}]" + (f"T({','.join(map(str, axes))})" if len(grid) > 1 else "")
    named = f" last_tile_dims={{{', '.join(groups)}}}" if groups else ""
    return f"{{devices=[{','.join(map(str, dimensions))}]{devices}{named}}}"


@lru_cache
def pairs() -> list[tuple[Sharding, Any]]:
    """Tilings as they are read here and there.

    XLA reads what it wrote once more: groups that all are of one device or unreduced it drops only then.
    """
    choose = random.Random(0)
    read = xla_client.HloSharding.from_string
    return [(Sharding.parse(tiling), read(str(read(tiling)))) for tiling in (text(choose) for _ in range(COUNT))]


def test_devices_have_the_tiles_that_xla_gives_them():
    for ours, theirs in pairs():
        assert Sharding.parse(str(theirs), ours.num_devices) == ours
        if ours.kind == "tiled":
            assert list(ours.tile_assignment_devices) == list(theirs.tile_assignment_devices())
            assert list(ours.tile_assignment_dimensions) == list(theirs.tile_assignment_dimensions())


def test_texts_and_messages_are_those_of_xla():
    lists_less = 0
    for ours, theirs in pairs():
        message = theirs.to_proto().SerializeToString()
        read_back = Sharding.from_serialized(message, ours.num_devices)
        assert (str(read_back), read_back.serialized(), read_back) == (str(theirs), message, ours)
        # Where it has to sort a grid's devices, XLA may list them although they are another grid.
        lists_less += str(theirs).count(",") > str(ours).count(",")
        assert str(ours) == str(theirs) or (str(theirs).count("<=") == 0 and ours.iota is not None)
        assert xla_client.HloSharding.from_string(str(ours)) == theirs
    assert lists_less < COUNT / 500


def test_messages_of_ours_are_read_by_xla():
    for ours, theirs in pairs()[: COUNT // 5]:
        message = xla_client.OpSharding()
        message.ParseFromString(ours.serialized())
        assert xla_client.HloSharding.from_proto(message) == theirs


@pytest.mark.parametrize("case", ["{replicated}", "{manual}", "{maximal device=2}", "{unreduced}", "{unknown}"])
def test_other_kinds_are_written_as_xla_writes_them(case):
    theirs = xla_client.HloSharding.from_string(case)
    ours = Sharding.parse(case)
    assert (str(ours), ours.serialized()) == (str(theirs), theirs.to_proto().SerializeToString())
