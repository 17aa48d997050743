"""OneDeviceStrategy: one replica on a given device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ringlet import context
from ringlet.devices import canonicalize, short_name
from ringlet.strategy.api.extended import SingleReplicaExtended
from ringlet.strategy.api.strategy import Strategy
from ringlet.strategy.calls.argument_checks import refuse_per_replica
from ringlet.strategy.calls.run_options import has_writable_results
from ringlet.strategy.replica.replica_context import ReplicaContext
from ringlet.values import split_arguments

if TYPE_CHECKING:
    from ringlet.data import InputContext


class OneDeviceStrategy(Strategy):
    """Runs each step on one device (``tf.distribute.OneDeviceStrategy``), to test a program before distributing it.

    Variables are plain, values are never wrapped, and batches are not split.

    Parameters
    ----------
    device : str
        A name such as ``"CPU:0"``; every device is host memory.

    Raises
    ------
    ValueError
        If the device string cannot be parsed.
    TypeError
        If `device` is not a string.

    Examples
    --------
    >>> strategy = OneDeviceStrategy("CPU:0")
    >>> strategy
    OneDeviceStrategy('CPU:0')
    >>> strategy.run(lambda x: x + 1, args=(2,))
    3
    """

    def __init__(self, device: str) -> None:
        super().__init__(OneDeviceExtended(self, device))

    def __repr__(self) -> str:
        return f"OneDeviceStrategy({short_name(self.extended.worker_devices[0])!r})"


class OneDeviceExtended(SingleReplicaExtended):
    """Implementation of :class:`OneDeviceStrategy`."""

    def __init__(self, container_strategy: Strategy, device: str) -> None:
        super().__init__(container_strategy)
        if not isinstance(device, str):
            raise TypeError(
                f"device must be a device string such as 'CPU:0', got {device!r} of type {type(device).__name__}"
            )
        self._devices = (canonicalize(device),)

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The full name of the device, in a tuple."""
        return self._devices

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The full name of the device, in a tuple."""
        return self._devices

    def non_slot_devices(self, var_list: Sequence[Any]) -> tuple[str, ...]:
        """Return the device, in a tuple."""
        return self._devices

    def _call_for_each_replica(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return self._call_with_options(fn, args, kwargs, None)

    def _call_with_options(
        self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], options: Any
    ) -> Any:
        rows, keywords = split_arguments(args, kwargs, 1)
        replica = ReplicaContext._single(self._container_strategy(), has_writable_results(options))
        return context.call_in(replica, fn, *rows[0], **keywords[0])

    def _distribute_datasets_from_function(self, dataset_fn: Callable[[InputContext], Any], options: Any) -> Any:
        refuse_per_replica(self, options)
        return super()._distribute_datasets_from_function(dataset_fn, options)
