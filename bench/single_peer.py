"""A peer that is one process of its own, from an environment of its own."""

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
    """Starts with the ``with`` block and ends with it.

    Parameters
    ----------
    folder : Path
        Where ``bench.environments`` put its environment.
    environment : str
        Of that name.
    script : str or Path
        Its program in ``bench/peers``, or an absolute path.
    num_ranks : int
        That this one process has.

    Raises
    ------
    FileNotFoundError
        If there is no such environment.
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
        """Processor time that it has used."""
        return self._process.cpu_seconds()
