"""``map``: rows in batches, work in any order, results in the order of the rows."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
import traceback

import numpy as np
import pytest

import ringlet
from ringlet.errors import DeadlineExceededError, InvalidArgumentError
from ringlet.strategy.api import batch_map
from tests.collectives.kinds import Frozen, Written

STRATEGY = ringlet.MirroredStrategy(3)


@pytest.mark.parametrize("rows", [1, 2, 7, 12, 100])
@pytest.mark.parametrize("batch_size", [None, 1, 3, np.int64(12), 1000])
def test_every_row_is_in_its_place(rows, batch_size):
    x = np.arange(2.0 * rows).reshape(rows, 2)
    np.testing.assert_array_equal(STRATEGY.map(lambda x: x[:, 0] + 1, x, batch_size=batch_size), x[:, 0] + 1)


def test_batches_have_the_size_and_the_last_one_the_rest():
    sizes = STRATEGY.map(lambda x: np.array([len(x)]), np.zeros(10), batch_size=4)
    assert sizes.tolist() == [4, 4, 2]
    assert len(STRATEGY.map(lambda x: np.array([len(x)]), np.zeros(1200))) == 12


def test_structures_go_in_and_come_out():
    x, y = np.arange(5.0), np.arange(10).reshape(5, 2)
    result = STRATEGY.map(lambda d, z: (d["x"] + z[0], {"y": d["y"]}), {"x": x, "y": y}, (x,), batch_size=2)
    np.testing.assert_array_equal(result[0], 2 * x)
    np.testing.assert_array_equal(result[1]["y"], y)


def test_results_are_new_writeable_arrays():
    x = np.arange(4)
    result = STRATEGY.map(lambda x: x, x, batch_size=4)
    result += 1
    assert x.tolist() == [0, 1, 2, 3]


def test_without_rows_the_function_is_called_once():
    result = STRATEGY.map(lambda x: x.sum(axis=1).astype("float32"), np.zeros((0, 3)))
    assert (result.shape, result.dtype) == ((0,), np.float32)


def test_work_is_handed_out_in_any_order():
    is_slow = threading.Event()

    def fn(x):
        if x[0] == 0:
            assert is_slow.wait(60)  # set by the last batch, so the first one does not hold up the others
        if x[0] == 9:
            is_slow.set()
        return x

    assert STRATEGY.map(fn, np.arange(10), batch_size=1).tolist() == list(range(10))


def test_progress_counts_the_rows():
    seen = []
    STRATEGY.map(lambda x: x, np.zeros(10), batch_size=4, progress=lambda done, total: seen.append((done, total)))
    assert len(seen) == 3
    assert seen[-1] == (10, 10)
    assert seen == sorted(seen)


def test_an_exception_names_the_batch_and_keeps_its_traceback():
    def broken(x):
        return 1 / (x - 5).prod()

    with pytest.raises(ZeroDivisionError) as caught, np.errstate(all="raise"):
        STRATEGY.map(lambda x: broken(x.astype(object)), np.arange(12), batch_size=4)
    assert "raised in batch 1 of 3: one call of the function with rows 4 to 7" in caught.value.__notes__
    assert "in broken" in "".join(traceback.format_exception(caught.value))


def test_no_batch_starts_after_an_exception():
    started = []

    def fn(x):
        started.append(x[0])
        raise KeyError(x[0])

    with pytest.raises(KeyError):
        STRATEGY.map(fn, np.arange(1000), batch_size=1)
    assert len(started) <= 3


def test_ctrl_c_ends_it():
    started = []

    def fn(x):
        started.append(x[0])
        if x[0] == 5:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
        return x

    with pytest.raises(KeyboardInterrupt):
        STRATEGY.map(fn, np.arange(10_000), batch_size=1)
    assert len(started) < 1000
    assert STRATEGY.map(lambda x: x, np.arange(3)).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("arrays", "options", "kind", "message"),
    [
        ((), {}, ValueError, r"equal numbers of rows, got \[\]: write map\(fn, array\)"),
        ((np.zeros(3), np.zeros(4)), {}, ValueError, r"got \[3, 4\]"),
        (([1, 2],), {}, TypeError, r"got 1 of type int, which has no rows: write np\.asarray.* shared by all rows$"),
        ((np.zeros(3), 2), {}, TypeError, r"shared by all rows, and batch_size=2 for the number of rows in a batch$"),
        (([np.zeros(3)] * 8,), {}, InvalidArgumentError, r"arrays\[0\] is a list of 8 arrays.*np\.stack\(images\)"),
        ((np.zeros(3), [np.zeros(3), 1]), {}, InvalidArgumentError, r"arrays\[1\] is a list of 2"),
        ((np.zeros(3),), {"k": 3}, TypeError, r"argument 'k': write functools\.partial\(fn, k=\.\.\.\)"),
        ((np.zeros(3),), {"n_jobs": 3}, TypeError, r"'n_jobs'.*MirroredStrategy\(4\)\.map.*RINGLET_NUM_DEVICES=4"),
        ((np.zeros(3),), {"progress": True}, TypeError, "progress must be a function .*, got True: write progress=lam"),
        ((np.zeros(3),), {"progress": lambda done: done}, TypeError, "progress must be a function .*, got <function"),
        ((np.zeros(3),), {"progress": ringlet.progress}, TypeError, "got <function progress.* an iterable.* for loops"),
        ((np.float64(3),), {}, TypeError, "has no rows"),
        ((np.zeros(3),), {"batch_size": 0}, ValueError, "at least 1, got 0: write batch_size=32"),
        ((np.zeros(3),), {"batch_size": 1.5}, ValueError, "at least 1, got 1.5"),
    ],
)
def test_bad_arguments_are_refused(arrays, options, kind, message):
    with pytest.raises(kind, match=message):
        STRATEGY.map(lambda *x: x[0], *arrays, **options)


def test_results_that_cannot_be_joined_are_refused():
    with pytest.raises(ValueError, match=r"2 batches cannot be joined along axis 0: .*np\.array\(\[result\]\)"):
        STRATEGY.map(lambda x: x.sum(), np.zeros(4), batch_size=2)
    with pytest.raises(ValueError, match=r"map got different structures: batch 0 .*, batch 1"):
        STRATEGY.map(lambda x: {str(x[0]): x}, np.arange(4), batch_size=2)


def test_results_of_different_shapes_are_objects():
    def squares(row):
        return np.ones((int(row), int(row)))

    remedy = r"np\.fromiter\(map\(fn, batch\), object\)"
    with pytest.raises(ValueError, match=rf"size 1 and .* size 2\. .*all of one shape; .*{remedy}, one object for"):
        STRATEGY.map(lambda batch: squares(batch[0]), np.arange(1, 3), batch_size=1)
    with pytest.raises(ValueError, match="inhomogeneous shape") as caught:
        STRATEGY.map(lambda batch: np.array([squares(row) for row in batch]), np.arange(4), batch_size=4)
    assert re.search(remedy, caught.value.__notes__[0])
    joined = STRATEGY.map(lambda batch: np.fromiter(map(squares, batch), object), np.arange(4), batch_size=2)
    assert [result.shape for result in joined] == [(0, 0), (1, 1), (2, 2), (3, 3)]


@pytest.mark.parametrize("unknown", ["k", "n_jobs"])
def test_the_function_map_refuses_other_keywords(unknown):
    with pytest.raises(TypeError, match=rf"functools\.partial\(fn, {unknown}="):
        ringlet.map(np.sqrt, np.zeros(2), **{unknown: 3})


def test_replicas_do_not_map():
    with pytest.raises(RuntimeError, match="map requires cross-replica context"):
        STRATEGY.run(lambda: STRATEGY.map(lambda x: x, np.zeros(2)))


@pytest.mark.parametrize(
    "inner", [ringlet.map, STRATEGY.map, ringlet.MirroredStrategy(2).map, ringlet.get_strategy().map]
)
def test_a_function_of_map_does_not_map(inner):
    with pytest.raises(RuntimeError, match=r"in the function of another map or of strategy\.run.*fn\(batch\)"):
        STRATEGY.map(lambda x: inner(np.sqrt, x), np.zeros(2))


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("all_reduce", lambda replica, x: replica.all_reduce("SUM", x)),
        ("all_gather", lambda replica, x: replica.all_gather(x, axis=0)),
        ("merge_call", lambda replica, x: replica.merge_call(lambda _, x: x, args=(x,))),
    ],
)
def test_a_function_of_map_makes_no_collective_call(name, call):
    with pytest.raises(RuntimeError, match=rf"the function of map called .*{name}.* different numbers of batches"):
        STRATEGY.map(lambda x: call(ringlet.replica_context(), x), np.arange(12), batch_size=4)
    assert STRATEGY.run(lambda: ringlet.replica_context().all_reduce("SUM", 1)).values[0] == 3


def test_other_numbers_of_rows_than_given_are_logged_once(caplog, monkeypatch):
    monkeypatch.setattr(batch_map, "_has_hinted", False)
    x = np.ones((12, 5))
    STRATEGY.map(lambda x: x, x)
    STRATEGY.map(lambda x: np.array([len(x)]), x, batch_size=3)  # one result for each batch
    assert not caplog.records
    for _ in range(2):
        STRATEGY.map(lambda row: row.mean(axis=0), x, batch_size=3)
    (record,) = caplog.records
    assert "map got 12 rows and returned 20" in record.message
    assert "np.array([fn(row) for row in batch])" in record.message


@pytest.mark.parametrize("make", [ringlet.get_strategy, lambda: ringlet.OneDeviceStrategy("CPU:0")])
def test_strategies_with_one_replica_map(make):
    assert make().map(lambda x: 2 * x, np.arange(5), batch_size=2).tolist() == [0, 2, 4, 6, 8]


def test_map_uses_the_current_strategy_or_one_over_all_cores():
    def used(x):
        return np.array([ringlet.get_strategy().num_replicas_in_sync])

    with STRATEGY.scope():
        assert ringlet.map(used, np.zeros(1)).tolist() == [3]
    assert ringlet.map(used, np.zeros(1)).tolist() == [ringlet.MirroredStrategy().num_replicas_in_sync]
    assert batch_map._strategy_of_all_cores() is batch_map._strategy_of_all_cores()


@pytest.mark.parametrize("kind", [Written, Frozen])
def test_arrays_of_another_library_come_back_as_such(kind):
    result = STRATEGY.map(lambda x: kind(2 * x), np.arange(5), batch_size=2)
    assert type(result) is kind
    assert result.array.tolist() == [0, 2, 4, 6, 8]


def test_no_batch_runs_in_the_thread_of_the_caller():
    def thread(x):
        return np.array([threading.get_ident()])

    caller = threading.get_ident()
    assert caller not in STRATEGY.map(thread, np.zeros(30), batch_size=1)
    assert ringlet.MirroredStrategy(1).map(thread, np.zeros(2), batch_size=1).tolist() == [caller] * 2


def test_the_time_out_begins_when_a_replica_finds_no_batch_left():
    strategy = ringlet.MirroredStrategy(2)
    strategy.extended._thread_pool.timeout_seconds = 0.02
    may_end, done = threading.Event(), []

    def fn(x):
        if x[0] == 0:
            may_end.wait(60)
        else:
            time.sleep(0.03)
            done.append(int(x[0]))
        return x

    with pytest.raises(DeadlineExceededError, match=r"for 1 of 2 replicas to return: replica \d is in fn \("):
        strategy.map(fn, np.arange(6), batch_size=1)
    assert done == [1, 2, 3, 4, 5]
    may_end.set()
    strategy.extended._thread_pool.timeout_seconds = 60
    assert strategy.map(fn, np.arange(1), batch_size=1).tolist() == [0]
