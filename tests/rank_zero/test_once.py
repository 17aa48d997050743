"""once_per_host: one process of a machine works, the others wait for it, and hear of what goes wrong."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

import ringlet
from tests.strategy.workers import environment


def test_a_process_alone_does_the_work():
    calls = []
    assert ringlet.once_per_host(lambda: calls.append(1) or "answer") == "answer"
    assert calls == [1]


def test_a_process_alone_goes_first():
    with ringlet.once_per_host() as is_first:
        assert is_first


def test_an_answer_that_could_not_be_handed_over_is_refused_alone_too():
    with pytest.raises(TypeError, match="cannot be handed to other processes"):
        ringlet.once_per_host(object)


def test_what_the_function_raises_is_raised():
    with pytest.raises(KeyError, match="weights"):
        ringlet.once_per_host(lambda: {}["weights"])
    with pytest.raises(KeyError, match="weights"), ringlet.once_per_host():
        raise KeyError("weights")


def test_replicas_of_a_process_work_once_and_all_get_the_answer():
    calls = []
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"])
    answer = strategy.run(lambda: ringlet.once_per_host(lambda: calls.append(1) or ["a", Path("b")]))
    assert (calls, answer) == ([1], ["a", Path("b")])


def test_the_first_replica_goes_ahead_of_the_others():
    order = []

    def step():
        replica = int(ringlet.get_replica_context().replica_id_in_sync_group)
        with ringlet.once_per_host() as is_first:
            order.append((replica, is_first))

    ringlet.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"]).run(step)
    assert order[0] == (0, True)
    assert sorted(order[1:]) == [(1, False), (2, False)]


def test_an_error_of_the_first_replica_ends_the_others():
    def step():
        with ringlet.once_per_host() as is_first:
            if is_first:
                raise KeyError("weights")

    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    with pytest.raises(KeyError, match="weights"):
        strategy.run(step)
    assert strategy.run(lambda: ringlet.once_per_host(lambda: 5)) == 5


def test_what_is_done_within_the_work_of_one_process_is_done_by_it():
    def outer():
        return ringlet.once_per_host(lambda: "inner")

    assert ringlet.once_per_host(outer) == "inner"
    with ringlet.once_per_host():
        assert outer() == "inner"


PROGRAM = """
    import os, pathlib
    folder = pathlib.Path(path)
    def work():
        time.sleep(0.05)
        (folder / f"by-{me}-{os.getpid()}").write_text("done")
        return folder / "made"
    def step():
        return ringlet.once_per_host(work, name="make")
"""


def test_over_workers_one_process_works_for_all(workers, tmp_path):
    answers = workers.run(
        PROGRAM + "    answer = [str(ringlet.once_per_host(work)), str(strategy.run(step))]\n", path=str(tmp_path)
    )
    assert answers == [[f"{tmp_path}/made"] * 2] * 2
    (file,) = tmp_path.iterdir()
    assert file.name.startswith("by-0-")


def test_over_workers_the_others_go_on_when_the_first_is_through(workers, tmp_path):
    answers = workers.run(
        PROGRAM + "    with ringlet.once_per_host() as is_first:\n"
        "        before = sorted(file.name[:4] for file in folder.iterdir())\n"
        "        if is_first: work()\n"
        "    answer = [is_first, before]\n",
        path=str(tmp_path),
    )
    assert answers == [[True, []], [False, ["by-0"]]]


@pytest.mark.parametrize(
    "call",
    [
        "ringlet.once_per_host(broken, name='download')",
        "strategy.run(lambda: ringlet.once_per_host(broken, name='download'))",
    ],
    ids=["outside", "in replicas"],
)
def test_over_workers_an_error_reaches_all_and_they_go_on(workers, call):
    program = f"""
    def broken():
        raise OSError(28, "No space left on device")
    try:
        {call}
    except Exception as error:
        answer = [type(error).__name__, str(error).replace(chr(10), " ")]
    ringlet.once_per_host(lambda: 1)
    """
    first, second = workers.run(program)
    assert first == ["OSError", "[Errno 28] No space left on device"]
    assert second[0] == "CollectiveAborted"
    assert second[1].startswith("once_per_host('download') has failed: w0 (pid ")
    assert second[1].endswith("raised OSError: [Errno 28] No space left on device")


def test_over_workers_work_may_call_other_work(workers):
    program = """
    def outer():
        return [me, ringlet.once_per_host(lambda: "inner")]
    answer = [ringlet.once_per_host(outer)]
    with ringlet.once_per_host():
        answer.append(outer())
    def step():
        with ringlet.once_per_host() as is_first:
            return is_first
    answer.append([bool(strategy.experimental_local_results(strategy.run(step))[0]) for _ in range(2)])
    answer.append(ringlet.once_per_host(outer))
    """
    for worker, answer in enumerate(workers.run(program)):
        assert answer == [[0, "inner"], [worker, "inner"], [worker == 0] * 2, [0, "inner"]]


def test_over_workers_different_calls_are_told_apart_at_once_and_they_go_on(workers):
    program = """
    try:
        ringlet.once_per_host(lambda: 1, name=f"part {me}")
    except RuntimeError as error:
        answer = [type(error).__name__, str(error)]
    answer.append(ringlet.once_per_host(lambda: 5))
    """
    for worker, (kind, text, after) in enumerate(workers.run(program)):
        assert (kind, after) == ("CollectiveMismatchError", 5)
        assert text.startswith(f"once_per_host('part {worker}'): ")
        assert "part 0" in text
        assert "part 1" in text


SCRIPT = """
import ringlet
tell("here")
hear()
def work():
    tell("working")
    hear()
    return 5
try:
    tell(ringlet.once_per_host(work, name="download", timeout_seconds=float(sys.argv[1])))
except Exception as error:
    tell([type(error).__name__, str(error)])
"""


def start(processes, count, seconds=30, total=2):
    job = f"test {uuid.uuid4()}"
    started = [
        processes.start(SCRIPT, seconds, environ=environment(index, total, job_id=job)) for index in range(count)
    ]
    for process in started:
        assert process.told() == "here"
    for process in started:  # all of them have loaded what they need: they come to the call together
        process.say()
    return started


def test_without_a_strategy_processes_meet_by_tf_config(processes):
    first, second = start(processes, 2)
    assert first.told() == "working"
    first.say()
    assert (first.told(), second.told()) == (5, 5)


def test_a_process_that_is_killed_at_work_is_named(processes):
    first, second = start(processes, 2)
    assert first.told() == "working"
    first.kill()
    kind, text = second.told()
    assert kind == "WorkerLostError"
    assert text.startswith("once_per_host('download'): rank 0")
    assert "SIGKILL" in text


def test_a_process_that_never_comes_is_named_in_time(processes):
    (first,) = start(processes, 1, seconds=0.3)
    kind, text = first.told()
    assert kind == "DeadlineExceededError"
    assert "rank 1" in text
    assert "once_per_host('download')" in text


def test_work_that_takes_too_long_is_an_error_for_those_who_wait(processes):
    first, second = start(processes, 2, seconds=0.8)
    assert first.told() == "working"
    kind, text = second.told()
    assert kind == "DeadlineExceededError"
    assert "rank 0" in text
    first.say()
