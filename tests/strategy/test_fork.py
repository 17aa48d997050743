"""Processes that fork: strategies work in the child, and replicas that forked raise an error."""

from __future__ import annotations

import subprocess
import sys

import pytest

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


def test_a_forked_child_that_returns_from_the_step_function_gets_an_error():
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
    assert run_python(code).startswith("False a child process, forked in a step function, returned")


def test_variables_and_gathers_of_a_strategy_made_before_a_fork_work_in_the_child():
    code = """
central = ringlet.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"])

def gather_twice(strategy):
    replica = strategy.run(lambda: ringlet.get_replica_context().all_gather(np.ones(1), axis=0)).values[1]
    whole = strategy.gather(strategy.run(lambda: np.ones(1)), axis=0)
    with strategy.scope():
        variable = ringlet.Variable(np.zeros(1))
    strategy.extended.update(variable, lambda v, x: v.assign_add(x), args=(np.ones(1),))
    return replica.tolist(), whole.tolist(), strategy.extended.read_var(variable).tolist()

gather_twice(central), gather_twice(strategy)
if os.fork() == 0:
    signal.alarm(30)
    os.write(1, str((gather_twice(central), gather_twice(strategy))).encode())
    os._exit(0)
os.wait()
print(" parent", gather_twice(central))
"""
    two, three = ([1.0, 1.0], [1.0, 1.0], [1.0]), ([1.0] * 3, [1.0] * 3, [1.0])
    assert run_python(code) == f"{(two, three)} parent {two}\n"
