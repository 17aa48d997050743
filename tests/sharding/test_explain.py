"""What reports record, and when."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import ringlet
from ringlet.sharding import Mesh, Sharding, explain, shard
from ringlet.sharding.explain import note, noted_as_one
from ringlet.sharding.resharding.collective_record import Collective
from ringlet.testing import run_on_ranks

ROWS = shard(np.arange(8.0).reshape(4, 2), Sharding.tiled((2, 1)))
REDUCE = Collective("all-reduce", (2,), "float64", ((0, 1),), nbytes=32)


def test_an_operation_is_recorded_with_how_its_arrays_lay():
    with explain() as report:
        note("f", (ROWS, [np.ones(3), 1.5]), ROWS, (REDUCE,))
    (operation,) = report.operations
    assert [str(operand) for operand in operation.operands] == ["float64[4,2] {devices=[2,1]<=[2]}", "float64[3]"]
    assert [str(array.sharding) for array in operation.result] == [str(ROWS.sharding)]
    assert (operation.collectives, operation.nbytes, operation.is_gathered) == ((REDUCE,), 32, False)


def test_nothing_is_recorded_outside_of_a_block():
    with explain() as report:
        pass
    note("f", (ROWS,), ROWS)
    assert report.operations == []


def test_blocks_inside_each_other_have_each_what_happens_in_them():
    with explain() as outer:
        note("first", (), ROWS)
        with explain() as inner:
            note("second", (), ROWS)
        note("third", (), ROWS)
    assert [operation.name for operation in outer.operations] == ["first", "second", "third"]
    assert [operation.name for operation in inner.operations] == ["second"]


def test_operations_that_are_parts_of_one_are_counted_there():
    def work():
        note("sum", ROWS, ROWS, (REDUCE,))
        return noted_as_one("inner", ROWS, lambda: note("divide", ROWS, ROWS, (REDUCE,)) or ROWS)

    with explain() as report:
        assert noted_as_one("mean", [ROWS], work) is ROWS
    (operation,) = report.operations
    assert (operation.name, len(operation.operands), operation.nbytes) == ("mean", 1, 64)


def test_operations_that_give_nothing_sharded_and_send_nothing_are_not_recorded():
    with explain() as report:
        assert noted_as_one("ndim", [ROWS], lambda: 2) == 2
    assert report.operations == []


def test_an_operation_that_fails_leaves_no_trace():
    with explain() as report:
        with pytest.raises(ZeroDivisionError):
            noted_as_one("f", [ROWS], lambda: 1 // 0)
        note("g", (), ROWS)
    assert [operation.name for operation in report.operations] == ["g"]


def test_a_report_inside_an_operation_sees_its_parts():
    def work():
        with explain() as parts:
            note("part", (), ROWS)
        return [operation.name for operation in parts.operations]

    with explain() as report:
        assert noted_as_one("whole", [ROWS], work) == ["part"]
    assert [operation.name for operation in report.operations] == ["part"]


def test_replicas_tell_the_report_of_the_block_that_they_run_in_and_other_threads_do_not():
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    with explain() as report:
        strategy.run(lambda: note("in replica", (), ROWS))
        thread = threading.Thread(target=note, args=("elsewhere", (), ROWS))
        thread.start()
        thread.join()
    assert [operation.name for operation in report.operations] == ["in replica"] * 2


def test_a_computation_is_reported_with_what_it_sends():
    columns = shard(np.ones((4, 2)), Sharding.tiled((2, 1)))
    with explain() as report:
        total = np.exp(columns).sum(axis=0)
        float(total[0])
    assert report.operations[0].name == "exp"
    assert report.counts == {"all-reduce": 1}
    assert report.nbytes > 0
    assert np.exp(columns).sum() == pytest.approx(8 * np.e)


def test_a_gather_between_processes_is_one_gather():
    def work(member):
        x = shard(np.arange(8.0), Mesh({"x": 4}, member=member).sharding("x"))
        with explain() as report:
            x.numpy()
        return report.counts, report.nbytes

    assert run_on_ranks(2, work) == [({"gather": 1}, 64)] * 2
