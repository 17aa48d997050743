"""Several steps in one call: what their context keeps."""

from __future__ import annotations

import pytest

import ringlet
from ringlet.strategy.api.multi_step import MultiStepContext
from ringlet.values import PerReplica
from tests.strategy.replicas import replica_id

STRATEGY = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])


def run(step, iterations=1, size=8):
    iterator = STRATEGY.make_dataset_iterator(ringlet.data.Dataset.range(size).batch(2))
    return STRATEGY.extended.experimental_run_steps_on_iterator(step, iterator, iterations)


def test_steps_run_in_cross_replica_context_of_the_strategy():
    seen = []
    run(lambda context, batch: seen.append((ringlet.get_strategy() is STRATEGY, ringlet.in_cross_replica_context())), 3)
    assert seen == [(True, True)] * 3
    assert not ringlet.has_strategy()


def test_outputs_are_those_of_the_last_step():
    done = run(lambda context, batch: context.set_last_step_output("batch", batch), 3)
    assert [part.tolist() for part in done.last_step_outputs["batch"].values] == [[4], [5]]
    assert done.run_op is None


def test_initial_values_are_not_needed():
    iterator = STRATEGY.make_dataset_iterator(ringlet.data.Dataset.range(4).batch(2))
    done = STRATEGY.extended.experimental_run_steps_on_iterator(
        lambda context, batch: context.set_last_step_output("rows", batch, "SUM"), iterator, 2, {"other": [1, 2, 3]}
    )
    assert done.last_step_outputs["rows"].tolist() == [5]


@pytest.mark.parametrize(("op", "expected"), [("SUM", 9), (ringlet.ReduceOp.MEAN, 4.5)])
def test_outputs_are_combined_where_an_operation_is_named(op, expected):
    done = run(lambda context, batch: context.set_last_step_output("rows", batch, op), 3)
    assert done.last_step_outputs["rows"].tolist() == [expected]


def test_replicas_name_outputs_together():
    def step(context, batch):
        def in_replica(x):
            context.set_last_step_output("sum", x, "SUM")
            context.set_non_tensor_output("who", f"replica {replica_id()}")

        STRATEGY.extended.call_for_each_replica(in_replica, args=(batch,))

    done = run(step)
    assert done.last_step_outputs["sum"].tolist() == [1]
    assert done.non_tensor_outputs == {"who": ("replica 0", "replica 1")}


def test_a_replica_names_an_operation():
    with pytest.raises(ValueError, match=r"set_last_step_output\('x', ...\) was called by a replica without"):
        STRATEGY.run(lambda: MultiStepContext().set_last_step_output("x", 1.5))


def test_an_unknown_operation_is_refused():
    with pytest.raises(ValueError, match="'MAX' is not a valid ReduceOp"):
        MultiStepContext().set_last_step_output("x", PerReplica([1, 2]), "max")


def test_no_iterations_run_nothing():
    assert run(lambda context, batch: pytest.fail("ran"), 0).last_step_outputs == {}


@pytest.mark.parametrize("iterations", [None, 1.0, "2"])
def test_iterations_are_a_whole_number(iterations):
    with pytest.raises(TypeError, match="iterations is a number of steps, got"):
        run(lambda context, batch: pytest.fail("ran"), iterations)


def test_the_end_of_data_is_an_error():
    with pytest.raises(ringlet.errors.OutOfRangeError):
        run(lambda context, batch: None, 5)
    assert not ringlet.has_strategy()


def test_replicas_do_not_run_steps():
    with pytest.raises(RuntimeError, match="cross-replica context"):
        STRATEGY.run(lambda: run(lambda context, batch: None))
