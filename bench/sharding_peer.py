"""JAX on eight host devices, asked the questions of ``bench.sharding`` in a separate process."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.peers.sharding_inputs import AXES
from bench.sharding_questions import title_of
from bench.single_peer import SinglePeer

__all__ = ["ShardingPeer", "peer_title"]

_SCRIPT = "jax_sharding.py"
_ANSWER_SECONDS = 300.0


def peer_title(title: str) -> str:
    """Return the title of the peer's answer to a question.

    Examples
    --------
    >>> peer_title("add 16 KiB, tiled")
    'JAX: add 16 KiB, tiled'
    """
    return f"JAX: {title}"


class ShardingPeer(SinglePeer):
    """JAX with a host device for each logical device; parameter and error as for :class:`SinglePeer`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "jax", _SCRIPT, AXES["x"] * AXES["y"])

    def subjects(self, name: str, size_bytes: int, region_seconds: float) -> dict[str, Callable[[], float]]:
        """Return the measurements by :func:`peer_title`; a wrong or late answer raises PeerFailure."""
        if name not in self._process.variants:
            return {}
        told = {
            "question": name, "variant": "jit", "size_bytes": size_bytes, "dtype": "float32", "seconds": region_seconds,
        }  # fmt: skip
        title = peer_title(title_of(name, size_bytes, "tiled"))
        return {title: partial(self._process.ask, told, _ANSWER_SECONDS)}
