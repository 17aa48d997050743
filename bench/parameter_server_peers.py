"""Ringlet, Ray, Dask and TensorFlow, each in a separate job with two workers and a parameter server."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from bench.environments import python_of, ready_version
from bench.machine import ROOT
from bench.peer_process import PeerProcess

__all__ = ["PEERS", "ParameterServerPeers", "title_of"]

# By name: the environment that each needs, and its program. Ringlet's is that of this interpreter.
_SCRIPTS = ROOT / "bench" / "peers"
PEERS = {
    "Ray": ("ray", "ray_actors.py"),
    "Dask": ("dask", "dask_actors.py"),
    "TensorFlow": ("tensorflow", "tensorflow_coordinator.py"),
}
_OWN_SCRIPT = "ringlet_server.py"
_NUM_WORKERS = 2
_START_SECONDS, _ANSWER_SECONDS = 120.0, 120.0


def title_of(question: str, who: str) -> str:
    """Return the title of the times of one library's answer to a question.

    Examples
    --------
    >>> title_of("1,000 empty closures", "Ray")
    'Ray: 1,000 empty closures'
    """
    return f"{who}: {question}"


class ParameterServerPeers:
    """Ringlet, and the peers whose environments exist; all end with the ``with`` block.

    Parameters
    ----------
    folder : Path or None
        Folder of the environments; None measures ringlet alone.
    names : sequence of str
        Keys of `PEERS`.

    Raises
    ------
    FileNotFoundError
        If an environment is missing.
    """

    def __init__(self, folder: Path | None, names: Sequence[str] = tuple(PEERS)) -> None:
        self._commands = {"ringlet": [sys.executable, str(_SCRIPTS / _OWN_SCRIPT)]}
        for name in names if folder else ():
            environment, script = PEERS[name]
            if ready_version(folder, environment) is None:
                raise FileNotFoundError(
                    f"no environment for {environment} below {folder}. Make it with: python -m bench.environments "
                    f"{environment} --into {folder}; or name the others: --peers {','.join(set(PEERS) - {name})}"
                )
            self._commands[name] = [str(python_of(folder, environment)), str(_SCRIPTS / script)]
        self._processes: dict[str, PeerProcess] = {}

    def __enter__(self) -> ParameterServerPeers:
        try:
            for name, command in self._commands.items():
                self._processes[name] = PeerProcess(command, _NUM_WORKERS)
            for process in self._processes.values():
                process.wait_until_ready(_START_SECONDS)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.stop()

    @property
    def versions(self) -> dict[str, str]:
        """The version of each subject."""
        return {name: process.version for name, process in self._processes.items()}

    def subjects(self, region_seconds: float) -> dict[str, Callable[[], float]]:
        """Return the measurements by :func:`title_of`; a wrong or late answer raises PeerFailure."""
        told = {"variant": "plain", "size_bytes": 4, "dtype": "float32", "seconds": region_seconds}
        return {
            title_of(question, name): partial(process.ask, {**told, "question": question}, _ANSWER_SECONDS)
            for question in self._processes["ringlet"].variants
            for name, process in self._processes.items()
            if question in process.variants
        }

    def cpu_seconds(self) -> float:
        """CPU time of all processes, in seconds."""
        return sum(process.cpu_seconds() for process in self._processes.values())
