"""Launch job: the workers of one `ringlet.launch`, from start to exit."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ringlet.devices import visible_cores
from ringlet.errors import DeadlineExceededError, WorkerLostError
from ringlet.errors.exception_notes import add_note
from ringlet.ipc.deadline import Deadline
from ringlet.ipc.job_environment import blas_threads, new_job_id
from ringlet.ipc.pickle_codec import Unsendable
from ringlet.ipc.remote_exception import exception_of
from ringlet.ipc.worker_process import Worker, WorkerProcessGroup, ending_text
from ringlet.launcher.exit_report import Ending, first_failure, summary, workers_text
from ringlet.launcher.output_relay import OutputChannel, prefix_of
from ringlet.launcher.recorder_files import RecorderFiles
from ringlet.launcher.result_channel import ResultChannel
from ringlet.launcher.supervisor import Supervisor
from ringlet.launcher.worker_environment import unused_port, worker_environment

_GRACE_SECONDS = 1.0
# Time limits for the exit of an interpreter after it has sent its result, and after an exception.
_EXIT_SECONDS = 5.0
_FAILED_EXIT_SECONDS = 0.3
_LONGEST_TURN_SECONDS = 1.0


class LaunchJob:
    """The workers of one launch.

    The constructor starts the workers with the environment `variables`. Each worker makes the pickled call `call`, on
    the cores in its entry of `cores`, or on all cores if `cores` is empty.
    """

    def __init__(
        self,
        call: bytes,
        num_workers: int,
        replicas: int | None,
        variables: Mapping[str, str],
        cores: Sequence[Sequence[int]] = (),
    ) -> None:
        self._cores = cores
        self._results: list[ResultChannel] = []
        self._outputs: list[OutputChannel] = []
        self._workers: list[Worker] = []
        self._failed: dict[int, float] = {}  # time at which each worker failed
        self._recorders = RecorderFiles(num_workers, variables)
        self._divergence: str | None = None
        with contextlib.ExitStack() as on_error, tempfile.TemporaryFile() as file:
            # All workers read one unnamed file. Pipes would have to be filled while the workers start.
            file.write(pickle.dumps((sys.argv, call)))
            file.flush()
            self._process_group = WorkerProcessGroup()
            on_error.callback(self._process_group.close)
            on_error.callback(self._recorders.close)
            job_id, port = new_job_id(), unused_port()
            threads = blas_threads(variables, visible_cores().count, num_workers * (replicas or 1))
            for index in range(num_workers):
                place = worker_environment(index, num_workers, job_id, replicas, port)
                environment = {"PYTHONUNBUFFERED": "1", **variables, **threads, **place}
                self._workers.append(Worker(index, self._start(index, file.fileno(), environment, on_error)))
                on_error.callback(self._workers[-1].close)
                on_error.callback(self._workers[-1].signal, signal.SIGKILL)
            self._supervisor = Supervisor(
                self._process_group,
                self._workers,
                [*self._results, *self._outputs],
                grace_seconds=_GRACE_SECONDS,
                has_failed=self._has_failed,
            )
            on_error.pop_all()

    def wait(self, deadline: Deadline) -> None:
        """Wait until all workers have exited; at the deadline or if interrupted, stop them and raise an error."""
        try:
            while self._supervisor.is_at_work():
                self._supervisor.turn(deadline.left(_LONGEST_TURN_SECONDS))
                self._note_results()
                if deadline.is_over() and not self._failed:
                    raise DeadlineExceededError(self._late_text(deadline))
        except KeyboardInterrupt:
            self._end(signal.SIGINT)
            raise
        except BaseException:
            self._end(signal.SIGTERM)
            raise

    def close(self) -> None:
        """Kill the remaining workers, even if interrupted."""
        try:
            self._supervisor.close()
        except KeyboardInterrupt:
            self._supervisor.close()
            raise
        finally:
            if self._failed:
                failures = [result.failure for result in self._results if result.is_complete]
                reported = "\n".join(failure.message for failure in failures if failure is not None)
                self._divergence = self._recorders.divergence(reported)
            self._recorders.close()

    def results(self) -> list[Any]:
        """Return the results of all workers, or raise the exception of the worker that failed first."""
        if not self._failed:
            return [self._value_of(result) for result in self._results]
        endings = [self._ending(result) for result in self._results]
        failed = first_failure(endings)
        assert failed is not None
        first = failed.worker
        failure = self._results[first].failure if self._results[first].is_complete else None
        if failure is None:
            raise self._lost(first)
        error = exception_of(failure, self._named(first))
        cause = error.__cause__
        add_note(error, f"{self._named(first)} raised this")
        lines = summary(endings, None, len(endings), most_errors=len(endings))
        if lines[0].startswith(f"{self._named(first)} {ending_text(failed.status)}"):
            del lines[0]  # this line states only how the worker exited
        for line in [*([self._divergence] if self._divergence else []), *lines]:
            add_note(error, line)
        raise error from cause

    def _value_of(self, result: ResultChannel) -> Any:
        try:
            return result.value()
        except Exception as error:
            raise Unsendable(
                f"cannot read the result of {self._named(result.worker)}: {error}. Return a value that this process "
                "can unpickle"
            ) from error

    def _lost(self, index: int) -> WorkerLostError:
        worker = self._workers[index]
        assert worker.status is not None
        pid, host, reason = worker.process.pid, socket.gethostname(), ending_text(worker.status)
        return WorkerLostError(
            f"{self._named(index)} (pid {pid} on {host}) {reason} before its function had returned. All workers were "
            "stopped. See the output of that worker above.",
            index,
            host,
            pid,
            reason,
        )

    def _ending(self, result: ResultChannel) -> Ending:
        worker = self._workers[result.worker]
        failure = result.failure if result.is_complete else None
        at = self._failed.get(worker.index, worker.asked_at or 0.0)
        if failure is not None:
            return Ending(worker.index, 1, at, worker.asked_at, failure.text, has_raised=True, pid=worker.process.pid)
        status = 0 if result.is_complete else worker.status or 1  # a worker without a result has failed
        return Ending(worker.index, status, at, worker.asked_at, pid=worker.process.pid)

    def _named(self, index: int) -> str:
        return f"worker {index} of {len(self._workers)}"

    def _late_text(self, deadline: Deadline) -> str:
        late = workers_text([result.worker for result in self._results if not result.is_complete])
        return (
            f"{late} of {len(self._workers)} had not returned after {deadline}; all workers were terminated. Allow "
            "more time with timeout_seconds=; if workers wait for each other, pass "
            'environment={"RINGLET_TIMEOUT_SECONDS": "5"}: their calls then raise an error that names the missing '
            "worker"
        )

    # --- starting and stopping ----------------------------------------------------------------------------------------

    def _start(
        self, index: int, file: int, environment: Mapping[str, str], on_error: contextlib.ExitStack
    ) -> subprocess.Popen[bytes]:
        with contextlib.ExitStack() as writers:
            ends = []
            for make in (self._new_result, self._new_output("stdout"), self._new_output("stderr")):
                reader, writer = os.pipe()
                writers.callback(os.close, writer)
                on_error.callback(make(index, reader).close)
                ends.append(writer)
            # Workers import modules from this process's path.
            path = list(filter(_is_text, sys.path))  # imports skip entries that are not str
            recorders, variables = self._recorders.add()
            program = f"import sys; sys.path[:] = {path!r}; from ringlet.launcher.worker_main import main; "
            return self._process_group.start(
                [sys.executable, "-c", program + f"main({file}, {ends[0]})"],
                {**environment, **variables},
                cores=self._cores[index] if self._cores else (),
                stdin=subprocess.DEVNULL,
                stdout=ends[1],
                stderr=ends[2],
                pass_fds=(file, ends[0], *recorders),
            )

    def _new_result(self, index: int, reader: int) -> ResultChannel:
        self._results.append(ResultChannel(index, reader))
        return self._results[-1]

    def _new_output(self, stream: str) -> Callable[[int, int], OutputChannel]:
        def write(lines: bytes) -> None:
            # The stream is looked up for each write and written to as text, because notebooks and tests replace
            # sys.stdout.
            into = getattr(sys, stream)
            if lines and into is not None:
                encoding = getattr(into, "encoding", None) or "utf-8"
                into.write(lines.decode(errors="replace").encode(encoding, "backslashreplace").decode(encoding))
                into.flush()

        def make(index: int, reader: int) -> OutputChannel:
            self._outputs.append(OutputChannel(index, reader, prefix_of(index), write))
            return self._outputs[-1]

        return make

    def _has_failed(self, worker: Worker) -> bool:
        result = self._results[worker.index]
        # A worker that was stopped before it sent a result has not failed.
        failure = result.failure if result.is_complete else None
        if failure is not None:
            self._failed.setdefault(worker.index, failure.at)
        elif not result.is_complete and worker.asked_at is None:
            self._failed.setdefault(worker.index, time.monotonic())
        return worker.index in self._failed

    def _note_results(self) -> None:
        """Stop the workers shortly after the first failure, or after all results have arrived."""
        complete = [result for result in self._results if result.is_complete]
        for result in complete:
            failure = result.failure
            if failure is not None and result.worker not in self._failed:
                self._failed[result.worker] = failure.at
                self._supervisor.ask_to_end_after(_FAILED_EXIT_SECONDS)
        if len(complete) == len(self._results):
            self._supervisor.ask_to_end_after(_EXIT_SECONDS)

    def _end(self, number: int) -> None:
        self._supervisor.ask_to_end(number)
        while self._supervisor.is_at_work():
            self._supervisor.turn()


def _is_text(entry: object) -> bool:
    return isinstance(entry, str)
