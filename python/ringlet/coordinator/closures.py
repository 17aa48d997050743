"""One call of a scheduled function."""

from __future__ import annotations

import weakref
from typing import Any

from ringlet.coordinator.argument_codec import Payload, SentFunction
from ringlet.coordinator.remote_value import CANCELLED, RemoteValue
from ringlet.errors import CancelledError

__all__ = ["Closure"]


class Closure:
    """A function with its arguments, and the value that it is to give, as long as somebody holds that.

    Parameters
    ----------
    number : int
        Its place in the order of scheduling.
    function : SentFunction
    arguments : Payload or None
    output : RemoteValue

    Attributes
    ----------
    num_losses : int
        How many workers have ended while they may have run it.
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
        """Give the value to who holds its place."""
        output = self._output()
        if output is not None:
            output._settle(content)

    def fail(self, error: Any) -> None:
        """Tell who holds its place that there will be none."""
        output = self._output()
        if output is not None:
            output._settle(error=error)

    def cancel(self) -> None:
        """Tell who holds its place that it was not run."""
        self.fail(CancelledError(CANCELLED))
