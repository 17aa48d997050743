"""The peers of ringlet, and its own processes: program, environment and launcher of each."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.compare_results import PRIVATE, PROCESSES
from bench.environments import ENVIRONMENTS, python_of, ready_version
from bench.machine import ROOT, usable_cores

__all__ = ["DEFAULT_PEERS", "OWN_PROCESSES", "PEERS", "PeerKind", "missing_environments"]

_SCRIPTS = ROOT / "bench" / "peers"


@dataclass(frozen=True)
class PeerKind:
    """A peer and how it is run.

    Attributes
    ----------
    name : str
    family : {"MPI", "gloo", "JAX", "TensorFlow", "NumPy", "NumPy processes", "ringlet"}
        Group for goals: the best MPI is the fastest peer of that family.
    environment : str
        Name in ``bench.environments``; empty for this interpreter.
    script : str
        File in ``bench/peers``.
    launcher : tuple of str
        Program beside the environment's interpreter that starts the ranks, with its options; empty if the script does.
    settings : tuple of (str, str)
        Environment variables.
    crowded : tuple of (str, str)
        Additional variables if there are more ranks than cores.
    told : tuple of str
        Options of the script in addition to the common ones.
    """

    name: str
    family: str
    environment: str
    script: str
    launcher: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    crowded: tuple[tuple[str, str], ...] = ()
    told: tuple[str, ...] = ()

    def python(self, folder: Path) -> Path:
        """Return the interpreter of its environment; for plain NumPy, this interpreter."""
        if not self.environment or (self.environment == "numpy" and ready_version(folder, "numpy") is None):
            return Path(sys.executable)
        return python_of(folder, self.environment)

    def command(self, folder: Path, num_ranks: int) -> list[str]:
        """Return the command line without the options common to all scripts.

        Examples
        --------
        >>> PEERS["jax"].command(Path("/environments"), 4)[:1]
        ['/environments/jax/bin/python']
        """
        python = self.python(folder)
        program, *options = self.launcher or ("",)
        launch = [str(python.parent / program), *options, "-n", str(num_ranks)] if program else []
        return [*launch, str(python), str(_SCRIPTS / self.script), *self.told]

    def environment_variables(self, num_ranks: int) -> dict[str, str]:
        """Return the environment variables for a number of ranks."""
        return dict(self.settings + (self.crowded if num_ranks > len(usable_cores()) else ()))


# Scripts pin the ranks, alike for all peers, so launchers must not.
_OPEN_MPI = ("mpiexec", "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none")
_OPEN_MPI_SETTINGS = (("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")) * (os.getuid() == 0)
# A rank that waits awake, and never lets another one run, costs it a slice of the scheduler in each call.
_OPEN_MPI_CROWDED = (("OMPI_MCA_mpi_yield_when_idle", "1"),)
_HYDRA = ("mpiexec", "-launcher", "fork")
_INTEL_MPI_SETTINGS = (("I_MPI_PIN", "0"), ("I_MPI_FABRICS", "shm"))

PEERS = {
    kind.name: kind
    for kind in (
        PeerKind("openmpi", "MPI", "openmpi", "mpi_ranks.py", _OPEN_MPI, _OPEN_MPI_SETTINGS, _OPEN_MPI_CROWDED),
        PeerKind("mpich", "MPI", "mpich", "mpi_ranks.py", _HYDRA),
        PeerKind("impi", "MPI", "impi", "mpi_ranks.py", _HYDRA, _INTEL_MPI_SETTINGS),
        PeerKind(
            "impi-wait", "MPI", "impi", "mpi_ranks.py", _HYDRA, (*_INTEL_MPI_SETTINGS, ("I_MPI_WAIT_MODE", "1")),
        ),
        PeerKind("gloo", "gloo", "gloo", "gloo_ranks.py"),
        PeerKind("jax", "JAX", "jax", "jax_devices.py"),
        PeerKind("tensorflow", "TensorFlow", "tensorflow", "tensorflow_replicas.py"),
        PeerKind("numpy", "NumPy", "numpy", "numpy_process.py"),
        PeerKind("numpy-processes", "NumPy processes", "numpy", "numpy_processes.py"),
    )
}  # fmt: skip

# Not peers, but asked alike: ringlet, a process for each rank, on arrays that these share and on their own.
OWN_PROCESSES = {
    name: PeerKind(name, "ringlet", "", "ringlet_ranks.py", told=("--memory", memory))
    for name, memory in ((PROCESSES, "shared"), (PRIVATE, "private"))
}

# The other one differs from a peer that is measured in a single setting.
DEFAULT_PEERS = tuple(name for name in PEERS if name != "impi-wait")


def missing_environments(folder: Path, peers: Sequence[str]) -> list[str]:
    """Return the environments that are not ready below `folder`, except plain NumPy, in the order of peers.

    Examples
    --------
    >>> missing_environments(Path("/nowhere"), ["openmpi", "numpy", "impi-wait", "impi"])
    ['openmpi', 'impi']
    """
    wanted = dict.fromkeys(PEERS[name].environment for name in peers)
    return [name for name in ENVIRONMENTS if name in wanted and name != "numpy" and ready_version(folder, name) is None]
