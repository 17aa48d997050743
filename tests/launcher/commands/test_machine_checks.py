"""The checks of `ringlet doctor`: what each finds on a machine where it has something to say."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import math
import os
import resource
import subprocess
from types import SimpleNamespace

import pytest

import ringlet
from ringlet.devices import CoreCount
from ringlet.errors import SharedMemoryFullError
from ringlet.launcher.commands import machine_checks
from ringlet.launcher.commands.machine_checks import CHECKS, Facts, run_check

GIB = 2**30
TWO = {
    "TF_CONFIG": json.dumps(
        {"cluster": {"worker": ["localhost:1", "localhost:2"]}, "task": {"type": "worker", "index": 1}}
    )
}
ELSEWHERE = {"TF_CONFIG": TWO["TF_CONFIG"].replace("localhost:1", "203.0.113.7:1")}


def line_of(name, environ=None, root="/", processes=1):
    return run_check(name, CHECKS[name], Facts(environ or {}, machine_checks.Path(root), processes))


def write(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch):
    monkeypatch.setattr(machine_checks, "visible_cores", lambda: CoreCount(2, "affinity mask of 2"))


@pytest.fixture
def limits(monkeypatch):
    """Limits of this process that only the checks see: kind to soft limit."""
    lowered = {}
    real = resource.getrlimit
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (lowered[kind], 4096) if kind in lowered else real(kind))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    return lowered


@pytest.mark.parametrize("name", CHECKS)
def test_no_check_raises_or_finds_a_problem_without_proc_and_sys(name, tmp_path):
    line = line_of(name, root=tmp_path)
    assert line.status in ("ok", "note")
    assert line.found
    assert line.meaning
    json.dumps(line)


@pytest.mark.parametrize(
    ("name", "environ", "processes", "expected"),
    [
        # check, variables, processes of the job here, (mark, words of the line)
        ("variables", {}, 1, ("ok", ["no RINGLET_ variable"])),
        ("variables", {"RINGLET_NUM_DEVICES": "2"}, 1, ("ok", ["RINGLET_NUM_DEVICES=2", "valid"])),
        ("variables", {"RINGLET_TIMEOUT": "3"}, 1, ("note", ["did you mean RINGLET_TIMEOUT_SECONDS", "unset"])),
        ("variables", {"RINGLET_TIMEOUT_SECONDS": "x"}, 1, ("problem", ["RINGLET_TIMEOUT_SECONDS is 'x'"])),
        ("variables", {"RINGLET_STALL_SECONDS": "x"}, 1, ("problem", ["RINGLET_STALL_SECONDS is 'x'"])),
        ("variables", {"RINGLET_BLAS_THREADS": "x"}, 1, ("problem", ["RINGLET_BLAS_THREADS must be"])),
        ("variables", {"RINGLET_NUM_DEVICES": "0"}, 1, ("problem", ["RINGLET_NUM_DEVICES must be"])),
        ("cluster", {}, 1, ("ok", ["no variable of a launcher", "alone"])),
        ("cluster", TWO, 2, ("ok", ["TF_CONFIG={", "worker 1 of 2", "from TF_CONFIG."])),
        ("cluster", {"RINGLET_RANK": "1", "RINGLET_NUM_RANKS": "3"}, 3, ("ok", ["worker 1 of 3, from"])),
        ("cluster", {"RANK": "1", "WORLD_SIZE": "3"}, 3, ("ok", ["worker 1 of 3, from RANK=1 WORLD_SIZE=3."])),
        ("cluster", {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "3"}, 3, ("ok", ["worker 1 of 3"])),
        ("cluster", {"PMI_RANK": "1", "PMI_SIZE": "3"}, 3, ("ok", ["worker 1 of 3"])),
        ("cluster", {"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "3"}, 3, ("ok", ["worker 1 of 3"])),
        ("cluster", {"WORLD_SIZE": "3"}, 1, ("note", ["runs alone", "WORLD_SIZE=3 without RANK", "ringlet run -n N"])),
        ("cluster", {"PMIX_RANK": "0"}, 1, ("note", ["PMIX_RANK=0", "RINGLET_NUM_RANKS=1"])),
        ("cluster", {"TF_CONFIG": "{bad"}, 1, ("problem", ["ClusterConfigError", "'{bad'", "For example: TF_CONFIG="])),
        ("cluster", {"TF_CONFIG": ""}, 1, ("problem", ["TF_CONFIG is empty: unset it"])),
        ("cluster", {"RINGLET_RANK": "9", "RINGLET_NUM_RANKS": "3"}, 1, ("problem", ["RINGLET_RANK from 0 to 2"])),
        ("cluster", ELSEWHERE, 1, ("problem", ["several machines"])),
        ("cores", {}, 1, ("ok", ["2: affinity mask of 2", "2 replicas"])),
        ("cores", {}, 3, ("note", ["3 replicas take turns on these cores.", "at most 2 replicas"])),
        ("cores", {"RINGLET_NUM_DEVICES": "2"}, 2, ("note", ["4 replicas take turns on these cores."])),
        ("blas", {"RINGLET_BLAS_THREADS": "0"}, 1, ("note", ["each replica use 2 threads", "unset"])),
        ("blas", {}, 2, ("note", ["2 processes with 2 threads each share 2 cores", "OMP_NUM_THREADS=1"])),
        ("blas", {}, 1, ("ok", ["openblas 0.3 with 2 threads"])),
    ],
)  # fmt: skip
def test_a_line_says_what_variables_lead_to(name, environ, processes, expected, monkeypatch):
    library = {"library": "openblas", "version": "0.3", "threads": 2}
    monkeypatch.setattr("ringlet.config._loaded_blas", lambda: [library])
    line = line_of(name, environ, processes=processes)
    status, words = expected
    assert line.status == status
    for word in words:
        assert word in " ".join(map(str, line))


@pytest.mark.parametrize(
    ("num_bytes", "status"), [(GIB, "ok"), (GIB - 1024, "note"), (2**26, "note"), (2**26 - 1024, "problem")]
)
def test_little_memory_of_a_control_group_is_named(num_bytes, status, tmp_path):
    write(tmp_path, {
        "proc/meminfo": f"MemAvailable: {2**23} kB\n",
        "proc/self/cgroup": "0::/job\n",
        "sys/fs/cgroup/job/memory.max": str(num_bytes),
        "sys/fs/cgroup/job/memory.current": "0",
    })  # fmt: skip
    line = line_of("memory", root=tmp_path)
    assert (line.status, line.value) == (status, num_bytes)
    assert "limited by control group /job" in line.found


def test_memory_that_is_not_reported_is_a_note(tmp_path):
    assert line_of("memory", root=tmp_path).status == "note"


@pytest.mark.parametrize(
    ("limit", "processes", "status", "largest"),
    [
        # open files, processes, mark, largest job
        (20, 1, "problem", 1),
        (21, 1, "note", 2),
        (21, 3, "problem", 2),
        (255, 1, "note", 80),
        (1024, 1, "ok", 336),
        (resource.RLIM_INFINITY, 1, "ok", 1000),
    ],
)
def test_too_few_open_files(limit, processes, status, largest, limits):
    limits[resource.RLIMIT_NOFILE] = limit
    line = line_of("open_files", processes=processes)
    assert (line.status, line.value) == (status, math.inf if limit < 0 else limit)
    assert f"a job of {largest} processes" in line.meaning
    assert ("ulimit -n" in line.remedy) == (status != "ok")


@pytest.mark.parametrize(("limit", "processes", "status"), [(9, 1, "problem"), (10, 1, "ok"), (17, 4, "problem")])
def test_too_few_processes_of_the_user_or_of_the_control_group(limit, processes, status, limits, tmp_path):
    limits[resource.RLIMIT_NPROC] = limit
    line = line_of("processes", root=tmp_path, processes=processes)
    assert (line.status, line.value) == (status, limit)
    assert "ulimit -u" in line.found
    limits[resource.RLIMIT_NPROC] = resource.RLIM_INFINITY
    files = {"cgroup/pids/box/pids.max": str(limit + 100), "cgroup/pids/box/pids.current": "100"}
    write(tmp_path, {"proc/self/cgroup": "8:pids:/box\n", **{f"sys/fs/{name}": text for name, text in files.items()}})
    line = line_of("processes", root=tmp_path, processes=processes)
    assert (line.status, line.value) == (status, limit)
    assert "left by control group /box" in line.found


@pytest.mark.parametrize(("kind", "option"), [(resource.RLIMIT_AS, "-v"), (resource.RLIMIT_FSIZE, "-f")])
def test_limits_of_sizes_are_named(kind, option, limits):
    limits[kind] = 3 * GIB
    line = line_of("size_limits")
    assert (line.status, line.found, line.value) == ("note", f"ulimit {option} is 3 GiB", 3 * GIB)


def test_shared_memory_that_cannot_be_made_is_a_problem(monkeypatch):
    def full(*_):
        raise SharedMemoryFullError("cannot make\na file", 1, 0, "memfd", 27)

    monkeypatch.setattr(ringlet.collectives, "empty_shared", full)
    line = line_of("shared_memory")
    assert (line.status, line.found) == ("problem", "SharedMemoryFullError: cannot make a file")
    monkeypatch.delattr(os, "memfd_create")
    assert line_of("shared_memory").status == "note"


def test_a_kernel_without_pidfds_is_a_note(monkeypatch):
    def refuse(_):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    line = line_of("pidfd")
    assert line.status == "note"
    assert "Function not implemented" in line.found
    monkeypatch.delattr(os, "pidfd_open")
    assert line_of("pidfd").status == "note"


def test_a_futex_call_that_fails_is_a_problem(monkeypatch):
    monkeypatch.setattr(machine_checks.ctypes, "CDLL", lambda *_, **__: SimpleNamespace(syscall=lambda *_: -1))
    assert line_of("futex").status == "problem"
    monkeypatch.setattr(machine_checks.platform, "machine", lambda: "riscv64")
    assert (line_of("futex").status, line_of("futex").found) == ("ok", "not checked on this platform")


def test_memory_of_other_processes_that_cannot_be_read_is_a_note(monkeypatch):
    monkeypatch.setattr(machine_checks, "_READ_PARENT", "raise SystemExit(1)")
    line = line_of("cross_memory")
    assert line.status == "note"
    assert "ptrace_scope" in line.remedy


def test_the_child_reads_the_memory_of_its_parent_and_fails_for_an_address_that_is_not_mapped(monkeypatch):
    done = []
    real = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda command, **options: done.append(command) or real(command, **options))
    is_readable = line_of("cross_memory").status == "ok"
    (command,) = done
    assert (real(command, check=False).returncode == 0) == is_readable
    assert real([*command[:-1], "4096"], check=False).returncode == 1


@pytest.mark.parametrize(
    ("shared", "private", "status", "words"),
    [
        # settings in /sys, mark, words
        ("always within_size advise [never] deny force", "always [madvise] never", "ok", "normal size"),
        ("[always] within_size advise never deny force", "[always] madvise never", "ok", "use huge pages"),
        ("always within_size advise [never] deny force", "always madvise [never]", "note", "takes longer"),
    ],
)
def test_settings_of_huge_pages(shared, private, status, words, tmp_path):
    folder = "sys/kernel/mm/transparent_hugepage"
    write(tmp_path, {f"{folder}/shmem_enabled": shared, f"{folder}/enabled": private})
    line = line_of("huge_pages", root=tmp_path)
    assert line.status == status
    assert words in line.meaning


def test_a_blas_library_without_a_limit_is_a_note(monkeypatch):
    monkeypatch.setattr("ringlet.config._loaded_blas", lambda: [{"library": "other", "version": "1", "threads": 1}])
    monkeypatch.setattr("ringlet.devices.blas_threads.loaded_libraries", list)
    assert line_of("blas").status == "note"


def test_an_old_numpy_is_a_note(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "1.26.4")
    line = line_of("installation")
    assert line.status == "note"
    assert "pip install 'numpy>=2'" in line.remedy


def test_mpi_and_torch_are_found_and_not_imported(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: f"2.9 of {name}")
    monkeypatch.setattr(machine_checks.shutil, "which", lambda name: f"/bin/{name}" if name == "srun" else None)
    assert line_of("mpi").found == "mpi4py, /bin/srun"
    assert line_of("torch").found == "torch 2.9 of torch"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert line_of("torch").found == "not found"
    assert line_of("mpi").found == "/bin/srun"


def test_a_torch_without_metadata_is_found(monkeypatch):
    def unknown(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(importlib.metadata, "version", unknown)
    assert line_of("torch").found == "torch of unknown version"


def test_one_core_is_a_note(monkeypatch):
    monkeypatch.setattr(machine_checks, "visible_cores", lambda: CoreCount(1, "CPU quota of 0.5 cores"))
    assert line_of("cores").status == "note"
