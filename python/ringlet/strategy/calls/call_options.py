"""Options of a single collective call."""

from __future__ import annotations

from typing import Any, NamedTuple

from ringlet.collectives import Algorithm, CommunicationImplementation, CommunicationOptions


class CallOptions(NamedTuple):
    """The checked options of one call."""

    algorithm: Algorithm
    bytes_per_pack: int
    timeout_seconds: float
    """0 if only the strategy's own time-out applies."""


def read_options(options: Any, default: Algorithm) -> CallOptions:
    """Return the checked options of a replica's collective; the algorithm is `default` unless they select the ring."""
    if options is None:
        return CallOptions(default, 0, 0.0)
    check_options(options)
    is_ring = options.implementation is CommunicationImplementation.RING
    return CallOptions(
        Algorithm.RING if is_ring else default, options.bytes_per_pack, float(options.timeout_seconds or 0.0)
    )


def check_options(options: Any) -> None:
    """Raise TypeError unless `options` is a CommunicationOptions or None."""
    if options is not None and not isinstance(options, CommunicationOptions):
        raise TypeError(
            f"options must be a CommunicationOptions, got {options!r} of type {type(options).__name__}: write "
            "options=ringlet.experimental.CommunicationOptions(...)"
        )
