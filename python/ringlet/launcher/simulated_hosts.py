"""Simulated hosts: network namespaces, each with a name, an address and shared memory of its own."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from ringlet.launcher.command_line import CommandError

_NETWORK = "198.51.100"  # reserved for documentation
_MOST_HOSTS = 64
_END_SECONDS = 5.0

# Substitute for ssh, called as: agent [options] ADDRESS COMMAND...
_AGENT = """#!/bin/sh
while :; do case "$1" in -l|-p|-o|-i) shift 2;; -*) shift;; *) break;; esac; done
name={prefix}${{1##*.}}; shift
exec {enter} sh -c "$*"
"""
_ENTER = (
    'ip netns exec "$name" unshare -u -i -m --propagation private sh -c '
    '\'hostname "$0"; mount -t tmpfs -o size=1g tmpfs /dev/shm; exec "$@"\' "$name"'
)


def simulated_addresses(text: str) -> dict[str, int]:
    """Return the number of workers of each host, by address; ``2x4`` is two hosts with four workers each."""
    found = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", text)
    if found is None or int(found[1]) > _MOST_HOSTS:
        raise CommandError(
            f"--simulate-hosts is {text!r}: expected HOSTSxWORKERS, such as 2x4, with at most {_MOST_HOSTS} hosts"
        )
    return {f"{_NETWORK}.{number}": int(found[2]) for number in range(1, int(found[1]) + 1)}


class SimulatedHosts:
    """Hosts on one network, created by `simulated_hosts`.

    `names` and `addresses` identify the hosts, `folder` holds temporary files, and `environment` has the variables with
    which mpiexec starts processes on the hosts.
    """

    def __init__(self, count: int, folder: Path) -> None:
        self.folder = folder
        prefix = f"rl{os.getpid()}h"
        self.names = [f"{prefix}{number}" for number in range(1, count + 1)]
        self.addresses = [f"{_NETWORK}.{number}" for number in range(1, count + 1)]
        self._switch = f"{prefix}0"
        self._agent = folder / "agent"
        self._agent.write_text(_AGENT.format(prefix=prefix, enter=_ENTER))
        self._agent.chmod(0o755)
        self.environment = {
            "TMPDIR": str(folder),
            "PRTE_MCA_plm_ssh_agent": str(self._agent),
            "PRTE_MCA_prte_if_include": f"{_NETWORK}.0/24",
            "OMPI_MCA_btl_tcp_if_include": f"{_NETWORK}.0/24",
        }

    def start(self) -> None:
        """Create the namespaces, and connect them by a bridge in an additional namespace."""
        for name in (self._switch, *self.names):
            _ip("netns", "add", name)
        _ip("-n", self._switch, "link", "add", "bridge", "type", "bridge")
        _ip("-n", self._switch, "link", "set", "bridge", "up")
        for number, (name, address) in enumerate(zip(self.names, self.addresses, strict=True)):
            port = f"port{number}"
            _ip("link", "add", "net", "netns", name, "type", "veth", "peer", "name", port, "netns", self._switch)
            _ip("-n", self._switch, "link", "set", port, "master", "bridge", "up")
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", "net")
            for device in ("lo", "net"):
                _ip("-n", name, "link", "set", device, "up")

    def on_first(self, command: Sequence[str]) -> list[str]:
        """Return the command line that runs `command` on the first host."""
        return [str(self._agent), self.addresses[0], shlex.join(command)]

    def stop(self) -> None:
        """Kill all processes of the hosts, and remove the namespaces."""
        for name in (*self.names, self._switch):
            _remove(name)


@contextlib.contextmanager
def simulated_hosts(count: int) -> Iterator[SimulatedHosts]:
    """Create hosts; on exit, remove them with all of their processes and files."""
    if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("unshare") is None:
        raise CommandError(
            "--simulate-hosts requires root and the programs ip (iproute2) and unshare (util-linux), which create "
            "network namespaces: install them and run the command as root, or use -n for workers of this host"
        )
    _remove_stale()
    folder = Path(tempfile.mkdtemp(prefix="rl"))  # short: Unix socket paths have a maximum length
    hosts = SimulatedHosts(count, folder)
    try:
        hosts.start()
        yield hosts
    finally:
        hosts.stop()
        shutil.rmtree(folder, ignore_errors=True)


def processes_in(name: str) -> list[int]:
    """Return the processes in a network namespace."""
    found = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False)
    return [int(pid) for pid in found.stdout.split()]


def _ip(*arguments: str) -> None:
    ended = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if ended.returncode:
        raise CommandError(
            f"--simulate-hosts cannot create network namespaces: ip {' '.join(arguments)}: {ended.stderr.strip()}. Run "
            "the command where root may create them, or use -n for workers of this host"
        )


def _remove(name: str) -> None:
    until = time.monotonic() + _END_SECONDS
    while (pids := processes_in(name)) and time.monotonic() < until:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def _remove_stale() -> None:
    listed = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=False).stdout
    for name, pid in re.findall(r"^(rl(\d+)h\d+)\b", listed, re.MULTILINE):
        if not Path(f"/proc/{pid}").exists():
            _remove(name)
