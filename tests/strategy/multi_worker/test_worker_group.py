"""Calls of all workers outside of replicas, and the errors when one of them ends."""

from __future__ import annotations

import pytest

from tests.strategy.workers import PROGRAM, environment


def start(processes, name, program, *, num_workers=2, num_local=1, indices=None, **changes):
    """Start workers, each with a program of its own."""
    return [
        processes.start(PROGRAM + program, environ=environment(index, num_workers, num_local, name, **changes))
        for index in (range(num_workers) if indices is None else indices)
    ]


def test_numbers_arrays_and_bytes_come_from_every_worker(workers):
    program = """
        all = strategy.extended._workers
        all.barrier("begin")
        root = all.broadcast(np.arange(3) + 10 * me, 1)
        answer = [all.sum(2**40 + me), root, [x.decode() for x in all.exchange(f"worker {me}".encode() * me)]]
    """
    assert workers.run(program) == [[2**41 + 1, [10, 11, 12], ["", "worker 1"]]] * 2


def test_a_worker_has_its_index_and_job_before_the_rendezvous(workers):
    program = """
        all = strategy.extended._workers
        answer = [all.num_workers, all.worker_index, all.is_chief, all.job, all.is_joined]
    """
    first, second = workers.run(program)
    assert first[:3] == [2, 0, True]
    assert second[:3] == [2, 1, False]
    assert first[3] == second[3]
    assert not first[4]


def test_barriers_of_different_names_are_a_mismatch_that_names_both(workers):
    for failure in workers.run("strategy.extended._workers.barrier(f'epoch {me}')"):
        assert failure.kind == "CollectiveMismatchError"
        assert "barrier('epoch 0')" in failure
        assert "barrier('epoch 1')" in failure


def test_calls_in_a_merge_call_are_those_of_the_run_that_waits(workers):
    program = """
        merge = lambda s: s.extended._workers.sum(me + 1)
        answer = strategy.run(lambda: replica().merge_call(merge))
    """
    assert workers.run(program) == [3, 3]


# --- mistakes ---------------------------------------------------------------------------------------------------------

MISMATCHES = {
    "shapes": "strategy.run(lambda: replica().all_reduce('SUM', np.ones(2 + me)))",
    "structures": "strategy.run(lambda: replica().all_reduce('SUM', {'bw'[me]: np.ones(2)}))",
    "structures of reduce": "strategy.reduce('SUM', {'bw'[me]: np.ones(2)}, axis=None)",
    "reduce and run": (
        "strategy.run(lambda: replica().all_reduce('SUM', 1.0)) if me "
        "else strategy.reduce('SUM', np.ones(2), axis=None)"
    ),
    "gather and barrier": "strategy.gather(np.ones(2), 0) if me else strategy.extended._workers.barrier('end')",
}


STRUCTURES = {"structures": "all_reduce", "structures of reduce": "reduce"}


@pytest.mark.parametrize("case", MISMATCHES)
def test_different_calls_are_an_error_on_all_workers_that_lists_them(workers, case):
    for failure in workers.run(MISMATCHES[case]):
        assert failure.kind == "CollectiveMismatchError"
        assert "/job:worker/task:0" in failure
        assert "/job:worker/task:1" in failure
        assert "Start all workers again" in failure
        assert failure.seconds < 5
        if call := STRUCTURES.get(case):
            assert f": {call} of the leaves ('b',), " in failure
            assert f": {call} of the leaves ('w',), " in failure
            assert "barrier" not in failure


def test_after_a_failure_every_call_raises_the_same_cause(workers):
    program = """
        told = []
        calls = [lambda: strategy.run(lambda: replica().all_reduce("SUM", np.ones(1 + me))),
                 lambda: strategy.run(lambda: replica().all_reduce("SUM", 1.0)),
                 lambda: strategy.reduce("SUM", 1.0, axis=None)]
        for call in calls:
            try:
                call()
            except Exception as error:
                told.append([type(error).__name__, str(error)])
        answer = [told, strategy.run(lambda: 3)]
    """
    for told, local in workers.run(program):
        assert [kind for kind, _ in told] == ["CollectiveMismatchError"] * 3
        assert len({text for _, text in told}) == 1
        assert local == 3


def test_an_exception_on_one_worker_only_is_detected_at_the_next_call(workers):
    program = """
        def step():
            if me == 1:
                raise LookupError("only here")
            return replica().all_reduce("SUM", 1.0)
        try:
            strategy.run(step)
        except LookupError:
            pass
        strategy.run(lambda: replica().all_reduce("SUM", 2.0))
    """
    for failure in workers.run(program):
        assert failure.kind == "CollectiveMismatchError"
        assert "resuming after an exception left the strategy" in failure


def test_ctrl_c_in_the_handling_of_a_failure_leaves_one_name_and_number(two_workers):
    program = """
        def step():
            try:
                replica().all_reduce("SUM", np.ones(1 + me))
            except ringlet.errors.CollectiveMismatchError:
                raise KeyboardInterrupt
        try:
            strategy.run(step)
        except KeyboardInterrupt as error:
            answer = [str(error.__context__), error.__notes__[0]]
    """
    for failure, note in two_workers.run(program):
        assert failure == note
        assert "/job:worker/task:1: all_reduce" in failure


def test_a_replica_that_waits_longer_than_its_options_allow_ends_the_strategy_for_all(workers):
    program = """
        options = ringlet.experimental.CommunicationOptions(timeout_seconds=0.3)
        strategy.run(lambda: replica().all_reduce("SUM", 1.0))
        while me == 1 and strategy.extended._workers.failure is None:
            time.sleep(0.01)
        strategy.run(lambda: replica().all_reduce("SUM", 1.0, options=options))
    """
    first, second = workers.run(program)
    assert first.kind == "DeadlineExceededError"
    assert second.kind == "CollectiveAborted"
    assert "waited 0.3 s" in second


# --- ends -------------------------------------------------------------------------------------------------------------

ENDINGS = [
    # what worker 1 does, the exception of the others, words of its message, replicas
    ("raise KeyError('weights')", "CollectiveAborted", "raised KeyError: 'weights' in end (<string>:", 1),
    ("raise KeyError('weights')", "CollectiveAborted", "raised KeyError: 'weights' in end (<string>:", 2),
    ("strategy.run(lambda: {}['bias'])", "CollectiveAborted", "raised KeyError: 'bias' in <lambda> (<string>:", 1),
    ("sys.exit(3)", "WorkerLostError", "exited with status 3", 2),
    ("sys.exit()", "WorkerLostError", "exited with status 0", 1),
    ("os.kill(os.getpid(), signal.SIGTERM)", "WorkerLostError", "was killed by SIGTERM (signal 15)", 1),
    ("os.kill(os.getpid(), signal.SIGKILL)", "WorkerLostError", "was killed by SIGKILL (signal 9)", 2),
    ("os.kill(os.getpid(), signal.SIGINT); time.sleep(9)", "CollectiveAborted", "raised KeyboardInterrupt", 1),
]

END = """
def end():
    {ending}
attempt(lambda: strategy.run(step))
if me == 1:
    hear()
    end()
    sys.exit()
attempt(lambda: strategy.run(step))
attempt(lambda: strategy.reduce("SUM", 1.0, axis=None))
"""


@pytest.mark.slow
@pytest.mark.parametrize("case", ENDINGS, ids=[f"{ending}-{count}" for ending, _, _, count in ENDINGS])
def test_all_others_get_the_name_and_reason_of_a_worker_that_ended(processes, name, case):
    ending, kind, words, num_local = case
    staying, leaving = start(processes, name, END.format(ending=ending), num_local=num_local)
    for process in (staying, leaving):
        assert process.told() == [2.0 * num_local, 4.0 * num_local]
    leaving.say()
    told, again = staying.told(), staying.told()
    assert told["kind"] == again["kind"] == kind
    for failure in (told, again):
        assert f"/job:worker/task:1 (pid {leaving.pid}" in failure["text"]
        assert words in failure["text"]
        assert ("make the same calls" if "status 0" in words else "again, from") in failure["text"]
    leaving.wait()
    assert staying.wait() == 0


INTERRUPTED = """
import threading
attempt(lambda: strategy.run(step))
hear()
core = strategy.extended._workers.members()[0]._core
calls = core.calls
def interrupt():
    while core.calls == calls:
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)
if me == 1:
    threading.Thread(target=interrupt).start()
attempt(lambda: strategy.run(step))
"""


def test_a_worker_interrupted_in_a_collective_is_named(processes, name):
    staying, leaving = start(processes, name, INTERRUPTED)
    assert (staying.told(), leaving.told()) == ([2.0, 4.0], [2.0, 4.0])
    leaving.say()
    interrupted = leaving.told()
    assert interrupted["kind"] == "KeyboardInterrupt"
    staying.say()
    told = staying.told()
    assert told["kind"] == "CollectiveAborted"
    for text in (told["text"], "".join(interrupted["notes"])):
        assert "of /job:worker/task:1, was interrupted while it waited for /job:worker/task:0 (pid" in text
    assert "Start all workers again" in told["notes"]


def test_the_traceback_of_the_worker_that_failed_is_shown_as_ever(processes, name):
    staying, leaving = start(processes, name, END.format(ending="raise KeyError('weights')"))
    leaving.say()
    assert leaving.wait() == 1
    assert "KeyError: 'weights'" in leaving.said()
    assert staying.wait() == 0


FALLS_SILENT = """
attempt(lambda: strategy.run(step))
if me == 1:
    hear()
    sys.exit()
attempt(lambda: strategy.run(step))
"""


def test_a_worker_missing_from_a_call_is_named_at_the_time_out(processes, name):
    waiting, silent = start(processes, name, FALLS_SILENT, SECONDS="1")
    assert (waiting.told(), silent.told()) == ([2.0, 4.0], [2.0, 4.0])
    told = waiting.told()
    assert told["kind"] == "DeadlineExceededError"
    assert "waited 1 s for /job:worker/task:1" in told["text"]
    assert "Start all workers again" in told["notes"]
    silent.say()


GIVES_AWAY = """
attempt(lambda: strategy.run(step))
if me == 1:
    del strategy
    tell("gone")
    hear()
    sys.exit()
attempt(lambda: strategy.run(step))
"""


def test_a_strategy_freed_on_one_worker_is_an_error_on_the_others(processes, name):
    staying, leaving = start(processes, name, GIVES_AWAY)
    assert leaving.told() == [2.0, 4.0]
    assert leaving.told() == "gone"
    assert staying.told() == [2.0, 4.0]
    told = staying.told()
    assert told["kind"] in ("WorkerLostError", "CollectiveMismatchError")
    assert "/job:worker/task:1" in told["text"]
    leaving.say()
