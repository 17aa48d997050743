"""Hosts simulated by network namespaces, each with a name, shared memory and an address of its own (root only)."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NETWORK = "198.51.100.0/24"  # reserved for documentation

_AGENT = """#!/bin/bash
# Stands for ssh: agent [options] ADDRESS COMMAND...
while :; do case "$1" in -l|-p|-o|-i) shift 2;; -*) shift;; *) break;; esac; done
name={prefix}${{1##*.}}; shift
exec {enter} sh -c "$*"
"""
_ENTER = (
    'ip netns exec "$name" unshare -u -i -m --propagation private sh -c '
    '\'hostname "$0"; mount -t tmpfs -o size=1g tmpfs /dev/shm; exec "$@"\' "$name"'
)


class SimulatedHosts:
    """Two connected hosts; use `simulated_hosts`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.prefix = f"rl{os.getpid()}h"
        self.names = [f"{self.prefix}{number}" for number in (1, 2)]
        self.addresses = [f"198.51.100.{number}" for number in (1, 2)]
        self.processes: list[subprocess.Popen[str]] = []
        self.agent = folder / "agent"
        self.agent.write_text(_AGENT.format(prefix=self.prefix, enter=_ENTER))
        self.agent.chmod(0o755)

    def start(self) -> None:
        first, second = self.names
        for name in self.names:
            _ip("netns", "add", name)
        _ip("link", "add", "rlv", "netns", first, "type", "veth", "peer", "name", "rlv", "netns", second)
        for name, address in zip(self.names, self.addresses, strict=True):
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", "rlv")
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "link", "set", "rlv", "up")

    def pids(self, host: int) -> list[int]:
        return _pids(self.names[host])

    def cut(self) -> None:
        _ip("-n", self.names[1], "link", "set", "rlv", "down")

    def disturb(self, how: str) -> bool:
        """Delay, lose or reorder packets in both directions; return False if this system cannot."""
        for name in self.names:
            command = ["ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", "rlv", "root", "netem", *how.split()]
            if subprocess.run(command, capture_output=True, check=False).returncode:
                return False
        return True

    def command(self, slots: Sequence[int], program: Sequence[str]) -> list[str]:
        """Return the mpiexec command that runs a program with some ranks on each host, started on the first."""
        hosts = ",".join(f"{address}:{n}" for address, n in zip(self.addresses, slots, strict=False) if n)
        return [
            str(self.agent),
            self.addresses[0],
            f"{Path(sys.executable).parent}/mpiexec --allow-run-as-root --with-ft ulfm --mca coll ^han "
            f"--mca mpi_yield_when_idle 1 --host {hosts} --map-by slot --bind-to none "
            f"-n {sum(slots)} {' '.join(program)}",
        ]

    def launch(self, slots: Sequence[int], program: Sequence[str]) -> subprocess.Popen[str]:
        """Start a program on the hosts with mpiexec."""
        return self.start_command(self.command(slots, program))

    def launch_with_ringlet(self, slots: Sequence[int], program: Sequence[str]) -> subprocess.Popen[str]:
        """Start a program on the hosts with ringlet run, on the first host."""
        hosts = ",".join(f"{address}:{count}" for address, count in zip(self.addresses, slots, strict=True))
        command = f"{sys.executable} -m ringlet run --hosts {hosts} {' '.join(program)}"
        return self.start_command([str(self.agent), self.addresses[0], command])

    def start_command(self, command: Sequence[str]) -> subprocess.Popen[str]:
        settings = {
            "TMPDIR": str(self.folder),
            "PRTE_MCA_plm_ssh_agent": str(self.agent),
            "PRTE_MCA_prte_if_include": NETWORK,
            "OMPI_MCA_btl_tcp_if_include": NETWORK,
        }
        process = subprocess.Popen(
            command,
            env={**os.environ, **settings},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.processes.append(process)
        return process

    def stop(self) -> None:
        for name in self.names:
            _remove(name)
        for process in self.processes:
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


@contextlib.contextmanager
def simulated_hosts() -> Iterator[SimulatedHosts]:
    """Make the hosts, and remove them with all of their processes and files."""
    _remove_stale()
    folder = Path(tempfile.mkdtemp(prefix="rl"))  # short: MPI makes sockets in it
    hosts = SimulatedHosts(folder)
    try:
        hosts.start()
        yield hosts
    finally:
        hosts.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


def _pids(name: str) -> list[int]:
    found = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False)
    return [int(pid) for pid in found.stdout.split()]


def _remove(name: str) -> None:
    """Kill the processes of a host, and remove its namespace."""
    until = time.monotonic() + 5
    while (pids := _pids(name)) and time.monotonic() < until:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def _remove_stale() -> None:
    """Remove hosts of a process that was killed before it could."""
    listed = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=False).stdout
    for name, pid in re.findall(r"^(rl(\d+)h\d)\b", listed, re.MULTILINE):
        if not Path(f"/proc/{pid}").exists():
            _remove(name)
