"""TPU slices without a TPU: where cores sit, which replica runs on which, what a collective would cost, and pictures.

Names load on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ringlet.tpu.accelerator_type import AcceleratorType as AcceleratorType
    from ringlet.tpu.coordinates import CoordinateError as CoordinateError
    from ringlet.tpu.cost import Collective as Collective
    from ringlet.tpu.cost_results import CollectiveCost as CollectiveCost
    from ringlet.tpu.cost_results import StepCost as StepCost
    from ringlet.tpu.device_assignment import SINGLE_CORE_ASSIGNMENT as SINGLE_CORE_ASSIGNMENT
    from ringlet.tpu.device_assignment import DeviceAssignment as DeviceAssignment
    from ringlet.tpu.device_assignment import DeviceOrderMode as DeviceOrderMode
    from ringlet.tpu.device_mesh import create_device_mesh as create_device_mesh
    from ringlet.tpu.device_mesh import create_hybrid_device_mesh as create_hybrid_device_mesh
    from ringlet.tpu.environment_block import environment as environment
    from ringlet.tpu.generation import GENERATIONS as GENERATIONS
    from ringlet.tpu.generation import Generation as Generation
    from ringlet.tpu.hardware_feature import HardwareFeature as HardwareFeature
    from ringlet.tpu.links import Links as Links
    from ringlet.tpu.objective import HaloObjective as HaloObjective
    from ringlet.tpu.objective import RingObjective as RingObjective
    from ringlet.tpu.simulation import simulate as simulate
    from ringlet.tpu.system import initialize_tpu_system as initialize_tpu_system
    from ringlet.tpu.system import shutdown_tpu_system as shutdown_tpu_system
    from ringlet.tpu.system_metadata import TPUSystemMetadata as TPUSystemMetadata
    from ringlet.tpu.topology import Topology as Topology
    from ringlet.tpu.tpu_environment import TPUEnvironment as TPUEnvironment

# Public name -> module below ringlet.tpu that defines it.
_PUBLIC = {
    "AcceleratorType": "accelerator_type",
    "Collective": "cost",
    "CollectiveCost": "cost_results",
    "CoordinateError": "coordinates",
    "DeviceAssignment": "device_assignment",
    "DeviceOrderMode": "device_assignment",
    "GENERATIONS": "generation",
    "Generation": "generation",
    "HaloObjective": "objective",
    "HardwareFeature": "hardware_feature",
    "Links": "links",
    "RingObjective": "objective",
    "SINGLE_CORE_ASSIGNMENT": "device_assignment",
    "StepCost": "cost_results",
    "TPUEnvironment": "tpu_environment",
    "TPUSystemMetadata": "system_metadata",
    "Topology": "topology",
    "create_device_mesh": "device_mesh",
    "create_hybrid_device_mesh": "device_mesh",
    "environment": "environment_block",
    "initialize_tpu_system": "system",
    "shutdown_tpu_system": "system",
    "simulate": "simulation",
}

__all__ = list(_PUBLIC)


def __getattr__(name: str) -> object:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_PUBLIC[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_PUBLIC)
