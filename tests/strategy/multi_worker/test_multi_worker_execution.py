"""Runs of several replicas of one of several workers: a replica that ends never leaves another one waiting."""

from __future__ import annotations

import re
import textwrap

import pytest

# What replicas 1 and 3 do instead of an all_reduce, the exception of their worker, and words that all workers report.
SIBLINGS = {
    "returns": ("return None", "CollectiveAborted", "has returned, and replica "),
    "raises": ("{}['weights']", "KeyError", "raised KeyError: 'weights'"),
    "cannot make the call": (
        "return replica().all_reduce('SUM', np.array([None]))",
        "InvalidArgumentError",
        "raised ringlet.errors.InvalidArgumentError",
    ),
    "calls merge_call": ("return replica().merge_call(lambda s: 1)", "CollectiveMismatchError", "merge_call"),
}


def errors_of(workers, program):
    """Class and text of the errors that each worker gets from a run of the program's `step`, and from the next call."""
    calls = """
        answer = []
        for call in (lambda: strategy.run(step), lambda: strategy.reduce("SUM", 1.0, axis=None)):
            try:
                call()
            except Exception as error:
                answer.append([type(error).__name__, str(error)])
    """
    return workers.run(program + calls)


@pytest.mark.parametrize("case", SIBLINGS)
@pytest.mark.parametrize("workers_with_it", [[0, 1], [1]], ids=["both workers", "one worker"])
def test_a_replica_that_does_something_else_is_named_on_all_workers(two_by_two, case, workers_with_it):
    statement, kind, words = SIBLINGS[case]
    program = f"""
        strategy.run(lambda: replica().all_reduce("SUM", 1.0))
        def step():
            if rank() % 2 and me in {workers_with_it}:
                {statement}
            return replica().all_reduce("SUM", np.ones(3))
    """
    answers = errors_of(two_by_two, program)
    if "raised" in words and workers_with_it == [0, 1] and all(len(errors) == 1 for errors in answers):
        # On both workers, replicas 0 and 2 saw the error before they made their call: all went on together.
        assert [errors[0][0] for errors in answers] == [kind, kind]
        return
    for worker, (first, again) in enumerate(answers):
        # A worker that is notified by the other one's replica first has not reached that call itself.
        kinds = {"CollectiveAborted", kind if worker in workers_with_it else "CollectiveAborted"}
        aborted = first[0] in kinds and again[0] == "CollectiveAborted"
        if aborted and words in again[1]:
            assert "Start all workers again" in again[1]
        else:  # replica 2 saw the error before it made its call, so that worker 1 went on to the next one
            assert "raised" in words
            assert workers_with_it == [1]
            assert [each for each, _ in answers[0]] == ["CollectiveMismatchError"] * 2
            assert first[0] == (kind if worker else "CollectiveMismatchError")
            assert "barrier('resuming after an exception left the strategy')" in again[1]


def test_a_worker_that_handles_an_exception_before_its_other_replica_calls_is_a_mismatch(two_by_two):
    program = """
        def step():
            if me == 1 and rank() == 3:
                raise KeyError("weights")
            if me == 1:
                while not replica()._run.is_stopping:
                    time.sleep(0.001)
            return replica().all_reduce("SUM", np.ones(3))
    """
    waiting, raising = errors_of(two_by_two, program)
    assert raising[0] == ["KeyError", "'weights'"]
    for kind, text in (*waiting, raising[1]):
        assert kind == "CollectiveMismatchError"
        assert "replica 1 (/job:worker/task:0): all_reduce(SUM, float64[3]), call 1 of its strategy.run" in text
        assert "barrier('resuming after an exception left the strategy'), outside of strategy.run" in text


UNEVEN = {
    # what workers do after a first run, and what the message reports of worker 0 and of worker 1
    "one more in a step": (
        """
        def step():
            return [replica().all_reduce("SUM", 1.0) for _ in range(2 if me == 0 else 1)]
        for _ in range(2):
            strategy.run(step)
        """,
        ["call 2 of its strategy.run", "call 1 of its strategy.run"],
    ),
    "one more step": (
        """
        for _ in range(2 if me == 0 else 1):
            strategy.run(lambda: replica().all_reduce("SUM", 1.0))
        strategy.reduce("SUM", 1.0, axis=None)
        """,
        ["call 1 of its strategy.run", "outside of strategy.run"],
    ),
    "one more outside": (
        """
        for _ in range(2 if me == 0 else 1):
            strategy.reduce("SUM", 1.0, axis=None)
        strategy.run(lambda: replica().all_reduce("SUM", 1.0))
        """,
        ["outside of strategy.run", "call 1 of its strategy.run"],
    ),
    "one more element": (
        """
        batches = iter(strategy.distribute_dataset(ringlet.data.Dataset.range(32).batch(8)))
        next(batches)
        if me == 0:
            next(batches)
        strategy.run(lambda: replica().all_reduce("SUM", 1.0))
        """,
        ["outside of strategy.run, for a distributed dataset", "call 1 of its strategy.run"],
    ),
}


@pytest.mark.parametrize("case", UNEVEN)
def test_an_extra_call_on_one_worker_does_not_match_the_next_step_of_the_others(workers, case):
    program, places = UNEVEN[case]
    first = "strategy.run(lambda: replica().all_reduce('SUM', 1.0))\n"
    for failure in workers.run(first + textwrap.dedent(program)):
        assert failure.kind == "CollectiveMismatchError"
        for worker, place in enumerate(places):
            lines = [line for line in failure.text.splitlines() if f"/job:worker/task:{worker}" in line]
            assert len(lines) == workers.num_local
            site = r"(, (while the main thread is )?in \S+ \(\S+:\d+\))?"
            made = re.compile(rf".*all_reduce\(SUM, (float|int)64\[\]\), {re.escape(place)}{site}")
            assert all(made.fullmatch(line) for line in lines), lines


def test_calls_that_were_refused_and_runs_without_calls_do_not_count(workers):
    program = """
        def step():
            if me == 1:
                try:
                    replica().all_reduce("SUM", np.array(["text"]))
                except ValueError:
                    pass
            return float(replica().all_reduce("SUM", 1.0))
        answer = []
        for _ in range(2):
            for _ in range(me):
                strategy.run(lambda: 3)
            answer.append(strategy.experimental_local_results(strategy.run(step))[0])
    """
    assert workers.run(program) == [[2.0 * workers.num_local] * 2] * 2


def test_a_replica_that_fails_while_another_one_waits_for_the_other_workers_is_not_waited_for(two_by_two):
    program = """
        def step():
            if rank() == 3:
                all = strategy.extended._workers
                while not (all._joining.locked() or all.is_joined):
                    time.sleep(0.001)
                raise LookupError("in the last one")
            return replica().all_reduce("SUM", 1.0)
        if me == 0:
            time.sleep(0.2)
            strategy.run(lambda: strategy.extended._workers.members() and None)
        else:
            strategy.run(step)
    """
    first, second = two_by_two.run(program)
    assert first is None
    assert second.kind == "LookupError"
    assert second.seconds < 10


def test_replicas_that_all_raise_before_they_wait_leave_the_strategy_usable(two_by_two):
    program = """
        def step(ends):
            replica().all_reduce("SUM", 1.0)
            if ends:
                raise LookupError("no more")
            return float(replica().all_reduce("SUM", 1.0))
        told = []
        for ends in (True, False, True, False):
            try:
                told.append(strategy.experimental_local_results(strategy.run(step, args=(ends,)))[0])
            except LookupError as error:
                told.append(str(error))
        answer = told
    """
    assert two_by_two.run(program) == [["no more", 4.0] * 2] * 2


def test_different_structures_in_one_process_are_an_error(two_by_two):
    program = "strategy.run(lambda: replica().all_reduce('SUM', {'ab'[rank() % 2]: 1.0}))"
    for failure in two_by_two.run(program):
        assert failure.kind == "CollectiveMismatchError"
        assert "all_reduce of the leaves (" in failure


def test_a_merge_call_is_between_the_replicas_of_one_process(two_by_two):
    program = """
        def merge(s, x):
            return [list(x.values), float(s.reduce("SUM", x, axis=None))]
        answer = strategy.run(lambda: replica().merge_call(merge, args=(float(rank()),)))
    """
    assert two_by_two.run(program) == [[[0.0, 1.0], 6.0], [[2.0, 3.0], 6.0]]


def test_a_single_replica_has_its_own_value_in_a_merge_call(two_workers):
    program = """
        merge = lambda s, x: [x, float(s.reduce("SUM", x, axis=None)), ringlet.in_cross_replica_context()]
        answer = strategy.run(lambda: replica().merge_call(merge, args=(float(rank()),)))
    """
    assert two_workers.run(program) == [[0.0, 1.0, True], [1.0, 1.0, True]]


def test_a_function_of_map_makes_no_collective_call(workers):
    program = """
        told = []
        merge = lambda x: replica().merge_call(lambda s, y: y, args=(x,))
        for call in (lambda x: replica().all_reduce("SUM", x), merge):
            try:
                strategy.map(call, np.arange(8.0))
            except RuntimeError as error:
                told.append("the function of map called" in str(error))
        answer = [*told, len(strategy.map(np.sqrt, np.arange(8.0)))]
    """
    assert workers.run(program) == [[True, True, 8]] * 2


def test_a_replica_context_that_was_kept_is_refused_after_its_run(workers):
    program = """
        kept = []
        strategy.run(lambda: kept.append(replica()))
        try:
            strategy.run(lambda: kept[0].all_reduce("SUM", 1.0))
        except RuntimeError as error:
            answer = str(error)
    """
    assert all("belongs to another replica, or to a run that has ended" in told for told in workers.run(program))


def test_the_failures_of_replicas_are_numbered_over_all_workers(two_by_two):
    program = """
        def step():
            if rank() == 3:
                raise LookupError("in the last one")
        strategy.run(step)
    """
    first, second = two_by_two.run(program)
    assert first is None
    assert second.kind == "LookupError"
    assert "raised in replica 3 of 4" in second


def test_an_update_that_waits_for_other_workers_is_made_in_replica_0s_thread(two_by_two):
    """Where the last replica makes it, the others' time-out would include the wait for other workers."""
    program = """
        import threading, time
        strategy = ringlet.MultiWorkerMirroredStrategy()
        with strategy.scope():
            variable = ringlet.Variable(0.0, aggregation=ringlet.VariableAggregation.SUM)
        threads, first = [], []
        class Value:
            def __array__(self, dtype=None, copy=None):
                threads.append(threading.get_ident())
                return np.asarray(1.0, dtype)
        def step():
            if rank() % 2:
                time.sleep(0.05)
            else:
                first.append(threading.get_ident())
            return variable.assign_add(Value())
        total = strategy.run(step)
        answer = [float(total.values[0]), set(threads) == set(first)]
    """
    assert two_by_two.run(program) == [[4.0, True]] * 2
