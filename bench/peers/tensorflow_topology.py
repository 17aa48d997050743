"""TensorFlow's Topology and DeviceAssignment: pure Python, so one process without replicas."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from peer import Peer, begin, serve

# As the questions of ringlet have it.
_DEVICES_PER_TASK = 8
_LOOK_UPS = 100


class TensorFlowTopology(Peer):
    """Answers questions such as ``build 16x16x16x2 1x1x1x2``; the variant is the digest that the answer must have."""

    variants: ClassVar[Mapping[str, Sequence[str]]] = dict.fromkeys(("topology", "parse", "build", "look-up"), ())

    def __init__(self, tensorflow: Any) -> None:
        self._tpu = tensorflow.tpu.experimental
        self.version = f"tensorflow {tensorflow.__version__}"
        self._topologies: dict[str, Any] = {}
        self._result: Any = None

    def allocate(self, count: int, dtype: np.dtype[Any]) -> None:
        """Do nothing: these questions have no buffers."""

    def fill(self) -> None:
        """Do nothing."""

    def clear(self) -> None:
        """Do nothing."""

    def call(self, collective: str, variant: str) -> Callable[[], object]:
        """Return a function that makes one call."""
        function = self._function(*collective.split())

        def one_call() -> None:
            self._result = function()

        return one_call

    def complaint(self, collective: str, variant: str) -> str | None:
        """Compare the digest of the result with that of ringlet's result."""
        found = f"{zlib.crc32(_bytes(self._result)):08x}"
        return None if found == variant else f"{collective}: digest {found}, and ringlet's answer has {variant}"

    def _function(self, kind: str, mesh: str, shape: str = "") -> Callable[[], Any]:
        numbers = [int(length) for length in mesh.split("x")]
        if mesh not in self._topologies:
            self._topologies[mesh] = self._tpu.Topology(mesh_shape=numbers, device_coordinates=_coordinates(numbers))
        topology, tpu = self._topologies[mesh], self._tpu
        if kind == "topology":
            coordinates = _coordinates(numbers)
            return lambda: tpu.Topology(mesh_shape=numbers, device_coordinates=coordinates)
        if kind == "parse":
            serialized = topology.serialized()
            return lambda: tpu.Topology(serialized=serialized)
        computation = [int(length) for length in shape.split("x")]
        replicas = int(np.prod(np.array(numbers) // computation))
        if kind == "build":
            return lambda: tpu.DeviceAssignment.build(topology, computation, num_replicas=replicas)
        assignment = tpu.DeviceAssignment.build(topology, computation, num_replicas=replicas)
        last = replicas - 1

        def look_up() -> tuple[str, int]:
            for _ in range(_LOOK_UPS):
                found = assignment.host_device(last, 0), assignment.tpu_ordinal(last, 0)
            return found[0], int(found[1])

        return look_up


def _coordinates(mesh: Sequence[int]) -> np.ndarray[Any, Any]:
    """Return the cells row by row over z, y, x and core, with a number of cells per task."""
    z, y, x, core = np.indices((mesh[2], mesh[1], mesh[0], mesh[3]), np.int32)
    return np.stack([x, y, z, core], -1).reshape(-1, _DEVICES_PER_TASK, 4)


def _bytes(result: Any) -> bytes:
    """Return the compared bytes of a result."""
    if isinstance(result, tuple):
        return repr(result).encode()
    array = result.core_assignment if hasattr(result, "core_assignment") else result.device_coordinates
    return np.ascontiguousarray(array, np.int32).tobytes()


def main() -> None:
    """Answer questions."""
    options = begin()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import tensorflow

    serve(TensorFlowTopology(tensorflow), options)


if __name__ == "__main__":
    main()
