"""Gather fallback: records operations without a tiled form, and warns about or refuses them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from ringlet.errors import GatherError, GatherWarning
from ringlet.sharding.explain_operations import record_operation
from ringlet.sharding.report import calling_frame
from ringlet.sharding.resharding.collective_record import Collective
from ringlet.tpu.units import format_bytes

if TYPE_CHECKING:
    from ringlet.sharding.sharded_array import ShardedArray

_is_strict: ContextVar[bool] = ContextVar("ringlet_sharding_strict", default=False)

# First message of each (function, file, line), which is reused: Python suppresses only repeated texts, and sizes may
# differ.
_messages: dict[tuple[str, str, int], str] = {}


@contextmanager
def strict(is_strict: bool = True) -> Iterator[None]:
    """Refuse operations that would gather an array, in this block and in replicas started in it.

    Methods that convert an array, such as ``x.numpy()`` and ``x.tolist()``, are allowed.

    Parameters
    ----------
    is_strict : bool
        If False, allow such operations again inside a strict block.

    Yields
    ------
    None

    Examples
    --------
    >>> import numpy as np
    >>> from ringlet.sharding import Sharding, shard
    >>> x = shard(np.arange(8.0), Sharding.tiled((2,)))
    >>> with strict():
    ...     np.asarray(x)
    Traceback (most recent call last):
        ...
    ringlet.errors.GatherError: np.asarray gathers 64 B, the whole of float64[8] {devices=[2]<=[2]}, ...
    """
    token = _is_strict.set(is_strict)
    try:
        yield
    finally:
        _is_strict.reset(token)


def record_gather(function_name: str, x: ShardedArray, *, is_asked_for: bool = False) -> None:
    """Record an imminent gather and warn once for each calling line; raise GatherError in a :func:`strict` block.

    If `is_asked_for`, the program requested a conversion to a plain array, and no warning is issued.
    """
    nbytes = x.size * x.dtype.itemsize
    if not nbytes:
        return
    if _is_strict.get():
        raise GatherError(_gather_message(function_name, x, nbytes))
    collective = Collective("gather", x.shape, str(x.dtype), (tuple(x._layout.holders),), nbytes=nbytes)
    record_operation(function_name, x, (), (collective,), is_gathered=True)
    if not is_asked_for:
        _warn(function_name, x, nbytes)


def _warn(function_name: str, x: ShardedArray, nbytes: int) -> None:
    frame = calling_frame()
    file, line = frame.f_code.co_filename, frame.f_lineno
    message = _messages.setdefault((function_name, file, line), _gather_message(function_name, x, nbytes))
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    module = frame.f_globals.get("__name__", "<unknown>")
    warnings.warn_explicit(message, GatherWarning, file, line, module, registry)


# Reasons and remedies of functions whose gather has a known alternative.
_ADVICE = {
    "np.linalg.svd": (
        "it has no tiled form for full_matrices=True or hermitian=True",
        "Pass full_matrices=False, which has one",
    ),
    "np.save": ("a file holds the whole array", "Write np.save(path, x.numpy())"),
    "np.savez": ("a file holds the whole array", "Write np.savez(path, x=x.numpy())"),
    "np.savez_compressed": ("a file holds the whole array", "Write np.savez_compressed(path, x=x.numpy())"),
    "np.savetxt": ("a file holds the whole array", "Write np.savetxt(path, x.numpy())"),
}
_NO_TILED_FORM = ("it has no tiled form", "Use operations with a tiled form")


def _gather_message(function_name: str, x: ShardedArray, nbytes: int) -> str:
    reason, remedy = _ADVICE.get(function_name, _NO_TILED_FORM)
    return (
        f"{function_name} gathers {format_bytes(nbytes)}, the whole of {x._summary}, because {reason}. {remedy}, "
        "or gather once and keep the result: "
        f"x.reshard(Sharding.replicated({x._group.num_devices}))"
    )
