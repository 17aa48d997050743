"""What a worker's process runs before its program: ties its life to the launcher's, then becomes the program.

Run as a file, by an interpreter that loads nothing else: ``python -I -S trampoline.py LAUNCHER GROUP COMMAND...``.
Between fork and exec, the other place for it, a parent with threads must not run Python.
"""

from __future__ import annotations

import os
import signal
import sys

__all__ = ["become"]

# <linux/prctl.h>: the signal that the kernel sends when the parent ends. Kept by exec, not inherited by fork.
_PR_SET_PDEATHSIG = 1


def become(launcher: int, group: int, command: list[str]) -> None:
    """Join the group of the workers and become the program of one; does not return.

    Parameters
    ----------
    launcher : int
        Process number of the parent.
    group : int
        Number of the process group of all workers.
    command : list of str
        The program, with its full path, and its arguments.
    """
    # In this order: a launcher that ends before the second line is seen there, and one that ends after it is survived
    # only until its keeper kills the group, of which this process is a member by then.
    try:
        os.setpgid(0, group)
    except OSError:  # the group has gone, and so has the launcher, or this worker's time
        sys.exit("the launcher has ended")
    if os.getppid() != launcher:
        sys.exit("the launcher has ended")
    _die_with_parent()
    if os.getppid() != launcher:
        sys.exit("the launcher has ended")
    # The group is not the terminal's foreground group. Reading the terminal is an error then, rather than a stop.
    signal.signal(signal.SIGTTIN, signal.SIG_IGN)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.execv(command[0], command)


def _die_with_parent() -> None:
    if sys.platform != "linux":
        return
    try:
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    except (ImportError, OSError, AttributeError):  # the keeper of the group is left
        return


if __name__ == "__main__":
    become(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
