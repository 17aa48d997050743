"""Errors of small programs on several workers: the right worker, the right number of the call, the documented name."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from ringlet.cluster.environment import VARIABLES

HEAD = """
import numpy as np
import ringlet

strategy = ringlet.MultiWorkerMirroredStrategy()
with strategy.scope():
    weight = ringlet.Variable(1.0)

def step(x):
    return ringlet.get_replica_context().all_reduce(ringlet.ReduceOp.SUM, x)

"""
LEAVES = (
    HEAD
    + """
for i in range(4):
    if i == 2 and ringlet.rank() == 1:
        break
    strategy.run(step, args=(1.0,))
"""
)
LEAVES_GROUP = """
import numpy as np
import ringlet

with ringlet.collectives.init_process_group() as member:
    for i in range(4):
        if i == 2 and member.rank == 1:
            break
        member.all_reduce(np.ones(2))
"""
DIFFERS = HEAD + "strategy.run(step, args=(np.ones(2 + ringlet.rank()),))\n"


@pytest.fixture
def run(tmp_path):
    """Runs a program with ``ringlet run``, and returns what it writes to standard error."""

    def start(program, *options):
        script = tmp_path / "step.py"
        script.write_text(program, encoding="utf-8")
        kept = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        command = [sys.executable, "-m", "ringlet", "run", *options, str(script)]
        ended = subprocess.run(command, env=kept, capture_output=True, text=True, timeout=60, check=False)
        assert ended.returncode == 1
        return ended.stderr

    return start


@pytest.mark.parametrize("program", [LEAVES, LEAVES_GROUP], ids=["strategy", "group"])
def test_a_worker_that_leaves_its_loop_early_is_named(run, program):
    errors = run(program, "-n", "3")
    assert "last checkpoint" not in errors  # the program must be changed
    lines = [line for line in errors.splitlines() if line.startswith("ringlet run: ")]
    assert lines[0] == "ringlet run: worker 1 of 3 exited with status 0 while others waited for its next call"
    assert "look for a loop that this worker leaves early" in lines[1]
    assert "failed because of it: " in lines[2]
    assert ", call 3 of " in lines[2]


def test_a_worker_that_makes_a_call_too_many_is_named(run):
    errors = run(LEAVES_GROUP.replace("member.rank == 1", "member.rank != 1"), "-n", "3")
    lines = [line for line in errors.splitlines() if line.startswith("ringlet run: ")]
    assert lines[0].startswith("ringlet run: worker 1 of 3 made a call that the others, which exited with status 0, ")
    assert "look for a loop that this worker leaves late" in lines[1]


@pytest.mark.parametrize("replicas", ["1", "2"])
def test_calls_are_numbered_as_the_program_makes_them(run, replicas):
    assert "did not make the same call (their call number 1):" in run(DIFFERS, "-n", "2", "--replicas", replicas)


def test_a_worker_whose_call_differs_is_named(run):
    program = DIFFERS.replace("2 + ringlet.rank()", "2 + (ringlet.rank() == 1)")
    lines = run(program, "-n", "3", "--replicas", "2").splitlines()
    assert lines[0] == "ringlet run: worker 1 of 3 did not make the call that the others made"
    assert lines[1].startswith("ringlet run: workers 0 and 2 failed because of it: ")
    assert lines[2].startswith("[w1] Traceback")


STALLS = (
    HEAD
    + """
import _thread
import logging
import sys
import threading

class Interrupting(logging.Handler):
    def emit(self, record):
        print(record.getMessage(), file=sys.stderr)
        _thread.interrupt_main()

logging.getLogger("ringlet").addHandler(Interrupting())
strategy.run(step, args=(1.0,))
ringlet.rank() == 1 and threading.Event().wait()
try:
    strategy.run(step, args=(1.0,))
except KeyboardInterrupt as error:
    sys.exit(error.__notes__[0])
"""
)


@pytest.mark.parametrize("replicas", ["1", "2"])
def test_a_stall_report_has_the_names_and_numbers_of_errors(run, monkeypatch, replicas):
    monkeypatch.setenv("RINGLET_STALL_SECONDS", "0.1")
    errors = run(STALLS, "-n", "2", "--replicas", replicas)
    waits = r"^\[w0\] .*, (call \d+) of .*/job:worker/task:0\)?, (has waited|was interrupted while it waited) .*for "
    assert re.findall(waits, errors, re.MULTILINE) == [
        ("call 2", "has waited"),
        ("call 2", "was interrupted while it waited"),
    ]
    assert errors.count(": ringlet.rank() == 1 and threading.Event().wait()") == 1


LOCAL = """
import numpy as np
import ringlet

worker = ringlet.rank()

def step():
    replica = ringlet.replica_context()
    is_odd = (worker, replica.replica_id_in_sync_group) == (2, 1)
    return replica.all_reduce("SUM", np.ones(3 if is_odd else 2))

ringlet.MirroredStrategy(3).run(step)
"""


def test_replicas_of_a_worker_are_not_taken_for_workers(run):
    lines = run(LOCAL, "-n", "3").splitlines()
    assert lines[0].startswith("ringlet run: worker 2 of 3 exited with status 1")
    assert any(line.startswith("ringlet run: within worker 2, the ranks' calls differ first") for line in lines)
