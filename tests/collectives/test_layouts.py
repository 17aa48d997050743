"""Inputs and outputs of any memory layout, byte order and kind, in every collective."""

from __future__ import annotations

import array
import ctypes
import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ringlet.collectives import Group, Member, Op, all_reduce_buffers
from ringlet.errors import InvalidArgumentError
from ringlet.testing import run_on_ranks
from tests.collectives.contract import Array, assert_same, dtype_of, every_dtype, inputs_of


class Exporter:
    """Something that is an array by DLPack alone."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class Tagged(np.ndarray):  # type: ignore[type-arg]
    """A subclass that means more than its memory."""


def misaligned(x: Array) -> Array:
    return np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape)


# Ways to give the same values.
LAYOUTS: dict[str, Callable[[Array], Any]] = {
    "transposed": np.asfortranarray,
    "strided": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "reversed": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "byte-swapped": lambda x: x.astype(x.dtype.newbyteorder()),
    "read-only": lambda x: np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape),
    "misaligned": misaligned,
    "subclass": lambda x: x.view(Tagged),
    "masked base class": lambda x: np.ma.MaskedArray(x).data,
    "memoryview": memoryview,
    "bytes of ctypes": lambda x: np.ctypeslib.as_ctypes(x.copy()),
    "DLPack": Exporter,
    "nested lists": lambda x: x.tolist(),
}

# What each collective gives for an array of shape (4, 6) on two ranks.
COLLECTIVES: dict[str, Callable[[Member, Any], Any]] = {
    "all_reduce": lambda m, x: m.all_reduce(x),
    "all_reduce_many": lambda m, x: m.all_reduce_many([x, x], Op.MEAN)[1],
    "packs": lambda m, x: m.all_reduce_many([x, x], Op.MAX, bytes_per_pack=1)[1],
    "reduce": lambda m, x: m.reduce(x),
    "reduce_scatter": lambda m, x: m.reduce_scatter(x),
    "reduce_scatter axis": lambda m, x: m.reduce_scatter(x, axis=1),
    "exclusive_scan": lambda m, x: m.exclusive_scan(x),
    "plan": lambda m, x: m.plan_all_reduce(x)(),
    "all_gather": lambda m, x: m.all_gather(x),
    "all_gather axis": lambda m, x: m.all_gather(x, axis=-1),
    "gather": lambda m, x: m.gather(x, 1),
    "scatter": lambda m, x: m.scatter(None if m.rank else x),
    "scatter axis": lambda m, x: m.scatter(None if m.rank else x, axis=1),
    "broadcast": lambda m, x: m.broadcast(None if m.rank else x),
    "all_to_all": lambda m, x: m.all_to_all(x),
    "all_to_all counts": lambda m, x: m.all_to_all(x, counts=[3, 1]),
    "all_to_all axes": lambda m, x: m.all_to_all(x, split_axis=1, concat_axis=0),
    "collective_permute": lambda m, x: m.collective_permute(x, [(0, 1)]),
}


@pytest.mark.parametrize("name", COLLECTIVES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_layout_gives_the_same_bits(layout: str, name: str) -> None:
    if layout == "nested lists" and name == "plan":
        pytest.skip("a plan follows arrays only")
    call = COLLECTIVES[name]
    plain = [x.reshape(4, 6) for x in inputs_of(2, 24, "float64")]
    expected = run_on_ranks(2, lambda m: call(m, plain[m.rank]))
    for result, wanted in zip(
        run_on_ranks(2, lambda m: call(m, LAYOUTS[layout](plain[m.rank]))), expected, strict=True
    ):
        if wanted is None:
            assert result is None
        else:
            assert_same(result, wanted)
            assert not result.flags.writeable


@every_dtype
def test_any_dtype_may_be_strided_and_misaligned(dtype: str) -> None:
    plain = [x.reshape(40, 60) for x in inputs_of(2, 2400, dtype)]
    expected = run_on_ranks(2, lambda m: m.all_gather(plain[m.rank]))[0]
    for change in (LAYOUTS["strided"], LAYOUTS["transposed"], misaligned):
        assert_same(run_on_ranks(2, lambda m: m.all_gather(change(plain[m.rank])))[1], expected)  # noqa: B023
    op = Op.MAX if dtype == "bool" else Op.SUM
    total = all_reduce_buffers(plain, op)
    assert_same(all_reduce_buffers([misaligned(x) for x in plain], op), total)
    out = misaligned(plain[0]).copy(order="F")
    assert all_reduce_buffers(plain, op, out=out) is out
    np.testing.assert_array_equal(np.nan_to_num(out.astype("c16")), np.nan_to_num(total.astype("c16")))


@pytest.mark.parametrize("dtype", ["float16", "int16", "uint64", "complex64", "complex128"])
def test_any_dtype_of_numpy_may_be_byte_swapped(dtype: str) -> None:
    plain = inputs_of(2, 100, dtype)
    swapped = [x.astype(dtype_of(dtype).newbyteorder()) for x in plain]
    result = run_on_ranks(2, lambda m: m.all_reduce(swapped[m.rank]))[0]
    assert_same(result, all_reduce_buffers(plain))
    assert result.dtype.isnative
    out = np.zeros(100, swapped[0].dtype)
    all_reduce_buffers(swapped, out=out)
    np.testing.assert_array_equal(out, result)
    assert not out.dtype.isnative


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 3, 4), (1,) * 20])
def test_any_shape_is_kept(shape: tuple[int, ...]) -> None:
    for call in (Member.all_reduce, Member.exclusive_scan, Member.broadcast):
        result = run_on_ranks(3, lambda m: call(m, np.full(shape, 6.0)))[1]  # noqa: B023
        assert result.shape == shape
        assert (result >= 6.0).all()


# --- other kinds of objects -------------------------------------------------------------------------------------------


def test_scalars_and_lists_follow_numpy() -> None:
    assert run_on_ranks(2, lambda m: m.all_reduce(1.5))[0] == 3.0
    assert run_on_ranks(2, lambda m: m.all_reduce([m.rank, 2]))[0].tolist() == [1, 4]
    assert run_on_ranks(2, lambda m: m.all_reduce(np.float16(0.5)))[0].dtype == np.float16
    assert run_on_ranks(2, lambda m: m.all_reduce(m.rank == 0, Op.AND))[0].tolist() is False


def test_buffers_of_the_standard_library_are_taken() -> None:
    member = Group(1).member(0)
    assert member.all_gather(array.array("h", [1, 2])).dtype == np.int16
    assert member.all_gather(bytearray(b"ab")).tolist() == [97, 98]
    assert member.all_gather((ctypes.c_float * 2)(1, 2)).dtype == np.float32


def test_the_exporter_of_a_dlpack_array_is_kept_while_it_is_used_and_no_longer() -> None:
    sources = [np.arange(9000.0), np.arange(9000.0)]
    alive = [weakref.ref(source) for source in sources]

    def step(member: Member) -> Array:
        exporter = Exporter(sources.pop())
        return member.all_reduce(exporter)

    assert run_on_ranks(2, step)[0][7] == 14
    gc.collect()
    assert [reference() for reference in alive] == [None, None]


def test_an_exporter_that_numpy_cannot_read_is_refused_with_the_reason() -> None:
    class Foreign:
        def __dlpack__(self, **_: Any) -> Any:
            raise BufferError("this array is in another memory")

        def __dlpack_device__(self) -> Any:
            return (1, 0)

    with pytest.raises(
        InvalidArgumentError, match=r"Foreign that NumPy cannot read by DLPack: this array is in another"
    ):
        Group(1).member(0).all_reduce(Foreign())


def test_a_mask_is_not_lost_in_silence() -> None:
    for call in COLLECTIVES.values():
        with pytest.raises(InvalidArgumentError, match=r"masked array.*x\.filled"):
            call(Group(2, timeout_seconds=10).member(0), np.ma.MaskedArray(np.ones((4, 6))))


# --- life time --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COLLECTIVES)
def test_results_outlive_group_and_inputs(name: str) -> None:
    def step(member: Member) -> Any:
        x = np.full((4, 6), member.rank + 1.0)
        result = COLLECTIVES[name](member, x)
        x[:] = 99
        return None if result is None else result[:1]

    kept = run_on_ranks(2, step)
    before = [None if view is None else view.copy() for view in kept]
    for _ in range(3):  # what would reuse memory that was given back too early
        run_on_ranks(2, lambda m: COLLECTIVES[name](m, np.full((4, 6), 1234.0)))
    for view, values in zip(kept, before, strict=True):
        assert view is None or view.tolist() == values.tolist()
        assert view is None or not (view == 99).any()


@pytest.mark.parametrize("name", COLLECTIVES)
def test_inputs_are_left_as_they_are(name: str) -> None:
    inputs = [x.reshape(4, 6) for x in inputs_of(2, 24, "int64")]
    copies = [x.copy() for x in inputs]
    run_on_ranks(2, lambda m: COLLECTIVES[name](m, inputs[m.rank]))
    for x, copy in zip(inputs, copies, strict=True):
        np.testing.assert_array_equal(x, copy)
