"""What the options of a replica's collective ask for."""

from __future__ import annotations

from typing import Any, NamedTuple

from ringlet.collectives import Algorithm, CommunicationImplementation, CommunicationOptions

__all__ = ["CallOptions", "check_options", "read_options"]


class CallOptions(NamedTuple):
    """The options of one call, checked.

    Examples
    --------
    >>> CallOptions(Algorithm.AUTO, 0, 0.0).bytes_per_pack
    0
    """

    algorithm: Algorithm
    bytes_per_pack: int
    timeout_seconds: float
    """0 where the strategy's own time-out is all there is."""


def read_options(options: Any, default: Algorithm) -> CallOptions:
    """Read the options of a replica's collective.

    Parameters
    ----------
    options : CommunicationOptions or None
    default : Algorithm
        What runs unless the options ask for the ring.

    Returns
    -------
    CallOptions

    Raises
    ------
    TypeError
        If they are anything else.

    Examples
    --------
    >>> read_options(CommunicationOptions(implementation="RING"), Algorithm.AUTO).algorithm.name
    'RING'
    """
    if options is None:
        return CallOptions(default, 0, 0.0)
    check_options(options)
    is_ring = options.implementation is CommunicationImplementation.RING
    return CallOptions(
        Algorithm.RING if is_ring else default, options.bytes_per_pack, float(options.timeout_seconds or 0.0)
    )


def check_options(options: Any) -> None:
    """Refuse what are no options of a collective.

    Raises
    ------
    TypeError
        If they are neither a CommunicationOptions nor None.

    Examples
    --------
    >>> check_options(None)
    """
    if options is not None and not isinstance(options, CommunicationOptions):
        raise TypeError(
            f"options are a CommunicationOptions, got {options!r} of type {type(options).__name__}: write "
            "options=ringlet.experimental.CommunicationOptions(...)"
        )
