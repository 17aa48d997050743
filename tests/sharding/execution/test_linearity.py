"""What keeps sums of parts unfinished, and that the numbers are those of finished sums."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

from examples.tensor_parallel_transformer import normalized
from ringlet.sharding import Mesh, Sharding, explain, mode, shard
from ringlet.sharding.execution.linearity import checked_linear, elementwise_factors, is_known, origin_of
from ringlet.sharding.layout.factors import FactorMap
from ringlet.testing import run_on_ranks

ROWS, COLUMNS = Sharding.tiled((1, 4)), Sharding.tiled((4, 1))
A = (np.arange(32).reshape(4, 8) * 7 % 11 - 5).astype(float)
B = (np.arange(32).reshape(8, 4) * 5 % 13 - 6).astype(float)
W = (np.arange(16).reshape(4, 4) % 5 + 1).astype(float)

# Of a partial product p, an array w that each device has all of and a number in an array z.
KEPT = {
    "0 + p": lambda p, w, z: 0 + p,
    "p + 1": lambda p, w, z: p + 1,
    "p + p": lambda p, w, z: p + p,
    "p - p": lambda p, w, z: p - 2 * p,
    "p * 2": lambda p, w, z: p * 2,
    "2 * p": lambda p, w, z: 2 * p,
    "p / 2": lambda p, w, z: p / 2,
    "-p": lambda p, w, z: -p,
    "p * w": lambda p, w, z: p * w,
    "p / w": lambda p, w, z: p / w,
    "p * z": lambda p, w, z: p * z,
    "z + p": lambda p, w, z: z + p,
    "w + p": lambda p, w, z: w + p,
    "p + row": lambda p, w, z: p + w[0],
    "w - p": lambda p, w, z: w - p,
    "p - w": lambda p, w, z: p - w,
    "list": lambda p, w, z: p - [1, 2, 3, 4],
    "a chain": lambda p, w, z: w + (p * 2 - w) / 4 + p,
    "turned": lambda p, w, z: (p * 2).T.reshape(2, 8)[1:] + 1,
    "sum": lambda p, w, z: sum([p * 2, w, -p]),
    "product": lambda p, w, z: p @ w,
}


@pytest.fixture(params=["shared", "copy"])
def memory(request):
    with mode(request.param):
        yield


def product(a=A, b=B):
    return shard(a, ROWS) @ shard(b, COLUMNS)


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("place", [lambda x: x, lambda x: shard(x, Sharding.replicated(4))])
def test_what_is_linear_sends_nothing_and_is_finished_by_one_all_reduce(name, place):
    call = KEPT[name]
    with explain() as report:
        found = call(product(), place(W), place(np.array(2.0)))
    assert report.nbytes == 0
    assert found._layout.is_partial
    with explain() as report:
        values = np.asarray(found)
    assert report.counts == {"all-reduce": 1}
    np.testing.assert_array_equal(values, call(A @ B, W, np.array(2.0)))


@pytest.mark.parametrize(
    "call",
    [
        lambda p, w: p * p,
        lambda p, w: 2 / (p + 0.5),
        lambda p, w: p // 2,
        lambda p, w: np.add(p, 1, dtype=np.float32),
        lambda p, w: p.astype(np.float32) + 1,
        lambda p, w: np.multiply(p, 2, where=w > 2, out=np.zeros((4, 4))),
        lambda p, w: p + 1j,
    ],
)
def test_what_is_not_linear_or_changes_the_dtype_finishes_the_sum(call):
    with explain() as report:
        found = call(product(), W)
    assert report.nbytes > 0
    np.testing.assert_array_equal(np.asarray(found), call(A @ B, W))


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("factor", [np.inf, np.nan, np.array([1, -np.inf, 2, np.nan])])
@pytest.mark.parametrize("sign", [1, -1])
def test_parts_are_not_multiplied_by_what_is_not_finite(factor, sign):
    values = np.array([[2.0, -1, 1, -1]] * 4).T * sign  # each device has one, and they do not cancel in the first rows
    total = shard(values, COLUMNS).sum(0)
    expected = values.sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        for call in (lambda x: x * factor + x, lambda x: x / factor + x, lambda x: factor * x - x):
            np.testing.assert_array_equal(np.asarray(call(total)), call(expected))
        matrix = np.broadcast_to(factor, 4)[:, None] * np.ones((4, 2))
        np.testing.assert_array_equal(np.asarray(total[None] @ matrix), expected[None] @ matrix)


def test_parts_are_not_divided_by_zero():
    total = shard(np.array([2.0, -1, 0, 0]), Sharding.tiled((4,))).sum()
    with np.errstate(divide="ignore"):
        for zero in (0, 0.0, np.array([0.0, 1])):
            np.testing.assert_array_equal(np.asarray(total / zero + total), np.float64(1) / zero + 1)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "float32", "complex64", "complex128", "longdouble"])
def test_dtypes_are_those_of_finished_sums_and_integers_wrap(dtype):
    a, b = (A * 9).astype(dtype), (B * 9).astype(dtype)
    for call in (lambda p: p * 3 + p, lambda p: 5 - p + p, lambda p: p * b[:4] - p, lambda p: -(p + b[:4])):
        with explain() as report:
            found = call(product(a, b))
        assert report.nbytes == 0
        assert found.dtype == call(a @ b).dtype
        np.testing.assert_array_equal(np.asarray(found), call(a @ b))


def test_sums_of_16_bits_are_finished_before_their_parts_overflow():
    values = np.array([40000, -30000, 0, 0], np.float16)
    total = shard(values, Sharding.tiled((4,))).sum()
    assert float(total * 3 + total) == 40000


def test_a_sum_that_is_needed_in_several_ways_is_sent_once():
    for call in (
        lambda p: np.exp(p * 2) + np.exp(p + 1) + np.exp(-p) + np.abs(p),
        lambda p: normalized(W + p),
        lambda p: (p * W).mean() + p,
    ):
        with explain() as report:
            np.asarray(call(product() / 64))
        assert report.counts == {"all-reduce": 1}


def test_a_long_chain_keeps_few_of_its_arrays():
    p, made = product(), []
    for _ in range(3000):
        p = p * 1
        made.append(weakref.ref(p))
    assert sum(reference() is not None for reference in made) < 40
    np.testing.assert_array_equal(np.asarray(p), A @ B)


def test_numbers_beyond_all_floats_are_refused_as_numpy_refuses_them():
    for call in (lambda x: x * 10**400, lambda x: x / 10**400, lambda x: x + 10**400):
        with pytest.raises(OverflowError):
            call(A @ B)
        with pytest.raises(OverflowError):
            call(product())


def test_a_sum_is_scattered_where_that_is_enough():
    with explain() as report:
        found = (product() * 2 + W).reshard(Sharding.tiled((4, 1)))
    assert report.counts == {"reduce-scatter": 1}
    np.testing.assert_array_equal(np.asarray(found), A @ B * 2 + W)


@pytest.mark.usefixtures("memory")
def test_what_was_added_may_change_meanwhile():
    plain, whole, p = W.copy(), shard(W.copy(), Sharding.replicated(4)), product()
    sums = [p + plain, p + whole, p * 2]
    plain[:], whole[:], p[:] = 0, 0, 0
    for found, expected in zip(sums, (A @ B + W, A @ B + W, A @ B * 2), strict=True):
        np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.usefixtures("memory")
def test_sums_accumulate_in_place_without_being_finished():
    with explain() as report:
        p = q = product()
        row, turned, more = p[1:], p.T, p + 1
        p += product()
        p *= 2
        np.subtract(p, W, out=p)
        p /= 4
    assert p is q
    assert report.nbytes == 0
    np.testing.assert_array_equal(np.asarray(p), ((A @ B) * 4 - W) / 4)
    np.testing.assert_array_equal(np.asarray(row), (A @ B)[1:])
    np.testing.assert_array_equal(np.asarray(turned), (A @ B).T)
    np.testing.assert_array_equal(np.asarray(more), A @ B + 1)


def test_an_array_with_values_that_a_result_goes_to_has_values():
    plain, out = np.zeros((4, 4)), shard(np.zeros((4, 4)), COLUMNS)
    for place in (plain, out):
        assert np.multiply(product(), 2, out=place) is place
        np.testing.assert_array_equal(np.asarray(place), A @ B * 2)
    assert not out._layout.is_partial
    integers = product(A.astype(int), B.astype(int))
    with pytest.raises(TypeError, match="Cannot cast ufunc"):
        integers += 0.5


@pytest.mark.parametrize("spec", [(None, "x"), ("x", None)])
def test_processes_keep_sums_as_threads_do(spec):
    def work(member):
        mesh = Mesh({"x": 4}, **({"member": member} if member else {}))
        p = shard(A, mesh.sharding(None, "x")) @ shard(B, mesh.sharding("x", None))
        return np.asarray(W + p * np.float64(1 / 3) + p * shard(W, mesh.sharding(*spec))).tolist()

    assert run_on_ranks(2, work) == [work(None)] * 2


def test_a_transformer_block_with_its_gradient_sums_up_four_times():
    r = np.random.default_rng(0)
    width, hidden, rows = 16, 32, 8
    x, d_out = r.standard_normal((2, rows, width))
    plain = {n: r.standard_normal((width, width)) / 4 for n in ("query", "key", "value", "out")}
    plain |= {"up": r.standard_normal((width, hidden)) / 4, "down": r.standard_normal((hidden, width)) / 4}
    plain["gain"], plain["bias"] = r.standard_normal((2, width))

    def norm_gradient(d, x, gain):
        deviation = np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        y = (x - x.mean(-1, keepdims=True)) / deviation
        d = d * gain
        return (d - d.mean(-1, keepdims=True) - y * (d * y).mean(-1, keepdims=True)) / deviation

    def step(w):
        y = normalized(x) * w["gain"]
        query, key, value = (y @ w[name] for name in ("query", "key", "value"))
        mixed = query * key + value  # in the place of attention: cut as heads are
        h = x + (mixed @ w["out"] + w["bias"])
        z = normalized(h) * w["gain"]
        active = np.maximum(z @ w["up"], 0)
        out = h + active @ w["down"] + w["bias"]
        d_active = (d_out @ w["down"].T) * (active > 0)
        d_h = d_out + norm_gradient(d_active @ w["up"].T, h, w["gain"])
        d_mixed = d_h @ w["out"].T
        d_each = [(d_mixed * key, "query"), (d_mixed * query, "key"), (d_mixed, "value")]
        d_y = 0.5 * sum(2.0 * (d @ w[name].T) for d, name in d_each)
        d_x = d_h + norm_gradient(d_y, x, w["gain"])
        return [out, d_x, *(y.T @ d for d, _ in d_each), active.T @ d_out, z.T @ d_active]

    expected = step(plain)
    columns = dict.fromkeys(("query", "key", "value", "up"), ROWS) | dict.fromkeys(("out", "down"), COLUMNS)
    with explain() as report:
        found = step({name: shard(array, columns[name]) if name in columns else array for name, array in plain.items()})
        found[:2] = [each.reshard(Sharding.replicated(4)) for each in found[:2]]
    assert report.counts == {"all-reduce": 4}
    assert report.nbytes == 4 * 2 * 3 * x.nbytes
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-10, atol=1e-10)


def test_factors_say_what_the_other_operands_are():
    arrays, labels, p = [np.ones(2), 2.0], ((0,), ()), product()
    assert elementwise_factors(np.divide, arrays, labels, (0,), np.dtype(float)).others == "divisors"
    assert elementwise_factors(np.add, arrays, labels, (0,), np.dtype(float)).others == "terms"
    assert elementwise_factors(np.exp, arrays, labels, (0,), np.dtype(float)).linear == ()
    product_of_all = FactorMap(((), ()), (), linear=(frozenset({0}), frozenset({1})))
    assert checked_linear(product_of_all, [p, np.ones(3)]).linear == (frozenset({0}),)
    assert checked_linear(product_of_all, [p, shard(np.ones(4), Sharding.tiled((4,)))]).linear == ()
    assert (is_known(p), origin_of(np.add, [p, p]), origin_of(np.add, [p, 1]).source) == (False, None, p)
