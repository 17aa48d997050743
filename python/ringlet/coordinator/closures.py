"""Closure: one call of a scheduled function."""

from __future__ import annotations

import weakref
from typing import Any

from ringlet.coordinator.argument_codec import Payload, SentFunction
from ringlet.coordinator.remote_value import CANCELLED, RemoteValue
from ringlet.errors import CancelledError


class Closure:
    """A function with its arguments, and a weak reference to its RemoteValue; `number` is its position in the schedule.

    `num_losses` is the number of workers that have exited while they may have been running the closure.
    """

    __slots__ = ("_output", "arguments", "function", "num_losses", "number")

    def __init__(self, number: int, function: SentFunction, arguments: Payload | None, output: RemoteValue) -> None:
        self.number = number
        self.function = function
        self.arguments = arguments
        self.num_losses = 0
        self._output = weakref.ref(output)

    def __lt__(self, other: Closure) -> bool:
        return self.number < other.number

    def finish(self, content: tuple[bytes, Any] | None) -> None:
        """Set the value of the RemoteValue, if it still exists."""
        output = self._output()
        if output is not None:
            output._settle(content)

    def fail(self, error: Any) -> None:
        """Set the error of the RemoteValue, if it still exists."""
        output = self._output()
        if output is not None:
            output._settle(error=error)

    def cancel(self) -> None:
        """Set a `CancelledError` as the error of the RemoteValue, if it still exists."""
        self.fail(CancelledError(CANCELLED))
