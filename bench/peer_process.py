"""One peer as a long-lived job of processes: start, questions as lines of JSON, termination and cleanup."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.job_processes import JobProcesses
from bench.machine import usable_cores
from bench.peers.peer import END
from bench.results import Sample

__all__ = ["PeerFailure", "PeerProcess"]

_LAST_LINES = 8


class PeerFailure(RuntimeError):
    """A peer gave no valid answer.

    Attributes
    ----------
    reason : {"timed out", "ended", "wrong answer"}
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class PeerProcess:
    """A running peer, with all its ranks.

    Parameters
    ----------
    command : sequence of str
        Launcher, interpreter and script; the options of scripts in ``bench/peers`` are added.
    num_ranks : int
    settings : mapping of str to str
        Environment variables in addition to those of this process.
    pin : bool
        Whether to bind each rank to a core.

    Attributes
    ----------
    version : str
        Version of the measured library; set by :meth:`wait_until_ready`.
    variants : mapping of str to sequence of str
        The supported variants of each collective; set likewise.
    idle_cpu_seconds : float
        CPU time that it used between questions.
    """

    def __init__(
        self, command: Sequence[str], num_ranks: int, settings: Mapping[str, str] | None = None, *, pin: bool = True
    ) -> None:
        self.version = ""
        self.variants: Mapping[str, Sequence[str]] = {}
        self.idle_cpu_seconds = 0.0
        self._cpu_seconds_before: float | None = None
        self._unread = b""
        # Short, since launchers put sockets into it, whose names have little room.
        self._folder = Path(tempfile.mkdtemp(prefix="rl"))
        for rank in range(1, num_ranks):
            os.mkfifo(self._folder / f"rank{rank}")
        cores = ",".join(map(str, usable_cores())) if pin else ""
        told = ["--ranks", num_ranks, "--cores", cores, "--folder", self._folder]
        try:
            with (self._folder / "said").open("wb") as said:
                self._process = subprocess.Popen(
                    [*command, *map(str, [*told, "--driver", os.getpid()])],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, bufsize=0, start_new_session=True,
                    env={**os.environ, "TMPDIR": str(self._folder), **(settings or {})},
                )  # fmt: skip
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        self._job = JobProcesses(self._process.pid)

    def wait_until_ready(self, seconds: float) -> None:
        """Wait until all ranks have started.

        Raises
        ------
        PeerFailure
            If they have not started in time, or have ended.
        """
        ready = self._read(seconds)
        self.version, self.variants = ready["version"], ready["variants"]
        self._job.look()
        self._cpu_seconds_before = self._job.cpu_seconds()

    def ask(self, question: Mapping[str, Any], seconds: float) -> float:
        """Request one time, in seconds of one call; otherwise as :meth:`sample`."""
        return self.sample(question, seconds).seconds

    def sample(self, question: Mapping[str, Any], seconds: float) -> Sample:
        """Request one measurement.

        Parameters
        ----------
        question : mapping
            Fields of :class:`bench.peers.peer.Question` except the limit.
        seconds : float
            Time limit of the answer; after a late answer, the peer is unusable.

        Returns
        -------
        Sample
            Times of a call whose result the peer has checked; zeros for missing values.

        Raises
        ------
        PeerFailure
            If there is no answer in time, the peer has ended, or its result is wrong.
        """
        if self._cpu_seconds_before is not None:
            self.idle_cpu_seconds += max(0.0, self._job.cpu_seconds() - self._cpu_seconds_before)
        line = json.dumps({**question, "limit_seconds": seconds}) + "\n"
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(line.encode())
        except BrokenPipeError:
            pass  # it has ended, which reading says better
        answer = self._read(seconds)
        self._cpu_seconds_before = self._job.cpu_seconds()
        if "wrong" in answer:
            raise PeerFailure("wrong answer", answer["wrong"])
        if answer.get("checked") is not True:
            raise PeerFailure("wrong answer", f"a time of an answer that nobody checked: {answer}")
        return Sample(
            float(answer["seconds_per_call"]),
            float(answer.get("faults_per_call", 0.0)),
            float(answer.get("slowest_call", 0.0)),
        )

    def cpu_seconds(self) -> float:
        """Return the CPU time of all ranks, in seconds."""
        return self._job.cpu_seconds()

    def ask_to_end(self) -> None:
        """Ask all ranks to end, without waiting."""
        assert self._process.stdin is not None
        if not self._process.stdin.closed:
            self._job.look()
            with contextlib.suppress(OSError):
                self._process.stdin.write(f"{END}\n".encode())
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def stop(self, *, seconds: float = 5.0) -> None:
        """Wait up to `seconds` until all ranks have ended, kill the others, and remove leftover files; idempotent."""
        if not self._folder.exists():
            return
        try:
            self.ask_to_end()
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass
        finally:
            self._clean_up()

    def _clean_up(self) -> None:
        self._job.end()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._job.remove_shared_files()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _read(self, seconds: float) -> dict[str, Any]:
        """Return the next line that is an answer; launchers may print other lines."""
        assert self._process.stdout is not None
        deadline = time.monotonic() + seconds
        while True:
            line, found, rest = self._unread.partition(b"\n")
            if found:
                self._unread = rest
                with contextlib.suppress(ValueError):
                    answer = json.loads(line)
                    if isinstance(answer, dict):
                        return answer
                continue
            readable, _, _ = select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not readable:
                raise self._failure("timed out", f"no answer after {seconds:.0f} s")
            some = self._process.stdout.read(1 << 16)
            if not some:
                raise self._failure("ended", "the peer ended")
            self._unread += some

    def _failure(self, reason: str, message: str) -> PeerFailure:
        said: list[str] = []
        with contextlib.suppress(FileNotFoundError):  # a user may have cleared temporary files meanwhile
            said = (self._folder / "said").read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_LINES:]
        return PeerFailure(reason, "\n  ".join([f"{message}; it said:" if said else message, *said]))
