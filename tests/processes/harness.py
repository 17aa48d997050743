"""Starts ranks as separate processes, with a bound on every wait, and leaves none behind.

A script is the text of a Python program. It sends a value with ``tell(value)`` (one line of JSON on its standard
output), and may wait for a word from the test with ``hear()``.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

__all__ = ["PATIENCE_SECONDS", "Process", "Processes", "descriptors_of", "eventually", "threads_of"]

# How long anything may take on a machine that is busy with other work. Nothing waits so long unless it failed.
T = TypeVar("T")

PATIENCE_SECONDS = 60.0

ROOT = Path(__file__).resolve().parents[2]

_PROLOGUE = """
import json, os, sys, time
def tell(value):
    sys.stdout.write(json.dumps(value) + "\\n")
    sys.stdout.flush()
def hear():
    return sys.stdin.readline().strip()
"""
_END = object()


@dataclass
class Process:
    """A process that runs a script."""

    popen: subprocess.Popen[str]
    lines: queue.Queue[Any] = field(default_factory=queue.Queue)
    errors: list[str] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)

    @property
    def pid(self) -> int:
        return self.popen.pid

    def told(self, seconds: float = PATIENCE_SECONDS) -> Any:
        """Return the next value that the script sends."""
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            raise AssertionError(f"pid {self.pid} told nothing for {seconds} s; {self.said()}") from None
        assert line is not _END, f"pid {self.pid} ended with status {self.popen.wait()}; {self.said()}"
        return json.loads(line)

    def say(self, word: str = "go") -> None:
        """Answer the script's ``hear()``."""
        assert self.popen.stdin is not None
        self.popen.stdin.write(word + "\n")
        self.popen.stdin.flush()

    def wait(self, seconds: float = PATIENCE_SECONDS) -> int:
        """Wait for the exit status, which is negative for a signal."""
        try:
            status = self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"pid {self.pid} has not ended after {seconds} s; {self.said()}") from None
        for thread in self.threads:
            thread.join(PATIENCE_SECONDS)
        return status

    def said(self) -> str:
        """The text that the process wrote to standard error."""
        return "standard error: " + "".join(self.errors)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to a process that has not been waited for, so that its pid is not reused."""
        if self.popen.poll() is None:
            os.kill(self.pid, number)

    def end(self) -> None:
        """Kill the process if it is running."""
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()
        for thread in self.threads:
            thread.join(PATIENCE_SECONDS)
        for stream in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()


class Processes:
    """The processes of one test, which end with it."""

    def __init__(self) -> None:
        self.all: list[Process] = []

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.all:
            process.end()
            if error is not None and process.errors:
                print(f"pid {process.pid} {process.said()}")

    def start(
        self,
        script: str,
        *arguments: object,
        environ: Mapping[str, str] | None = None,
        under: Sequence[str] = (),
        before: Callable[[], None] | None = None,
    ) -> Process:
        """Start a script.

        `arguments` are in its ``sys.argv[1:]``; `environ` is added to the environment; `under` is a command to run it
        with, such as ``unshare``; `before` is called in the process before the interpreter starts.
        """
        command = [*under, sys.executable, "-c", _PROLOGUE + script, *map(str, arguments)]
        popen = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=_environment() | {**(environ or {})},
            preexec_fn=before,  # noqa: PLW1509 - the test's own threads hold no lock that it takes
        )
        process = Process(popen)
        self.all.append(process)
        process.threads = [
            threading.Thread(target=_read_lines, args=(popen.stdout, process.lines.put), daemon=True),
            threading.Thread(target=_read_lines, args=(popen.stderr, process.errors.append), daemon=True),
        ]
        for thread in process.threads:
            thread.start()
        return process


def _environment() -> dict[str, str]:
    """Return the environment without variables of other jobs and without noise on standard error."""
    dropped = {name for name in os.environ if name.startswith("RINGLET_") and name != "RINGLET_POISON"}
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return kept | {"PYTHONPATH": str(ROOT)}  # for what scripts share with the tests


def _read_lines(stream: Any, put: Callable[[Any], None]) -> None:
    for line in stream:
        put(line)
    put(_END if put.__name__ == "put" else "")


def descriptors_of(pid: int | str = "self") -> int:
    """Return the number of open files of a process, except its flight recorder, which stays open once created."""
    count = 0
    for file in list(Path(f"/proc/{pid}/fd").iterdir()):
        try:
            count += "ringlet-recorder" not in str(file.readlink())
        except OSError:  # closed since, as the one that lists the others
            count += 1
    return count


def children() -> set[str]:
    """Return the child processes of this one, including zombies."""
    found = set()
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has just ended
            pid, _, rest = file.read_text("utf-8", "replace").partition(" (")
            found |= {pid} if rest.rpartition(")")[2].split()[1] == str(os.getpid()) else set()
    return found


def threads_of(pid: int | str = "self") -> int:
    """Return the number of threads of a process."""
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def settled(read: Callable[[], T], seconds: float = 1.0) -> T:
    """Return the result of `read` once it is stable for `seconds`: earlier tests may still be closing files."""
    value, since = read(), time.monotonic()
    while time.monotonic() - since < seconds:
        time.sleep(0.01)
        if (now := read()) != value:
            value, since = now, time.monotonic()
    return value


def eventually(holds: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> bool:
    """Return whether a condition holds within a time limit."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
