"""One rank of a group over several hosts, with the interface of the core's members."""

from __future__ import annotations

from typing import Any, NoReturn

from ringlet.collectives.hosts.host_movement import HostMovement
from ringlet.collectives.hosts.host_reductions import HostReductions


class HostMember(HostReductions, HostMovement):
    """One rank, with all collectives."""

    def split(self, color: int | None, key: int, label: int) -> NoReturn:
        """Raise an error."""
        raise _unsupported("split")

    def exclusive_scan(self, array: Any, op: int, out: Any) -> NoReturn:
        """Raise an error."""
        raise _unsupported("exclusive_scan")

    def rejoin(self) -> NoReturn:
        """Raise an error."""
        raise _unsupported("rejoin")


def _unsupported(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"{name} is not available for a group over several hosts in this version: start all ranks on one host, or use "
        "all_gather."
    )
