"""TensorFlow's MirroredStrategy over logical CPU devices of one process."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from peer import Array, Peer, begin, complaint_about, fill, serve


class TensorFlowReplicas(Peer):
    """All ranks, as replicas. ``out`` is an all-reduce inside a replica function, ``shared`` a ``strategy.reduce``."""

    variants: ClassVar[Mapping[str, Sequence[str]]] = {"all_reduce": ("out", "shared")}

    def __init__(self, tensorflow: Any, num_ranks: int) -> None:
        self._tensorflow = tensorflow
        self.num_ranks = num_ranks
        self.version = f"tensorflow {tensorflow.__version__}"
        host = tensorflow.config.list_physical_devices("CPU")[0]
        one = tensorflow.config.LogicalDeviceConfiguration()
        tensorflow.config.set_logical_device_configuration(host, [one] * num_ranks)
        self._strategy = tensorflow.distribute.MirroredStrategy([f"CPU:{rank}" for rank in range(num_ranks)])
        self._all_reduce = self._compile_all_reduce()
        self._reduce = self._compile_reduce()
        self._count, self._dtype = 0, np.dtype(np.float32)
        self._x: Any = None
        self._result: Any = None

    def _compile_all_reduce(self) -> Any:
        distribute = self._tensorflow.distribute

        def replica(x: Any) -> Any:
            return distribute.get_replica_context().all_reduce("SUM", x)

        return self._tensorflow.function(lambda x: self._strategy.run(replica, args=(x,)))

    def _compile_reduce(self) -> Any:
        return self._tensorflow.function(lambda x: self._strategy.reduce("SUM", x, axis=None))

    def allocate(self, count: int, dtype: np.dtype[Any]) -> None:
        """Keep the shape; tensors are immutable, so they are created once their values are known."""
        self._count, self._dtype = count, dtype

    def release(self) -> None:
        """Release tensors and results."""
        self._x = self._result = None

    def fill(self) -> None:
        """Create the input of every replica."""
        self._place(fill)

    def clear(self) -> None:
        """Set the input of every replica to zeros."""
        self._result = None
        self._place(lambda array, rank: array.fill(0))

    def _place(self, write: Callable[[Array, int], None]) -> None:
        def value(context: Any) -> Any:
            array = np.empty(self._count, self._dtype)
            write(array, context.replica_id_in_sync_group)
            return self._tensorflow.constant(array)

        self._x = self._strategy.experimental_distribute_values_from_function(value)

    def call(self, collective: str, variant: str) -> Callable[[], object]:
        """Return a function that makes one call."""
        function = self._reduce if variant == "shared" else self._all_reduce

        def one_call() -> None:
            self._result = function(self._x)

        return one_call

    def complaint(self, collective: str, variant: str) -> str | None:
        """Compare the result of every replica, or the only one, with the expected result."""
        results = self._strategy.experimental_local_results(self._result)
        for rank, result in enumerate(results):
            found = complaint_about(result.numpy(), collective, rank, self.num_ranks)
            if found is not None:
                return found
        return None


def main() -> None:
    """Answer questions as all ranks."""
    options = begin()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import tensorflow

    serve(TensorFlowReplicas(tensorflow, options.ranks), options)


if __name__ == "__main__":
    main()
