"""Worker processes that run programs of tests in parallel.

A set of processes serves many tests: each program gets a strategy of its own, so that a failed strategy does not affect
others. The names in a program are `strategy`, `replica()`, `rank()` (of the replica), `me` (the worker's index),
`ringlet` and `np`; the program assigns its result to `answer`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import threading
import traceback
import uuid
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["PROGRAM", "Failure", "Workers", "environment"]

ROOT = Path(__file__).resolve().parents[2]
# Time limit of a call on a busy machine.
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Failure:
    """The exception of a worker."""

    kind: str
    text: str
    notes: str
    seconds: float

    def __contains__(self, words: str) -> bool:
        return words in f"{self.text}\n{self.notes}"


def environment(index: int, num_workers: int, num_local: int = 1, job_id: str = "", **changes: str) -> dict[str, str]:
    """Return the environment of one worker of a cluster."""
    addresses = [f"localhost:{20000 + worker}" for worker in range(num_workers)]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RINGLET_")}
    config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
    devices = {"RINGLET_NUM_DEVICES": str(num_local)} if num_local > 1 else {}
    return {**kept, "TF_CONFIG": json.dumps(config), "RINGLET_JOB_ID": job_id, **devices, **changes}


# Prologue of programs for `tests.processes.harness`; `attempt` returns the outcome of a call.
PROGRAM = """
import signal
import numpy as np
import ringlet

options = ringlet.experimental.CommunicationOptions(timeout_seconds=float(os.environ.get("SECONDS", "50")))
strategy = ringlet.MultiWorkerMirroredStrategy(communication_options=options)
me = strategy.extended._workers.worker_index

def rank():
    return int(ringlet.get_replica_context().replica_id_in_sync_group)

def step(x=1.0):
    return ringlet.get_replica_context().all_reduce("SUM", np.array([x, 2.0]))

def attempt(call):
    started = time.monotonic()
    try:
        answer = call()
    except BaseException as error:
        notes = "\\n".join(getattr(error, "__notes__", ()))
        tell({"kind": type(error).__name__, "text": str(error), "notes": notes, "seconds": time.monotonic() - started})
    else:
        tell(np.asarray(strategy.experimental_local_results(answer)[0]).tolist())
"""


class Workers:
    """Worker processes with a number of replicas each."""

    def __init__(self, num_workers: int, num_local: int = 1) -> None:
        job_id = f"test {uuid.uuid4()}"
        self.num_local = num_local
        self.processes = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.strategy.workers"],
                cwd=ROOT,
                env=environment(index, num_workers, num_local, job_id),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for index in range(num_workers)
        ]

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.close()
            process.stdout.close()

    def run(self, program: str, timeout_seconds: float = 20.0, **given: Any) -> list[Any]:
        """Return the result of each worker; a `Failure` if it raised."""
        message = json.dumps({"program": textwrap.dedent(program), "timeout_seconds": timeout_seconds, "given": given})
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write(message + "\n")
            process.stdin.flush()
        return [self._answer(process) for process in self.processes]

    def _answer(self, process: subprocess.Popen[str]) -> Any:
        guard = threading.Timer(PATIENCE_SECONDS, process.kill)
        guard.start()
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
        finally:
            guard.cancel()
        assert line, f"worker {process.pid} ended, with status {process.wait()}"
        told = json.loads(line)
        return Failure(**told["failure"]) if "failure" in told else told["answer"]


# --- in the processes -------------------------------------------------------------------------------------------------


def perform(message: dict[str, Any]) -> dict[str, Any]:
    import time

    import numpy as np

    import ringlet

    options = ringlet.experimental.CommunicationOptions(timeout_seconds=message["timeout_seconds"])
    strategy = ringlet.MultiWorkerMirroredStrategy(communication_options=options)
    started = time.monotonic()
    names: dict[str, Any] = {
        "np": np,
        "ringlet": ringlet,
        "strategy": strategy,
        "replica": ringlet.get_replica_context,
        "rank": lambda: int(ringlet.get_replica_context().replica_id_in_sync_group),
        "me": strategy.extended._workers.worker_index,
        "time": time,
        **message["given"],
    }
    try:
        exec(compile(message["program"], "program", "exec"), names)
    except BaseException as error:
        notes = "\n".join(getattr(error, "__notes__", ()))
        kind, text = type(error).__name__, str(error)
        traceback.clear_frames(error.__traceback__)
        return {"failure": {"kind": kind, "text": text, "notes": notes, "seconds": time.monotonic() - started}}
    return {"answer": names.get("answer")}


def as_json(value: Any) -> Any:
    """Return arrays as lists, distributed values as lists of their components, and other objects as their str."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return list(value.values) if isinstance(getattr(value, "values", None), tuple) else str(value)


def main() -> None:
    for line in sys.stdin:
        print(json.dumps(perform(json.loads(line)), default=as_json), flush=True)


if __name__ == "__main__":
    main()
