"""What workers combine outside of replicas, and what one of them finds wrong by itself."""

from __future__ import annotations

import pytest

# What is called, what is raised, words of it.
REFUSED = {
    "no such axis": ("strategy.gather(np.ones(2), 5)", "InvalidArgumentError", "axis is 5"),
    "no axes": ("strategy.gather(np.float32(1), 0)", "InvalidArgumentError", "no axes"),
    "not text": ("strategy.gather(np.array([None]), 0)", "InvalidArgumentError", "holds NoneType"),
    "a sum of text": ("strategy.reduce('SUM', np.array(['a']), None)", "InvalidArgumentError", "dtype"),
    "another number of replicas": (
        "strategy.reduce('SUM', ringlet.values.PerReplica([1, 2, 3]), None)",
        "ValueError",
        "3 components",
    ),
    "the sum of what is mirrored": (
        "strategy.reduce('SUM', ringlet.values.Mirrored([1.0] * len(strategy.extended.worker_devices)), None)",
        "ValueError",
        "same on all",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_all_workers_refuse_by_themselves_leaves_the_strategy_usable(workers, case):
    call, kind, words = REFUSED[case]
    program = f"""
        try:
            {call}
        except Exception as error:
            told = [type(error).__name__, str(error)]
        answer = [*told, float(strategy.reduce("SUM", 1.0, axis=None))]
    """
    for found, text, total in workers.run(program):
        assert found == kind
        assert words in text
        assert total == 2.0 * workers.num_local


def test_what_is_mirrored_is_its_own_mean(workers):
    program = """
        value = ringlet.values.Mirrored([1.5 + me] * len(strategy.extended.worker_devices))
        answer = strategy.reduce("MEAN", value, axis=None)
    """
    assert workers.run(program) == [1.5, 2.5]


def test_results_that_are_wanted_on_devices_are_there_for_every_replica_of_a_worker(workers):
    program = """
        value = strategy.experimental_distribute_values_from_function(lambda c: np.ones(2))
        one = strategy.extended.reduce_to("SUM", value, "CPU:0")
        two, three = strategy.extended.batch_reduce_to("MEAN", [(value, value), ({"a": value}, "CPU:0")])
        answer = [len(strategy.experimental_local_results(x)) for x in (one, two, three["a"])]
        answer.append(strategy.experimental_local_results(one)[-1])
    """
    local = workers.num_local
    assert workers.run(program) == [[local] * 3 + [[2.0 * local] * 2]] * 2
