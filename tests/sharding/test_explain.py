"""What reports record, and when."""

from __future__ import annotations

import re
import threading

import numpy as np
import pytest

import ringlet
from ringlet.sharding import Mesh, Sharding, explain, shard
from ringlet.sharding.explain_operations import record_operation, recorded_as_one
from ringlet.sharding.resharding.collective_record import Collective
from ringlet.testing import run_on_ranks

ROWS = shard(np.arange(8.0).reshape(4, 2), Sharding.tiled((2, 1)))
REDUCE = Collective("all-reduce", (2,), "float64", ((0, 1),), nbytes=32)


def test_an_operation_is_recorded_with_how_its_arrays_lay():
    with explain() as report:
        record_operation("f", (ROWS, [np.ones(3), 1.5]), ROWS, (REDUCE,))
    (operation,) = report.operations
    assert [str(operand) for operand in operation.operands] == ["float64[4,2] {devices=[2,1]<=[2]}", "float64[3]"]
    assert [str(array.sharding) for array in operation.result] == [str(ROWS.sharding)]
    assert (operation.collectives, operation.nbytes, operation.is_gathered) == ((REDUCE,), 32, False)


def test_nothing_is_recorded_outside_of_a_block():
    with explain() as report:
        pass
    record_operation("f", (ROWS,), ROWS)
    assert report.operations == []


def test_blocks_inside_each_other_have_each_what_happens_in_them():
    with explain() as outer:
        record_operation("first", (), ROWS)
        with explain() as inner:
            record_operation("second", (), ROWS)
        record_operation("third", (), ROWS)
    assert [operation.name for operation in outer.operations] == ["first", "second", "third"]
    assert [operation.name for operation in inner.operations] == ["second"]


def test_operations_that_are_parts_of_one_are_counted_there():
    def work():
        record_operation("sum", ROWS, ROWS, (REDUCE,))
        return recorded_as_one("inner", ROWS, lambda: record_operation("divide", ROWS, ROWS, (REDUCE,)) or ROWS)

    with explain() as report:
        assert recorded_as_one("mean", [ROWS], work) is ROWS
    (operation,) = report.operations
    assert (operation.name, len(operation.operands), operation.nbytes) == ("mean", 1, 64)


def test_operations_that_give_nothing_sharded_and_send_nothing_are_not_recorded():
    with explain() as report:
        assert recorded_as_one("ndim", [ROWS], lambda: 2) == 2
    assert report.operations == []


def test_an_operation_that_fails_leaves_no_trace():
    with explain() as report:
        with pytest.raises(ZeroDivisionError):
            recorded_as_one("f", [ROWS], lambda: 1 // 0)
        record_operation("g", (), ROWS)
    assert [operation.name for operation in report.operations] == ["g"]


def test_a_report_inside_an_operation_sees_its_parts():
    def work():
        with explain() as parts:
            record_operation("part", (), ROWS)
        return [operation.name for operation in parts.operations]

    with explain() as report:
        assert recorded_as_one("whole", [ROWS], work) == ["part"]
    assert [operation.name for operation in report.operations] == ["part"]


def test_replicas_tell_the_report_of_the_block_that_they_run_in_and_other_threads_do_not():
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    with explain() as report:
        strategy.run(lambda: record_operation("in replica", (), ROWS))
        thread = threading.Thread(target=record_operation, args=("elsewhere", (), ROWS))
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


def _layers(x, weights):
    hidden = np.maximum(x @ weights, 0)
    hidden[:, 0] = 1
    scaled = (hidden - hidden.mean(0)) / (hidden.std(0) + 1)
    return np.roll(scaled, 1, 0).T @ scaled, np.fft.fft(scaled, axis=0), np.cumsum(scaled, 0)[1:], np.sort(scaled, 0)


@pytest.mark.parametrize("specs", [(("x", "y"), ("y", None)), (("x",), ()), ((None, "x"), (None, "y"))])
def test_a_plan_is_the_report_of_the_program_that_is_not_run(specs):
    mesh = Mesh({"x": 4, "y": 2})
    numbers = np.random.default_rng(0)
    x, weights = numbers.random((16, 8)), numbers.random((8, 8))
    given = [shard(array.copy(), mesh.sharding(*spec)) for array, spec in zip((x, weights), specs, strict=True)]
    plan = explain(_layers, *given)
    np.testing.assert_array_equal(given[0], x)
    with explain() as report:
        _layers(*given)[0].reshard(Sharding.replicated(8))
    planned = [str(operation) for operation in plan.operations if operation.name not in ("reduce", "reshard")]
    assert planned == [str(operation) for operation in report.operations if operation.name not in ("reduce", "reshard")]
    assert len(planned) > 12


def test_a_plan_needs_no_memory_and_no_time():
    mesh = Mesh({"x": 8})
    large = shard(np.broadcast_to(1.0, (10**6, 10**6)), mesh.sharding("x"))

    def step(x):
        x = np.where(x > 0, np.exp(-x), x) + np.roll(x, 1, 0)
        x[0] = 0
        return (x @ x.T.copy()).sum(), np.sort(x, 0).reshape(-1)

    report = explain(step, large)
    assert report.nbytes > 10**12
    assert large.shards[0][0, 0] == 1


def test_a_plan_describes_arrays_inside_of_arguments_and_leaves_others():
    seen = explain(lambda pair, *, scale: pair[0]["a"] * scale + pair[1], [{"a": ROWS}, ROWS], scale=np.float64(2))
    assert [operation.name for operation in seen.operations] == ["multiply", "add"]
    np.testing.assert_array_equal(ROWS, np.arange(8.0).reshape(4, 2))


def test_arrays_of_several_processes_are_not_planned():
    def program(member):
        x = shard(np.ones(4), Mesh({"x": 2}, member=member).sharding("x"))
        with pytest.raises(ringlet.errors.ShardingError, match="Create the mesh without member="):
            explain(np.sum, x)

    run_on_ranks(2, program)


def _unreduced():
    mesh = Mesh({"x": 2})
    return shard(np.ones((4, 16)), mesh.sharding(None, "x")), shard(np.ones((16, 4)), mesh.sharding("x", None))


def test_results_that_are_unreduced_when_the_block_ends_are_counted():
    a, b = _unreduced()
    with explain() as report:
        product = a @ b
    assert str(report).endswith("1 operation, nothing sent; 1 result is unreduced: 256 B when it is used")
    with explain() as used:
        product.numpy()
    assert [str(operation) for operation in used.operations] == [str(reduction) for reduction in report.unreduced]
    assert (report.nbytes, used.nbytes, used.unreduced) == (0, 256, [])


@pytest.mark.parametrize(
    ("results", "due"),
    [
        (lambda a, b: None, 0),
        (lambda a, b: a @ b + 1 > 2, 0),
        (lambda a, b: (a @ b).T, 1),
        (lambda a, b: a @ b * 2, 1),
        (lambda a, b: (p := a @ b, p * 2, -p), 1),
        (lambda a, b: (a @ b, a @ b), 2),
        (lambda a, b: (a @ b)[:2], 1),
        (lambda a, b: (a @ b).T.reshape(2, 8), 1),
        (lambda a, b: (p := a @ b, p.T), 2),
        (lambda a, b: (p := a @ b, p[:2], p[2:]), 3),
        (lambda a, b: (p := a @ b, p[:2], p * 2), 2),
    ],
)
def test_what_is_unreduced_is_what_the_use_of_all_kept_results_reduces(results, due):
    with explain() as report:
        kept = results(*_unreduced())
    assert len(report.unreduced) == due
    with explain() as used:
        for result in kept if isinstance(kept, tuple) else (kept,):
            np.asarray(result)
    assert [operation.nbytes for operation in used.operations] == [each.nbytes for each in report.unreduced]


def test_a_plan_lists_the_reduction_of_its_result():
    assert [operation.name for operation in explain(np.matmul, *_unreduced()).operations] == ["matmul", "reduce"]


def test_a_value_in_place_of_a_function_is_refused():
    told = "of type ShardedArray: write explain(np.matmul, a, b) instead of explain(np.matmul(a, b)), or with"
    with pytest.raises(TypeError, match=re.escape(told)):
        explain(np.exp(ROWS))


def test_a_plan_of_plain_arrays_says_why_it_is_empty():
    plain = np.ones((2, 2))
    assert str(explain(np.matmul, plain, plain)).endswith("nothing sent (no argument is a sharded array)")
    assert "no argument" not in str(explain(lambda pair: None, [{"a": ROWS}]))
