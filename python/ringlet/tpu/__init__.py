"""TPU slices without TPU hardware: topology, device assignment, collective cost model and drawings.

Names load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringlet.module_names import list_public, load_on_use

if TYPE_CHECKING:
    from ringlet.errors import CoordinateError as CoordinateError
    from ringlet.tpu import drawing as drawing
    from ringlet.tpu.assignment.device_assignment import SINGLE_CORE_ASSIGNMENT as SINGLE_CORE_ASSIGNMENT
    from ringlet.tpu.assignment.device_assignment import DeviceAssignment as DeviceAssignment
    from ringlet.tpu.assignment.device_assignment import DeviceOrderMode as DeviceOrderMode
    from ringlet.tpu.assignment.device_mesh import create_device_mesh as create_device_mesh
    from ringlet.tpu.assignment.device_mesh import create_hybrid_device_mesh as create_hybrid_device_mesh
    from ringlet.tpu.assignment.order_search import HaloObjective as HaloObjective
    from ringlet.tpu.assignment.order_search import RingObjective as RingObjective
    from ringlet.tpu.cost.collective_cost import Collective as Collective
    from ringlet.tpu.cost.cost_results import CollectiveCost as CollectiveCost
    from ringlet.tpu.cost.cost_results import StepCost as StepCost
    from ringlet.tpu.cost.step_simulation import simulate as simulate
    from ringlet.tpu.topology.accelerator_type import AcceleratorType as AcceleratorType
    from ringlet.tpu.topology.generation import GENERATIONS as GENERATIONS
    from ringlet.tpu.topology.generation import Generation as Generation
    from ringlet.tpu.topology.hardware_feature import HardwareFeature as HardwareFeature
    from ringlet.tpu.topology.links import Links as Links
    from ringlet.tpu.topology.process_environment import environment as environment
    from ringlet.tpu.topology.system_metadata import TPUSystemMetadata as TPUSystemMetadata
    from ringlet.tpu.topology.topology import Topology as Topology
    from ringlet.tpu.topology.tpu_environment import TPUEnvironment as TPUEnvironment
    from ringlet.tpu.topology.tpu_system import initialize_tpu_system as initialize_tpu_system
    from ringlet.tpu.topology.tpu_system import shutdown_tpu_system as shutdown_tpu_system

# Public name -> module below ringlet.tpu that defines it.
_PUBLIC = {
    "AcceleratorType": "topology.accelerator_type",
    "Collective": "cost.collective_cost",
    "CollectiveCost": "cost.cost_results",
    "CoordinateError": ".errors",
    "DeviceAssignment": "assignment.device_assignment",
    "DeviceOrderMode": "assignment.device_assignment",
    "GENERATIONS": "topology.generation",
    "Generation": "topology.generation",
    "HaloObjective": "assignment.order_search",
    "HardwareFeature": "topology.hardware_feature",
    "Links": "topology.links",
    "RingObjective": "assignment.order_search",
    "SINGLE_CORE_ASSIGNMENT": "assignment.device_assignment",
    "StepCost": "cost.cost_results",
    "TPUEnvironment": "topology.tpu_environment",
    "TPUSystemMetadata": "topology.system_metadata",
    "Topology": "topology.topology",
    "create_device_mesh": "assignment.device_mesh",
    "create_hybrid_device_mesh": "assignment.device_mesh",
    "drawing": "drawing",
    "environment": "topology.process_environment",
    "initialize_tpu_system": "topology.tpu_system",
    "shutdown_tpu_system": "topology.tpu_system",
    "simulate": "cost.step_simulation",
}

__all__ = list(_PUBLIC)


__getattr__ = load_on_use(__name__, _PUBLIC)
__dir__ = list_public(__name__)
