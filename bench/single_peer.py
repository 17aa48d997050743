"""A peer in a single process, with a separate environment."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TypeVar

from bench.environments import python_of
from bench.machine import ROOT
from bench.peer_process import PeerProcess
from bench.peer_table import missing_environments

__all__ = ["SinglePeer"]

_START_SECONDS = 120.0

S = TypeVar("S", bound="SinglePeer")


class SinglePeer:
    """A peer process that starts and ends with the ``with`` block.

    Parameters
    ----------
    folder : Path
        Folder of the environments of ``bench.environments``.
    environment : str
        Name of the environment.
    script : str or Path
        Its program in ``bench/peers``, or an absolute path.
    num_ranks : int
        Number of ranks of the process.

    Raises
    ------
    FileNotFoundError
        If the environment does not exist.
    """

    def __init__(self, folder: Path, environment: str, script: str | Path, num_ranks: int) -> None:
        if missing_environments(folder, [environment]):
            raise FileNotFoundError(
                f"no environment for {environment} below {folder}. Make it with: python -m bench.environments "
                f"{environment} --into {folder}; or leave --environments out to measure without it"
            )
        self._command = [str(python_of(folder, environment)), str(ROOT / "bench" / "peers" / script)]
        self._num_ranks = num_ranks

    def __enter__(self: S) -> S:
        self._process = PeerProcess(self._command, self._num_ranks)
        try:
            self._process.wait_until_ready(_START_SECONDS)
        except BaseException:
            self._process.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.stop()

    def cpu_seconds(self) -> float:
        """CPU time of the process, in seconds."""
        return self._process.cpu_seconds()
