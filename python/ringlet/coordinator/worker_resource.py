"""Worker resource: an object that a worker creates and keeps, such as an iterator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ringlet.coordinator.argument_codec import Payload, SentFunction
from ringlet.coordinator.remote_value import RemoteValue


class Resource(RemoteValue):
    """A value that stays on its worker, and is created again when the worker is restarted."""

    __slots__ = ("_arguments", "_function", "_request_copy")

    _stays_there = True

    def __init__(
        self, function: SentFunction, arguments: Payload | None, request_copy: Callable[[Resource], RemoteValue]
    ) -> None:
        super().__init__()
        self._is_promised = True
        self._function = function
        self._arguments = arguments
        self._request_copy = request_copy

    def get(self) -> Any:
        """Return a copy of the worker's current value, once it is created."""
        self._wait()
        return self._request_copy(self).get()
