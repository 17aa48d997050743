"""Runs one command as several workers: starts them, relays their output, and reports their exit."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ringlet.devices import visible_cores
from ringlet.ipc.job_environment import blas_threads, new_job_id
from ringlet.ipc.uncaught_exceptions import UncaughtReports
from ringlet.ipc.worker_process import Worker, WorkerProcessGroup
from ringlet.launcher.exit_report import Ending, first_failure, interrupted_call, job_status, shown_failure, summary
from ringlet.launcher.nonblocking_writer import NonblockingWriter
from ringlet.launcher.output_relay import OutputChannel, colored_prefix, prefix_of
from ringlet.launcher.recorder_files import RecorderFiles
from ringlet.launcher.signals import Signals, Terminal
from ringlet.launcher.supervisor import Supervisor
from ringlet.launcher.traceback_buffer import TracebackBuffer
from ringlet.launcher.worker_environment import unused_port, worker_environment

# Backlog of a slow reader at which back-pressure on the workers begins.
_MOST_BACKLOG_BYTES = 1 << 22
# Intervals at which a progress bar is shown on a terminal and in a file.
_STATE_SECONDS = {True: 1.0, False: 10.0}
# Timeout for writing the remaining output if the launcher was stopped and the reader does not read.
_FLUSH_SECONDS = 0.3
# Minimum time to print an uncaught exception, even if the grace period is shorter.
_TRACEBACK_SECONDS = 0.3


@dataclass(frozen=True)
class Job:
    """A job of `ringlet run`.

    Without `replicas`, the script sets their number. `grace_seconds` is the time that workers have to exit after a
    signal, or after one of them has raised an uncaught exception. If the job fails, the flight recorders are written to
    `log_folder`, if given; when `recorder_signal` arrives, to `log_folder` or else the working directory. `attempt`
    counts the starts of the job, from 1. `hosts` maps hosts to numbers of workers, which MPI starts; with
    `simulates_hosts`, the hosts are network namespaces of this host. `cores` lists the cores that each worker may use;
    it is empty if each may use all cores.
    """

    command: list[str]
    num_workers: int
    replicas: int | None = None
    grace_seconds: float = 1.0
    shows_all_tracebacks: bool = False
    log_folder: str | None = None
    recorder_signal: int | None = None
    attempt: int = 1
    hosts: Mapping[str, int] = field(default_factory=dict)
    simulates_hosts: bool = False
    cores: Sequence[Sequence[int]] = ()


@dataclass(frozen=True)
class Outcome:
    """How a job ended: its exit status, the reason in one line, and whether a terminating signal was received."""

    status: int
    reason: str
    is_stopped: bool


def run_workers(job: Job) -> Outcome:
    """Run a job until all of its workers have exited, and return its outcome."""
    _fill_standard_descriptors()
    with Terminal(), Signals() as signals:
        run = _Run(job)
        if job.recorder_signal is not None:
            signals.actions[job.recorder_signal] = lambda: run.save_recorders(job.log_folder or os.curdir)
        supervisor = run.supervisor()
        supervisor.watch(run.reports.fileno())
        supervisor.watch(signals.fileno())
        try:
            run.start(supervisor, signals)
            while supervisor.is_at_work():
                supervisor.turn()
                signals.process(supervisor)
                run.update(signals, supervisor)
        finally:
            supervisor.close()
            run.reports.close()
        try:
            status = run.report(signals)
            return Outcome(status, run.reason(), signals.is_asked_to_end)
        finally:
            run.recorders.close()


class _Run:
    def __init__(self, job: Job) -> None:
        self._job = job
        self._out = NonblockingWriter(1)
        # If both streams go to the same terminal or file, one writer keeps their order; otherwise a blocked stream does
        # not block the other stream.
        self._err = self._out if _is_same_file(1, 2) else NonblockingWriter(2)
        self._outputs: list[OutputChannel] = []
        self._errors: list[OutputChannel] = []
        self._endings: list[Ending] = []
        self._received: int | None = None
        self.reports = UncaughtReports()
        self.recorders = RecorderFiles(job.num_workers, os.environ)
        self._indices: dict[int, int] = {}  # running workers by pid
        self._raised: dict[int, float] = {}  # worker -> time of its reported exception

    def supervisor(self) -> Supervisor:
        self._process_group = WorkerProcessGroup()
        return Supervisor(
            self._process_group,
            [],
            [],
            grace_seconds=self._job.grace_seconds,
            has_failed=self._has_failed,
            is_held_up=lambda: max(self._out.backlog, self._err.backlog) > _MOST_BACKLOG_BYTES,
        )

    def start(self, supervisor: Supervisor, signals: Signals) -> None:
        """Start all workers while supervising the workers already started; stop early if the job ends."""
        job_id, port = new_job_id(), unused_port()
        for index in range(self._job.num_workers):
            with contextlib.ExitStack() as on_error:
                worker = self._start_worker(index, job_id, port, on_error)
                on_error.pop_all()
            supervisor.add([worker], [self._outputs[-1], self._errors[-1]])
            supervisor.turn(0.0)
            signals.process(supervisor)
            self.update(signals, supervisor)
            if supervisor.is_asked_to_end:
                break

    def update(self, signals: Signals, supervisor: Supervisor) -> None:
        """Stop the workers after an exception or a failed write; note a signal, unless a worker had failed before."""
        self._note_raised()
        if self._raised:
            supervisor.ask_to_end_after(max(self._job.grace_seconds, _TRACEBACK_SECONDS))
        if self._out.error is not None and signals.received is None:
            # The reader has exited (`| head`), or the disk is full: end the job, as SIGPIPE ends a single program.
            signals.received = signal.SIGPIPE
            supervisor.ask_to_end(signal.SIGTERM)
        if first_failure(self._endings) is None:
            self._received = signals.received

    def save_recorders(self, folder: str) -> None:
        """Write the flight recorders of the workers, which continue to run, to files; print the result."""
        try:
            count = self.recorders.save(folder)
            text = f"wrote {count} flight recorders to {folder}: ringlet inspect {folder} shows them"
        except OSError as error:
            text = f"cannot write the flight recorders to {folder}: {error.strerror}"
        self._err.write(f"ringlet run: {text}\n".encode(errors="replace"))

    def report(self, signals: Signals) -> int:
        first = shown_failure(self._endings, self._received)
        if self._job.shows_all_tracebacks:
            for ending in self._endings:
                if ending is not first:
                    self._errors[ending.worker].show_traceback()
        for line in self._summary():
            self._err.write(f"ringlet run: {line}\n".encode(errors="replace"))
        if first is not None:
            self._report_recorders(first.words)
            self._errors[first.worker].show_traceback()
        self._flush(self._out, signals)
        lost = self._out.error
        if lost is not None and lost.errno != errno.EPIPE:
            self._err.write(f"ringlet run: cannot write to standard output: {lost.strerror}\n".encode())
        self._flush(self._err, signals)
        status = job_status(self._endings, self._received)
        if lost is None or lost.errno == errno.EPIPE or status not in (0, 128 + signal.SIGPIPE):
            return status
        return 1

    def _report_recorders(self, reported: str) -> None:
        line = self.recorders.divergence(reported)
        if self._received == signal.SIGINT and not interrupted_call(self._endings)[0]:
            line = line or self.recorders.last_wait()
        if line is not None:
            self._err.write(f"ringlet run: {line}\n".encode(errors="replace"))
        if self._job.log_folder is not None:
            self.save_recorders(self._job.log_folder)

    def reason(self) -> str:
        return next(iter(self._summary()), "all workers exited with status 0")

    def _summary(self) -> list[str]:
        return summary(self._endings, self._received, self._job.num_workers)

    def _flush(self, writer: NonblockingWriter, signals: Signals) -> None:
        # A slow reader receives all output, unless a signal ends this process.
        while not writer.flush(_FLUSH_SECONDS) and not signals.is_asked_to_end:
            pass

    def _start_worker(self, index: int, job_id: str, port: int, on_error: contextlib.ExitStack) -> Worker:
        ranks = self._job.num_workers * (self._job.replicas or 1)
        environment = {
            "PYTHONUNBUFFERED": "1",  # otherwise Python would buffer 8 KiB, because a pipe is not a terminal
            "RINGLET_PROGRESS_SECONDS": "2" if os.isatty(2) else "30",  # otherwise progress bars would be off
            **os.environ,
            **blas_threads(os.environ, visible_cores().count, ranks),
            **worker_environment(index, self._job.num_workers, job_id, self._job.replicas, port),
            "RINGLET_ATTEMPT": str(self._job.attempt),
        }
        recorders, variables = self.recorders.add()
        with contextlib.ExitStack() as writers:
            stdout = self._new_channel(index, 1, writers, on_error)
            stderr = self._new_channel(index, 2, writers, on_error)
            stdin = None if index == 0 and not os.isatty(0) else subprocess.DEVNULL
            process = self._process_group.start(
                self._job.command,
                environment | self.reports.environment() | variables,
                cores=self._job.cores[index] if self._job.cores else (),
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                pass_fds=(self.reports.writer, *recorders),
            )
        self._indices[process.pid] = index
        return Worker(index, process)

    def _new_channel(
        self, index: int, stream: int, writers: contextlib.ExitStack, on_error: contextlib.ExitStack
    ) -> int:
        """Create a pipe and a channel that reads it; return the write end."""
        reader, writer = os.pipe()
        writers.callback(os.close, writer)
        is_terminal = os.isatty(stream)
        channel = OutputChannel(
            index,
            reader,
            colored_prefix(index) if is_terminal and _has_colors() else prefix_of(index),
            (self._out if stream == 1 else self._err).write,
            words=TracebackBuffer() if stream == 2 else None,
            state_seconds=_STATE_SECONDS[is_terminal],
        )
        on_error.callback(channel.close)
        (self._outputs if stream == 1 else self._errors).append(channel)
        return writer

    def _note_raised(self) -> None:
        """Read the reports of uncaught exceptions, and mark their tracebacks as final."""
        for pid, at in self.reports.read().items():
            if pid in self._indices:
                index = self._indices[pid]
                self._raised[index] = at
                words = self._errors[index].words
                assert words is not None
                words.is_final = True

    def _has_failed(self, worker: Worker) -> bool:
        self._note_raised()
        channel = self._errors[worker.index]
        words = channel.words
        assert words is not None
        assert worker.status is not None
        ending = Ending(
            worker.index,
            worker.status,
            self._raised.get(worker.index, words.began or time.monotonic()),
            worker.asked_at,
            words.text.decode(errors="replace"),
            words.last_line.decode(errors="replace"),
            worker.index in self._raised,
            worker.process.pid,
        )
        self._endings.append(ending)
        if ending.status == 0:
            channel.show_traceback()
        return ending.status != 0


def _fill_standard_descriptors() -> None:
    """Open closed standard descriptors (``>&-``), so that no pipe gets a standard descriptor's number."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # a new descriptor gets the lowest free number


def _is_same_file(one: int, other: int) -> bool:
    with contextlib.suppress(OSError):
        return os.path.samestat(os.fstat(one), os.fstat(other))
    return False


def _has_colors() -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"
