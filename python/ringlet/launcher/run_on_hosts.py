"""Runs a job on several hosts: starts mpiexec, relays the output of the ranks, and kills remaining ranks."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from ringlet.collectives.hosts.mpi_transport import INSTALL, TCP_FLAGS, TCP_VARIABLE
from ringlet.ipc.job_environment import new_job_id
from ringlet.ipc.worker_process import Worker, WorkerProcessGroup, ending_text, shell_status
from ringlet.launcher.command_line import CommandError
from ringlet.launcher.exit_report import Ending, job_status, summary, workers_text
from ringlet.launcher.nonblocking_writer import NonblockingWriter
from ringlet.launcher.output_relay import OutputChannel
from ringlet.launcher.run_workers import Job, Outcome
from ringlet.launcher.signals import Signals, Terminal
from ringlet.launcher.simulated_hosts import simulated_hosts
from ringlet.launcher.supervisor import Supervisor
from ringlet.launcher.worker_environment import unused_port
from ringlet.rendezvous.process_identity import start_ticks

# Options of mpiexec: lost processes are reported, a component that can return wrong data after a failure is excluded,
# and waiting ranks yield their core.
_FLAGS = ("--with-ft", "ulfm", "--map-by", "slot", "--bind-to", "none", "--output", "tag")
_SETTINGS = {"coll": "^han", "mpi_yield_when_idle": "1"}
# Prefix that mpiexec adds to each line of a rank.
_TAG = re.compile(rb"^\[(?:[^\]\n]*@)?\d+,(\d+)\]<std(?:out|err|diag)>: ?", re.MULTILINE)
# Runs a rank, reports its exit status on standard error, and ends with the same status or signal. Signals from mpiexec
# reach this script and the rank.
_RANK = r"""
trap : HUP INT TERM
"$@"
status=$?
printf '\001%s=%s\001\n' "$OMPI_COMM_WORLD_RANK" $status >&2
trap - HUP INT TERM
[ $status -gt 128 ] && [ $status -lt 144 ] && kill -$((status - 128)) $$
exit $status
"""
_STATUS = re.compile(_TAG.pattern.join((rb"(?:", rb")?\x01(\d+)=(\d+)\x01\n")), re.MULTILINE)
_NOISE = re.compile(rb"^.*(?:plm:ssh: Warning|PRTE ERROR: Not found in file|NBC_Progress: an error).*\n", re.MULTILINE)
# Variables of this process that ranks on other hosts receive.
_PASSED = re.compile(r"RINGLET_|PYTHON|OMP_NUM_THREADS|OPENBLAS_|MKL_|BLIS_")
_REPLACED = ("TF_CONFIG", "RINGLET_RANK", "RINGLET_NUM_RANKS")
# mpiexec is stopped if it still runs this long after the ranks of this host have exited; other hosts need less, even
# after a failure.
_FOLLOW_SECONDS = 5.0
_LOOK_SECONDS = 0.5


def parsed_hosts(text: str) -> dict[str, int]:
    """Return the hosts of ``a:4,b:4`` with their numbers of workers; a host without a number has one worker."""
    hosts: dict[str, int] = {}
    for part in text.split(","):
        name, _, number = part.strip().partition(":")
        if not name or not (number or "1").isdecimal() or not int(number or 1):
            raise CommandError(
                f"--hosts is {text!r}: expected hosts, each with its number of workers, such as node1:4,node2:4"
            )
        if name in hosts:
            raise CommandError(
                f"--hosts names {name} twice: name it once, with all of its workers, as in "
                f"{name}:{2 * int(number or 1)}"
            )
        hosts[name] = int(number or 1)
    return hosts


def mpiexec_command(job: Job, environ: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return the command that starts a job on its hosts, and its environment."""
    beside = Path(sys.executable).with_name("mpiexec")
    program = str(beside) if beside.exists() else shutil.which("mpiexec")
    if program is None:
        raise CommandError(f"--hosts requires MPI, but mpiexec is not installed: run {INSTALL} on every host")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    if "Open MPI" not in version:
        name = version.strip().partition("\n")[0]
        raise CommandError(f"--hosts requires Open MPI, but {program} is {name or 'another MPI'}: start the job with "
                           f"{program} -n {job.num_workers} python script.py")  # fmt: skip
    variables = {
        **{name: value for name, value in environ.items() if _PASSED.match(name)},
        "PYTHONUNBUFFERED": "1",
        "RINGLET_JOB_ID": new_job_id(),
        "RINGLET_ATTEMPT": str(job.attempt),
        # for torch.distributed, whose rank 0 listens at this address
        "MASTER_ADDR": environ.get("MASTER_ADDR", next(iter(job.hosts))),
        "MASTER_PORT": environ.get("MASTER_PORT", str(unused_port())),
        TCP_VARIABLE: environ.get(TCP_VARIABLE, TCP_FLAGS),
        **({} if job.replicas is None else {"RINGLET_NUM_DEVICES": str(job.replicas)}),
    }
    for name in _REPLACED:
        variables.pop(name, None)
    hosts = ",".join(f"{name}:{count}" for name, count in job.hosts.items())
    as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    passed = [word for name in variables for word in ("-x", name)]
    settings = [word for name, value in _SETTINGS.items() for word in ("--mca", name, value)]
    command = [
        program,
        *as_root,
        *_FLAGS,
        *settings,
        "--host",
        hosts,
        "-n",
        str(job.num_workers),
        *passed,
        *("sh", "-c", _RANK, "sh"),
        *job.command,
    ]
    return command, {**{name: value for name, value in environ.items() if name not in _REPLACED}, **variables}


def run_on_hosts(job: Job) -> Outcome:
    """Run a job until mpiexec has exited, and return its outcome."""
    command, environment = mpiexec_command(job, os.environ)
    if not job.simulates_hosts:
        return _run(job, command, environment)
    with simulated_hosts(len(job.hosts)) as hosts:
        return _run(job, hosts.on_first(command), {**environment, **hosts.environment})


def _run(job: Job, command: list[str], environment: dict[str, str]) -> Outcome:
    """Run mpiexec until it has exited, and return the outcome of the job.

    If mpiexec still runs `_FOLLOW_SECONDS` after the ranks of this host have exited, it is stopped.
    """
    out, err = NonblockingWriter(1), NonblockingWriter(2)
    ended: list[Worker] = []
    endings: list[Ending] = []

    def relay(writer: NonblockingWriter, lines: bytes) -> None:
        for _, rank, status in _STATUS.findall(lines):
            endings.append(Ending(int(rank), _return_code(int(status)), time.monotonic()))
        writer.write(_shown(lines))

    def note(worker: Worker) -> bool:
        ended.append(worker)
        return False

    with Terminal(), Signals() as signals:
        group = WorkerProcessGroup()
        supervisor = Supervisor(group, [], [], grace_seconds=max(job.grace_seconds, 1.0), has_failed=note)
        ranks = _RanksHere()
        try:
            channels, writers = [], []
            for writer in (out, err):
                reader, end = os.pipe()
                channels.append(OutputChannel(0, reader, b"", partial(relay, writer)))
                writers.append(end)
            process = group.start(command, environment, stdin=subprocess.DEVNULL, stdout=writers[0], stderr=writers[1])
            for end in writers:
                os.close(end)
            supervisor.add([Worker(0, process)], channels)
            supervisor.watch(signals.fileno())
            while supervisor.is_at_work():
                supervisor.turn(_LOOK_SECONDS)
                signals.process(supervisor)
                if ranks.have_ended(process.pid, _FOLLOW_SECONDS) and not supervisor.is_asked_to_end:
                    err.write(b"ringlet run: the workers of this host have ended, and mpiexec waits for other hosts: "
                              b"stopping mpiexec\n")  # fmt: skip
                    supervisor.ask_to_end(signal.SIGTERM)
        finally:
            supervisor.close()
            ranks.kill()
    status = ended[0].status if ended and ended[0].asked_at is None else None
    if status is None:
        code, lines = 128 + signals.received if signals.received else 1, ["mpiexec was terminated"]
    else:
        code = job_status(endings, None) or shell_status(status)
        lines = summary(endings, None, job.num_workers) or [f"mpiexec {ending_text(status)}"]
        missing = sorted({*range(job.num_workers)} - {ending.worker for ending in endings})
        if missing and not code:
            code, lines = 1, [f"{workers_text(missing)} of {job.num_workers} reported no exit status"]
        for line in lines if code else ():
            err.write(f"ringlet run: {line}\n".encode())
    for writer in (out, err):
        writer.flush(1.0)
    return Outcome(code, lines[0], signals.is_asked_to_end)


def _return_code(status: int) -> int:
    """Return the ``Popen.returncode`` for an exit status of a shell; statuses above 143 do not denote a signal."""
    return 128 - status if 128 < status < 144 else status


class _RanksHere:
    """The shells of the ranks that mpiexec has started on this host, each the leader of a process group."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}  # pid -> start time
        self._ended_at: float | None = None

    def have_ended(self, mpiexec: int, seconds: float) -> bool:
        """Return whether this host had ranks, and all of them exited more than `seconds` ago."""
        found = [pid for pid in _children(mpiexec) if b"OMPI_COMM_WORLD_RANK=" in _environment(pid)]
        self._seen.update((pid, start_ticks(pid)) for pid in found if pid not in self._seen)
        if found or not self._seen:
            self._ended_at = None
            return False
        self._ended_at = self._ended_at or time.monotonic()
        return time.monotonic() - self._ended_at > seconds

    def kill(self) -> None:
        for pid, began in self._seen.items():
            if began and start_ticks(pid) == began:
                with contextlib.suppress(ProcessLookupError):  # the process has ended in the meantime
                    os.killpg(pid, signal.SIGKILL)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, path.read_text().split())
        except OSError:
            continue
    return found


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def _shown(lines: bytes) -> bytes:
    """Return lines of mpiexec with the prefixes of workers, without exit statuses and irrelevant warnings."""
    lines = _STATUS.sub(lambda found: b"" if found[1] else b"\n", lines)  # a line may begin with other text
    return _TAG.sub(rb"[w\1] ", _NOISE.sub(b"", lines))
