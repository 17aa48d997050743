"""Arrays of JAX go into collectives and come back as such, in memory that the ranks share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ringlet.collectives import Group, Member, Op
from ringlet.collectives.adapters.array_adapters import kind_of, result_memory
from ringlet.errors import InvalidArgumentError
from ringlet.testing import run_on_ranks
from tests.frameworks.libraries import library

jax = library("jax")
jnp = library("jax.numpy")

DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "uint16", "uint32", "float16", "float32", "bfloat16", "complex64",
    "float8_e4m3fn", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
]  # fmt: skip


def alone() -> Member:
    return Group(1).member(0)


@pytest.mark.parametrize("name", DTYPES)
def test_an_array_is_read_where_it_is_and_its_dtype_comes_back(name: str) -> None:
    array = jnp.array([0, 1, 1, 0]).astype(name)
    kind = kind_of(array)
    seen = kind.as_ndarray(array)
    assert (seen.ctypes.data, seen.flags.writeable) == (array.unsafe_buffer_pointer(), False)
    result = alone().all_reduce(array, Op.MAX if array.dtype.kind != "c" else Op.SUM)
    assert isinstance(result, jax.Array)
    assert result.dtype == array.dtype
    assert result.astype("complex64").tolist() == [0, 1, 1, 0]


def test_ranks_share_one_buffer_that_is_handed_over_without_a_copy() -> None:
    def step(member: Member) -> Any:
        array = jnp.full((100_000,), member.rank + 1, jnp.bfloat16)
        return member.all_reduce(array), member.all_gather(array)

    (first, first_rows), (second, second_rows) = run_on_ranks(2, step)
    assert first is not second
    assert first.unsafe_buffer_pointer() == second.unsafe_buffer_pointer()
    assert first_rows.unsafe_buffer_pointer() == second_rows.unsafe_buffer_pointer()
    assert bool((first == 3).all())


def test_memory_of_the_core_becomes_an_array_without_a_copy_and_stays_while_it_is_used() -> None:
    writeable, readable = result_memory((1000,), np.dtype("float32"))
    writeable[:] = 5
    array = kind_of(jnp.ones(1)).from_ndarray(readable, jnp.ones(1))
    assert array.unsafe_buffer_pointer() == readable.ctypes.data
    del writeable, readable
    others = [result_memory((1000,), np.dtype("float32"))[0].fill(7) for _ in range(10)]
    assert len(others) == 10
    assert array.tolist() == [5] * 1000


@pytest.mark.parametrize("shape", [(), (0, 3), (3, 4)])
def test_an_array_of_any_shape_keeps_it(shape: tuple[int, ...]) -> None:
    assert alone().all_reduce(jnp.ones(shape)).shape == shape


def test_a_result_is_where_its_array_was_put() -> None:
    device = jax.devices("cpu")[1]
    result: Any = alone().all_reduce(jax.device_put(jnp.ones(3), device))
    assert result.devices() == {device}
    assert not alone().all_reduce(jnp.ones(3)).committed


def test_64_bits_become_32_as_everywhere_in_jax() -> None:
    assert alone().all_reduce(jnp.array([1, 2]), Op.MEAN).dtype == "float32"


@pytest.mark.parametrize("transform", [jax.jit, lambda f: jax.grad(lambda x: f(x).sum()), jax.vmap])
def test_a_tracer_is_refused_with_where_to_call(transform: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"a tracer .* has no values yet.*make the call outside of it"):
        transform(lambda x: alone().all_reduce(x))(jnp.ones(2))


def test_an_array_that_was_donated_is_refused() -> None:
    array = jnp.ones(2)
    array.delete()
    with pytest.raises(InvalidArgumentError, match=r"has been deleted: it was donated"):
        alone().all_reduce(array)


def test_an_array_on_several_devices_is_refused_with_what_to_give() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices("cpu")[:2]), "x")
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    array = jax.device_put(jnp.arange(4.0), sharding)
    with pytest.raises(InvalidArgumentError, match=r"on 2 devices .*addressable_shards.*jax\.device_put"):
        alone().all_reduce(array)
    (first, second) = (shard.data for shard in array.addressable_shards)
    total: Any = run_on_ranks(2, lambda member: member.all_reduce((first, second)[member.rank]))[1]
    assert total.tolist() == [2, 4]
    assert total.devices() == second.devices()


def test_a_key_of_random_numbers_is_refused_with_what_to_give() -> None:
    with pytest.raises(InvalidArgumentError, match=r"key<fry>.*jax\.random\.key_data"):
        alone().all_reduce(jax.random.key(0))


def test_an_output_is_refused_because_nobody_can_write_to_it() -> None:
    with pytest.raises(InvalidArgumentError, match=r"out is a jax\.Array, which cannot be written to"):
        alone().all_reduce(jnp.ones(2), out=jnp.ones(2))


def test_a_dtype_that_the_core_lacks_is_refused_by_name() -> None:
    with pytest.raises(InvalidArgumentError, match="int4"):
        alone().all_reduce(jnp.ones(2, "int4"))


def test_64_bits_that_were_made_elsewhere_are_kept() -> None:
    with jax.enable_x64(True):
        array = jnp.full(3, 2**40)
    result = alone().all_reduce(array)
    assert (result.dtype, result.tolist()) == ("int64", [2**40] * 3)


def test_donating_a_result_leaves_the_other_ranks_alone() -> None:
    def step(member: Member) -> Any:
        result = member.all_reduce(jnp.ones(100_000))
        member.barrier()
        if member.rank == 0:
            jax.jit(lambda x: x + 100, donate_argnums=0)(result).block_until_ready()
        member.barrier()
        return result

    assert float(run_on_ranks(2, step)[1].max()) == 2
