"""Options of collectives: ``tf.distribute.experimental.CommunicationOptions``."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from ringlet.collectives.argument_parsing import whole_number
from ringlet.collectives.timeouts import resolve_timeout


class CommunicationImplementation(enum.Enum):
    """Requested implementation of a collective (``tf.distribute.experimental.CommunicationImplementation``).

    Examples
    --------
    >>> [implementation.name for implementation in CommunicationImplementation]
    ['AUTO', 'RING', 'NCCL']
    """

    AUTO = "AUTO"
    """Chosen by the strategy or its ``cross_device_ops``."""
    RING = "RING"
    """The ring algorithm, which adds in ring order."""
    NCCL = "NCCL"
    """Accepted for compatibility with TensorFlow and treated as AUTO; Ringlet does not use GPUs."""


@dataclass(frozen=True)
class CommunicationOptions:
    """Options of one collective call (``tf.distribute.experimental.CommunicationOptions``).

    Parameters
    ----------
    bytes_per_pack : int
        Consecutive arrays of a structure are packed into passes of at most this many bytes; 0 for a single pass.
    timeout_seconds : float, optional
        Time-out of this call: a replica that waits longer raises `DeadlineExceededError`; other replicas that wait or
        call later raise `CollectiveAborted`. A busy replica thread cannot be interrupted: ``strategy.run`` raises after
        that thread has finished. None and 0 select the strategy's own time-out.
    implementation : CommunicationImplementation or str
        RING selects the ring algorithm. Names are case-insensitive.

    Raises
    ------
    ValueError
        If an argument is out of range, or the implementation is unknown.

    Examples
    --------
    >>> print(CommunicationOptions(bytes_per_pack=1024, implementation="ring"))
    Options(bytes_per_pack=1024,timeout_seconds=None, implementation=CommunicationImplementation.RING)
    """

    bytes_per_pack: int = 0
    timeout_seconds: float | None = None
    implementation: CommunicationImplementation = CommunicationImplementation.AUTO

    def __post_init__(self) -> None:
        pack = whole_number(self.bytes_per_pack, "bytes_per_pack", "a number of bytes, or 0 for a single pass")
        if pack < 0:
            raise ValueError(f"Argument `bytes_per_pack` must be >=0, Received {pack}. 0 packs all arrays together")
        if self.timeout_seconds is not None:
            resolve_timeout(self.timeout_seconds)
        object.__setattr__(self, "bytes_per_pack", pack)
        object.__setattr__(self, "implementation", _checked_implementation(self.implementation))

    def merge(self, other: CommunicationOptions | None) -> CommunicationOptions:
        """Return options that combine these with `other`, which takes precedence.

        Parameters
        ----------
        other : CommunicationOptions or None
            Overrides these options except where its values are the defaults.

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
        # TensorFlow's exact text, including its spacing.
        return (
            f"Options(bytes_per_pack={self.bytes_per_pack},timeout_seconds={self.timeout_seconds}, "
            f"implementation={self.implementation})"
        )


def CollectiveHints(  # noqa: N802  # a class of this name in TensorFlow
    bytes_per_pack: int = 0, timeout_seconds: float | None = None
) -> CommunicationOptions:
    """Return :class:`CommunicationOptions`; deprecated name (``tf.distribute.experimental.CollectiveHints``).

    Parameters
    ----------
    bytes_per_pack, timeout_seconds
        As for :class:`CommunicationOptions`.

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
                f"{implementation.upper()!r} is not a valid CommunicationImplementation: expected one of {names}"
            ) from None
    raise ValueError(
        "Argument `implementation` must be instance of `experimental.CommunicationImplementation`, or its name, got "
        f"{implementation!r} of type {type(implementation).__name__}"
    )
