"""CentralStorageStrategy: synchronous replicas that share one copy of each variable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ringlet.collectives.argument_parsing import shortened
from ringlet.devices import short_list, short_name
from ringlet.strategy.api.extended import StrategyExtended
from ringlet.strategy.api.mirrored_strategy import MirroredExtended
from ringlet.strategy.api.reduction_to_one_device import ReductionToOneDevice
from ringlet.strategy.api.strategy import Strategy
from ringlet.strategy.calls.argument_checks import refuse_per_replica

if TYPE_CHECKING:
    from ringlet.data import InputContext


class CentralStorageStrategy(Strategy):
    """Runs each step on several replicas that share their variables (``experimental.CentralStorageStrategy``).

    Parameters
    ----------
    compute_devices : sequence of str, optional
        One device for each replica; the default is ``["CPU:0"]``.
    parameter_device : str, optional
        The device that variables report: by default the compute device if there is only one, else the first device of
        the host.

    Raises
    ------
    ValueError, TypeError, RuntimeError
        As for :class:`~ringlet.strategy.MirroredStrategy`, except that a device may be repeated, as in TensorFlow.

    Examples
    --------
    >>> strategy = CentralStorageStrategy(["CPU:0", "CPU:1"])
    >>> strategy
    CentralStorageStrategy(['CPU:0', 'CPU:1'], 'CPU:0')
    >>> strategy.num_replicas_in_sync
    2
    """

    def __init__(self, compute_devices: Sequence[str] | None = None, parameter_device: str | None = None) -> None:
        super().__init__(CentralStorageExtended(self, compute_devices, parameter_device))

    def __repr__(self) -> str:
        devices = short_list(self.extended.worker_devices)
        return f"{type(self).__name__}({devices}, {short_name(self.extended.parameter_devices[0])!r})"


class CentralStorageExtended(MirroredExtended):
    """Implementation of :class:`CentralStorageStrategy`."""

    _may_repeat_devices = True

    def __init__(
        self, container_strategy: Strategy, compute_devices: Sequence[str] | None, parameter_device: str | None
    ) -> None:
        if parameter_device is not None and not isinstance(parameter_device, str):
            raise TypeError(
                f"parameter_device must be a device string, got {parameter_device!r} of type "
                f"{type(parameter_device).__name__}: write 'CPU:0', or omit it"
            )
        is_empty = isinstance(compute_devices, (list, tuple)) and not compute_devices
        given = compute_devices is not None and not is_empty
        ops = ReductionToOneDevice(parameter_device)
        super().__init__(container_strategy, compute_devices if given else ["CPU:0"], ops)
        if parameter_device is None:
            parameter_device = self._devices[0] if len(self._devices) == 1 else "/device:CPU:0"
        self._parameter_devices = (parameter_device,)

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The device that holds the variables, in a tuple, spelled like the argument, as in TensorFlow."""
        return self._parameter_devices

    def non_slot_devices(self, var_list: Sequence[Any]) -> Any:
        """Return the variable whose name sorts first, as in the default strategy."""
        return StrategyExtended.non_slot_devices(self, var_list)

    def _create_variable(self, request: Any) -> Any:
        from ringlet.values.variables.variable_factory import create_aggregating

        return create_aggregating(self._container_strategy(), request)

    def _check_updated(self, var: Any) -> None:
        StrategyExtended._check_updated(self, var)
        if not hasattr(var, "assign"):
            raise ValueError(
                f"You can not update `var` {shortened(var)}. It must be a Variable: create it in the scope of "
                f"{self._container_strategy()!r}"
            )

    def _distribute_datasets_from_function(self, dataset_fn: Callable[[InputContext], Any], options: Any) -> Any:
        refuse_per_replica(self, options)
        return super()._distribute_datasets_from_function(dataset_fn, options)
