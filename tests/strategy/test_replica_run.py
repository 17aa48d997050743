"""One run: which thread runs what, what replicas see of their caller, and how failures end."""

from __future__ import annotations

import contextvars
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import ringlet
from ringlet.errors import (
    CollectiveAborted,
    CollectiveMismatchError,
    DeadlineExceededError,
    FailedPreconditionError,
)

SECONDS = 60


def replica() -> ringlet.ReplicaContext:
    current = ringlet.get_replica_context()
    assert current is not None
    return current


def replica_id() -> int:
    return int(replica().replica_id_in_sync_group)


def mirrored(num_replicas: int = 2) -> ringlet.MirroredStrategy:
    return ringlet.MirroredStrategy([f"CPU:{i}" for i in range(num_replicas)])


def all_reduce() -> Any:
    return replica().all_reduce("SUM", np.ones(3))


def assert_usable(strategy: ringlet.Strategy) -> None:
    for result in strategy.experimental_local_results(strategy.run(all_reduce)):
        assert result.tolist() == [strategy.num_replicas_in_sync] * 3


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
    assert strategy.extended._crews.helpers() == []


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
    assert caught.value.__notes__ == [
        "raised in replica 1 of 3; replica 2 failed by itself, too: KeyError: 'replica 2'"
    ]


def test_an_exception_that_wraps_an_abort_is_no_cause_of_its_own():
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
def test_what_ends_the_program_comes_before_exceptions(ending):
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
    """What replica 0 and the others call: never the same."""
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


# --- merge_call -----------------------------------------------------------------------------------------------------


def test_merge_call_hands_every_replica_its_slice():
    def step() -> Any:
        return replica().merge_call(lambda _, x, *, y: {"x": x, "y": y, "z": "same"}, (replica_id(),), {"y": "same"})

    answer = mirrored(3).run(step)
    assert (answer["x"].values, answer["y"], answer["z"]) == ((0, 1, 2), "same", "same")


def test_merge_calls_in_a_row_do_not_mix():
    def step() -> list[Any]:
        rows = [
            replica().merge_call(lambda _, x: sum(x.values), args=(replica_id() + 100.5 * round_number,))
            for round_number in range(50)
        ]
        assert rows == [3 + 3 * 100.5 * round_number for round_number in range(50)]
        return rows

    assert mirrored(3).run(step)


def test_merge_fn_may_run_the_strategy():
    def merge(strategy: ringlet.Strategy) -> Any:
        return strategy.reduce("SUM", strategy.run(all_reduce), axis=None)

    for result in mirrored(3).run(lambda: replica().merge_call(merge) + 0).values:
        assert result.tolist() == [9, 9, 9]


def test_merge_fn_runs_in_replica_0s_thread():
    def step() -> bool:
        thread = threading.get_ident()
        merged = replica().merge_call(lambda _: threading.get_ident())
        return merged == thread

    assert mirrored(3).run(step).values[0] is True


def test_an_exception_of_merge_fn_is_raised():
    def merge(_: ringlet.Strategy) -> None:
        raise KeyError("from merge_fn")

    strategy = mirrored(3)
    with pytest.raises(KeyError, match="from merge_fn"):
        strategy.run(lambda: replica().merge_call(merge))
    assert_usable(strategy)


def test_a_different_number_of_merge_calls_is_named():
    def step() -> None:
        for _ in range(1 + (replica_id() == 1)):
            replica().merge_call(lambda _: None)

    strategy = mirrored(3)
    with pytest.raises(CollectiveMismatchError, match=r"different number of replica_context.*merge_call"):
        strategy.run(step)
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


# --- deadlines and Ctrl-C -------------------------------------------------------------------------------------------


def test_a_replica_that_does_not_return_in_time_is_named_with_its_line():
    strategy = mirrored(3)
    strategy.extended._crews.timeout_seconds = 0.05
    may_end = threading.Event()

    def step() -> None:
        if replica_id() == 1:
            may_end.wait(SECONDS)
        elif replica_id() == 0:
            time.sleep(0.01)

    named = r"1 of 3 replicas .*replica 1 is in wait .*RINGLET_TIMEOUT_SECONDS"
    with pytest.raises(DeadlineExceededError, match=named):
        strategy.run(step)
    with pytest.raises(FailedPreconditionError, match="this strategy is closed"):
        strategy.run(lambda: None)
    may_end.set()


def test_a_collective_that_waits_too_long_leaves_the_strategy_usable(monkeypatch):
    monkeypatch.setenv("RINGLET_TIMEOUT_SECONDS", "0.1")
    strategy = mirrored()

    with pytest.raises(DeadlineExceededError, match=r"waited 0\.1 s for rank 1"):
        strategy.run(lambda: all_reduce() if replica_id() == 0 else time.sleep(0.15))
    assert_usable(strategy)


def interrupt_soon() -> None:
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()


def test_ctrl_c_releases_replicas_that_wait_in_a_collective():
    strategy = mirrored()
    released: list[type[BaseException]] = []

    def step() -> None:
        if replica_id() == 0:
            interrupt_soon()
            return
        # Not departed yet, as far as replica 1 can tell: it waits in a barrier that nobody else comes to.
        try:
            threading.Event().wait(0.3)
            all_reduce()
        except BaseException as error:
            released.append(type(error))
            raise

    with pytest.raises(KeyboardInterrupt):
        strategy.run(step)
    assert len(released) == 1
    assert_usable(strategy)


def test_ctrl_c_in_replica_0_is_raised():
    strategy = mirrored()

    def step() -> None:
        if replica_id() == 0:
            interrupt_soon()
            time.sleep(SECONDS)
        all_reduce()

    with pytest.raises(KeyboardInterrupt):
        strategy.run(step)
    assert_usable(strategy)


def test_a_second_ctrl_c_gives_up_a_replica_that_does_not_return():
    strategy = mirrored()
    may_end = threading.Event()

    def step() -> None:
        if replica_id() == 0:
            interrupt_soon()
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            time.sleep(0.01)
        else:
            may_end.wait(SECONDS)

    with pytest.raises(KeyboardInterrupt):
        strategy.run(step)
    with pytest.raises(FailedPreconditionError, match="given up while replicas were running"):
        strategy.run(lambda: None)
    may_end.set()


# --- fork -----------------------------------------------------------------------------------------------------------

FORKING = """
import os, signal, sys, numpy as np, ringlet

def step():
    return ringlet.get_replica_context().all_reduce("SUM", np.ones(3))

def forking_step(fork_first):
    replica = ringlet.get_replica_context()
    if int(replica.replica_id_in_sync_group) == fork_first and os.fork() == 0:
        signal.alarm(30)
        try:
            step()
        except Exception as error:
            os.write(1, f"child: {type(error).__name__}: {error}".encode())
        os._exit(0)
    return step()

strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"])
strategy.run(step)
"""


def run_python(code: str) -> str:
    options = ["-W", "ignore::DeprecationWarning"]  # a process with threads should not fork: that is what this is about
    done = subprocess.run(
        [sys.executable, *options, "-c", FORKING + code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_strategy_made_before_a_fork_works_in_the_child():
    code = """
if os.fork() == 0:
    signal.alarm(30)
    os.write(1, str([result.tolist() for result in strategy.run(step).values]).encode())
    os._exit(0)
os.wait()
print(" parent", strategy.run(step).values[2].tolist())
"""
    rows = [[3.0, 3.0, 3.0]] * 3
    assert run_python(code) == f"{rows} parent [3.0, 3.0, 3.0]\n"


@pytest.mark.parametrize("forking", [0, 1])
def test_collectives_of_a_replica_that_forked_raise_in_the_child(forking):
    code = f"""
results = strategy.run(forking_step, args=({forking},))
os.wait()
print(" parent", results.values[2].tolist())
"""
    output = run_python(code)
    assert output.startswith("child: CollectiveAborted:")
    assert "forked" in output
    assert output.endswith(" parent [3.0, 3.0, 3.0]\n")


def test_a_child_that_returns_from_the_step_function_is_told_not_to():
    code = """
def returning_step():
    if int(ringlet.get_replica_context().replica_id_in_sync_group) == 0 and os.fork() == 0:
        signal.alarm(30)
        return "child"

parent = os.getpid()
try:
    strategy.run(returning_step)
except RuntimeError as error:
    os.write(1, f"{os.getpid() == parent} {error}".encode())
    os._exit(0)
os.wait()
"""
    assert run_python(code).startswith("False a step function forked this process")
