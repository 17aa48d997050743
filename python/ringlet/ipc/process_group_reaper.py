"""A process that leads the group of all workers, and kills the group when the launcher is gone.

Run as a file, by an interpreter that loads nothing else: ``python -I -S keeper.py LAUNCHER``. Its standard input is a
pipe whose other end only the launcher has: however that ends, the pipe does. The number of the group stays the group's
as long as this process lives, so that a signal to it never meets somebody else.
"""

from __future__ import annotations

import os
import select
import signal
import sys

__all__ = ["keep"]

# Another process may have inherited the launcher's end of the pipe, by a fork. So the keeper looks, too.
_LOOK_SECONDS = 1.0


def keep(launcher: int) -> None:
    """Lead a new process group until the launcher has ended, then kill it, this process included.

    Parameters
    ----------
    launcher : int
        Process number of the parent.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    os.setpgid(0, 0)
    os.write(1, b".")
    os.close(1)
    while os.getppid() == launcher:
        if select.select([0], [], [], _LOOK_SECONDS)[0]:
            break
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    keep(int(sys.argv[1]))
