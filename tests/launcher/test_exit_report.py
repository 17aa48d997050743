"""Which worker failed first, and what is said about it."""

from __future__ import annotations

import dataclasses
import signal

import pytest

from ringlet.launcher.exit_report import Ending, first_failure, job_status, shown_failure, summary, workers_text


def raised(worker, at, error="ValueError: bad", asked_at=None, status=1):
    return Ending(worker, status, at, asked_at, f"Traceback (most recent call last):\n  File ...\n{error}\n", error)


LINK = "During handling of the above exception, another exception occurred:"
HEAD = "Traceback (most recent call last):\n  File ..."
FOLLOWS = "ringlet.errors.CollectiveAborted: /job:worker/task:2 raised ValueError: bad"


@pytest.mark.parametrize(
    ("endings", "worker", "status"),
    [
        # how they ended, who failed first, exit status
        ([Ending(0, 0, 1.0), Ending(1, 0, 2.0)], None, 0),
        ([Ending(0, 0, 1.0), Ending(1, 3, 2.0)], 1, 3),
        ([raised(0, 2.0), raised(1, 1.0)], 1, 1),
        # what came of such an error follows as well, and what such an error came of does not
        ([raised(0, 1.0, f"{FOLLOWS}\n\n{LINK}\n\n{HEAD}\nRuntimeError: failed"), raised(2, 1.1)], 2, 1),
        ([raised(0, 1.0, FOLLOWS), raised(2, 1.1, f"ValueError: bad\n\n{LINK}\n\n{HEAD}\n{FOLLOWS}")], 2, 1),
        ([raised(0, 1.0, FOLLOWS), raised(2, 1.1)], 2, 1),
        ([raised(0, 1.0, FOLLOWS), Ending(2, -9, 1.1)], 2, 137),
        ([raised(0, 1.0, "ringlet.errors.WorkerLostError: rank 2 ..."), Ending(2, 7, 1.1)], 2, 7),
        ([raised(0, 1.0, "torch.distributed.DistBackendError: WorkerLostError: rank 2"), Ending(2, 7, 1.1)], 2, 7),
        ([raised(0, 1.0, "AssertionError: WorkerLostError not raised"), Ending(2, 7, 1.1)], 0, 1),
        ([Ending(0, -15, 1.2, asked_at=1.1), raised(1, 1.0)], 1, 1),
        # it has a handler for the signal with which it was asked to end
        ([raised(0, 1.0, FOLLOWS), Ending(1, -15, 1.3, asked_at=1.3), Ending(2, 5, 1.4, asked_at=1.3)], 0, 1),
        # its traceback came first, but it took its time to end, and was killed while it did
        ([raised(0, 1.0, FOLLOWS), raised(2, 0.9, asked_at=1.3, status=-15)], 2, 1),
    ],
)
def test_the_first_failure_is_the_first_that_does_not_follow_from_another_one(endings, worker, status):
    for order in (endings, endings[::-1]):
        first = first_failure(order)
        assert (None if first is None else first.worker) == worker
        assert job_status(order, None) == status


def test_a_signal_to_the_launcher_decides_the_status_unless_all_end_well():
    endings = [Ending(0, 0, 1.0, asked_at=0.5), Ending(1, -15, 1.0, asked_at=0.5)]
    assert job_status(endings, signal.SIGTERM) == 143
    assert job_status(endings[:1], signal.SIGTERM) == 0


def test_a_failed_job_is_summed_up_in_one_line_with_who_was_ended():
    endings = [Ending(3, -15, 1.2, asked_at=1.1), raised(2, 1.0), Ending(0, -15, 1.2, asked_at=1.1), Ending(1, 0, 0.5)]
    assert summary(endings, None, 4) == ["worker 2 of 4 exited with status 1; workers 0 and 3 were terminated"]


def test_errors_that_follow_are_folded_and_those_of_others_are_named():
    endings = [raised(2, 1.0), raised(3, 1.1, FOLLOWS), raised(0, 1.1, FOLLOWS), raised(1, 1.2, "KeyError: 'x'")]
    assert summary(endings, None, 4)[1:] == [
        f"workers 0 and 3 failed because of it: {FOLLOWS}",
        "worker 1 failed too: KeyError: 'x'",
    ]


def test_many_different_errors_are_cut_short():
    endings = [raised(worker, 1.0 + worker, f"KeyError: {worker}") for worker in range(20)]
    lines = summary(endings, None, 4)
    assert len(lines) == 6
    assert lines[-1] == "and 15 others; --all-tracebacks shows them"


def test_all_errors_are_listed_where_no_option_shows_the_rest():
    endings = [raised(worker, 1.0 + worker, f"KeyError: {worker}") for worker in range(20)]
    assert len(summary(endings, None, 20, most_errors=20)) == 20


def test_a_worker_that_ends_without_a_traceback_is_quoted():
    lines = summary([Ending(0, 1, 1.0, last_line="no data")], None, 1)
    assert lines == ["worker 0 of 1 exited with status 1", "its last line on standard error: no data"]


@pytest.mark.parametrize("words", ["Traceback (most recent call last):\n  File ...\n{}\n", ""])
def test_a_backend_that_is_not_registered_is_answered_with_the_import(words):
    error = "AssertionError: Unknown backend type ringlet"  # by torch
    (_, hint) = summary([Ending(0, 1, 1.0, words=words.format(error), last_line=error)], None, 1)
    assert hint == "write import ringlet.torch before init_process_group: it registers the backend"


LOST = "ringlet.errors.WorkerLostError: /job:worker/task:1 (pid 71 on node) exited with status 0; step"
CLOSED = (
    "ringlet.errors.CollectiveMismatchError: all_reduce(SUM), call 3 of rank 0, waits for ranks that make no more "
    "calls: rank 0 (pid 70, after 2 calls), rank 1 (closed its group after 2 calls). Make the same calls"
)


@pytest.mark.parametrize("error", [LOST, CLOSED])
def test_a_worker_that_leaves_early_is_the_cause(error):
    endings = [raised(0, 1.0, error), Ending(1, 0, 0.9, pid=71), raised(2, 1.1, error)]
    assert summary(endings, None, 3) == [
        "worker 1 of 3 exited with status 0 while others waited for its next call",
        "all workers must make the same calls: look for a loop that this worker leaves early, or a call that it skips",
        f"worker 2 failed because of it: {error}",
    ]
    assert job_status(endings, None) == 1


@pytest.mark.parametrize("error", [LOST, CLOSED])
def test_a_worker_that_makes_a_call_too_many_is_the_cause(error):
    endings = [raised(0, 1.0, error), Ending(1, 0, 0.9, pid=71), Ending(2, 0, 1.1)]
    assert summary(endings, None, 3) == [
        "worker 0 of 3 made a call that the others, which exited with status 0, did not make",
        "all workers must make the same calls: look for a loop that this worker leaves late, or a call that only it "
        "makes",
    ]


def test_no_side_is_the_cause_if_it_is_no_majority_that_finished_or_waits():
    hint = "all workers must make the same calls: look for a loop that some leave early, or a call that only some make"
    endings = [raised(0, 1.0, LOST), Ending(1, 0, 0.9, pid=71)]
    assert summary(endings, None, 2) == [
        "worker 1 of 2 exited with status 0 while others waited for its next call",
        hint,
    ]
    endings += [raised(2, 1.1, LOST), Ending(3, 0, 0.9)]
    assert summary(endings, None, 4) == [
        "workers 1 and 3 of 4 exited with status 0 while others waited for their next call",
        hint,
        f"worker 2 failed because of it: {LOST}",
    ]


def differ(*lines):
    places = ["" if ASYNCHRONOUS in line else f", in <module> (step.py:{number})" for number, line in enumerate(lines)]
    table = "".join(f"\n  {line}{place}" for line, place in zip(lines, places, strict=True))
    callers = lines[0].split()[0].rstrip("s") if lines and lines[0].startswith(("replica", "worker")) else "rank"
    text = f"the {callers}s did not make the same call (their call number 1):{table}"
    return f"ringlet.errors.CollectiveMismatchError: {text}"


ASYNCHRONOUS = "while the main thread is in train"
NOT_THE_CALL = "did not make the call that the others made"
DIFFERENT = [
    # the calls of the workers, the worker that counts as the first, the headline, the others
    ([f"rank {rank}: all_reduce(SUM, float64[{3 if rank == 1 else 2}])" for rank in range(3)], 1, NOT_THE_CALL),
    ([f"replica {rank} (/job:worker/task:{rank // 2}): reduce({rank // 4})" for rank in range(6)], 2, NOT_THE_CALL),
    (
        [f"rank {rank}: gather({'abc'[rank > 1]!r}), {ASYNCHRONOUS} (step.py:{rank + 5})" for rank in range(3)],
        2,
        NOT_THE_CALL,
    ),
    ([f"rank {rank}: barrier('a, in {rank > 1}')" for rank in range(3)], 2, NOT_THE_CALL),
    ([f"rank {rank}: all_reduce(SUM, float64[{rank}])" for rank in range(3)], 0, "exited with status 1"),
    ([f"rank {rank}: barrier" for rank in range(3)], 0, "exited with status 1"),
    # many ranks: one line for equal calls
    (["ranks 0 to 15, 17: barrier('a')", "rank 16: barrier('b')"], 16, NOT_THE_CALL),
    (["workers 0 to 2, 4 to 17: barrier('a')", "/job:worker/task:3: barrier('b')"], 3, NOT_THE_CALL),
    (["replicas 0 to 5, 8 to 35: barrier('a')", "replicas 6, 7: barrier('b')"], 3, NOT_THE_CALL),
    (["replicas 0 to 6, 8 to 35: reduce()", "replica 7 (/job:worker/task:3): barrier()"], 3, NOT_THE_CALL),
    (["rank 0: barrier('b')", "ranks 1 to 14: barrier('a')", "and 3 more"], 0, "exited with status 1"),
    # the ranks of this group are not the workers
    ([f"rank {rank}: barrier({rank == 2})" for rank in range(4)], 0, "exited with status 1"),
]


@pytest.mark.parametrize(("calls", "cause", "line"), DIFFERENT)
def test_a_worker_whose_call_differs_from_that_of_most_is_the_cause(calls, cause, line):
    num_workers = 18 if " to " in "".join(calls) else 3
    endings = [raised(worker, 1.0 + worker, differ(*calls)) for worker in range(num_workers)]
    failed = "failed because of it" if line == NOT_THE_CALL else "failed too"
    others = workers_text([worker for worker in range(num_workers) if worker != cause])
    assert summary(endings, None, num_workers) == [
        f"worker {cause} of {num_workers} {line}",
        f"{others} {failed}: {differ(*calls).splitlines()[0]}",
    ]
    assert first_failure(endings) is endings[cause]


def test_ranks_of_a_group_within_one_worker_are_not_taken_for_workers():
    table = differ("rank 0: barrier()", "rank 1: barrier()", "rank 2: barrier()", "rank 3: split()")
    assert summary([raised(0, 1.0, table), Ending(1, -15, 1.4, asked_at=1.3)], None, 2) == [
        "worker 0 of 2 exited with status 1; worker 1 was terminated"
    ]


@pytest.mark.parametrize(("group", "cause"), [(3, 2), (2, 1)], ids=["of the replicas", "of the workers"])
def test_replicas_within_one_worker_are_not_taken_for_workers(group, cause):
    table = differ("rank 0: barrier()", "rank 1: split()", "rank 2: barrier()") + f"\nraised in replica 0 of {group}"
    endings = [Ending(0, -15, 1.4, asked_at=1.3), raised(1, 1.6, table), raised(2, 1.0, table)]
    assert first_failure(endings) is endings[cause]


LATE = "ringlet.errors.DeadlineExceededError: all_reduce(SUM), call 2 of rank 0, waited 2 s for rank 1 (pid 71, stopped"


@pytest.mark.parametrize("error", [f"{LATE}, after 1 call).", f"{LATE}) to finish their part of it."])
def test_a_worker_that_others_waited_for_is_the_cause_of_a_time_out(error):
    endings = [raised(0, 1.0, error), Ending(1, -9, 1.4, asked_at=1.3, pid=71), raised(2, 1.1, error)]
    assert summary(endings, None, 3) == [
        "worker 1 of 3 kept others waiting for 2 s; worker 1 was terminated",
        f"worker 2 failed because of it: {error}",
    ]
    assert job_status(endings, None) == 1
    endings[1] = dataclasses.replace(raised(1, 1.2, "KeyError: 'x'"), pid=71)
    assert summary(endings, None, 3)[1:] == [
        "worker 1 failed too: KeyError: 'x'",
        f"worker 2 failed because of it: {error}",
    ]


def test_a_worker_that_ended_well_is_not_the_cause_of_another_error():
    endings = [raised(0, 1.0, "KeyError: 'x'"), Ending(1, 0, 0.9, pid=71), raised(2, 1.1, LOST)]
    assert summary(endings, None, 3)[0] == "worker 0 of 3 exited with status 1"


def test_who_was_killed_learns_where_to_look():
    lines = summary([Ending(0, -9, 1.0)], None, 1)
    assert lines[0] == "worker 0 of 1 was killed by SIGKILL (signal 9)"
    assert "dmesg" in lines[1]


def test_a_crash_without_output_names_the_variable_that_prints_the_stack():
    line = "worker 0 of 1 was killed by SIGSEGV (signal 11)"
    assert summary([Ending(0, -11, 1.0)], None, 1) == [line, "PYTHONFAULTHANDLER=1 prints the stack of the crash"]
    assert "its last line" in summary([Ending(0, -11, 1.0, last_line="no data")], None, 1)[1]


def test_many_workers_are_named_in_ranges():
    assert workers_text([3]) == "worker 3"
    assert workers_text([0, 2, 3]) == "workers 0, 2 and 3"
    assert workers_text([7, 0, 1, 2, 5]) == "workers 0 to 2, 5 and 7"
    assert workers_text(range(64)) == "workers 0 to 63"


def test_ctrl_c_is_called_so():
    endings = [Ending(0, -2, 1.0, asked_at=0.5), Ending(1, -2, 1.0, asked_at=0.5)]
    assert summary(endings, signal.SIGINT, 2) == ["Ctrl-C: all 2 workers have ended"]
    assert summary(endings, signal.SIGHUP, 2) == ["SIGHUP: all 2 workers have ended"]
    assert summary(endings, signal.SIGPIPE, 2) == []


def test_after_ctrl_c_the_worker_that_others_waited_for_is_shown():
    text = "all_reduce(SUM), call 2 of rank 0, was interrupted while it waited for rank 1 (pid 71, after 1 call)"
    endings = [raised(0, 1.0, f"KeyboardInterrupt\n{text}.", asked_at=0.5)]
    endings += [dataclasses.replace(raised(1, 1.1, "KeyboardInterrupt", asked_at=0.5), pid=71)]
    assert summary(endings, signal.SIGINT, 2) == ["Ctrl-C: all 2 workers have ended", text]
    assert shown_failure(endings, signal.SIGINT) is endings[1]
    assert shown_failure(endings, None) is endings[0]
    of_torch = [raised(0, 1.0, f"torch.distributed.DistBackendError: CollectiveAborted: {text}.", asked_at=0.5)]
    assert summary([*of_torch, endings[1]], signal.SIGINT, 2)[1:] == [text]
    endings[1] = dataclasses.replace(raised(1, 1.1, f"KeyboardInterrupt\n{text}."), pid=71)
    assert summary(endings, signal.SIGINT, 2) == ["Ctrl-C: all 2 workers have ended"], "the traceback has the text"
    follows = raised(1, 1.1, f"{FOLLOWS}\n\n{LINK}\n\n{HEAD}\nKeyboardInterrupt", asked_at=0.5)
    endings[1] = dataclasses.replace(follows, pid=71)
    assert shown_failure(endings, signal.SIGINT) is endings[0], "another replica of worker 1 was late"
    endings[1] = Ending(1, -9, 2.0, asked_at=0.5, pid=71)
    assert shown_failure(endings, signal.SIGINT) is endings[0]


def test_workers_that_outlasted_the_grace_period_are_named():
    endings = [Ending(0, -9, 2.0, asked_at=0.5), Ending(1, 0, 1.0, asked_at=0.5), Ending(2, -9, 2.0, asked_at=0.5)]
    killed = "; workers 0 and 2 had not ended within --grace-seconds and were killed"
    assert summary(endings, signal.SIGTERM, 3) == [f"SIGTERM: all 3 workers have ended{killed}"]
    assert summary(endings, signal.SIGINT, 3) == ["Ctrl-C: all 3 workers have ended"]
    assert summary(endings[:1], signal.SIGTERM, 1) == [
        "SIGTERM: worker has ended; worker 0 had not ended within --grace-seconds and was killed"
    ]
