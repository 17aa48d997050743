"""What sharded arrays become elsewhere: plain arrays, numbers, text, memory that others read."""

from __future__ import annotations

import copy
import pickle
from contextlib import nullcontext

import numpy as np
import pytest

from ringlet.errors import GatherError
from ringlet.sharding import Mesh, Sharding, explain, mode, shard, strict
from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.layout import WHOLE, Cut, Layout
from ringlet.sharding.memory_modes import current_mode
from ringlet.sharding.sharded_array import ShardedArray
from ringlet.testing import run_on_ranks
from tests.values.test_notebook_repr import Table

VALUES = np.arange(24, dtype=np.float32).reshape(4, 6)
TILES, COPIES, ONE = Sharding.tiled((2, 3)), Sharding.replicated(6), Sharding.maximal(1, 6)


@pytest.fixture(params=["shared", "copy"], autouse=True)
def memory(request):
    with mode(request.param):
        yield


def number(value, sharding=COPIES):
    return shard(np.array(value), sharding)


@pytest.mark.parametrize("sharding", [TILES, COPIES, ONE])
def test_a_plain_array_of_one_is_a_new_one(sharding):
    x = shard(VALUES.copy(), sharding)
    for found in (np.asarray(x), np.array(x), x.numpy()):
        assert type(found) is np.ndarray
        assert found.flags.writeable
        np.testing.assert_array_equal(found, VALUES)
        assert not any(np.shares_memory(found, tile) for tile in x.shards)
    assert np.asarray(x, np.int64).dtype == np.int64


def test_only_what_one_device_has_becomes_a_plain_array_without_a_copy():
    for sharding in (COPIES, ONE):
        x = shard(VALUES.copy(), sharding)
        assert np.shares_memory(x.__array__(copy=False), x.shards[0])
        with pytest.raises(ValueError, match="without a copy"):
            x.__array__(np.float64, copy=False)
    with pytest.raises(ValueError, match="cannot be converted to a plain array without a copy"):
        shard(VALUES, TILES).__array__(copy=False)


def test_collecting_is_counted_and_may_be_refused():
    x = shard(VALUES, TILES)
    with explain() as report:
        np.asarray(x)
        x.numpy()
        np.asarray(shard(VALUES, COPIES))
        float(x.sum())
    assert len(report.gathers) == 2
    with strict():
        with pytest.raises(GatherError, match=r"np\.asarray gathers 96 B"):
            np.asarray(x)
        np.asarray(x.sum())  # a number
        np.testing.assert_array_equal(x.numpy(), VALUES)


def test_single_numbers_convert():
    for sharding in (COPIES, ONE):
        x = number(3, sharding)
        assert (int(x), float(x), complex(x), bool(x), [0, 1, 2, 3][x], x.item(), x.tolist()) == (3, 3, 3, 1, 3, 3, 3)
        assert (round(number(2.567, sharding), 1), round(number(2.567, sharding))) == (2.6, 3)
        assert f"{number(1.5, sharding):.2f} {number(1.5, sharding)}" == "1.50 1.5"
        assert type(x.numpy()) is np.int64
    assert float(shard(np.ones((1, 1, 1)), Sharding.replicated(2))[0, 0, 0]) == 1


def test_many_numbers_do_not_convert_to_one():
    x = shard(VALUES, TILES)
    for convert, error in [(bool, ValueError), (int, TypeError), (float, TypeError), ([0].__getitem__, TypeError)]:
        with pytest.raises(error):
            convert(x)
    with pytest.raises(TypeError, match="unsized"):
        len(number(1))


def test_elements_are_given_as_lists_and_bytes():
    x = shard(VALUES, TILES)
    assert x.tolist() == VALUES.tolist()
    assert x.tobytes() == VALUES.tobytes()
    assert x.item(2, 3) == 15


def test_text_shows_the_values_and_where_they_are():
    x = shard(VALUES, TILES)
    assert str(x) == f"{x}" == str(VALUES)
    assert repr(x) == f"float32[4,6] {{devices=[2,3]<=[6]}}\n{VALUES}"


MESH = Mesh({"x": 4, "y": 2})


@pytest.mark.parametrize(
    ("sharding", "text"),
    [
        (MESH.sharding("x", None), "sharded ('x', None) on Mesh(x=4, y=2)"),
        (MESH.sharding(("y", "x")), "sharded (('y', 'x'), None) on Mesh(x=4, y=2)"),
        (MESH.sharding(), "replicated on Mesh(x=4, y=2)"),
        (MESH.sharding("x", unreduced=["y"]), "sharded ('x', None) on Mesh(x=4, y=2), unreduced over y"),
        (MESH.sharding(unreduced=["y", "x"]), "on Mesh(x=4, y=2), unreduced over x and y"),
        (Mesh({"x": 1, "y": 2}, [1, 0]).sharding("x", "y"), "sharded (None, 'y') on Mesh(x=1, y=2, devices=[[1, 0]])"),
        (Sharding.maximal(3, 8), "{maximal device=3}"),
    ],
)
def test_text_names_the_axes_of_the_mesh(sharding, text):
    x = shard(VALUES, sharding)
    assert repr(x).splitlines()[0] == f"float32[4,6] {text}"
    assert Table(x._repr_html_()).rows[2] == ["placement", text]


def test_results_keep_the_names_of_the_mesh_and_long_values_are_cut():
    x = shard(np.ones((512, 128)), MESH.sharding("x", "y"))
    assert len(repr(x).splitlines()) == 6
    added = shard(VALUES, Sharding.replicated(8)) + shard(VALUES, MESH.sharding("x"))
    for result, text in (
        (x @ np.ones((128, 4)), "float64[512,4] sharded ('x', None) on Mesh(x=4, y=2), unreduced over y"),
        (x.max(axis=0), "float64[128] sharded ('y',) on Mesh(x=4, y=2), unreduced over x (MAX)"),
        (x.reshard(Mesh({"rows": 8}).sharding("rows")), "float64[512,128] sharded ('rows', None) on Mesh(rows=8)"),
        (added, "float32[4,6] sharded ('x', None) on Mesh(x=4, y=2)"),
    ):
        assert repr(result).splitlines()[0] == text


def test_an_array_is_a_table_in_a_notebook():
    table = Table(shard(np.array(["<b>", "&"]), MESH.sharding())._repr_html_())
    assert table.caption == "ShardedArray"
    assert table.rows[:2] == [["dtype", "<U3"], ["shape", "(2,)"]]
    assert table.rows[3] == ["values", "['<b>' '&']"]
    assert table.tags <= {"table", "caption", "tbody", "tr", "th", "td"}


def test_dlpack_gives_memory_that_one_device_has():
    x = shard(VALUES.copy(), ONE)
    assert np.shares_memory(np.from_dlpack(x), x.shards[0])
    assert x.__dlpack_device__() == (1, 0)
    tiles = [np.from_dlpack(tile) for tile in shard(VALUES, TILES).shards]
    assert tiles[5].tolist() == [[16, 17], [22, 23]]


@pytest.mark.parametrize("sharding", [TILES, COPIES])
def test_dlpack_copies_only_where_devices_do_not_share_memory(sharding):
    x = shard(VALUES.copy(), sharding)
    is_shared = current_mode() == "shared"
    for copied in (None, True):
        assert x.__dlpack__(copy=copied) is not None
    if is_shared:
        assert x.__dlpack__(copy=False) is not None
    else:
        with pytest.raises(BufferError, match="pass its tiles" if sharding is TILES else "readonly"):
            x.__dlpack__(copy=False)
    with explain() as report:
        found = np.from_dlpack(x)
    assert report.counts == ({"gather": 1} if sharding is TILES else {})
    if is_shared or sharding is TILES:  # NumPy before 2.1 copies what is read-only
        assert np.shares_memory(found, x.shards[0]) == is_shared
    np.testing.assert_array_equal(found, VALUES)
    with strict(), pytest.raises(GatherError) if sharding is TILES else nullcontext():
        np.from_dlpack(x)


def test_dlpack_does_not_let_a_value_be_written():
    x = shard(VALUES.copy(), ONE)
    with pytest.raises(BufferError, match="readonly"):
        x[1:].__dlpack__(copy=False)
    assert x[1:].__dlpack__() is not None


def test_dlpack_does_not_let_values_of_other_arrays_be_written():
    whole = Sharding.replicated(8)

    def overwrite(x):
        memory = np.from_dlpack(x)
        if memory.flags.writeable:
            memory[...] = -1

    partial = shard(VALUES, MESH.sharding("x", "y")).sum(0)
    overwrite(partial)
    overwrite(partial.reshard(whole))
    np.testing.assert_array_equal(partial, VALUES.sum(0))
    factor = shard(np.full(VALUES.shape[1], 2.0), whole)
    product = shard(VALUES, MESH.sharding("x", "y")).sum(0) * factor
    overwrite(factor)
    np.testing.assert_array_equal(product, 2 * VALUES.sum(0))
    x = shard(np.arange(8.0), whole)
    overwrite(x.reshard(Sharding.tiled((8,))))
    np.testing.assert_array_equal(x, np.arange(8.0))


def test_torch_shares_the_memory_of_a_tile():
    torch = pytest.importorskip("torch")
    x = shard(VALUES.copy(), TILES)
    torch.from_dlpack(x.shards[0])[0, 0] = 7
    assert float(x[0, 0]) == 7


@pytest.mark.parametrize("sharding", [TILES, COPIES, ONE])
def test_copies_have_the_same_tiles(sharding):
    x = shard(VALUES.copy(), sharding)
    for twin in (copy.copy(x), copy.deepcopy(x), x.copy(), pickle.loads(pickle.dumps(x))):
        assert twin.sharding == x.sharding
        np.add(twin, 1, out=twin)
        np.testing.assert_array_equal(twin.numpy(), VALUES + 1)
    np.testing.assert_array_equal(x.numpy(), VALUES)


def test_parts_are_combined_on_the_way():
    with mode("shared"):
        layout = Layout(2, (WHOLE,), Cut(2, (0, 1)))
        x = ShardedArray._build([np.ones(2), np.ones(2) * 2], layout, DeviceGroup.of(2))
    assert x.__array__(copy=False).tolist() == pickle.loads(pickle.dumps(x)).tolist() == x.copy().tolist() == [3, 3]
    assert str(x.real) == "[3. 3.]"


def test_what_lies_on_several_processes_is_collected_by_all_of_them():
    def work(member):
        mesh = Mesh({"x": 2}, member=member, owner=(0, 1))
        x = shard(VALUES, mesh.sharding("x"))
        with pytest.raises(TypeError, match=r"cannot be pickled: pickle np.asarray\(array\)"):
            pickle.dumps(x)
        return x.tolist(), np.asarray(x).tolist(), float(x[3, 5]), repr(x)

    values = VALUES.tolist()
    shown = "float32[4,6] sharded ('x', None) on Mesh(x=2)"
    assert run_on_ranks(2, work) == [(values, values, 23.0, shown)] * 2
