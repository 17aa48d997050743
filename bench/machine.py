"""Description of the machine and the software: processor, caches, versions, commit."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

import numpy as np

__all__ = ["ROOT", "Machine", "Others", "describe_machine", "usable_cores"]

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Machine:
    """The properties needed to interpret a measurement on this machine.

    Attributes
    ----------
    cpu : str
        Name of the processor.
    cores : int
        Number of cores that this process may run on.
    caches : dict of str to str
        Size of each cache as one core sees it, with the cores that share it, by level.
    memory_gib : float
        Memory of the machine.
    system, python, numpy, ringlet, compiler, cpu_target : str
        Versions; the compiler of the extension and the loops that it chose.
    commit : str
        Commit of the tree, with ``-dirty`` if it has changes.
    load : float
        Average number of runnable threads over the last minute before the run.
    time : str
        Start of the run, UTC.
    """

    cpu: str
    cores: int
    caches: dict[str, str]
    memory_gib: float
    system: str
    python: str
    numpy: str
    ringlet: str
    compiler: str
    cpu_target: str
    commit: str
    load: float
    time: str

    def as_dict(self) -> dict[str, object]:
        """Return the fields as JSON values."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Return the fields as lines to print above a table."""
        return [f"{name.replace('_', ' '):>10}: {_plain(value)}" for name, value in asdict(self).items()]


def _plain(value: object) -> str:
    return ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else str(value)


def describe_machine() -> Machine:
    """Describe this machine and the software under test.

    Returns
    -------
    Machine
    """
    from ringlet import _core

    return Machine(
        cpu=_cpu_name(),
        cores=len(usable_cores()),
        caches=_caches(),
        memory_gib=round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        system=f"{platform.system()} {platform.release()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        numpy=np.__version__,
        ringlet=metadata.version("ringlet"),
        compiler=_core.compiler(),
        cpu_target=_core.cpu_target(),
        commit=_commit(),
        load=round(os.getloadavg()[0], 2),
        time=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )


def usable_cores() -> list[int]:
    """Return the cores that this process may run on, in ascending order.

    Returns
    -------
    list of int
    """
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


class Others:
    """Measures the core time used by others: processes other than this one and its children, and the hypervisor.

    Examples
    --------
    >>> 0.0 <= Others().share() <= 1.0
    True
    """

    def __init__(self) -> None:
        self._start = self._now()

    def share(self) -> float:
        """Return the fraction of the usable cores' time used by others since creation; 0.0 if unknown."""
        wall, busy, own = (now - start for now, start in zip(self._now(), self._start, strict=True))
        # The kernel counts in ticks of 10 ms, and a child only once it has ended.
        return min(1.0, max(0.0, (busy - own) / max(wall * len(usable_cores()), 1e-9)))

    @staticmethod
    def _now() -> tuple[float, float, float]:
        """Return seconds: wall clock, busy time of the usable cores, CPU time of this process and ended children."""
        used = os.times()
        return time.perf_counter(), _busy_seconds(usable_cores()), sum(used[:4])


def _busy_seconds(cores: Sequence[int]) -> float:
    stat = Path("/proc/stat")
    if not stat.exists():
        return 0.0
    busy = 0
    for line in stat.read_text(encoding="ascii").splitlines():
        name, *fields = line.split()
        if name in {f"cpu{core}" for core in cores}:
            user, nice, system, _, _, interrupts, soft_interrupts, stolen = map(int, fields[:8])
            busy += user + nice + system + interrupts + soft_interrupts + stolen
    return busy / os.sysconf("SC_CLK_TCK")


def _cpu_name() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        fields = dict(re.findall(r"^([\w ]+?)\s*: (.+)$", cpuinfo.read_text(encoding="utf-8"), flags=re.MULTILINE))
        if "model name" in fields:
            family = [f"{key} {fields[key]}" for key in ("cpu family", "model", "stepping") if key in fields]
            return f"{fields['model name']} ({', '.join(family)})"
    return platform.processor() or platform.machine()


def _caches() -> dict[str, str]:
    caches = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size, sharers = (
            (index / name).read_text(encoding="ascii").strip() for name in ("level", "type", "size", "shared_cpu_list")
        )
        if kind != "Instruction":
            caches[f"L{level}"] = f"{size} (cores {sharers})"
    return caches


def _commit() -> str:
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return described.stdout.strip()
