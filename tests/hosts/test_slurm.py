"""Jobs of two nodes that Slurm starts, with the MPI of ``ringlet[mpi]``; the nodes are network namespaces."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hosts.simulated_hosts import REQUIRES_HOSTS, simulated_hosts
from tests.processes.harness import eventually

_DAEMONS = ("munged", "slurmctld", "slurmd", "srun")

pytestmark = [
    *REQUIRES_HOSTS,
    pytest.mark.slow,
    pytest.mark.skipif(any(shutil.which(name) is None for name in _DAEMONS), reason=f"requires {', '.join(_DAEMONS)}"),
]

PROGRAMS = Path(__file__).parent

_CONFIGURATION = """\
ClusterName=test
SlurmctldHost={names[0]}({addresses[0]})
SlurmUser=root
AuthInfo=socket={folder}/munge
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/controller.pid
SlurmdPidFile={folder}/%n.pid
SlurmdSpoolDir={folder}/%n
ProctrackType=proctrack/linuxproc
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
NodeName={names[0]} NodeAddr={addresses[0]} CPUs=2
NodeName={names[1]} NodeAddr={addresses[1]} CPUs=2
PartitionName=all Nodes=ALL Default=YES OverSubscribe=FORCE:4
"""


class Cluster:
    """Two nodes of Slurm; use the fixture `slurm`."""

    def __init__(self, hosts):
        self.hosts, folder = hosts, hosts.folder
        self.variables = {"SLURM_CONF": f"{folder}/slurm.conf", "SLURM_PMIX_TMPDIR": f"{folder}/pmix"}
        (folder / "slurm.conf").write_text(
            _CONFIGURATION.format(names=hosts.names, addresses=hosts.addresses, folder=folder)
        )
        for name in ("state", "pmix", *hosts.names):
            (folder / name).mkdir()
        (folder / "key").write_bytes(os.urandom(128))
        (folder / "key").chmod(0o400)
        munge = f"munged --force --foreground --key-file={folder}/key --socket={folder}/munge"
        files = " ".join(f"--{name}-file={folder}/{name}" for name in ("log", "pid", "seed"))
        self._start(0, f"{munge} {files}")
        assert eventually((folder / "munge").exists)
        self._start(0, "slurmctld -D")
        for host, name in enumerate(hosts.names):
            # Each node has its own folder for PMIx, and its own shared memory.
            mounts = f"mount -t tmpfs none {folder}/pmix; mount -t tmpfs -o size=1g none /dev/shm"
            self._start(host, f"{mounts}; exec slurmd -D -N {name}")
        idle = ["idle"] * 2
        is_up = eventually(lambda: self.run("sinfo", "-h", "-N", "-o", "%T").stdout.split() == idle)
        assert is_up, (folder / "daemons.log").read_text()

    def _start(self, host, shell):
        # Unlike `ip netns exec`, this leaves the cgroups visible, which slurmd requires.
        enter = f"nsenter --net=/run/netns/{self.hosts.names[host]} unshare --uts --mount --propagation private sh -c"
        variables = {**os.environ, **self.variables}
        with (self.hosts.folder / "daemons.log").open("a") as log:
            self.hosts.processes.append(
                subprocess.Popen(
                    [*enter.split(), f"hostname {self.hosts.names[host]}; {shell}"],
                    env=variables,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            )

    def run(self, *command):
        """Run a command of Slurm on the first node."""
        variables = {**self.variables, "PMIX_MCA_psec": "native"}
        words = ["env", *(f"{name}={value}" for name, value in variables.items()), *command]
        agent = [str(self.hosts.folder / "agent"), self.hosts.addresses[0], " ".join(words)]
        return subprocess.run(agent, capture_output=True, text=True, errors="replace", timeout=60, check=False)

    def srun(self, program, *arguments, distribution="block"):
        words = f"srun --mpi=pmix -N 2 -n 4 --ntasks-per-node=2 --distribution={distribution} {sys.executable}"
        return self.run(*words.split(), str(PROGRAMS / program), str(self.hosts.folder), *arguments)


@pytest.fixture(scope="module")
def slurm():
    with simulated_hosts() as hosts:
        yield Cluster(hosts)


def test_collectives_of_a_step_give_the_results_of_one_host(slurm):
    ended = slurm.srun("collectives_program.py")
    assert ended.returncode == 0, ended.stderr
    here = subprocess.run(
        [sys.executable, "-m", "ringlet", "run", "-n", "4", str(PROGRAMS / "collectives_program.py")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert sorted(ended.stdout.splitlines()) == sorted(
        re.sub(r"^\[w\d\] ", "", line) for line in here.stdout.splitlines()
    )
    assert ended.stderr == ""


def test_ranks_dealt_to_the_nodes_in_turn_are_refused_with_the_option_to_write(slurm):
    ended = slurm.srun("collectives_program.py", distribution="cyclic")
    assert "the ranks of a host must be consecutive" in ended.stderr
    assert "`srun --distribution=block`" in ended.stderr


def test_a_killed_rank_is_named_within_a_second_and_nothing_is_left(slurm):
    folder = slurm.hosts.folder
    killer = subprocess.Popen(
        [sys.executable, "-c", _KILLER, str(folder)], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    ended = slurm.srun("loop_program.py", "30")
    killed_at = float(killer.communicate()[0])
    assert ended.returncode != 0
    ends = [json.loads((folder / f"end{rank}").read_text()) for rank in (0, 2, 3) if (folder / f"end{rank}").exists()]
    assert ends, ended.stderr  # Slurm may end the others before they have written how they ended
    for end in ends:
        assert (end["error"], end["lost"], end["wrong"]) == ("WorkerLostError", 1, 0), end
        assert end["ended"] - killed_at < 1
    assert eventually(lambda: b"loop_program.py" not in subprocess.check_output(["ps", "-e", "-o", "args"]))


_KILLER = f"""
import json, os, pathlib, sys, time
begun = pathlib.Path(sys.argv[1]) / "begun1"
while not begun.exists():
    time.sleep(0.01)
time.sleep(0.5)
os.kill(json.loads(begun.read_text())["pid"], {signal.SIGKILL.value})
print(time.time())
"""
