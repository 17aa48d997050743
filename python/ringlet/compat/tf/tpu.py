"""``tf.tpu``: topology of TPU slices and device assignment."""

from __future__ import annotations

from ringlet import tpu
from ringlet.compat.tensorflow.absent import absent_getter, namespace
from ringlet.module_names import list_public

__all__ = ["experimental"]

NAMES = {
    name: getattr(tpu, name)
    for name in (
        "DeviceAssignment",
        "DeviceOrderMode",
        "HardwareFeature",
        "TPUSystemMetadata",
        "Topology",
        "initialize_tpu_system",
        "shutdown_tpu_system",
    )
}

experimental = namespace("tf.tpu.experimental", "Topologies of slices and device assignments.", NAMES)

__getattr__ = absent_getter("tf.tpu", __all__)
__dir__ = list_public(__name__)
