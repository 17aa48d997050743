"""``ringlet run``: run a script on several worker processes, of this machine or of several."""

from __future__ import annotations

import argparse
import dataclasses
import errno
import math
import os
import shlex
import signal
import sys
import time
from collections.abc import Collection, Sequence
from importlib.machinery import PathFinder
from pathlib import Path

from ringlet.cluster.environment import read_placement
from ringlet.errors import InvalidArgumentError
from ringlet.launcher.command_line import CommandError, whole_number
from ringlet.launcher.run_workers import Job, Outcome, run_workers
from ringlet.launcher.worker_environment import MOST_RANKS, MOST_WORKERS

_GRACE_SECONDS = 1.0
_RECORDER_SIGNALS = {"USR1": signal.SIGUSR1, "USR2": signal.SIGUSR2}

_EPILOG = """\
examples:
  ringlet run -n 4 train.py --epochs 3
  ringlet run -n 2 --replicas 4 train.py
  ringlet run -n 4 -m package.train
  ringlet run --hosts node1:4,node2:4 train.py
  ringlet run --simulate-hosts 2x2 train.py
  ringlet run -n 4 --restarts 3 --grace-seconds 60 train.py

Each worker gets TF_CONFIG and RINGLET_JOB_ID, which
ringlet.MultiWorkerMirroredStrategy reads, and an equal share of the cores for
BLAS (OMP_NUM_THREADS and similar variables, unless they are set). Its output
appears in whole lines that begin with [w0], [w1] and so on. Standard input is
passed to worker 0, unless it is a terminal.

When a worker fails, the other workers are stopped, and its traceback is shown
last. The exit status is the status of the worker that failed first, 128 + N if
signal N ended it, and 2 if the command line is wrong. Ctrl-C is sent to all
workers; a second Ctrl-C kills them. No process started by a worker outlives the
job.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to `parser`."""
    parser.usage = "ringlet run -n N [--replicas R] [-m] script.py [argument ...]"
    parser.epilog = _EPILOG
    parser.add_argument("-n", "--workers", metavar="N", help="number of worker processes")
    parser.add_argument(
        "--hosts", metavar="A:N,B:N", help="hosts with their numbers of workers, which MPI starts: node1:4,node2:4"
    )
    parser.add_argument(
        "--simulate-hosts",
        metavar="HxW",
        help="hosts x workers of each, as network namespaces (root only): 2x4",
    )
    parser.add_argument(
        "--replicas", metavar="R", help="replicas of each worker (RINGLET_NUM_DEVICES); the script decides if not given"
    )
    parser.add_argument(
        "--bind", default="none", metavar="TO", help="bind workers to none, core or numa: cores, or NUMA nodes (none)"
    )
    parser.add_argument("-m", dest="is_module", action="store_true", help="run a module, as python -m does")
    parser.add_argument(
        "--grace-seconds",
        metavar="S",
        default=str(_GRACE_SECONDS),
        help="seconds between the signal that stops workers and SIGKILL (%(default)s)",
    )
    parser.add_argument(
        "--timeout",
        metavar="S",
        help="seconds that calls wait for other workers, 0 for no limit (RINGLET_TIMEOUT_SECONDS, or 600)",
    )
    parser.add_argument(
        "--all-tracebacks",
        action="store_true",
        help="show the tracebacks of all failed workers; the traceback of the first failure is shown last",
    )
    parser.add_argument(
        "--log-dir",
        metavar="DIR",
        help="folder for rank-N.recorder of each worker, written when the job fails; ringlet inspect reads them",
    )
    parser.add_argument(
        "--restarts", metavar="N", default="0", help="start all workers again after a failure, N times at most (0)"
    )
    parser.add_argument(
        "--no-restart",
        metavar="S,S",
        default="2",
        help="exit statuses after which the job is not started again (%(default)s: a wrong command line)",
    )
    parser.add_argument("program", nargs=argparse.REMAINDER, help="script or module, then its arguments")


def execute(options: argparse.Namespace) -> int:
    """Run the script; return the exit status."""
    words = options.program[1:] if options.program[:1] == ["--"] else options.program
    hosts = _hosts(options)
    if options.timeout is not None:
        os.environ["RINGLET_TIMEOUT_SECONDS"] = str(_seconds("--timeout", options.timeout))
    num_workers = sum(hosts.values()) or _number_of_workers(options.workers, words)
    job = Job(
        command=(module_command if options.is_module else script_command)(words, num_workers),
        num_workers=num_workers,
        replicas=None if options.replicas is None else whole_number("--replicas", options.replicas),
        grace_seconds=_seconds("--grace-seconds", options.grace_seconds),
        shows_all_tracebacks=options.all_tracebacks,
        log_folder=options.log_dir,
        recorder_signal=_recorder_signal(os.environ.get("RINGLET_RECORDER_SIGNAL")),
        hosts=hosts,
        simulates_hosts=options.simulate_hosts is not None,
    )
    job = dataclasses.replace(job, cores=_cores(options, job))
    _check_size(job)
    restarts = whole_number("--restarts", options.restarts, 0)
    final = [whole_number("--no-restart", text) for text in options.no_restart.split(",") if text]
    # TF_CONFIG is left out, because it is replaced for the workers.
    place = read_placement({name: value for name, value in os.environ.items() if name != "TF_CONFIG"})
    if place.size > 1:
        print(
            f"ringlet run: {place.source} describes {place.size} processes, each of which starts a job of "
            f"{job.num_workers} workers here. For one job, start `ringlet run` once",
            file=sys.stderr,
        )
    try:
        return run_with_restarts(job, restarts, final)
    except OSError as error:
        raise CommandError(_start_failed(job, error)) from error


def _hosts(options: argparse.Namespace) -> dict[str, int]:
    name, text = "--hosts", options.hosts
    if options.simulate_hosts is not None:
        if text is not None:
            raise CommandError("--hosts and --simulate-hosts cannot be combined: omit one of them")
        name, text = "--simulate-hosts", options.simulate_hosts
    if text is None:
        return {}
    from ringlet.launcher.run_on_hosts import parsed_hosts
    from ringlet.launcher.simulated_hosts import simulated_addresses

    hosts = parsed_hosts(text) if name == "--hosts" else simulated_addresses(text)
    if options.workers is not None and options.workers != str(sum(hosts.values())):
        raise CommandError(f"-n {options.workers} differs from the number of workers in {name} {text}: omit -n")
    here = {"--log-dir": options.log_dir, "--all-tracebacks": options.all_tracebacks, "--bind": options.bind != "none"}
    for option, value in here.items():
        if value:
            raise CommandError(f"{option} is available for workers of this machine only: omit {option} or {name}")
    return hosts


def _cores(options: argparse.Namespace, job: Job) -> list[list[int]]:
    if options.bind == "none":
        return []
    from ringlet.launcher.core_binding import cores_of_workers

    try:
        return cores_of_workers(options.bind, job.num_workers, job.replicas, "--bind")
    except InvalidArgumentError as error:
        raise CommandError(str(error)) from error


def _number_of_workers(text: str | None, words: list[str]) -> int:
    if text == "p":
        example = shlex.join(words) or "4 script.py"
        raise CommandError(f"-np is not an option: write -n, as in ringlet run -n {example}")
    if text is not None:
        return whole_number("-n", text)
    if any(word in ("-n", "--workers") or word.startswith("--workers=") for word in words):
        raise CommandError(
            f"-n must precede the script: ringlet run -n 4 {words[0]}. Later arguments are passed to the script"
        )
    number = words.pop(0) if words and words[0].isdecimal() else "4"
    script = words[0] if words else "script.py"
    raise CommandError(
        f"the number of workers is missing. Write -n before the script: ringlet run -n {number} {script}"
    )


def _seconds(option: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise CommandError(f"{option} must be a non-negative number, got {text!r}")
    return seconds


def _recorder_signal(name: str | None) -> int | None:
    if not name:
        return None
    if name not in _RECORDER_SIGNALS:
        raise CommandError(f"RINGLET_RECORDER_SIGNAL must be {' or '.join(_RECORDER_SIGNALS)}, got {name!r}")
    return _RECORDER_SIGNALS[name]


def _check_size(job: Job) -> None:
    if job.num_workers > MOST_WORKERS:
        raise CommandError(f"-n {job.num_workers} is too many: a job has at most {MOST_WORKERS} workers")
    ranks = job.num_workers * (job.replicas or 1)
    if ranks > MOST_RANKS:
        raise CommandError(
            f"{job.num_workers} workers of {job.replicas} replicas have {ranks} replicas in total: a job has at most "
            f"{MOST_RANKS}"
        )


def _start_failed(job: Job, error: OSError) -> str:
    cures = {
        errno.EMFILE: "this user's limit of open files is too low. Raise it (ulimit -n), or start fewer workers",
        errno.ENFILE: "the machine's limit of open files is reached. Start fewer workers",
        errno.EAGAIN: "this user's limit of processes is reached. Raise it (ulimit -u), or start fewer workers",
        errno.ENOMEM: "the machine has too little memory left. Start fewer workers",
    }
    cure = cures.get(error.errno or 0, "the system does not allow more processes. Start fewer workers")
    return f"cannot start {job.num_workers} workers ({error.strerror or error}): {cure}"


# The delay doubles after each failure, and is reset by an attempt that ran longer than _LONG_SECONDS.
_FIRST_DELAY_SECONDS = 1.0
_LONGEST_DELAY_SECONDS = 60.0
_LONG_SECONDS = 600.0


def run_with_restarts(job: Job, restarts: int, final: Collection[int]) -> int:
    """Run a job, and restart it at most `restarts` times if it fails; return the status of the last attempt.

    A job that a signal has stopped, or that ends with a status in `final`, is not restarted. After Ctrl-C
    between two attempts, the status is 130.
    """
    delay, attempts = _FIRST_DELAY_SECONDS, list[tuple[float, Outcome]]()
    while True:
        begin = time.monotonic()
        outcome = _run(dataclasses.replace(job, attempt=len(attempts) + 1))
        seconds = time.monotonic() - begin
        attempts.append((seconds, outcome))
        if outcome.status == 0 or outcome.is_stopped or outcome.status in final or len(attempts) > restarts:
            break
        delay = _FIRST_DELAY_SECONDS if seconds > _LONG_SECONDS else delay
        _print(
            f"attempt {len(attempts)} of {restarts + 1} failed after {seconds:.1f} s; the next one starts in {delay:g} "
            "s"
        )
        try:
            time.sleep(delay)
        except KeyboardInterrupt:
            _report(attempts)
            return 128 + signal.SIGINT
        delay = min(2 * delay, _LONGEST_DELAY_SECONDS)
    if restarts and outcome.status in final:
        _print(f"no restart after status {outcome.status} (--no-restart)")
    if len(attempts) > 1:
        _report(attempts)
    return outcome.status


def _run(job: Job) -> Outcome:
    if not job.hosts:
        return run_workers(job)
    from ringlet.launcher.run_on_hosts import run_on_hosts

    return run_on_hosts(job)


def _report(attempts: list[tuple[float, Outcome]]) -> None:
    for number, (seconds, outcome) in enumerate(attempts, 1):
        _print(f"attempt {number}, {seconds:.1f} s: {outcome.reason}")


def _print(line: str) -> None:
    print(f"ringlet run: {line}", file=sys.stderr, flush=True)


def script_command(words: Sequence[str], num_workers: int = 4) -> list[str]:
    """Return the command that runs a script with its arguments; `num_workers` is for messages."""
    if not words:
        raise CommandError(
            f"no script given. Write it last, with its arguments: ringlet run -n {num_workers} script.py"
        )
    script = words[0]
    if script.startswith("-"):
        raise CommandError(
            f"{script!r} is not an option of ringlet run. Write the script's own options after its name (see --help)"
        )
    if Path(script).is_dir():
        if not Path(script, "__main__.py").exists():
            raise CommandError(f"{script!r} is a folder without __main__.py. Pass the path of a script")
    elif not Path(script).exists():
        raise CommandError(_not_found(words, num_workers))
    elif not os.access(script, os.R_OK):
        raise CommandError(f"the script {script!r} cannot be read: permission denied. Try chmod u+r {script}")
    return [sys.executable, *words]


def module_command(words: Sequence[str], num_workers: int = 4) -> list[str]:
    """Return the command that runs a module with its arguments, as ``python -m`` does."""
    if not words:
        raise CommandError(f"no module given after -m. Write its name: ringlet run -n {num_workers} -m package.module")
    top = words[0].partition(".")[0]
    # Only the top-level package is searched for, because finding a submodule would import the package here.
    if words[0].endswith(".py") and Path(words[0]).exists():
        raise CommandError(f"{words[0]!r} is a script, not the name of a module. Omit -m")
    if not all(part.isidentifier() for part in words[0].split(".")):
        raise CommandError(f"{words[0]!r} is not the name of a module. Write it as in Python: package.module")
    if top not in sys.builtin_module_names and PathFinder.find_spec(top, [str(Path.cwd()), *sys.path]) is None:
        raise CommandError(
            f"module {top!r} was not found, neither installed nor in {Path.cwd()}. Install it, or run the command in "
            "its folder"
        )
    return [sys.executable, "-m", *words]


def _not_found(words: Sequence[str], num_workers: int) -> str:
    name = Path(words[0]).name
    if name.startswith("python") and os.sep not in words[0] and len(words) > 1:
        rest = " ".join(words[1:])
        return f"omit {name!r}, which is implied: ringlet run -n {num_workers} {rest}"
    if words[0].isidentifier() and PathFinder.find_spec(words[0], [str(Path.cwd()), *sys.path]) is not None:
        return f"{words[0]!r} is a module, not a script: ringlet run -n {num_workers} -m {words[0]}"
    return f"the script {words[0]!r} was not found in {Path.cwd()}. Check its path"
