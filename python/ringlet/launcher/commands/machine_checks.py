"""Checks of this machine and environment for `ringlet doctor`: one function each, listed in `CHECKS`."""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import math
import os
import platform
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from ringlet.devices import visible_cores
from ringlet.launcher.worker_environment import MOST_WORKERS

Status = Literal["ok", "note", "problem"]

_GIB = 2**30
_TOO_LITTLE_MEMORY_BYTES = 2**26
# File descriptors that `ringlet run` needs for itself and for each worker, and the limit below which a note is shown.
_LAUNCHER_FILES, _WORKER_FILES, _FEW_FILES = 15, 3, 256
_OWN_THREADS = 4  # threads of each process of a job besides its BLAS threads; a job has one BLAS thread per core
_SHARED_BYTES = 1 << 21
_LONGEST_VALUE = 60
_SIZE_LIMITS = {"-v": resource.RLIMIT_AS, "-d": resource.RLIMIT_DATA, "-f": resource.RLIMIT_FSIZE}
_FUTEX_WAKE, _FUTEX_CALLS = 1, {"x86_64": 202, "aarch64": 98}
# Run by a child process: if it can read its parent's memory, the processes of a job can read each other's.
_READ_PARENT = """
import ctypes, os, sys
to = ctypes.create_string_buffer(8)
local, remote = (ctypes.c_size_t * 2)(ctypes.addressof(to), 8), (ctypes.c_size_t * 2)(int(sys.argv[1]), 8)
sys.exit(ctypes.CDLL(None).process_vm_readv(os.getppid(), local, 1, remote, 1, 0) != 8)
"""


class Line(NamedTuple):
    """The result of a check; `value` is the number that was measured or counted, if there is one.

    The status "note" means that jobs run slower or without a feature, "problem" that a job would fail.
    """

    status: Status
    found: str
    meaning: str
    remedy: str = ""
    value: float | None = None


class Facts(NamedTuple):
    """The inputs of the checks.

    `root` is the folder that contains ``proc`` and ``sys``; `processes` is the number of processes of the job on this
    machine.
    """

    environ: Mapping[str, str]
    root: Path = Path("/")
    processes: int = 1


def run_check(name: str, check: Callable[[Facts], Line], facts: Facts) -> Line:
    """Return the result of a check, or a problem or note that reports the error that it raises."""
    try:
        return check(facts)
    except Exception as error:
        if isinstance(error, ImportError) and name != "installation":
            return Line("note", "not checked", "Ringlet cannot be imported: see the check of the installation.")
        found = f"{type(error).__name__}: {' '.join(str(error).split())}"
        return Line("problem", found, "A job fails with this error.", "Correct the setting that the error names.")


def _installation(_: Facts) -> Line:
    import ringlet.strategy.api.mirrored_strategy  # noqa: F401  # loads the core and all dependencies, which may fail
    from ringlet.config import show_config

    config, numpy = show_config("dicts"), importlib.metadata.version("numpy")
    found = f"ringlet {config['version']}, {config['python']}, NumPy {numpy}, {config['compiler']}"
    meaning = f"The kernels are for {config['cpu']['target']}: {config['cpu']['reason']}."
    if int(numpy.partition(".")[0]) < 2:
        return Line("note", found, f"{meaning} Sharded arrays need NumPy 2.0.", "pip install 'numpy>=2'")
    return Line("ok", found, meaning)


def _variables(facts: Facts) -> Line:
    from ringlet.collectives import default_timeout_seconds
    from ringlet.devices.blas_threads import BlasLimiter
    from ringlet.devices.logical_devices import LogicalDevices
    from ringlet.observe.stall_reports import stall_seconds
    from ringlet.variable_names import NAMES, misspelt

    # Each of these calls raises an error if the value of its variable is invalid.
    default_timeout_seconds(facts.environ)
    stall_seconds(facts.environ)
    BlasLimiter(facts.environ, 1, tuple, ())
    LogicalDevices(facts.environ, visible_cores).names()
    found = _shown(facts.environ, [name for name in NAMES if name.startswith("RINGLET_")])
    if wrong := misspelt(facts.environ):
        nearest = ", ".join(f"{name} (did you mean {near}?)" for name, near in wrong.items())
        return Line("note", found or nearest, f"Without effect: {nearest}.", f"unset {' '.join(wrong)}")
    return Line("ok", found or "no RINGLET_ variable is set", "Their values are valid." if found else "Defaults apply.")


def _cluster(facts: Facts) -> Line:
    from ringlet.cluster.environment import VARIABLES, check_one_machine, placement
    from ringlet.rank_zero.process_role import role_in_environment

    place, role = placement(facts.environ), role_in_environment(facts.environ)
    check_one_machine(place)
    found = _shown(facts.environ, VARIABLES) or "no variable of a launcher is set"
    meaning = f"This process is {role.task} {role.index} of {role.count}" if place.source else "This process runs alone"
    if place.note:
        remedy = "Start the processes with `ringlet run -n N script.py`, or set RINGLET_RANK=0 and RINGLET_NUM_RANKS=1."
        return Line("note", found, f"{meaning}, although there may be others: {place.note}.", remedy, role.count)
    return Line("ok", found, meaning + (f", from {place.source}." if place.source else "."), value=role.count)


def _cores(facts: Facts) -> Line:
    cores, devices = visible_cores(), facts.environ.get("RINGLET_NUM_DEVICES", "").strip()
    default = 1 if facts.processes > 1 else cores.count
    total = facts.processes * (int(devices) if devices.isdecimal() else default)
    found = f"{cores.count}: {cores.reason}"
    if total > cores.count:
        remedy = f"Start at most {cores.count} replicas: fewer processes, or a smaller RINGLET_NUM_DEVICES."
        return Line("note", found, f"{total} replicas take turns on these cores.", remedy, cores.count)
    if cores.count == 1:
        remedy = "Allow more cores: taskset, docker run --cpus, srun --cpus-per-task."
        return Line("note", found, "Several replicas take turns, and are not faster than one.", remedy, 1)
    return Line(
        "ok", found, f"By default a job here has {total} replicas, which run at the same time.", "", cores.count
    )


def _memory(facts: Facts) -> Line:
    from ringlet.collectives.available_memory import available_memory

    left = available_memory(facts.root)
    if left is None:
        return Line("note", "not reported by the system", "Large arrays are not checked before they are allocated.")
    found = f"{left.num_bytes / _GIB:.3g} GiB available, limited by {left.where}"
    if left.num_bytes < _GIB:
        status: Status = "problem" if left.num_bytes < _TOO_LITTLE_MEMORY_BYTES else "note"
        remedy = "Stop other programs, or raise the limit: docker run --memory, srun --mem."
        return Line(status, found, "The kernel may kill a process of the job (SIGKILL).", remedy, left.num_bytes)
    return Line("ok", found, "Shared arrays are in this memory, not in /dev/shm.", value=left.num_bytes)


def _open_files(facts: Facts) -> Line:
    limit, hard = map(_finite, resource.getrlimit(resource.RLIMIT_NOFILE))
    most = max(0, math.floor(min((limit - _LAUNCHER_FILES) / _WORKER_FILES, MOST_WORKERS)))
    found, meaning = f"limit of {limit:.0f}", f"Enough for a job of {most} processes."
    has_too_few = most < max(facts.processes, 2)
    if has_too_few or limit < _FEW_FILES:
        remedy = f"ulimit -n 4096 (hard limit {hard:.0f}), docker run --ulimit nofile=4096"
        return Line("problem" if has_too_few else "note", found, meaning, remedy, limit)
    return Line("ok", found, meaning, value=limit)


def _processes(facts: Facts) -> Line:
    from ringlet.collectives.available_memory import control_group_room

    rooms = [(float(room), f"left by {where}") for room, where in control_group_room(facts.root, "pids")]
    if os.geteuid() != 0:  # the limit does not apply to root
        rooms.append((_finite(resource.getrlimit(resource.RLIMIT_NPROC)[0]), "for this user (ulimit -u)"))
    room, where = min(rooms, default=(math.inf, "for root"))
    needed = visible_cores().count + _OWN_THREADS * max(facts.processes, 2)
    found = f"{room:.0f} processes and threads {where}" if room < math.inf else f"no limit {where}"
    if room < needed:
        remedy = "Raise the limit: ulimit -u, docker run --pids-limit."
        return Line("problem", found, f"A job here needs about {needed}.", remedy, room)
    return Line("ok", found, f"A job here needs about {needed}.", value=room)


def _size_limits(_: Facts) -> Line:
    limits = {option: _finite(resource.getrlimit(kind)[0]) for option, kind in _SIZE_LIMITS.items()}
    found = ", ".join(
        f"ulimit {option} is {limit / _GIB:.3g} GiB" for option, limit in limits.items() if limit < math.inf
    )
    if not found:
        return Line("ok", "no limit of address space, data or files", "Arrays are limited by memory alone.")
    meaning = "Larger arrays cannot be allocated; -f applies to each shared array."
    return Line("note", found, meaning, "Set these limits to unlimited.", min(limits.values()))


def _shared_memory(_: Facts) -> Line:
    import numpy as np

    from ringlet.collectives import empty_shared

    if not hasattr(os, "memfd_create"):
        return Line("note", "no memfd", "Replicas are threads: processes cannot form a group.", "Use Linux.")
    empty_shared(_SHARED_BYTES, np.uint8).fill(1)
    return Line("ok", "memfd works", "Processes share arrays and results.")


def _pidfd(_: Facts) -> Line:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError) as error:
        meaning = "A lost process is detected by its closed sockets; its exit status is unknown."
        return Line("note", f"pidfd fails: {error}", meaning, "Use Linux 5.3, or allow pidfd_open in the sandbox.")
    return Line("ok", "pidfd works", "A lost process is detected at once, with its exit status or signal.")


def _futex(_: Facts) -> Line:
    call = _FUTEX_CALLS.get(platform.machine()) if sys.platform == "linux" else None
    if call is None:
        return Line("ok", "not checked on this platform", "Waiting ranks sleep in the kernel.")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(call, ctypes.byref(ctypes.c_uint32()), _FUTEX_WAKE, 1, None, None, 0) != 0:
        found = f"futex fails: {os.strerror(ctypes.get_errno())}"
        return Line("problem", found, "Ranks cannot wait for each other.", "Allow the call in the sandbox.")
    return Line("ok", "futex works", "Waiting ranks sleep in the kernel.")


def _cross_memory(_: Facts) -> Line:
    word = ctypes.create_string_buffer(8)
    child = [sys.executable, "-I", "-S", "-c", _READ_PARENT, str(ctypes.addressof(word))]
    if subprocess.run(child, capture_output=True, timeout=60, check=False).returncode == 0:
        return Line("ok", "process_vm_readv works", "Private arrays are read across processes.")
    meaning = "Private arrays are copied through shared memory; arrays of ringlet.empty_shared are not."
    remedy = "Use ringlet.empty_shared, or sysctl kernel.yama.ptrace_scope=0, docker run --cap-add SYS_PTRACE"
    return Line("note", "process_vm_readv is refused", meaning, remedy)


def _huge_pages(facts: Facts) -> Line:
    folder = facts.root / "sys/kernel/mm/transparent_hugepage"
    shared, private = (_chosen(folder / name) for name in ("shmem_enabled", "enabled"))
    found = f"{shared} for shared memory, {private} for private memory"
    if private == "never":
        remedy = "As root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
        return Line("note", found, "The first use of large buffers takes longer.", remedy)
    is_used = shared in ("always", "within_size", "force")
    return Line("ok", found, f"Large shared arrays use {'huge pages' if is_used else 'pages of the normal size'}.")


def _blas(facts: Facts) -> Line:
    from ringlet.config import show_config
    from ringlet.devices.blas_threads import loaded_libraries

    blas, cores = show_config("dicts")["blas"], visible_cores().count
    threads = max((library["threads"] for library in blas), default=0)
    found = ", ".join(f"{b['library']} {b['version']} with {b['threads']} threads" for b in blas) or "no library found"
    if facts.processes > 1 and facts.processes * threads > cores:
        meaning = f"{facts.processes} processes with {threads} threads each share {cores} cores."
        return Line("note", found, meaning, f"export OMP_NUM_THREADS={max(1, cores // facts.processes)}", threads)
    if facts.environ.get("RINGLET_BLAS_THREADS", "").strip() == "0" and threads > 1:
        meaning = f"RINGLET_BLAS_THREADS=0 lets each replica use {threads} threads."
        return Line("note", found, meaning, "unset RINGLET_BLAS_THREADS", threads)
    if len(loaded_libraries()) < len(blas):
        meaning = "One of these libraries cannot be limited while replicas run."
        return Line("note", found, meaning, "export OMP_NUM_THREADS=1", threads)
    return Line("ok", found, "While replicas run, the cores are divided among them.", value=threads)


def _mpi(_: Facts) -> Line:
    found = ["mpi4py"] if importlib.util.find_spec("mpi4py") else []
    found += [path for name in ("mpirun", "mpiexec", "srun") if (path := shutil.which(name))]
    meaning = "MPI can start jobs, as `ringlet run` does, and connects several hosts."
    return Line("ok", ", ".join(found), meaning) if found else Line("ok", "not found", "It is not needed.")


def _torch(_: Facts) -> Line:
    if not importlib.util.find_spec("torch"):
        return Line("ok", "not found", "Only ringlet.torch needs it: pip install 'ringlet[torch]'.")
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        version = "of unknown version"
    return Line("ok", f"torch {version}", "Tensors are accepted, and ringlet.torch runs.")


def _shown(environ: Mapping[str, str], names: Iterable[str]) -> str:
    given = ((name, "***" if name == "RINGLET_SECRET" else environ[name]) for name in names if name in environ)
    return " ".join(f"{name}={text[:_LONGEST_VALUE]}{'...' * (len(text) > _LONGEST_VALUE)}" for name, text in given)


def _finite(limit: int) -> float:
    return math.inf if limit == resource.RLIM_INFINITY else limit


def _chosen(file: Path) -> str:
    """Return the setting in effect, which is the word in brackets; ``not reported`` if the file cannot be read."""
    try:
        return file.read_text(encoding="ascii", errors="replace").partition("[")[2].partition("]")[0]
    except OSError:
        return "not reported"


# The names are keys of the JSON output.
CHECKS: dict[str, Callable[[Facts], Line]] = {
    "installation": _installation,
    "variables": _variables,
    "cluster": _cluster,
    "cores": _cores,
    "memory": _memory,
    "open_files": _open_files,
    "processes": _processes,
    "size_limits": _size_limits,
    "shared_memory": _shared_memory,
    "pidfd": _pidfd,
    "futex": _futex,
    "cross_memory": _cross_memory,
    "huge_pages": _huge_pages,
    "blas": _blas,
    "mpi": _mpi,
    "torch": _torch,
}
