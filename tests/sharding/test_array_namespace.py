"""The array API standard's namespace: NumPy's functions, and arrays that are made on a mesh."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.sharding import Mesh, ShardedArray, Sharding, namespace, shard, strict

MESH = Mesh({"x": 2, "y": 2})
XP = namespace(MESH)


def test_each_axis_cuts_the_first_dimension_that_it_divides():
    texts = {shape: str(XP.zeros(shape).sharding) for shape in [(8, 3), (6, 2), (3, 5), (3, 4), (), (0, 2)]}
    assert texts == {
        (8, 3): "{devices=[4,1]<=[4]}",
        (6, 2): "{devices=[2,2]<=[4]}",
        (3, 5): "{replicated}",
        (3, 4): "{devices=[1,4]<=[4]}",
        (): "{replicated}",
        (0, 2): "{devices=[1,2,2]<=[4] last_tile_dim_replicate}",
    }


@pytest.mark.parametrize(
    ("created", "expected"),
    [
        (XP.arange(4, dtype=XP.int8), np.arange(4, dtype=np.int8)),
        (XP.asarray([[1, 2], [3, 4]]), np.array([[1, 2], [3, 4]])),
        (XP.eye(4, k=1), np.eye(4, k=1)),
        (XP.full((2, 2), True), np.full((2, 2), True)),
        (XP.linspace(0, 1, 6), np.linspace(0, 1, 6)),
        (XP.ones((2, 3), device="cpu"), np.ones((2, 3))),
        (XP.from_dlpack(np.arange(6)), np.arange(6)),
        (XP.fft.fftfreq(8, d=0.5, dtype=XP.float32), np.fft.fftfreq(8, 0.5).astype(np.float32)),
        (XP.fft.rfftfreq(8), np.fft.rfftfreq(8)),
    ],
)
def test_created_arrays_are_on_the_mesh(created, expected):
    assert isinstance(created, ShardedArray)
    assert created.__array_namespace__() is XP
    assert created.dtype == expected.dtype
    np.testing.assert_array_equal(created, expected)


def test_a_device_may_be_a_sharding():
    rows, columns = MESH.sharding("x"), Sharding.tiled((1, 4))
    x = XP.zeros((4, 4), device=columns)
    assert x.sharding == columns
    assert x.device == "cpu"
    assert x.to_device("cpu") is x
    assert x.to_device(rows).sharding == XP.asarray(x, device=rows).sharding == rows.for_ndim(2)
    for place in (lambda: XP.zeros(4, device="gpu"), lambda: x.to_device("gpu")):
        with pytest.raises(ValueError, match="gpu"):
            place()


def test_arrays_are_converted_or_copied():
    x = XP.arange(4)
    assert XP.asarray(x) is x
    assert XP.asarray(x, copy=True) is not x
    assert XP.asarray(x, dtype=XP.float64).dtype == np.float64
    with pytest.raises(ValueError, match="copy"):
        XP.asarray([1, 2], copy=False)


@pytest.mark.parametrize("stable", [True, False])
def test_sorts_may_descend(stable):
    whole = np.array([[3, 1, 3, 2], [0, 0, 5, 0]])
    x = XP.asarray(whole)
    with strict():
        order, found = XP.argsort(x, axis=1, descending=True, stable=stable), XP.sort(x, descending=True)
    np.testing.assert_array_equal(order, [[0, 2, 3, 1], [2, 0, 1, 3]])
    np.testing.assert_array_equal(found, -np.sort(-whole))
    np.testing.assert_array_equal(XP.argsort(x, axis=0), np.argsort(whole, axis=0, kind="stable"))


def test_functions_that_differ_from_numpys():
    x = XP.asarray(np.diag([2.0, 3.0]), device=Sharding.replicated(4))
    assert XP.linalg.eigvals(x).dtype == np.complex128
    values, vectors = XP.linalg.eig(x)
    assert values.dtype == vectors.dtype == np.complex128
    assert XP.clip(x, max=1).tolist() == [[1, 0], [0, 1]]
    assert XP.linalg.trace is np.linalg.trace
    assert XP.fft.fft is np.fft.fft


def test_a_reshaped_array_may_be_written_to():
    x = XP.arange(8)
    y = XP.reshape(x, (2, 4))
    y[0, 0] = 9
    assert (int(x[0]), int(y[0, 0])) == (0, 9)


def test_a_namespace_is_one_object_for_each_mesh():
    assert namespace(Mesh({"x": 2, "y": 2})) is XP
    assert namespace(Mesh({"x": 4})) is not XP
    assert repr(XP.linalg) == "ringlet.sharding.namespace(Mesh({'x': 2, 'y': 2})).linalg"
    assert {"asarray", "sort", "__array_namespace_info__"} <= set(dir(XP))
    with pytest.raises(AttributeError, match="nothing"):
        XP.nothing  # noqa: B018
    with pytest.raises(TypeError, match="a mesh"):
        namespace({"x": 2})


def test_an_array_without_a_mesh_has_a_namespace_with_one_axis():
    x = shard(np.arange(6), Sharding.tiled((3,)))
    xp = x.__array_namespace__(api_version="2025.12")
    assert xp.__array_api_version__ == "2025.12"
    assert (xp.ones(6) + x).sharding == x.sharding
    if hasattr(np, "__array_namespace_info__"):  # of NumPy 2.1
        assert xp.__array_namespace_info__().capabilities()["boolean indexing"]
    with pytest.raises(ValueError, match=r"1999.*2025\.12"):
        x.__array_namespace__(api_version="1999")
