"""What workers make once and keep, such as iterators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ringlet.coordinator.argument_codec import Payload, SentFunction
from ringlet.coordinator.remote_value import RemoteValue

__all__ = ["Resource"]


class Resource(RemoteValue):
    """A value that stays on its worker; it is made again when the worker is lost and comes back.

    Parameters
    ----------
    function : SentFunction
        Makes it.
    arguments : Payload or None
    request_copy : callable
        Takes this resource; gives a RemoteValue that will be a copy of what the worker has.
    """

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
        """Wait until it is made and give a copy of it, as it is now.

        Raises
        ------
        Unsendable
            If it cannot leave its worker, as iterators cannot.
        """
        self._wait()
        return self._request_copy(self).get()
