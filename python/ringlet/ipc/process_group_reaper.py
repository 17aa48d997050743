"""Process group reaper: a process that leads the workers' group, and kills the group when the launcher exits.

Run as a file, without site packages: ``python -I -S process_group_reaper.py LAUNCHER``. Its standard input is a pipe
whose other end only the launcher holds, so the pipe closes when the launcher exits. While this process runs, the
group's id is not reused, so a signal to the group reaches no other process.
"""

from __future__ import annotations

import os
import select
import signal
import sys

# A forked process may have inherited the launcher's end of the pipe, so the launcher is also polled.
_LOOK_SECONDS = 1.0


def keep(launcher: int) -> None:
    """Lead a new process group until the launcher exits or closes the pipe; then kill the group and this process."""
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
