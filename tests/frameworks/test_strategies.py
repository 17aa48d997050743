"""Arrays of PyTorch and JAX in strategies: inside of replicas and outside of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ringlet
from ringlet.errors import CollectiveMismatchError, InvalidArgumentError
from tests.frameworks.libraries import library
from tests.strategy.replicas import mirrored, replica, replica_id

torch = library("torch")
jnp = library("jax.numpy")

MAKERS: dict[str, Callable[[Any], Any]] = {
    "torch": lambda numbers: torch.tensor(numbers, dtype=torch.bfloat16),
    "jax": lambda numbers: jnp.asarray(numbers, jnp.bfloat16),
}


@pytest.fixture(params=MAKERS)
def make(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    return MAKERS[request.param]


def local(value: Any, strategy: Any) -> Any:
    return strategy.experimental_local_results(value)


def assert_like(result: Any, make: Callable[[Any], Any], numbers: Any) -> None:
    """The result is of the kind, the dtype and the shape that the maker gives, and has these numbers."""
    expected = make(numbers)
    assert type(result) is type(expected)
    assert (result.dtype, tuple(result.shape)) == (expected.dtype, tuple(expected.shape))
    assert result.tolist() == expected.tolist()


def test_tensors_reach_the_replicas_as_they_are(make):
    strategy = mirrored()
    x = make([1, 2])
    seen = strategy.run(lambda y: (y is x, replica_id()), args=(x,))[0]
    assert seen is True


def test_all_reduce_gives_its_own_kind(make):
    strategy = mirrored()
    for op, numbers in (("SUM", [3, 4]), ("MEAN", [1.5, 2])):
        results = strategy.run(lambda op=op: replica().all_reduce(op, make([replica_id() + 1, 2])))
        for result in local(results, strategy):
            assert_like(result, make, numbers)


def test_all_reduce_of_a_structure_keeps_the_kind_of_each_leaf(make):
    strategy = mirrored()

    def step() -> Any:
        return replica().all_reduce("SUM", {"x": make([1]), "n": np.ones(2), "rows": 3, "more": (make([[2]]),)})

    results = strategy.run(step)
    for part in range(2):
        x, n, rows, more = (
            local(value, strategy)[part] for value in (results["x"], results["n"], results["rows"], results["more"][0])
        )
        assert_like(x, make, [2])
        assert_like(more, make, [[4]])
        assert (type(n), n.tolist(), int(rows)) == (np.ndarray, [2, 2], 6)


def test_replicas_write_to_tensors_of_their_own():
    strategy = mirrored()

    def step() -> Any:
        result = replica().all_reduce("SUM", torch.ones(100_000))
        return result.add_(replica_id())

    first, second = local(strategy.run(step), strategy)
    assert (first[0], first[-1], second[0], second[-1]) == (2, 2, 3, 3)


def test_replicas_share_an_array_of_jax():
    strategy = mirrored()
    first, second = local(strategy.run(lambda: replica().all_reduce("SUM", jnp.ones(100_000))), strategy)
    assert first.unsafe_buffer_pointer() == second.unsafe_buffer_pointer()


def test_all_reduce_writes_to_tensors_that_are_given():
    strategy = mirrored()

    def step() -> Any:
        x = {"w": torch.ones(2)}
        assert replica().all_reduce("SUM", x, out=x)["w"] is x["w"]
        return x["w"]

    assert [result.tolist() for result in local(strategy.run(step), strategy)] == [[2, 2]] * 2


def test_writable_results_are_of_their_kinds(make):
    strategy = mirrored()
    options = ringlet.RunOptions(writable_results=True)
    for result in local(strategy.run(lambda: replica().all_reduce("SUM", make([1])), options=options), strategy):
        assert_like(result, make, [2])


def test_all_gather_joins_rows_of_any_number(make):
    strategy = mirrored()
    results = strategy.run(lambda: replica().all_gather({"x": make([[replica_id()]] * (replica_id() + 1))}, 0))
    for result in local(results["x"], strategy):
        assert_like(result, make, [[0], [1], [1]])


def test_all_gather_joins_along_the_last_axis(make):
    strategy = mirrored()
    for result in local(strategy.run(lambda: replica().all_gather(make([[replica_id(), 5]]), -1)), strategy):
        assert_like(result, make, [[0, 5, 1, 5]])


def test_merge_call_hands_them_over(make):
    strategy = mirrored()

    def step() -> Any:
        x = make([replica_id() + 1])
        return replica().merge_call(lambda strategy, x: strategy.reduce("SUM", x, axis=None), (x,))

    assert_like(strategy.run(step), make, [3])


@pytest.mark.parametrize(
    ("op", "axis", "numbers"),
    [
        ("SUM", None, [[3, 4], [7, 8]]),
        ("MEAN", None, [[1.5, 2], [3.5, 4]]),
        ("SUM", 0, [10, 12]),
        ("MEAN", 0, [2.5, 3]),
        ("SUM", -1, [7, 15]),
        ("MEAN", (0, 1), 2.75),
    ],
)
def test_reduce_gives_its_own_kind(make, op, axis, numbers):
    strategy = mirrored()
    value = strategy.run(lambda: make([[replica_id() + 1, 2], [replica_id() + 3, 4]]))
    assert_like(strategy.reduce(op, value, axis=axis), make, numbers)


def test_sums_along_an_axis_do_not_stop_growing_in_few_bits(make):
    strategy = mirrored()
    value = strategy.run(lambda: make(np.ones(1000 + replica_id())))
    assert float(strategy.reduce("SUM", value, axis=0)) == pytest.approx(2001, rel=1e-2)


def test_reduce_to_gives_each_replica_its_own(make):
    strategy = mirrored()
    value = strategy.run(lambda: make([replica_id() + 1]))
    first, second = strategy.extended.reduce_to("SUM", value, "CPU:0").values
    assert first is not second
    for result in (first, second):
        assert_like(result, make, [3])
    if isinstance(first, torch.Tensor):
        assert first.data_ptr() != second.data_ptr()


def test_gather_joins_the_components(make):
    strategy = mirrored()
    value = strategy.run(lambda: make([[replica_id()]]))
    assert_like(strategy.gather(value, axis=0), make, [[0], [1]])
    assert_like(strategy.gather(value, axis=1), make, [[0, 1]])


def test_a_way_to_combine_that_users_wrote_gives_their_kind(make):
    ops = ringlet.ReductionToOneDevice(accumulation_fn=np.maximum.reduce)
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=ops)
    for result in local(strategy.run(lambda: replica().all_reduce("SUM", make([replica_id()]))), strategy):
        assert_like(result, make, [1])
    assert_like(strategy.reduce("SUM", strategy.run(lambda: make([replica_id()])), axis=None), make, [1])


def test_slices_keep_the_kind_of_their_rows(make):
    strategy = mirrored()

    def step() -> Any:
        slices = ringlet.IndexedSlices(make([[replica_id() + 1]]), np.array([replica_id()]))
        return replica().all_reduce("MEAN", slices)

    for slices in local(strategy.run(step), strategy):
        assert_like(slices.values, make, [[0.5], [1]])


@pytest.mark.parametrize("strategy", [ringlet.OneDeviceStrategy("CPU:0"), mirrored(1), ringlet.get_strategy()])
def test_one_replica_gets_a_copy_of_its_own(make, strategy):
    x = make([[1, 2]])

    def step() -> Any:
        return replica().all_reduce("SUM", x), replica().all_gather(x, 0)

    for result in strategy.run(step):
        assert result is not x
        assert_like(result, make, [[1, 2]])
        if isinstance(x, torch.Tensor):
            assert result.data_ptr() != x.data_ptr()


ONES = {
    "torch.Tensor": lambda: torch.ones(2),
    "jax.Array": lambda: jnp.ones(2),
    "numpy.ndarray": lambda: np.ones(2, "f4"),
}
PAIRS = [(first, second) for first in ONES for second in ONES if first != second]
CALLS: dict[str, Callable[[Any], Any]] = {
    "all_reduce": lambda x: replica().all_reduce("SUM", x),
    "all_reduce of a structure": lambda x: replica().all_reduce("SUM", {"w": x}),
    "all_gather": lambda x: replica().all_gather(x, 0),
    "reduce": lambda x: replica().merge_call(lambda strategy, v: strategy.reduce("SUM", v, axis=None), (x,)),
    "gather": lambda x: replica().merge_call(lambda strategy, v: strategy.gather(v, axis=0), (x,)),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_replicas_with_arrays_of_different_libraries_are_told_which(call, pair):
    with pytest.raises((CollectiveMismatchError, InvalidArgumentError)) as caught:
        mirrored().run(lambda: CALLS[call](ONES[pair[replica_id()]]()))
    message = str(caught.value)
    assert "different libraries" in message
    assert message.index(pair[0]) < message.index(pair[1])


def test_what_needs_gradients_is_refused_inside_of_replicas():
    with pytest.raises(InvalidArgumentError, match=r"x\.detach\(\)"):
        mirrored().run(lambda: replica().all_reduce("SUM", torch.ones(2, requires_grad=True)))


def test_variables_begin_with_them_and_take_them(make):
    strategy = mirrored()
    with strategy.scope():
        variable = ringlet.Variable(make([1, 2]))
    assert variable.dtype.name == "bfloat16"
    strategy.run(lambda: variable.assign(make([3, 4])))
    variable.assign_add(make([1, 1]))
    assert variable.numpy().tolist() == [4, 5]


def test_a_variable_says_how_to_convert_a_tensor_of_another_dtype():
    with pytest.raises(ValueError, match=r"holds float32, .* an array of float64.* Write value\.to\(torch\.float32\)"):
        ringlet.Variable(np.ones(2, "float32")).assign(torch.ones(2, dtype=torch.float64))


def test_a_tensor_is_no_slices_to_scatter():
    with pytest.raises(TypeError, match="a scatter takes an IndexedSlices, got tensor"):
        ringlet.Variable(np.ones(2)).scatter_add(torch.ones(2))


def test_shapes_of_tensors_come_back_from_steps():
    strategy = mirrored()
    assert strategy.run(lambda: torch.ones(2, 3).shape) == torch.Size([2, 3])
    rows, columns = strategy.run(lambda: torch.ones(2 + replica_id(), 3).shape)
    assert (local(rows, strategy), columns) == ((2, 3), 3)


def test_replicas_that_take_turns_with_results_of_their_own_never_see_each_other_s():
    strategy = mirrored(8)

    def step() -> Any:
        for count in (1, 1000, 100_000):
            x = torch.full((count,), float(replica_id()))
            total = replica().all_reduce("SUM", x)
            x.fill_(-1)
            assert bool((total == 28).all())
            total.fill_(99)
            rows = replica().all_gather(torch.full((replica_id() + 1,), float(replica_id())), 0)
            assert rows.tolist() == [float(i) for i in range(8) for _ in range(i + 1)]
            rows.fill_(99)

    for _ in range(3):
        strategy.run(step)
