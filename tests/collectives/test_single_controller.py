"""One thread that has the buffers of all ranks."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

from ringlet.collectives import Group, Op, all_reduce_buffers
from ringlet.collectives.single_controller import default_workers
from ringlet.devices import visible_cores
from ringlet.errors import CollectiveAborted, InvalidArgumentError
from ringlet.testing import reduce_in_tree_order, run_on_ranks
from tests.collectives.contract import (
    KIND_OF,
    OPERATIONS,
    Array,
    assert_same,
    every_dtype,
    inputs_of,
    is_possible,
    special_of,
)

COUNTS = (0, 1, 3, 64, 4097)
WORKERS = (1, 2, 3, None)


@every_dtype
@pytest.mark.parametrize("num_ranks", [1, 2, 3, 4, 5, 8, 11, 17])
def test_the_result_has_the_bits_of_the_group(num_ranks: int, dtype: str) -> None:
    group = Group(num_ranks)
    for number, op in enumerate(OPERATIONS[KIND_OF[dtype]]):
        count = COUNTS[(number + num_ranks) % 5]
        workers = WORKERS[(number + num_ranks) % 4]
        inputs = (special_of if number % 2 else inputs_of)(num_ranks, count, dtype)
        expected = reduce_in_tree_order(inputs, op)
        shared = group.all_reduce_all(inputs, op, workers=workers)
        assert_same(shared, expected, op)
        assert not shared.flags.writeable
        assert_same(all_reduce_buffers(inputs, op, workers=workers), expected, op)
        if is_possible(op, dtype, "in_place"):
            buffers = [x.copy() for x in inputs]
            results = group.all_reduce_all(buffers, op, outs=buffers, workers=workers)
            assert all(result is buffer for result, buffer in zip(results, buffers, strict=True))
        else:
            results = group.all_reduce_all(inputs, op, outs=[np.empty_like(expected) for _ in inputs])
        for result in results:
            assert_same(result, expected, op)


@pytest.mark.parametrize("num_ranks", [2, 3, 8])
@pytest.mark.parametrize("count", [33_333, 300_001])
def test_no_number_of_workers_changes_the_bits_of_large_results(count: int, num_ranks: int) -> None:
    for dtype, op in (("float32", Op.SUM), ("uint8", Op.MEAN), ("float16", Op.PROD)):
        inputs = inputs_of(num_ranks, count, dtype)
        expected = run_on_ranks(num_ranks, lambda m: m.all_reduce(inputs[m.rank], op))[0]  # noqa: B023
        for workers in (1, 2, 3, 7, None):
            assert_same(all_reduce_buffers(inputs, op, workers=workers), expected)
            outs = [np.empty_like(expected) for _ in inputs]
            for result in Group(num_ranks).all_reduce_all(inputs, op, outs=outs, workers=workers):
                assert_same(result, expected)


def test_a_single_output_is_the_callers_own_and_may_be_any_input() -> None:
    for count, place in itertools.product((100, 200_000), range(3)):
        inputs = inputs_of(3, count, "float32")
        expected = reduce_in_tree_order(inputs)
        assert all_reduce_buffers(inputs, out=inputs[place]) is inputs[place]
        assert_same(inputs[place], expected)


def test_outputs_of_any_layout_and_those_that_overlap_inputs_in_part_are_filled() -> None:
    plain = inputs_of(3, 5000, "float64")
    expected = reduce_in_tree_order(plain)
    strided = [np.zeros((5000, 2), ">f8")[:, 0] for _ in plain]
    for result, out in zip(Group(3).all_reduce_all(plain, outs=strided), strided, strict=True):
        assert result is out
        np.testing.assert_array_equal(out, expected)
    memories = [np.concatenate([x, [0.0]]) for x in plain]
    results = Group(3).all_reduce_all([m[:-1] for m in memories], outs=[m[1:] for m in memories])
    for result in results:
        np.testing.assert_array_equal(result, expected)
    swapped = [x.copy() for x in plain]  # every rank's output is the next one's input
    for result in Group(3).all_reduce_all(swapped, outs=swapped[1:] + swapped[:1]):
        np.testing.assert_array_equal(result, expected)


def test_any_sequence_and_layout_is_taken() -> None:
    assert all_reduce_buffers(np.eye(3)).tolist() == [1, 1, 1]
    assert all_reduce_buffers(iter([[1, 2], [3, 4]])).tolist() == [4, 6]  # type: ignore[arg-type]
    outs = np.zeros((2, 3))
    Group(2).all_reduce_all(np.ones((2, 3)), outs=outs)
    assert outs.tolist() == [[2, 2, 2]] * 2


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_buffers_that_differ_or_are_missing_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"float64\[2\] at rank 0, float64\[3\] at rank 1"):
        all_reduce_buffers([np.ones(2), np.ones(3)])
    with pytest.raises(InvalidArgumentError, match=r"float64\[2\] at rank 0, float32\[2\] at rank 1"):
        all_reduce_buffers([np.ones(2), np.ones(2, "f4")])
    with pytest.raises(InvalidArgumentError, match="the list of arrays to reduce is empty"):
        all_reduce_buffers([])


# keywords, words of the message
BAD: list[tuple[dict[str, Any], str]] = [
    ({"buffers": [np.ones(2)]}, "buffers has 1 arrays: expected one for each of 2 ranks"),
    ({"outs": [np.ones(2)]}, "outs has 1 arrays: expected one for each of 2 ranks"),
    ({"outs": [np.ones(2), np.ones(3)]}, r"out is float64\[3\], expected float64\[2\]"),
    ({"outs": [np.ones(2), [1, 2]]}, "out is a list"),
    ({"workers": 0}, "workers is 0: expected at least 1, or None"),
    ({"workers": 1.5}, "workers is 1.5: expected a number of threads"),
    ({"op": "SUM"}, "op is 'SUM'"),
]


@pytest.mark.parametrize(("keywords", "words"), BAD)
def test_arguments_that_do_not_fit_are_refused(keywords: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        Group(2).all_reduce_all(**{"buffers": [np.ones(2), np.ones(2)], **keywords})


def test_an_output_of_all_reduce_buffers_is_one_array() -> None:
    with pytest.raises(InvalidArgumentError, match="out is a list"):
        all_reduce_buffers([np.ones(2)] * 2, out=[np.ones(2), np.ones(2)])  # type: ignore[arg-type]


def test_outputs_that_share_memory_are_refused() -> None:
    out = np.ones(3)
    for outs in ([out[:2], out[1:]], [out[:2], out[:2]]):
        with pytest.raises(InvalidArgumentError, match="share memory"):
            Group(2).all_reduce_all([np.ones(2), np.ones(2)], outs=outs)


def test_a_failed_group_raises_its_first_cause() -> None:
    group = Group(2)
    group.abort("the end")
    with pytest.raises(CollectiveAborted, match="the end"):
        group.all_reduce_all([np.ones(2), np.ones(2)])


# --- threads and processes --------------------------------------------------------------------------------------------


def test_workers_are_the_cores_by_default() -> None:
    assert default_workers() == visible_cores().count


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_threads_may_call_at_the_same_time(workers: int) -> None:
    results: dict[int, list[bool]] = {}

    def work(number: int) -> None:
        inputs = inputs_of(3, 60_000 + number, "float32", number)
        expected = reduce_in_tree_order(inputs)
        results[number] = [
            all_reduce_buffers(inputs, workers=workers).tobytes() == expected.tobytes() for _ in range(20)
        ]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: [True] * 20 for number in range(4)}


def test_the_thread_that_calls_may_end_and_others_go_on() -> None:
    inputs = [np.ones(200_000)] * 2
    found: list[Array] = []
    for _ in range(5):
        thread = threading.Thread(target=lambda: found.append(all_reduce_buffers(inputs, workers=2)))
        thread.start()
        thread.join()
    assert all((result == 2).all() for result in found)


def _reduce_in_child(inputs: list[Array], group: Group, queue: Any) -> None:
    sums = [float(all_reduce_buffers(inputs, workers=workers).sum()) for workers in (1, 2, 2)]
    try:
        group.all_reduce_all(inputs)
    except CollectiveAborted as error:
        queue.put((sums, str(error)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_reduces_with_workers_of_its_own_but_not_with_a_group_of_its_parent() -> None:
    inputs = [np.ones(200_000)] * 2
    all_reduce_buffers(inputs, workers=2)  # so that there are threads that the child has not
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_reduce_in_child, args=(inputs, Group(2), queue))
    child.start()
    sums, message = queue.get(timeout=30)
    child.join(30)
    assert sums == [400_000] * 3
    assert "before the process was forked" in message
    assert child.exitcode == 0


@pytest.mark.parametrize("num_ranks", [1, 2, 3, 8, 65])
def test_a_plan_combines_what_the_buffers_hold_at_each_run(num_ranks: int) -> None:
    group, most = Group(num_ranks), 50_001 if num_ranks < 65 else 5_001
    for count, place, workers in itertools.product((1, 300, most), ("shared", "in_place", "outs"), (1, 2)):
        buffers = [np.empty(count) for _ in range(num_ranks)]
        outs = {"shared": None, "in_place": buffers}.get(place, [np.empty(count) for _ in buffers])
        plan = group.plan_all_reduce_all(buffers, Op.MEAN, outs=outs, workers=workers)
        for seed in range(2):
            inputs = inputs_of(num_ranks, count, "float64", seed)
            for buffer, values in zip(buffers, inputs, strict=True):
                buffer[:] = values
            found = plan()
            for result in [found] if outs is None else found:
                assert_same(result, reduce_in_tree_order(inputs, Op.MEAN))


def test_a_plan_refuses_arrays_that_it_cannot_use_as_they_are() -> None:
    group = Group(2)
    with pytest.raises(InvalidArgumentError, match="a plan does not convert arrays"):
        group.plan_all_reduce_all([np.ones(4)[::2], np.ones(2)])
    with pytest.raises(InvalidArgumentError, match="the arrays to reduce differ"):
        group.plan_all_reduce_all([np.ones(3), np.ones(2)])
    with pytest.raises(InvalidArgumentError, match="expected one for each of 2 ranks"):
        group.plan_all_reduce_all([np.ones(3)])
    buffer = np.ones(3)
    with pytest.raises(InvalidArgumentError, match="share memory"):
        group.plan_all_reduce_all([np.ones(3), np.ones(3)], outs=[buffer, buffer])
    with pytest.raises(TypeError, match="takes no arguments"):
        group.plan_all_reduce_all([np.ones(3), np.ones(3)])(1)  # type: ignore[call-arg]


def test_helpers_leave_signals_to_the_threads_that_wait_for_them() -> None:
    program = """
import os, signal
import numpy as np
from ringlet.collectives import all_reduce_buffers
all_reduce_buffers([np.ones(1 << 20), np.ones(1 << 20)], workers=2)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
os.kill(os.getpid(), signal.SIGUSR1)
print(signal.sigwait({signal.SIGUSR1}).name)
"""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert (run.returncode, run.stdout) == (0, "SIGUSR1\n"), run.stderr
