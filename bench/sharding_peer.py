"""JAX on eight host devices, asked the questions of ``bench.sharding`` in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.environments import python_of
from bench.machine import ROOT
from bench.peer_process import PeerProcess
from bench.peer_table import missing_environments
from bench.peers.sharding_inputs import AXES
from bench.sharding_questions import title_of

__all__ = ["ShardingPeer", "peer_title"]

_SCRIPT = ROOT / "bench" / "peers" / "jax_sharding.py"
_START_SECONDS, _ANSWER_SECONDS = 120.0, 300.0


def peer_title(title: str) -> str:
    """Give the name under which the peer's answer to a question is kept.

    Examples
    --------
    >>> peer_title("add 16 KiB, tiled")
    'JAX: add 16 KiB, tiled'
    """
    return f"JAX: {title}"


class ShardingPeer:
    """JAX with a host device for each logical device; ends with the ``with`` block.

    Parameters
    ----------
    folder : Path
        Where ``bench.environments`` put its environment.

    Raises
    ------
    FileNotFoundError
        If there is no environment with JAX.
    """

    def __init__(self, folder: Path) -> None:
        if missing_environments(folder, ["jax"]):
            raise FileNotFoundError(
                f"no environment for jax below {folder}. Make it with: python -m bench.environments jax --into "
                f"{folder}; or leave --environments out to measure ringlet and NumPy alone"
            )
        self._command = [str(python_of(folder, "jax")), str(_SCRIPT)]

    def __enter__(self) -> ShardingPeer:
        self._process = PeerProcess(self._command, AXES["x"] * AXES["y"])
        try:
            self._process.wait_until_ready(_START_SECONDS)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stop()

    def subjects(self, name: str, size_bytes: int, region_seconds: float) -> dict[str, Callable[[], float]]:
        """Give what measures a question, by :func:`peer_title`; a wrong or late answer raises PeerFailure."""
        if name not in self._process.variants:
            return {}
        told = {
            "question": name, "variant": "jit", "size_bytes": size_bytes, "dtype": "float32", "seconds": region_seconds,
        }  # fmt: skip
        title = peer_title(title_of(name, size_bytes, "tiled"))
        return {title: partial(self._process.ask, told, _ANSWER_SECONDS)}

    def cpu_seconds(self) -> float:
        """Processor time that it has used."""
        return self._process.cpu_seconds()
