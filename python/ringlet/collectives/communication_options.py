"""How a collective is asked to move its bytes: ``tf.distribute.experimental.CommunicationOptions``."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from ringlet.collectives.argument_parsing import whole_number
from ringlet.collectives.timeouts import resolve_timeout

__all__ = ["CollectiveHints", "CommunicationImplementation", "CommunicationOptions"]


class CommunicationImplementation(enum.Enum):
    """Which way of moving bytes is asked for (``tf.distribute.experimental.CommunicationImplementation``).

    Examples
    --------
    >>> [implementation.name for implementation in CommunicationImplementation]
    ['AUTO', 'RING', 'NCCL']
    """

    AUTO = "AUTO"
    """What the strategy finds best, or what its ``cross_device_ops`` choose."""
    RING = "RING"
    """Reduce-scatter, then all-gather, between neighbours."""
    NCCL = "NCCL"
    """Kept for TensorFlow's sake: a library for GPUs, which this one does not drive. It is taken for AUTO."""


@dataclass(frozen=True)
class CommunicationOptions:
    """How the arrays of one call travel (``tf.distribute.experimental.CommunicationOptions``).

    Parameters
    ----------
    bytes_per_pack : int
        Consecutive arrays of a structure are packed into passes of at most so many bytes; 0 for one pass of all.
    timeout_seconds : float, optional
        The deadline of this call: replicas that have waited so long for others raise `DeadlineExceededError`, and with
        them every replica that waits or comes later. Among threads a replica that is busy elsewhere cannot be stopped:
        ``strategy.run`` raises when that one has ended, too. None and 0 leave it at the strategy's own time-out.
    implementation : CommunicationImplementation or str
        RING chooses the ring. A name is read in any case.

    Raises
    ------
    ValueError
        If an argument is out of range, or the implementation is none.

    Examples
    --------
    >>> print(CommunicationOptions(bytes_per_pack=1024, implementation="ring"))
    Options(bytes_per_pack=1024,timeout_seconds=None, implementation=CommunicationImplementation.RING)
    """

    bytes_per_pack: int = 0
    timeout_seconds: float | None = None
    implementation: CommunicationImplementation = CommunicationImplementation.AUTO

    def __post_init__(self) -> None:
        pack = whole_number(self.bytes_per_pack, "bytes_per_pack", "a number of bytes, or 0 for one pass of all")
        if pack < 0:
            raise ValueError(f"Argument `bytes_per_pack` must be >=0, Received {pack}. 0 packs all arrays together")
        if self.timeout_seconds is not None:
            resolve_timeout(self.timeout_seconds)
        object.__setattr__(self, "bytes_per_pack", pack)
        object.__setattr__(self, "implementation", _checked_implementation(self.implementation))

    def merge(self, other: CommunicationOptions | None) -> CommunicationOptions:
        """Give these options with those of another one in place of what is left at its default.

        Parameters
        ----------
        other : CommunicationOptions or None
            Wins where it says something.

        Returns
        -------
        CommunicationOptions

        Examples
        --------
        >>> CommunicationOptions(bytes_per_pack=8).merge(CommunicationOptions(timeout_seconds=2.0))
        CommunicationOptions(bytes_per_pack=8, timeout_seconds=2.0, implementation=<...AUTO: 'AUTO'>)
        """
        if other is None:
            return self
        said = other.implementation
        return CommunicationOptions(
            other.bytes_per_pack or self.bytes_per_pack,
            self.timeout_seconds if other.timeout_seconds is None else other.timeout_seconds,
            self.implementation if said is CommunicationImplementation.AUTO else said,
        )

    def __str__(self) -> str:
        # TensorFlow's text, with its spaces: programs compare it.
        return (
            f"Options(bytes_per_pack={self.bytes_per_pack},timeout_seconds={self.timeout_seconds}, "
            f"implementation={self.implementation})"
        )


def CollectiveHints(  # noqa: N802  # a class in TensorFlow, by this name
    bytes_per_pack: int = 0, timeout_seconds: float | None = None
) -> CommunicationOptions:
    """Give :class:`CommunicationOptions`, whose older name this is (``tf.distribute.experimental.CollectiveHints``).

    Parameters
    ----------
    bytes_per_pack, timeout_seconds
        As there.

    Returns
    -------
    CommunicationOptions

    Examples
    --------
    >>> CollectiveHints(bytes_per_pack=50 * 1024 * 1024).bytes_per_pack
    52428800
    """
    return CommunicationOptions(bytes_per_pack, timeout_seconds)


def _checked_implementation(implementation: Any) -> CommunicationImplementation:
    if isinstance(implementation, CommunicationImplementation):
        return implementation
    if isinstance(implementation, str):
        try:
            return CommunicationImplementation(implementation.upper())
        except ValueError:
            names = ", ".join(member.name for member in CommunicationImplementation)
            raise ValueError(
                f"{implementation.upper()!r} is not a valid CommunicationImplementation: there are {names}"
            ) from None
    raise ValueError(
        "Argument `implementation` must be instance of `experimental.CommunicationImplementation`, or its name, got "
        f"{implementation!r} of type {type(implementation).__name__}"
    )
