"""Runs `ringlet run` as users do, with a bound on every wait, and finds the processes that it leaves behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.processes.harness import PATIENCE_SECONDS, eventually

__all__ = ["PROLOGUE", "Job", "Launcher"]

# Which worker a script is, and a way to see that a process of it has ended.
PROLOGUE = """
import json, os, signal, subprocess, sys, time
index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
"""


@dataclass
class Job:
    """A running launcher, and all processes that it has started."""

    popen: subprocess.Popen[bytes]
    mark: str
    out: bytes = b""
    err: bytes = b""
    status: int | None = None
    seconds: float = field(default=0.0)

    def wait_for_lines(self, count: int) -> None:
        """Wait until the workers have written `count` lines to standard output."""
        assert self.popen.stdout is not None
        for _ in range(count):
            line = self.popen.stdout.readline()
            assert line, f"ended early: {self.end().err.decode()}"
            self.out += line

    def send(self, number: int) -> None:
        """Send a signal to the launcher alone."""
        os.kill(self.popen.pid, number)

    def end(self) -> Job:
        """Wait for the launcher, and record how long it took."""
        start = time.monotonic()
        out, self.err = self.popen.communicate(timeout=PATIENCE_SECONDS)
        self.out += out or b""
        self.seconds = time.monotonic() - start
        self.status = self.popen.returncode
        return self

    def processes(self) -> set[int]:
        """Return the running processes of the job, except the launcher."""
        return {pid for pid in marked(self.mark) if pid != self.popen.pid}

    def has_processes(self, count: int) -> bool:
        """Return whether `count` processes run soon; a process that has just started has no environment yet."""
        return eventually(lambda: len(self.processes()) == count)

    def leaves_nothing(self, seconds: float = PATIENCE_SECONDS) -> bool:
        """Return whether all processes of the job exit within a time limit."""
        return eventually(lambda: not self.processes(), seconds)

    @property
    def lines(self) -> list[str]:
        """The lines of standard output."""
        return self.out.decode().splitlines()

    @property
    def errors(self) -> list[str]:
        """The lines of standard error."""
        return self.err.decode().splitlines()


def marked(mark: str) -> Iterator[int]:
    """Yield the processes whose environment contains a mark."""
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):  # it has just ended
            if folder.name.isdecimal() and mark.encode() in (folder / "environ").read_bytes():
                yield int(folder.name)


class Launcher:
    """Starts jobs in a folder; all of them are ended with the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._jobs: list[Job] = []

    def start(
        self,
        script: str,
        *options: object,
        arguments: Sequence[object] = (),
        environ: Mapping[str, str] | None = None,
        under: Sequence[str] = (),
        **more: Any,
    ) -> Job:
        """Start ``ringlet run OPTIONS script.py ARGUMENTS``; `script` is its text, in which ``index`` is defined."""
        file = self.folder / str(len(self._jobs)) / "script.py"
        file.parent.mkdir()
        file.write_text(PROLOGUE + script, encoding="utf-8")
        return self.start_command(
            [*under, sys.executable, "-m", "ringlet", "run", *map(str, options), str(file), *map(str, arguments)],
            environ,
            **more,
        )

    def start_command(self, command: list[str], environ: Mapping[str, str] | None = None, **more: Any) -> Job:
        """Start any command line; `more` is for ``subprocess.Popen``."""
        mark = f"RINGLET_TEST_MARK={uuid.uuid4()}"
        name, _, value = mark.partition("=")
        popen = subprocess.Popen(
            command,
            cwd=self.folder,
            env=_clean_environment() | {name: value, **(environ or {})},
            # Nothing is read ahead by `wait_for_lines`, which `end` would not see.
            **{"bufsize": 0, "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more},
        )
        self._jobs.append(Job(popen, mark))
        return self._jobs[-1]

    def run(self, script: str, *options: object, **more: Any) -> Job:
        """Start a job as :meth:`start` does, and wait for its end."""
        return self.start(script, *options, **more).end()

    def close(self) -> None:
        """Kill all remaining processes."""
        for job in self._jobs:
            if job.popen.poll() is None:
                job.popen.kill()
            job.popen.wait(PATIENCE_SECONDS)
            for stream in (job.popen.stdin, job.popen.stdout, job.popen.stderr):
                if stream is not None:
                    stream.close()
            for pid in job.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def _clean_environment() -> dict[str, str]:
    """Return the environment without variables that affect output, threads and jobs."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("RINGLET_", "OMP_", "OPENBLAS_", "MKL_", "BLIS_", "VECLIB_", "PYTHONUNBUFFERED"))
    }
