"""A team of processes that train one model together: started once, measured in turn, and ended with the run."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from bench.job_processes import cpu_seconds_of

__all__ = ["TeamError", "TrainingTeam"]

_ROOT = Path(__file__).resolve().parents[1]
_END_SECONDS = 10.0


class TeamError(RuntimeError):
    """A process of a team ended, or did not answer in time; the message has the end of its output."""


class TrainingTeam:
    """Processes that run one module of ``bench`` with the same arguments, and answer lines of JSON with such lines.

    Parameters
    ----------
    arguments : sequence of str
        Module and its arguments.
    environments : sequence of mapping of str to str
        Additional environment variables of each process.
    answer_seconds : float
        Time limit of an answer.
    """

    def __init__(
        self, arguments: Sequence[str], environments: Sequence[Mapping[str, str]], *, answer_seconds: float = 120.0
    ) -> None:
        self._name = arguments[0]
        self._seconds = answer_seconds
        self._said = [tempfile.TemporaryFile() for _ in environments]  # noqa: SIM115  # closed with the team
        self._processes: list[subprocess.Popen[bytes]] = []
        self._unread = [b""] * len(environments)
        command = [sys.executable, "-m", *arguments]
        try:
            for said, environ in zip(self._said, environments, strict=True):
                self._processes.append(
                    subprocess.Popen(
                        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, bufsize=0, cwd=_ROOT,
                        env={**os.environ, **environ},
                    )
                )  # fmt: skip
        except BaseException:
            self._end()
            raise

    def ask(self, question: Mapping[str, Any]) -> list[Any]:
        """Return the answers of all processes to a question.

        Raises
        ------
        TeamError
            If one of them ended, or did not answer in time.
        """
        line = json.dumps(question).encode() + b"\n"
        deadline = time.monotonic() + self._seconds
        for number, process in enumerate(self._processes):
            assert process.stdin is not None
            try:
                process.stdin.write(line)
            except BrokenPipeError:
                raise self._error(number, "ended") from None
        return [json.loads(self._line(number, deadline)) for number in range(len(self._processes))]

    def cpu_seconds(self) -> float:
        """CPU time of all processes, in seconds."""
        return cpu_seconds_of(process.pid for process in self._processes)

    def _line(self, number: int, deadline: float) -> bytes:
        stream = self._processes[number].stdout
        assert stream is not None
        while b"\n" not in self._unread[number]:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([stream], [], [], left)[0]:
                raise self._error(number, f"did not answer within {self._seconds:g} s")
            read = os.read(stream.fileno(), 1 << 16)
            if not read:
                raise self._error(number, "ended")
            self._unread[number] += read
        line, _, self._unread[number] = self._unread[number].partition(b"\n")
        return line

    def _error(self, number: int, what: str) -> TeamError:
        process = self._processes[number]
        if what == "ended":
            what = f"ended with status {process.wait(_END_SECONDS)}"
        self._said[number].seek(0)
        said = self._said[number].read().decode("utf-8", "replace").strip()
        return TeamError(f"process {number} of {self._name} {what}. It said:\n{said[-2000:]}")

    def __enter__(self) -> TrainingTeam:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        """Close the inputs of the processes, which ends them; kill the others."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.close()
        for process in self._processes:
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert process.stdout is not None
            process.stdout.close()
        for said in self._said:
            said.close()
