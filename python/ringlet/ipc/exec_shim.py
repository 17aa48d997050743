"""Exec shim: joins the workers' process group, requests to be killed when the launcher exits, and runs the program.

Run as a file, without site packages: ``python -I -S exec_shim.py LAUNCHER GROUP CORES COMMAND...``. Used in place of a
``preexec_fn``, because a multi-threaded parent must not run Python between fork and exec.
"""

from __future__ import annotations

import os
import signal
import sys

# <linux/prctl.h>: the signal that the kernel sends when the parent ends. Kept by exec, not inherited by fork.
_PR_SET_PDEATHSIG = 1


def become(launcher: int, group: int, cores: list[int], command: list[str]) -> None:
    """Join the process group of all workers and execute a program; does not return.

    `launcher` is the pid of the parent. The command starts with the full path of the program, which runs only on
    `cores`, or on any core if `cores` is empty.
    """
    # The order matters: getppid() detects whether the launcher has already exited. If the launcher exits later, the
    # reaper kills the group, which includes this process.
    try:
        os.setpgid(0, group)
    except OSError:  # the group has ended, so the launcher has exited or stopped the workers
        sys.exit("the launcher has ended")
    if os.getppid() != launcher:
        sys.exit("the launcher has ended")
    _die_with_parent()
    if os.getppid() != launcher:
        sys.exit("the launcher has ended")
    if cores:
        os.sched_setaffinity(0, cores)
    # The group is not the terminal's foreground group: a read of the terminal must fail, not stop the process.
    signal.signal(signal.SIGTTIN, signal.SIG_IGN)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.execv(command[0], command)


def _die_with_parent() -> None:
    if sys.platform != "linux":
        return
    try:
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    except (ImportError, OSError, AttributeError):  # the reaper still kills the group
        return


if __name__ == "__main__":
    become(int(sys.argv[1]), int(sys.argv[2]), [int(core) for core in sys.argv[3].split(",") if core], sys.argv[4:])
