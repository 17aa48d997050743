"""What a coordinator sends to its workers: functions once, arguments with every call."""

from __future__ import annotations

import contextlib
import itertools
import types
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ringlet import nest
from ringlet.coordinator.code_digest import code_digest
from ringlet.coordinator.per_worker_values import PerWorkerValues
from ringlet.coordinator.protocol import check_size
from ringlet.coordinator.remote_value import RemoteValue
from ringlet.ipc import pack
from ringlet.ipc.call_codec import Unsendable
from ringlet.strategy.parameter_server.parameter_server_strategy import ParameterServerStrategy, reduce_strategy
from ringlet.values.variables.table_variable import TableVariable, reduce_table_variable

__all__ = ["Functions", "Payload", "SentFunction", "pack_arguments", "pack_value"]

_numbers = itertools.count()


@dataclass(frozen=True)
class Payload:
    """A value as it is sent.

    Attributes
    ----------
    header : bytes
    buffers : sequence of bytes
        Copies: what happens to arrays later changes nothing.
    variables : sequence of TableVariable
        That the value refers to.
    values : sequence of PerWorkerValues
        That the value refers to.
    """

    header: bytes
    buffers: Sequence[bytes] = ()
    variables: Sequence[TableVariable] = ()
    values: Sequence[PerWorkerValues] = ()


@dataclass(eq=False)
class SentFunction:
    """A function that workers know by a number.

    Attributes
    ----------
    payload : Payload
    name, digest : str
    number : int
    seconds : float or None
        How long it has taken of late; None if that is not known.
    """

    payload: Payload
    name: str
    digest: str
    number: int = field(default_factory=lambda: next(_numbers))
    seconds: float | None = None

    def took(self, seconds: float) -> None:
        """Heed how long a call has taken: at once if it was longer, slowly if it was shorter."""
        if self.seconds is None or seconds > self.seconds:
            self.seconds = seconds
        else:
            self.seconds += 0.2 * (seconds - self.seconds)


class Functions:
    """The functions that were scheduled and still exist, each pickled when it was scheduled first."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[Any, SentFunction]] = {}

    def __call__(self, function: Callable[..., Any]) -> SentFunction:
        """Give a function as it is sent.

        Raises
        ------
        Unsendable
            If something in it cannot be pickled; names it.
        """
        # A method is a new object every time that it is asked for; its object and its function stay.
        method = getattr(function, "python_function", function)
        owner = method.__self__ if isinstance(method, types.MethodType) else function
        key = id(owner), id(getattr(method, "__func__", None))
        known = self._known.get(key)
        if known is not None and known[0]() is owner:  # not where an interrupt kept one that is gone from leaving
            return known[1]
        sent = SentFunction(pack_value(function), _name_of(function), code_digest(function))
        with contextlib.suppress(TypeError):  # no weak references to it: another object may get its id
            self._known[key] = weakref.ref(owner, lambda _: self._known.pop(key, None)), sent
        return sent


def pack_value(value: Any) -> Payload:
    """Pickle a value for workers.

    Raises
    ------
    Unsendable
        If something in it cannot be pickled; names it.
    """
    variables: dict[int, TableVariable] = {}
    values: list[PerWorkerValues] = []

    def refer(part: Any) -> Any:
        if isinstance(part, TableVariable):
            variables[part.table_key] = part
            return "use", part.name, *reduce_table_variable(part)
        if isinstance(part, ParameterServerStrategy):
            return "make", *reduce_strategy(part)
        if isinstance(part, PerWorkerValues):
            values.append(part)
            return "pick", part._numbers
        return None

    header, buffers = pack(value, refer)
    check_size(header, buffers)
    return Payload(header, [bytes(memoryview(buffer)) for buffer in buffers], list(variables.values()), values)


def pack_arguments(args: Sequence[Any] | None, kwargs: Mapping[str, Any] | None, name: str) -> Payload | None:
    """Pickle the arguments of a call of a function of that name; None if there are none.

    Raises
    ------
    TypeError
        If they are not a sequence and a mapping.
    ValueError
        If a RemoteValue is among them.
    Unsendable
        If something in them cannot be pickled; names it.
    """
    try:
        given = tuple(args or ()), dict(kwargs or {})
    except (TypeError, ValueError):
        raise TypeError(
            f"args is a list or tuple of what {name} is called with, as in args=(5,), and kwargs a dict, not {args!r} "
            f"and {kwargs!r}"
        ) from None
    if not any(given):
        return None
    for leaf in nest.flatten(given)[0]:
        if isinstance(leaf, RemoteValue):
            raise ValueError(
                "`tf.distribute.experimental.coordinator.RemoteValue` used as an input to scheduled function is not "
                "yet supported."
            )
    try:
        return pack_value(given)
    except Unsendable:
        for place, value in [*enumerate(given[0]), *given[1].items()]:
            try:
                pack_value(value)
            except Unsendable as error:
                raise Unsendable(f"argument {place} of {name}: {error}") from error.__cause__
        raise


def _name_of(function: Any) -> str:
    return str(getattr(function, "__qualname__", None) or repr(function))
