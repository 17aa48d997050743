"""Programs on simulated hosts, and faults of their network."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from ringlet.launcher import simulated_hosts as simulation
from tests.hosts.disturbed_network import DisturbedNetwork

REQUIRES_HOSTS = [
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("ip") is None, reason="network namespaces require root and ip"
    ),
    pytest.mark.skipif(
        find_spec("mpi4py") is None or not Path(sys.executable).with_name("mpiexec").exists(),
        reason="requires pip install 'ringlet[mpi]'",
    ),
]


class Hosts:
    """Two connected hosts; use `simulated_hosts`."""

    def __init__(self, hosts: simulation.SimulatedHosts) -> None:
        self._hosts = hosts
        self.names, self.addresses, self.folder, self.stop = hosts.names, hosts.addresses, hosts.folder, hosts.stop
        self.processes: list[subprocess.Popen[str]] = []
        self.on_exit = contextlib.ExitStack()

    def pids(self, host: int) -> list[int]:
        return simulation.processes_in(self.names[host])

    def cut(self) -> None:
        subprocess.run(["ip", "-n", self.names[1], "link", "set", "net", "down"], check=True)

    def disturb(self, **how: float) -> DisturbedNetwork:
        """Delay, lose or reorder packets in both directions; see `DisturbedNetwork`."""
        network = DisturbedNetwork(self.names, self.addresses, **how)
        self.on_exit.callback(network.close)
        return network

    def command(self, slots: Sequence[int], program: Sequence[str]) -> list[str]:
        """Return the mpiexec command that runs a program with some ranks on each host, started on the first."""
        hosts = ",".join(f"{address}:{n}" for address, n in zip(self.addresses, slots, strict=False) if n)
        mpiexec = Path(sys.executable).with_name("mpiexec")
        flags = (
            f"--allow-run-as-root --with-ft ulfm --mca coll ^han --mca mpi_yield_when_idle 1 --host {hosts} --map-by "
            f"slot --bind-to none -n {sum(slots)}"
        )
        return self._hosts.on_first([str(mpiexec), *flags.split(), *program])

    def launch(self, slots: Sequence[int], program: Sequence[str]) -> subprocess.Popen[str]:
        """Start a program on the hosts with mpiexec."""
        return self.start_command(self.command(slots, program))

    def launch_with_ringlet(self, slots: Sequence[int], program: Sequence[str]) -> subprocess.Popen[str]:
        """Start a program on the hosts with ringlet run, on the first host."""
        hosts = ",".join(f"{address}:{count}" for address, count in zip(self.addresses, slots, strict=True))
        return self.start_on_first([sys.executable, "-m", "ringlet", "run", "--hosts", hosts, *program])

    def start_on_first(self, command: Sequence[str]) -> subprocess.Popen[str]:
        return self.start_command(self._hosts.on_first(command))

    def start_on(self, host: int, program: Sequence[str], **variables: str) -> subprocess.Popen[str]:
        """Start a Python program on one host."""
        words = ["env", *(f"{name}={value}" for name, value in variables.items()), sys.executable, *program]
        return self.start_command([str(self.folder / "agent"), self.addresses[host], shlex.join(words)])

    def start_command(self, command: Sequence[str]) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            command,
            env={**os.environ, **self._hosts.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.processes.append(process)
        return process


@contextlib.contextmanager
def simulated_hosts() -> Iterator[Hosts]:
    with simulation.simulated_hosts(2) as made:
        hosts = Hosts(made)
        try:
            yield hosts
        finally:
            hosts.on_exit.close()
            made.stop()
            for process in hosts.processes:
                process.wait()
                if process.stdout is not None:
                    process.stdout.close()
