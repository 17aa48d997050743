"""Random numbers depend on seed, call and global index alone."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from ringlet.errors import ShardingError
from ringlet.sharding import Mesh, Sharding, explain, mode, random, shard, strict

MESHES = [
    Mesh({"x": 1}).sharding(),
    Mesh({"x": 4, "y": 2}).sharding("x", "y"),
    Mesh({"x": 3}).sharding(None, "x"),
    Mesh({"x": 2, "y": 2}).sharding(("y", "x")),
    Sharding.maximal(1, 2),
]
SHAPE = (70, 301)  # more than one block
ROW = np.linspace(0.1, 2.0, SHAPE[1])

DRAWS = {
    "uniform": (-1.0, 1.0),
    "normal": (0.0, ROW),
    "integers": (-5, 6),
    "exponential": (ROW[::-1],),
    "poisson": (3.5,),
    "random": (),
    "binomial": (9, 0.3),
    "gamma": (0.5,),
    "choice": ([2.0, 3.0, 5.0],),
}


@pytest.mark.parametrize("name", DRAWS)
def test_numbers_are_the_same_on_any_mesh_and_in_any_memory(name):
    def draw(sharding):
        rng = random.default_rng(5)
        rng.random(3, sharding=Sharding.replicated(1))
        return getattr(rng, name)(*DRAWS[name], size=SHAPE, sharding=sharding)

    expected = draw(MESHES[0])._gathered()
    parameters = [np.max(each) if np.ndim(each) and name != "choice" else each for each in DRAWS[name]]
    assert expected.shape == SHAPE
    assert expected.dtype == getattr(np.random.default_rng(0), name)(*parameters, size=1).dtype
    for sharding in MESHES[1:]:
        with explain() as report, strict():
            x = draw(sharding)
        assert x.sharding == shard(expected, sharding).sharding
        assert report.nbytes == 0
        np.testing.assert_array_equal(x._gathered(), expected)
        with mode("copy"):
            np.testing.assert_array_equal(draw(sharding)._gathered(), expected)


def test_moments_are_those_of_the_distribution():
    x = random.default_rng(1).normal(3.0, 2.0, (500, 200), sharding=MESHES[1])
    assert float(x.mean()) == pytest.approx(3.0, abs=0.03)
    assert float(x.std()) == pytest.approx(2.0, abs=0.03)
    assert len(np.unique(x._gathered())) == x.size


def test_calls_and_seeds_have_numbers_of_their_own():
    rng, sharding = random.default_rng(1), MESHES[1]
    draws = [rng.random((4, 2), sharding=sharding) for _ in range(2)]
    draws.append(random.default_rng(2).random((4, 2), sharding=sharding))
    assert len({draw.tobytes() for draw in draws}) == 3
    assert draws[0].tobytes() == random.default_rng(1).random(size=(4, 2), sharding=sharding).tobytes()


@pytest.mark.parametrize("sharding", MESHES[:4])
def test_a_permutation_has_each_number_once_and_is_the_same_on_any_mesh(sharding):
    x = shard(np.arange(24).reshape(12, 2), sharding)
    moved = random.default_rng(3).permutation(x)
    order = random.default_rng(3).permutation(12, sharding=Sharding.tiled((2,)))
    assert sorted(order.tolist()) == list(range(12)) != order.tolist()
    np.testing.assert_array_equal(moved, x._gathered()[order._gathered()])
    random.default_rng(3).shuffle(x)
    np.testing.assert_array_equal(moved, x)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda rng: rng.normal(size=3), TypeError, r"normal was given sharding=None: .*sharding=mesh\.sharding\("),
        (
            lambda rng: rng.normal(size=-1, sharding=Sharding.replicated(2)),
            ValueError,
            "size=-1: expected integers",
        ),
        (lambda rng: rng.normal(0, -1, 2, sharding=Sharding.replicated(2)), ValueError, "scale < 0"),
        (lambda rng: rng.random(4, sharding=Sharding.unreduced(2)), ShardingError, "terms of a sum: use a tiled"),
        (
            lambda rng: rng.permutation(np.arange(3)),
            TypeError,
            "expected an integer or a ShardedArray. Shard an array with",
        ),
        (lambda rng: rng.choice(3, 2, replace=False, sharding=Sharding.replicated(2)), TypeError, "permutation"),
        (lambda rng: rng.choice(np.eye(3), 2, sharding=Sharding.replicated(2)), TypeError, "array of 2 dimensions"),
        (lambda rng: rng.permuted(np.arange(3)), TypeError, "Shard the array first"),
        (lambda rng: rng.integers(0, 5, 3, np.int8, dtype=np.int64), TypeError, "was given dtype twice"),
        (lambda rng: rng.choice(3, 2, False, sharding=Sharding.replicated(2)), TypeError, "permutation"),
        (lambda rng: rng.normal(0, 1, 4, 5, sharding=Sharding.replicated(2)), TypeError, "multiple values"),
        (lambda rng: rng.gauss(), AttributeError, "no attribute 'gauss': expected permutation"),
        (
            lambda rng: rng.normal(shard(ROW, Sharding.tiled((2,))), sharding=Sharding.tiled((2,))),
            TypeError,
            r"a ShardedArray as a parameter: .*Scale the result",
        ),
    ],
)
def test_errors_name_the_remedy(call, error, message):
    with pytest.raises(error, match=message):
        call(random.default_rng(0))


def test_sharding_loads_neither_fft_nor_random_numbers():
    program = "import sys, ringlet.sharding; print({'numpy.fft', 'numpy.random'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "set()\n"


VECTORS = {
    "multinomial": (20, [0.2, 0.3, 0.5]),
    "dirichlet": ([1.0, 2.0, 3.0],),
    "multivariate_hypergeometric": ([3, 4, 5], 6),
    "multivariate_normal": ([0.0, 1.0, 2.0], np.diag([1.0, 4.0, 9.0])),
}
TOTALS = {"multinomial": 20, "dirichlet": 1.0, "multivariate_hypergeometric": 6}


@pytest.mark.parametrize("memory", ["shared", "copy"])
@pytest.mark.parametrize("spec", [("x", "y", None), (None, None, "x"), ("y", None, "x")])
def test_vectors_are_the_same_on_any_mesh(spec, memory):
    mesh, whole = Mesh({"x": 2, "y": 2}), Sharding.replicated(1)
    for name, args in VECTORS.items():
        expected = getattr(random.default_rng(3), name)(*args, size=(5, 3), sharding=whole).numpy()
        with mode(memory):
            found = getattr(random.default_rng(3), name)(*args, size=(5, 3), sharding=mesh.sharding(*spec))
            np.testing.assert_array_equal(found.numpy(), expected)
        assert found.shape == (5, 3, 3)
        if name in TOTALS:
            np.testing.assert_allclose(expected.sum(-1), TOTALS[name])
    assert random.default_rng(0).dirichlet([1.0, 2.0], sharding=whole).shape == (2,)


@pytest.mark.parametrize(
    ("name", "args", "match"),
    [
        (
            "multinomial",
            ([5, 9], [0.5, 0.5]),
            r"n must be a scalar, the number of trials for each vector, got shape "
            r"\(2,\)",
        ),
        ("multinomial", (5, [[0.5, 0.5]]), r"pvals must be a non-empty array of one dimension, got shape \(1, 2\)"),
        ("dirichlet", ([],), r"alpha must be a non-empty array of one dimension, got shape \(0,\)"),
    ],
)
def test_vectors_of_several_parameters_are_refused(name, args, match):
    with pytest.raises(ValueError, match=match):
        getattr(random.default_rng(0), name)(*args, sharding=Sharding.replicated(1))


def test_vectors_have_the_covariance_that_was_given():
    covariance = np.array([[2.0, 1.0], [1.0, 3.0]])
    x = random.default_rng(2).multivariate_normal([5.0, -5.0], covariance, 40_000, sharding=MESHES[1])
    np.testing.assert_allclose(x.numpy().mean(0), [5.0, -5.0], atol=0.05)
    np.testing.assert_allclose(np.cov(x.numpy().T), covariance, atol=0.1)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_lines_are_permuted_independently_and_equally_on_any_mesh(axis):
    whole = np.arange(24).reshape(6, 4)
    made = [random.default_rng(3).permuted(shard(whole, sharding), axis=axis) for sharding in MESHES[:4]]
    for x in made[1:]:
        np.testing.assert_array_equal(x, made[0])
    np.testing.assert_array_equal(np.sort(made[0], axis=axis).reshape(6, 4), whole)
    assert axis is None or len(np.unique(made[0] // (4, 1)[axis] % (6, 4)[axis], axis=1 - axis)) > 1


@pytest.mark.parametrize(
    ("name", "args", "options"),
    [
        ("integers", (0, 5, 4, np.int8, True), {"dtype": np.int8, "endpoint": True}),
        ("choice", ([1, 2, 3], 4, True, [0.5, 0.5, 0.0]), {"p": [0.5, 0.5, 0.0]}),
        ("standard_exponential", (4, "f4"), {"dtype": np.float32}),
        ("random", (4, np.float32), {"dtype": "float32"}),
    ],
)
def test_arguments_after_the_size_need_no_name(name, args, options):
    sharding, size = Sharding.tiled((2,)), args.index(4)
    by_place = getattr(random.default_rng(1), name)(*args, sharding=sharding)
    by_name = getattr(random.default_rng(1), name)(*args[:size], size=4, **options, sharding=sharding)
    np.testing.assert_array_equal(by_place, by_name)
    assert by_place.dtype == options.get("dtype", by_place.dtype)
