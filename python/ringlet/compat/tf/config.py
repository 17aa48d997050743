"""``tf.config``: the devices of this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ringlet.cluster.tf_connect import experimental_connect_to_cluster, experimental_connect_to_host
from ringlet.compat.tensorflow.absent import absent_getter, namespace
from ringlet.devices import Device, logical_devices, set_logical_devices
from ringlet.module_names import list_public
from ringlet.tpu.topology.tpu_system import tpu_devices

__all__ = [
    "LogicalDevice",
    "LogicalDeviceConfiguration",
    "PhysicalDevice",
    "experimental",
    "experimental_connect_to_cluster",
    "experimental_connect_to_host",
    "get_logical_device_configuration",
    "list_logical_devices",
    "list_physical_devices",
    "set_logical_device_configuration",
]


class LogicalDevice(NamedTuple):
    """A device that runs a replica.

    Examples
    --------
    >>> LogicalDevice("/device:CPU:0", "CPU")
    LogicalDevice(name='/device:CPU:0', device_type='CPU')
    """

    name: str
    device_type: str


class PhysicalDevice(NamedTuple):
    """A device of the machine. The only device is the host's CPU with all its cores.

    Examples
    --------
    >>> PhysicalDevice("/physical_device:CPU:0", "CPU").device_type
    'CPU'
    """

    name: str
    device_type: str


class LogicalDeviceConfiguration(NamedTuple):
    """Configuration of a logical device; a CPU supports none of the options.

    Examples
    --------
    >>> LogicalDeviceConfiguration().memory_limit is None
    True
    """

    memory_limit: int | None = None
    experimental_priority: int | None = None
    experimental_device_ordinal: int | None = None


_HOST = PhysicalDevice("/physical_device:CPU:0", "CPU")
_configurations: dict[PhysicalDevice, list[LogicalDeviceConfiguration]] = {}


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Return the devices of the machine.

    Parameters
    ----------
    device_type : str, optional
        ``"CPU"``; other types have no devices.

    Returns
    -------
    list of PhysicalDevice

    Examples
    --------
    >>> list_physical_devices(), list_physical_devices("GPU")
    ([PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')], [])
    """
    return [_HOST] if device_type in (None, "CPU") else []


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """Return the devices that run replicas; after a call that includes CPUs, their number is fixed.

    Parameters
    ----------
    device_type : str, optional
        ``"CPU"``, or ``"TPU"`` for the devices of slices initialized by ``tf.tpu.experimental.initialize_tpu_system``;
        other types have no devices.

    Returns
    -------
    list of LogicalDevice

    Examples
    --------
    >>> list_logical_devices()[0]
    LogicalDevice(name='/device:CPU:0', device_type='CPU')
    """
    found = []
    if device_type in (None, "CPU"):
        found += [LogicalDevice(f"/device:CPU:{Device.parse(name).index}", "CPU") for name in logical_devices()]
    if device_type in (None, "TPU"):
        prefix = "/job:localhost/replica:0/task:0"  # TensorFlow omits this prefix in lists
        found += [LogicalDevice(device.name.removeprefix(prefix), "TPU") for device in tpu_devices()]
    return found


def set_logical_device_configuration(
    device: PhysicalDevice, logical_devices: Sequence[LogicalDeviceConfiguration]
) -> None:
    """Set the number of logical devices; must be called before the devices are used.

    Parameters
    ----------
    device : PhysicalDevice
        A result of `list_physical_devices`.
    logical_devices : sequence of LogicalDeviceConfiguration
        One configuration for each logical device.

    Raises
    ------
    RuntimeError
        If a different number of devices is in use.
    ValueError
        If the machine does not have the device, or a memory limit or a priority is given.

    Examples
    --------
    >>> count = len(list_logical_devices())
    >>> set_logical_device_configuration(list_physical_devices("CPU")[0], [LogicalDeviceConfiguration()] * count)
    """
    _check_device(device)
    configurations = list(logical_devices)
    for configuration in configurations:
        if configuration.memory_limit is not None:
            raise ValueError(
                "Setting memory limit on CPU virtual devices is currently not supported, got "
                f"memory_limit={configuration.memory_limit}. Omit it."
            )
        if configuration.experimental_priority is not None:
            raise ValueError(
                "Setting experimental_priority on CPU virtual devices is currently not supported, got "
                f"{configuration.experimental_priority}. Omit it."
            )
    try:
        set_logical_devices(len(configurations))
    except RuntimeError as error:
        raise RuntimeError(f"Virtual devices cannot be modified after being initialized: {error}") from error
    _configurations[device] = configurations


def get_logical_device_configuration(device: PhysicalDevice) -> list[LogicalDeviceConfiguration] | None:
    """Return the configuration set by :func:`set_logical_device_configuration`.

    Parameters
    ----------
    device : PhysicalDevice

    Returns
    -------
    list of LogicalDeviceConfiguration or None
        None if no configuration was set.

    Raises
    ------
    ValueError
        If the machine does not have the device.

    Examples
    --------
    >>> found = get_logical_device_configuration(list_physical_devices("CPU")[0])
    >>> found is None or len(found) == len(list_logical_devices())
    True
    """
    _check_device(device)
    return _configurations.get(device)


def _check_device(device: Any) -> None:
    if device != _HOST:
        raise ValueError(
            f"Unrecognized device: {device!r}. The devices are [{_HOST}], as listed by "
            "tf.config.list_physical_devices()."
        )


experimental = namespace(
    "tf.config.experimental",
    "Older names of tf.config.",
    {
        "VirtualDeviceConfiguration": LogicalDeviceConfiguration,
        "get_virtual_device_configuration": get_logical_device_configuration,
        "list_logical_devices": list_logical_devices,
        "list_physical_devices": list_physical_devices,
        "set_virtual_device_configuration": set_logical_device_configuration,
    },
)

__getattr__ = absent_getter("tf.config", __all__)
__dir__ = list_public(__name__)
