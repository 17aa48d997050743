"""Argument codec: pickles functions, which are cached, and the arguments of every call."""

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
from ringlet.ipc.pickle_codec import Unsendable
from ringlet.strategy.parameter_server.parameter_server_strategy import ParameterServerStrategy, reduce_strategy
from ringlet.values.variables.table_variable import TableVariable, reduce_table_variable

_numbers = itertools.count()


@dataclass(frozen=True)
class Payload:
    """A pickled value with copies of its arrays, and the variables and PerWorkerValues to which it refers."""

    header: bytes
    buffers: Sequence[bytes] = ()
    variables: Sequence[TableVariable] = ()
    values: Sequence[PerWorkerValues] = ()


@dataclass(eq=False)
class SentFunction:
    """A pickled function, sent to a worker process at most once, and afterwards identified by its number.

    `seconds` is the estimated duration of a call; None if unknown.
    """

    payload: Payload
    name: str
    digest: str
    number: int = field(default_factory=lambda: next(_numbers))
    seconds: float | None = None

    def took(self, seconds: float) -> None:
        """Update the estimate: immediately if the duration is longer, gradually if it is shorter."""
        if self.seconds is None or seconds > self.seconds:
            self.seconds = seconds
        else:
            self.seconds += 0.2 * (seconds - self.seconds)


class Functions:
    """Cache of the scheduled functions that still exist; each is pickled when it is first scheduled."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[Any, SentFunction]] = {}

    def __call__(self, function: Callable[..., Any]) -> SentFunction:
        """Return the cached encoding of a function; encode the function if necessary."""
        # Each access to a bound method creates a new object, so the key consists of its instance and function.
        method = getattr(function, "python_function", function)
        owner = method.__self__ if isinstance(method, types.MethodType) else function
        key = id(owner), id(getattr(method, "__func__", None))
        known = self._known.get(key)
        if known is not None and known[0]() is owner:  # an interrupted callback may leave a stale entry
            return known[1]
        name = str(getattr(function, "__qualname__", None) or repr(function))
        sent = SentFunction(pack_value(function), name, code_digest(function))
        with contextlib.suppress(TypeError):  # objects without weak references are not cached, because ids are reused
            self._known[key] = weakref.ref(owner, lambda _: self._known.pop(key, None)), sent
        return sent


def pack_value(value: Any) -> Payload:
    """Pickle a value for workers; PerWorkerValues, variables on parameter servers and their strategies become tokens.

    A worker converts a token to its own object.
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
    """Pickle the arguments of a call of the function `name`; return None without arguments."""
    try:
        given = tuple(args or ()), dict(kwargs or {})
    except (TypeError, ValueError):
        raise TypeError(
            f"args must be a list or tuple of the arguments of {name}, as in args=(5,), and kwargs must be a dict, "
            f"got {args!r} and {kwargs!r}"
        ) from None
    if not any(given):
        return None
    for leaf in nest.flatten(given)[0]:
        if isinstance(leaf, RemoteValue):
            raise ValueError(
                "`tf.distribute.experimental.coordinator.RemoteValue` used as an input to scheduled function is not "
                "yet supported. Pass value.fetch(), or do both steps in one function"
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
