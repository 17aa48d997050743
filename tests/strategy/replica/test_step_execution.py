"""One run: the thread of each replica, the context they inherit from the caller, and failures."""

from __future__ import annotations

import contextvars
import gc
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from ringlet.errors import CollectiveAborted, CollectiveMismatchError
from tests.strategy.replicas import SECONDS, all_reduce, assert_usable, mirrored, replica, replica_id

# --- threads --------------------------------------------------------------------------------------------------------


def test_replicas_that_never_block_stay_in_the_callers_thread():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        threads = mirrored(4).run(threading.get_ident)
    finally:
        sys.setswitchinterval(interval)
    assert set(threads.values) == {threading.get_ident()}


def test_replica_0_runs_in_the_callers_thread():
    def step() -> int:
        all_reduce()
        return threading.get_ident()

    assert mirrored(3).run(step).values[0] == threading.get_ident()


def test_replicas_that_block_run_at_the_same_time():
    barrier = threading.Barrier(4, timeout=SECONDS)
    assert sorted(mirrored(4).run(barrier.wait).values) == [0, 1, 2, 3]


def test_one_replica_has_no_helper_thread():
    strategy = mirrored(1)
    assert_usable(strategy)
    assert strategy.extended._thread_pool.helpers() == []


@pytest.mark.parametrize("num_replicas", [17, 64])
def test_many_more_replicas_than_cores_work(num_replicas):
    strategy = mirrored(num_replicas)
    for _ in range(3):
        assert_usable(strategy)


# --- what replicas see of their caller ------------------------------------------------------------------------------


def test_context_variables_of_the_caller_are_visible_in_every_replica():
    variable = contextvars.ContextVar("variable", default="default")

    def step() -> tuple[str, str]:
        seen = variable.get()
        variable.set(f"replica {replica_id()}")
        all_reduce()
        return seen, variable.get()

    token = variable.set("caller")
    try:
        seen, own = mirrored(3).run(step)
        assert seen == "caller"
        assert own.values == ("replica 0", "replica 1", "replica 2")
        assert variable.get() == "caller"
    finally:
        variable.reset(token)


def test_numpys_error_state_of_the_caller_holds_in_every_replica():
    def step() -> Any:
        all_reduce()
        return np.float64(1) / np.float64(replica_id() * 0)

    strategy = mirrored(3)
    with np.errstate(divide="ignore"):
        assert strategy.run(step).values == (np.inf,) * 3
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        strategy.run(step)


# --- exceptions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_the_others_are_released_from_a_collective_by_an_exception(failing):
    ends: dict[int, type[BaseException]] = {}

    def step() -> None:
        try:
            if replica_id() == failing:
                time.sleep(0.01)
                raise KeyError("by itself")
            all_reduce()
        except BaseException as error:
            ends[replica_id()] = type(error)
            raise

    strategy = mirrored(3)
    with pytest.raises(KeyError, match="by itself") as caught:
        strategy.run(step)
    assert ends.pop(failing) is KeyError
    assert set(ends.values()) <= {CollectiveAborted}
    assert caught.value.__notes__ == [f"raised in replica {failing} of 3"]
    assert_usable(strategy)


def test_the_traceback_shows_the_line_of_the_replica():
    def step() -> None:
        all_reduce()
        if replica_id() == 1:
            raise KeyError("here")

    with pytest.raises(KeyError) as caught:
        mirrored().run(step)
    assert any(entry.name == "step" and "raise KeyError" in str(entry.statement) for entry in caught.traceback)


def test_the_lowest_replica_that_failed_by_itself_is_raised_and_the_others_are_named():
    barrier = threading.Barrier(3, timeout=SECONDS)

    def step() -> None:
        barrier.wait()
        if replica_id() > 0:
            raise KeyError(f"replica {replica_id()}")
        all_reduce()

    with pytest.raises(KeyError, match="replica 1") as caught:
        mirrored(3).run(step)
    assert caught.value.__notes__ == ["raised in replica 1 of 3; replica 2 also failed: KeyError: 'replica 2'"]


def test_a_mismatch_of_many_replicas_is_reported_once():
    strategy = mirrored(17)
    with pytest.raises(CollectiveMismatchError) as caught:
        strategy.run(mismatched, args=("shape",))
    assert caught.value.__notes__ == ["raised in replica 0 of 17; replicas 1-16: the same"]


def test_an_exception_that_wraps_an_abort_is_not_independent():
    def step() -> None:
        if replica_id() == 1:
            time.sleep(0.01)
            raise KeyError("the cause")
        try:
            all_reduce()
        except CollectiveAborted as error:
            raise ValueError("wrapped") from error

    with pytest.raises(KeyError, match="the cause"):
        mirrored().run(step)


@pytest.mark.parametrize("ending", [SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_exceptions_that_end_the_program_take_precedence(ending):
    barrier = threading.Barrier(2, timeout=SECONDS)

    def step() -> None:
        barrier.wait()
        if replica_id() == 1:
            raise ending
        raise KeyError("an exception")

    strategy = mirrored()
    with pytest.raises(type(ending)) as caught:
        strategy.run(step)
    assert caught.value is ending
    assert_usable(strategy)


def test_sys_exit_in_a_replica_ends_the_program_while_others_wait():
    code = """
import sys, numpy as np, ringlet
def step():
    replica = ringlet.get_replica_context()
    if int(replica.replica_id_in_sync_group) == 1:
        sys.exit(7)
    replica.all_reduce("SUM", np.ones(3))
ringlet.MirroredStrategy(["CPU:0", "CPU:1"]).run(step)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (7, "")


def test_replicas_that_have_not_begun_are_left_out_after_a_failure():
    begun: list[int] = []

    def step() -> None:
        begun.append(replica_id())
        raise KeyError("at once")

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        with pytest.raises(KeyError):
            mirrored(4).run(step)
    finally:
        sys.setswitchinterval(interval)
    assert begun == [0]


def test_a_failed_run_leaves_no_reference_to_its_arguments():
    class Tracked:
        pass

    def step(_: Any) -> None:
        raise KeyError("x")

    argument = Tracked()
    reference = weakref.ref(argument)
    gc.disable()
    try:
        with pytest.raises(KeyError):
            mirrored().run(step, args=(argument,))
        del argument
        assert reference() is None
    finally:
        gc.enable()


# --- mismatches -----------------------------------------------------------------------------------------------------


def mismatched(kind: str) -> Any:
    """The calls of replica 0 and of the others, which never match."""
    first = replica_id() == 0
    calls = {
        "shape": lambda: replica().all_reduce("SUM", np.ones(3 if first else 4)),
        "dtype": lambda: replica().all_reduce("SUM", np.ones(3, np.float32 if first else np.float64)),
        "operation": lambda: replica().all_reduce("SUM" if first else "MEAN", np.ones(3)),
        "structure": lambda: replica().all_reduce("SUM", [np.ones(3)] * (2 if first else 1)),
        "kind": lambda: all_reduce() if first else replica().merge_call(lambda _: None),
        "order": lambda: [replica().all_reduce("SUM", np.ones(n)) for n in ((2, 3) if first else (3, 2))],
    }
    return calls[kind]()


@pytest.mark.parametrize("kind", ["shape", "dtype", "operation", "structure", "kind", "order"])
def test_replicas_that_call_different_things_all_raise(kind):
    errors: dict[int, BaseException] = {}

    def step() -> None:
        try:
            mismatched(kind)
        except Exception as error:
            errors[replica_id()] = error
            raise

    strategy = mirrored(3)
    with pytest.raises(CollectiveMismatchError, match=r"rank 0.*\n.*rank 1.*\n.*rank 2"):
        strategy.run(step)
    assert sorted(errors) == [0, 1, 2]
    assert all(isinstance(error, CollectiveMismatchError) for error in errors.values())
    assert_usable(strategy)


@pytest.mark.parametrize("early", [0, 1])
def test_a_replica_that_returns_while_others_wait_is_named(early):
    def step() -> None:
        if replica_id() != early:
            all_reduce()

    strategy = mirrored(3)
    with pytest.raises(CollectiveMismatchError, match=f"rank {early} .*has returned from its step function"):
        strategy.run(step)
    assert_usable(strategy)


def test_a_failure_that_replicas_catch_does_not_outlive_the_run():
    def step() -> str:
        try:
            mismatched("shape")
        except CollectiveMismatchError:
            return "caught"
        return "no error"

    strategy = mirrored()
    assert strategy.run(step) == "caught"
    assert_usable(strategy)


# --- concurrent runs ------------------------------------------------------------------------------------------------


def test_runs_of_two_threads_do_not_mix():
    strategy = mirrored(3)

    def rounds(base: int) -> None:
        for i in range(100):
            x = np.array([base + i])
            for result in strategy.run(lambda x=x: replica().all_reduce("SUM", x)).values:
                assert result.tolist() == [3 * (base + i)]

    with ThreadPoolExecutor(3) as pool:
        for future in [pool.submit(rounds, base) for base in (0, 1000, 2000)]:
            future.result(timeout=SECONDS)


def test_a_failing_run_does_not_disturb_another_one():
    strategy = mirrored()
    begun, may_end = threading.Event(), threading.Event()

    def waits() -> Any:
        begun.set()
        may_end.wait(SECONDS)
        return all_reduce()

    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(strategy.run, waits)
        assert begun.wait(SECONDS)
        with pytest.raises(ZeroDivisionError):
            strategy.run(lambda: 1 // 0)
        may_end.set()
        assert len(run.result(timeout=SECONDS).values) == 2


@pytest.mark.parametrize("timeout", ["600", "0"])  # 0: no limit
def test_a_run_names_the_replicas_that_it_waits_for(monkeypatch, caplog, timeout):
    monkeypatch.setenv("RINGLET_STALL_SECONDS", "0.1")
    monkeypatch.setenv("RINGLET_TIMEOUT_SECONDS", timeout)
    caller, has_begun = threading.get_ident(), threading.Event()
    awaited: list[int] = []

    def step() -> None:
        if threading.get_ident() == caller:
            has_begun.wait(SECONDS)
        else:
            awaited.append(replica_id())
            has_begun.set()
            until = time.monotonic() + SECONDS
            while not caplog.records and time.monotonic() < until:
                time.sleep(0.01)

    mirrored(2).run(step)
    (text,) = [record.getMessage() for record in caplog.records]
    assert text.startswith(f"strategy.run has waited 0.1 s for replicas to return: replica {awaited[0]} is in step (")
