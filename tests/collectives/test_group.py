"""Groups: results, disagreement, failure, deadlines."""

from __future__ import annotations

import gc
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet import _core
from ringlet.collectives import Algorithm, Group, Member, Op, all_reduce_buffers
from ringlet.errors import (
    CollectiveAborted,
    CollectiveMismatchError,
    DeadlineExceededError,
    InvalidArgumentError,
)
from ringlet.testing import reduce_in_tree_order, run_on_ranks


def outcomes_of(num_ranks: int, step: Callable[[Member], Any], timeout_seconds: float = 30.0) -> list[Any]:
    """What every rank of a group returned or raised; nobody aborts the group on their behalf."""
    group = Group(num_ranks, timeout_seconds=timeout_seconds)

    def drive(member: Member) -> Any:
        try:
            return step(member)
        except Exception as error:
            return error

    outcomes: list[Any] = [None] * num_ranks

    def keep(rank: int) -> None:
        outcomes[rank] = drive(group.member(rank))

    threads = [threading.Thread(target=keep, args=(rank,)) for rank in range(num_ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


# --- results ----------------------------------------------------------------------------------------------------------


def test_ranks_have_their_own_array_objects_on_one_buffer() -> None:
    first, second = run_on_ranks(2, lambda member: member.all_reduce(np.ones(5000)))
    assert first is not second
    assert np.shares_memory(first, second)


@pytest.mark.parametrize("count", [3, 5000])
def test_numpy_refuses_to_write_to_a_result(count: int) -> None:
    result = run_on_ranks(2, lambda member: member.all_reduce(np.ones(count)))[0]
    with pytest.raises(ValueError, match="read-only"):
        result[0] = 3
    with pytest.raises(ValueError, match="WRITEABLE"):
        result.flags.writeable = True
    with pytest.raises(ValueError, match="read-only"):
        result += 1


def test_result_memory_is_reused_once_the_last_view_dies() -> None:
    def step(member: Member) -> int:
        view = member.all_reduce(np.ones(50_000))[10:20]
        return int(view.ctypes.data)

    group = Group(1)
    member = group.member(0)
    assert step(member) == step(member)


def test_a_view_keeps_its_memory_after_group_and_result_are_gone() -> None:
    view = run_on_ranks(2, lambda member: member.all_reduce(np.full(50_000, member.rank + 1.0)))[0][100:200]
    gc.collect()
    run_on_ranks(2, lambda member: member.all_reduce(np.zeros(50_000)))
    assert view.tolist() == [3.0] * 100


def test_inputs_are_left_as_they_are() -> None:
    inputs = [np.arange(5000.0), np.arange(5000.0)]
    run_on_ranks(2, lambda member: member.all_reduce(inputs[member.rank]))
    np.testing.assert_array_equal(inputs[0], np.arange(5000.0))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 3, 4), (1,) * 20])
def test_any_shape_is_kept(shape: tuple[int, ...]) -> None:
    result = run_on_ranks(3, lambda member: member.all_reduce(np.full(shape, member.rank + 1.0)))[1]
    assert result.shape == shape
    assert (result == 6.0).all()


LAYOUTS: dict[str, Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]] = {
    "transposed": np.asfortranarray,
    "strided": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "reversed": lambda x: x[::-1][::-1, :][::-1],
    "byte-swapped": lambda x: x.astype(x.dtype.newbyteorder()),
    "read-only": lambda x: np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape),
    "misaligned": lambda x: np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape),
    "masked base class": lambda x: np.ma.MaskedArray(x).data,
    "memoryview": memoryview,  # type: ignore[dict-item]
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_layout_gives_the_same_bits(layout: str) -> None:
    plain = [np.random.default_rng(rank).standard_normal((41, 67)) for rank in range(2)]
    expected = reduce_in_tree_order([np.array(LAYOUTS[layout](x)) for x in plain]).astype("float64")
    result = run_on_ranks(2, lambda member: member.all_reduce(LAYOUTS[layout](plain[member.rank])))[0]
    assert result.tobytes() == expected.tobytes()
    assert result.dtype.isnative


def test_scalars_and_lists_follow_numpy() -> None:
    assert run_on_ranks(2, lambda member: member.all_reduce(1.5))[0] == 3.0
    assert run_on_ranks(2, lambda member: member.all_reduce([member.rank, 2]))[0].tolist() == [1, 4]


def test_an_exporter_of_dlpack_is_taken() -> None:
    class Exporter:
        def __init__(self, array: np.ndarray[Any, Any]) -> None:
            self.array = array

        def __dlpack__(self, **keywords: Any) -> Any:
            return self.array.__dlpack__(**keywords)

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

    assert run_on_ranks(2, lambda member: member.all_reduce(Exporter(np.arange(3.0))))[0].tolist() == [0, 2, 4]


@pytest.mark.parametrize(
    "value",
    [np.array([object()]), np.array(["a"]), np.array([True]), np.ones(2, "f2"), np.ones(2, "c8"), None, "x"],
)
def test_other_dtypes_are_refused_with_the_ones_that_are_taken(value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"collectives take float32, float64, int32 and int64"):
        run_on_ranks(2, lambda member: member.all_reduce(value))


# --- many arrays in one pass ------------------------------------------------------------------------------------------


@given(
    shapes=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 90)), max_size=8),
    num_ranks=st.integers(1, 4),
    op=st.sampled_from(Op),
    into_outs=st.booleans(),
)
def test_many_arrays_are_reduced_as_one_by_one(
    shapes: list[tuple[int, int]], num_ranks: int, op: Op, into_outs: bool
) -> None:
    dtypes = ("float32", "int64", "float64", "int32")
    random = np.random.default_rng(0)
    inputs = [
        [random.integers(-9, 9, shape).astype(dtypes[i % 4]) for i, shape in enumerate(shapes)]
        for _ in range(num_ranks)
    ]
    expected = [reduce_in_tree_order([rank[i] for rank in inputs], op) for i in range(len(shapes))]

    def step(member: Member) -> list[Any]:
        outs = [np.empty(e.shape, e.dtype) for e in expected] if into_outs else None
        return member.all_reduce_many(inputs[member.rank], op, outs=outs)

    for results in run_on_ranks(num_ranks, step):
        assert [r.tobytes() for r in results] == [e.tobytes() for e in expected]
        assert [r.dtype for r in results] == [e.dtype for e in expected]


# --- out= -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [4, 5000])
def test_out_of_any_layout_is_filled(count: int) -> None:
    def step(member: Member) -> np.ndarray[Any, Any]:
        out = np.zeros((count, 2), ">f8")[:, 0]
        assert member.all_reduce(np.arange(float(count)), out=out) is out
        return out

    for out in run_on_ranks(2, step):
        np.testing.assert_array_equal(out, 2 * np.arange(float(count)))


def test_an_input_that_overlaps_its_output_is_read_first() -> None:
    def step(member: Member) -> np.ndarray[Any, Any]:
        memory = np.arange(6000.0)
        return member.all_reduce(memory[:-1], out=memory[1:])

    np.testing.assert_array_equal(run_on_ranks(2, step)[0], 2 * np.arange(5999.0))


@pytest.mark.parametrize("count", [4, 5000])
@pytest.mark.parametrize("algorithm", [Algorithm.AUTO, Algorithm.RING])
def test_ranks_that_share_an_output_are_refused(count: int, algorithm: Algorithm) -> None:
    out = np.zeros(count)
    outcomes = outcomes_of(3, lambda member: member.all_reduce(np.ones(count), algorithm=algorithm, out=out))
    for outcome in outcomes:
        assert isinstance(outcome, InvalidArgumentError)
        assert "share memory" in str(outcome)
        assert "out of its own" in str(outcome)


BAD_OUTS = {
    "shape": (np.zeros(4), r"out is float64\[4\]: the result is float64\[3\]"),
    "dtype": (np.zeros(3, np.float32), r"out is float32\[3\].*np\.empty\(\(3,\), 'float64'\)"),
    "type": ([0.0, 0.0, 0.0], "out is a list"),
    "read-only": (np.broadcast_to(0.0, (3,)), "read-only"),
}


@pytest.mark.parametrize("kind", BAD_OUTS)
def test_an_output_that_does_not_fit_is_refused(kind: str) -> None:
    out, message = BAD_OUTS[kind]
    with pytest.raises(InvalidArgumentError, match=message):
        Group(1).member(0).all_reduce(np.zeros(3), out=out)  # type: ignore[arg-type]


def test_outputs_on_some_ranks_only_are_a_mismatch() -> None:
    outcomes = outcomes_of(2, lambda member: member.all_reduce(np.ones(3), out=np.ones(3) if member.rank else None))
    assert all("out=" in str(outcome) and isinstance(outcome, CollectiveMismatchError) for outcome in outcomes)


# --- broadcast and barrier --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 3, 5000, 600_000])
@pytest.mark.parametrize("root", [0, 2])
def test_every_rank_receives_the_array_of_the_root(count: int, root: int) -> None:
    def step(member: Member) -> np.ndarray[Any, Any]:
        return member.broadcast(np.arange(count) * 3 if member.rank == root else None, root)

    for result in run_on_ranks(3, step):
        np.testing.assert_array_equal(result, np.arange(count) * 3)
        assert not result.flags.writeable


def test_broadcast_fills_outputs_and_changes_nothing_at_the_root() -> None:
    buffers = [np.full((50, 60), rank) for rank in range(3)]
    run_on_ranks(3, lambda member: member.broadcast(root=1, out=buffers[member.rank]))
    assert all((buffer == 1).all() for buffer in buffers)


def test_a_receiver_that_expects_another_shape_is_a_mismatch() -> None:
    outcomes = outcomes_of(2, lambda member: member.broadcast(np.ones(3 + member.rank), 0))
    assert all(isinstance(outcome, CollectiveMismatchError) for outcome in outcomes)


def test_a_root_that_does_not_exist_or_sends_nothing_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="rank 2 is not in this group: its ranks are 0 to 1"):
        Group(2).member(0).broadcast(np.ones(2), 2)
    with pytest.raises(InvalidArgumentError, match="the root of a broadcast must pass"):
        Group(2).member(0).broadcast(None, 0)


def test_nobody_passes_a_barrier_before_all_have_come() -> None:
    arrived: list[int] = []

    def step(member: Member) -> int:
        arrived.append(member.rank)
        member.barrier("here")
        return len(arrived)

    assert run_on_ranks(5, step) == [5] * 5


# --- disagreement -----------------------------------------------------------------------------------------------------

MISMATCHES: dict[str, Callable[[Member], Any]] = {
    "shape": lambda m: m.all_reduce(np.ones((3, 2) if m.rank else (2, 3))),
    "count": lambda m: m.all_reduce(np.ones(5000 + m.rank)),
    "dtype": lambda m: m.all_reduce(np.ones(3, "float32" if m.rank else "int32")),
    "operation": lambda m: m.all_reduce(np.ones(3), Op.SUM if m.rank else Op.MEAN),
    "algorithm": lambda m: m.all_reduce(np.ones(3), algorithm=Algorithm.RING if m.rank else Algorithm.AUTO),
    "number of arrays": lambda m: m.all_reduce_many([np.ones(3)] * (m.rank + 1)),
    "collective": lambda m: m.all_reduce(np.ones(9000)) if m.rank else m.broadcast(np.ones(9000)),
    "large and barrier": lambda m: m.all_reduce(np.ones(9000)) if m.rank else m.barrier(),
    "root": lambda m: m.broadcast(np.ones(3), m.rank),
    "name of a barrier": lambda m: m.barrier(f"epoch {m.rank}"),
}


@pytest.mark.parametrize("kind", MISMATCHES)
def test_ranks_that_disagree_all_raise_and_name_who_called_what(kind: str) -> None:
    outcomes = outcomes_of(2, MISMATCHES[kind])
    for outcome in outcomes:
        assert isinstance(outcome, CollectiveMismatchError)
        assert "rank 0: " in str(outcome)
        assert "rank 1: " in str(outcome)
    assert str(outcomes[0]) == str(outcomes[1])


def test_calls_in_another_order_are_a_mismatch() -> None:
    def step(member: Member) -> None:
        calls = [lambda: member.barrier("a"), lambda: member.all_reduce(np.ones(3))]
        for call in calls if member.rank else reversed(calls):
            call()

    for outcome in outcomes_of(3, step):
        assert isinstance(outcome, CollectiveMismatchError)


@pytest.mark.parametrize("count", [3, 5000])
def test_a_rank_that_departed_is_named_at_once(count: int) -> None:
    def step(member: Member) -> Any:
        member.barrier()
        return member.depart("returned") if member.rank == 1 else member.all_reduce(np.ones(count))

    outcomes = outcomes_of(3, step, timeout_seconds=0)
    for rank in (0, 2):
        assert isinstance(outcomes[rank], CollectiveMismatchError)
        assert "rank 1 (returned after 1 call)" in str(outcomes[rank])


def test_a_rank_that_rejoins_is_waited_for_again() -> None:
    group = Group(1)
    member = group.member(0)
    member.depart("returned")
    member.rejoin()
    assert member.all_reduce(2.0) == 2.0


# --- failure ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [3, 5000])
def test_abort_ends_every_wait_with_its_reason(count: int) -> None:
    group = Group(3, timeout_seconds=0)
    raised: list[BaseException] = []

    def wait(rank: int) -> None:
        try:
            group.member(rank).all_reduce(np.ones(count))
        except CollectiveAborted as error:
            raised.append(error)

    threads = [threading.Thread(target=wait, args=(rank,)) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    group.abort("rank 2 raised KeyError: 'weights'")
    for thread in threads:
        thread.join()
    assert [str(error) for error in raised] == ["rank 2 raised KeyError: 'weights'"] * 2


def test_a_failed_group_raises_its_first_cause_for_ever() -> None:
    group = Group(2)
    assert group.failure is None
    group.abort("first")
    group.abort("second")
    for _ in range(2):
        with pytest.raises(CollectiveAborted, match="first"):
            group.member(0).barrier()
    assert group.failure == "first"
    assert "failed: first" in repr(group)


@pytest.mark.parametrize("count", [3, 5000])
def test_a_deadline_names_who_is_missing_and_how_to_wait_longer(count: int) -> None:
    outcomes = outcomes_of(
        3, lambda member: None if member.rank == 1 else member.all_reduce(np.ones(count)), timeout_seconds=0.2
    )
    assert outcomes[1] is None
    for rank in (0, 2):
        assert isinstance(outcomes[rank], DeadlineExceededError)
        assert isinstance(outcomes[rank], TimeoutError)
        assert "waited 0.2 s for rank 1 (after 0 calls)" in str(outcomes[rank])
        assert "RINGLET_TIMEOUT_SECONDS" in str(outcomes[rank])


def test_one_rank_is_driven_by_one_thread_at_a_time() -> None:
    group = Group(2)

    def wait() -> None:
        with pytest.raises(CollectiveAborted):
            group.member(0).barrier()

    thread = threading.Thread(target=wait)
    thread.start()
    deadline = time.monotonic() + 30
    while group.member(0)._core.calls == 0 and time.monotonic() < deadline:
        time.sleep(0.001)
    with pytest.raises(InvalidArgumentError, match="rank 0 is inside a call on another thread"):
        group.member(0).barrier()
    group.abort("end of the test")
    thread.join()


def _use_after_fork(group: Group, queue: Any) -> None:
    try:
        group.member(0).all_reduce(np.ones(5000))
    except CollectiveAborted as error:
        queue.put(str(error))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_group_of_the_parent_says_so_in_a_forked_child() -> None:
    context = multiprocessing.get_context("fork")
    group = Group(2)
    queue = context.Queue()
    child = context.Process(target=_use_after_fork, args=(group, queue))
    child.start()
    message = queue.get(timeout=30)
    child.join(30)
    assert "before the process was forked" in message
    assert child.exitcode == 0


@pytest.mark.parametrize("num_ranks", [0, -1, 5000, 2.0, None])
def test_impossible_sizes_are_refused(num_ranks: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="ranks"):
        Group(num_ranks)


@pytest.mark.parametrize("rank", [1.0, "0", None, 2**70, -1, 2])
def test_a_rank_that_does_not_exist_is_refused(rank: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"rank .*(expected a whole number|is not in this group)"):
        Group(2).member(rank)


def test_a_member_keeps_its_group_alive() -> None:
    member = Group(1).member(0)
    gc.collect()
    assert member.all_reduce(2.0) == 2.0


def test_an_operation_or_algorithm_of_another_kind_is_refused() -> None:
    member = Group(1).member(0)
    with pytest.raises(InvalidArgumentError, match=r"op is 'SUM': expected one of ringlet.collectives.Op.SUM, Op.MEAN"):
        member.all_reduce(1.0, "SUM")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match=r"algorithm is 1: expected one of .*Algorithm.RING"):
        member.all_reduce(1.0, algorithm=1)  # type: ignore[arg-type]
    assert member.all_reduce(2.0) == 2.0


def test_a_refused_call_does_not_count() -> None:
    def step(member: Member) -> float:
        first = member.all_reduce(1.0).item()
        with pytest.raises(InvalidArgumentError, match="SMALL"):
            member.all_reduce(np.ones(1000), algorithm=Algorithm.SMALL)
        member.all_reduce(1000.0)
        return float(first)

    for _ in range(30):
        assert run_on_ranks(2, step) == [2.0, 2.0]


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")
def test_a_shape_assigned_during_a_call_changes_nothing() -> None:
    group = Group(2, timeout_seconds=30)
    x = np.ones((2, 12))
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(group.member(0).all_reduce(x)))
    thread.start()
    while group.member(0)._core.calls == 0:
        time.sleep(0.001)
    x.shape = (24,)
    group.member(1).all_reduce(np.ones((2, 12)))
    thread.join()
    assert results[0].shape == (2, 12)


_EXITS = {
    "while a thread waits": "threading.Thread(target=lambda: g.member(0).barrier(), daemon=True).start()",
    "while threads reduce": "[threading.Thread(target=reduce, args=(rank,), daemon=True).start() for rank in (0, 1)]",
    "while a thread unwinds": (
        "threading.Thread(target=lambda: g.member(0).barrier(), daemon=True).start(); time.sleep(0.1); g.abort('end')"
    ),
}


@pytest.mark.parametrize("moment", _EXITS)
def test_the_interpreter_may_end(moment: str) -> None:
    program = f"""
import threading, time
from ringlet.collectives import Group
g = Group(2)
def reduce(rank):
    while True:
        g.member(rank).all_reduce(1.0)
{_EXITS[moment]}
time.sleep(0.1)
"""
    for _ in range(3):
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
        assert ended.returncode == 0, ended.stderr


def test_a_thousand_groups_leave_no_memory_behind() -> None:
    gc.collect()
    before = _core.pool_statistics()["live_blocks"]
    for _ in range(1000):
        Group(1).member(0).all_reduce(np.ones(3000))
    assert _core.pool_statistics()["live_blocks"] == before


# --- one controller ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_ranks", [1, 2, 3, 4, 8, 11])
@pytest.mark.parametrize("op", list(Op))
def test_one_thread_with_all_buffers_gets_the_bits_of_the_group(num_ranks: int, op: Op) -> None:
    inputs = [np.random.default_rng(rank).standard_normal((100, 333)).astype("float32") for rank in range(num_ranks)]
    expected = run_on_ranks(num_ranks, lambda member: member.all_reduce(inputs[member.rank], op))[0]
    assert all_reduce_buffers(inputs, op).tobytes() == expected.tobytes()
    out = inputs[0].copy()
    assert all_reduce_buffers([out, *inputs[1:]], op, out=out) is out
    assert out.tobytes() == expected.tobytes()


def test_buffers_that_differ_or_are_missing_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"float64\[2\] at rank 0, float64\[3\] at rank 1"):
        all_reduce_buffers([np.ones(2), np.ones(3)])
    with pytest.raises(InvalidArgumentError, match="there is nothing to reduce"):
        all_reduce_buffers([])
