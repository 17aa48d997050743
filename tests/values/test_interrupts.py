"""Ctrl-C at any moment leaves variables and the current mode as they were, or as if it had come a moment later."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

PROGRAM = """
import random, signal, sys, time, numpy as np, ringlet
from ringlet import context

def interrupt(*_):
    raise KeyboardInterrupt

strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
alone = [ringlet.OneDeviceStrategy("CPU:0"), ringlet.MirroredStrategy(["CPU:0"])]
with strategy.scope():
    variable = ringlet.Variable(np.zeros(3))
ones, chance, end = np.ones(3), random.Random(0), time.monotonic() + 2

def step():
    {step}

def report(ignored):
    if not isinstance(ignored.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(ignored)

step()  # its imports need no test
sys.unraisablehook = report
signal.signal(signal.SIGALRM, interrupt)
left = 0
while time.monotonic() < end:
    try:
        # Again after 5 s: Python ignores an exception in the callback of a weak reference, but calls `report`.
        signal.setitimer(signal.ITIMER_REAL, 1e-6 + chance.random() * 3e-4, 5)
        while True:
            step()
    except KeyboardInterrupt:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    left += context.current() is not None
    left += any(block.open is None for block in variable._storage._blocks)
    assert variable._storage._lock.acquire(timeout=1)
    variable._storage._lock.release()
print(left)
"""


@pytest.mark.parametrize(
    "step",
    [
        "variable.assign(ones); variable.values[1].assign_add(ones)",
        "strategy.extended.update(variable, lambda component: component.assign(ones))",
        "[one.run(lambda: 1) for one in alone]",
        "alone[0].run(lambda: ringlet.get_replica_context().merge_call(lambda strategy: 1))",
    ],
    ids=["assign", "update", "run", "merge_call"],
)
def test_an_interrupt_leaves_nothing_behind(step):
    command = [sys.executable, "-c", PROGRAM.replace("{step}", step)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("0\n", "")
