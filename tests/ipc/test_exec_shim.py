"""A process that becomes a worker has tied its life to the launcher's before."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ringlet.ipc import exec_shim


def become(launcher, group, *command, cores=""):
    return subprocess.run(
        [sys.executable, "-I", "-S", exec_shim.__file__, str(launcher), str(group), cores, *command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_program_runs_in_the_group_that_was_named():
    program = "import os, signal; print(os.getpgrp(), signal.getsignal(signal.SIGTTIN).name)"
    done = become(os.getpid(), os.getpgrp(), sys.executable, "-c", program)
    assert (done.stdout, done.stderr) == (f"{os.getpgrp()} SIG_IGN\n", "")


@pytest.mark.skipif(sys.platform != "linux", reason="binding needs Linux")
def test_the_program_runs_on_the_cores_that_were_named():
    core = max(os.sched_getaffinity(0))
    program = "import os; print(os.sched_getaffinity(0))"
    done = become(os.getpid(), os.getpgrp(), sys.executable, "-c", program, cores=str(core))
    assert (done.stdout, done.stderr) == (f"{{{core}}}\n", "")


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel has to know it")
def test_the_kernel_kills_the_program_when_the_launcher_ends():
    program = "import ctypes; n = ctypes.c_int(); ctypes.CDLL(None).prctl(2, ctypes.byref(n)); print(n.value)"
    assert become(os.getpid(), os.getpgrp(), sys.executable, "-c", program).stdout == "9\n"


def test_nothing_runs_where_the_launcher_has_ended_meanwhile():
    done = become(1, os.getpgrp(), sys.executable, "-c", "print('runs')")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "the launcher has ended\n")


def test_nothing_runs_where_the_group_has_ended_meanwhile():
    with subprocess.Popen(["sleep", "0"]) as ended:
        ended.wait(60)
    done = become(os.getpid(), ended.pid, sys.executable, "-c", "print('runs')")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "the launcher has ended\n")
