"""tf.data: arrays shuffled and batched, ranges and records, by itself and distributed over logical CPU devices."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from dataset_peer import DatasetPeer
from peer import begin, serve


class TensorFlowDatasets(DatasetPeer):
    """``distributed`` uses MirroredStrategy, ``plain`` tf.data alone; both iterate in Python.

    One thread reads the records: ``one by one`` in Python, or in ``batches`` of 100, which is faster.
    """

    variants: ClassVar[Mapping[str, Sequence[str]]] = {
        "shuffled batches": ("distributed", "plain"),
        "range": ("distributed", "plain"),
        "TFRecord": ("one by one", "batches"),
    }

    def __init__(self, tensorflow: Any, num_replicas: int) -> None:
        super().__init__(num_replicas)
        self._tensorflow = tensorflow
        self.version = f"tensorflow {tensorflow.__version__}"
        host = tensorflow.config.list_physical_devices("CPU")[0]
        one = tensorflow.config.LogicalDeviceConfiguration()
        tensorflow.config.set_logical_device_configuration(host, [one] * num_replicas)
        self._strategy = tensorflow.distribute.MirroredStrategy([f"CPU:{i}" for i in range(num_replicas)])
        self._made: dict[tuple[str, str], Iterable[Any]] = {}

    def steps(self, question: str, variant: str) -> Iterable[Any]:
        """Return the iterable to traverse."""
        if (question, variant) not in self._made:
            self._made[question, variant] = self._dataset(question, variant)
        return self._made[question, variant]

    def _dataset(self, question: str, variant: str) -> Iterable[Any]:
        data = self._tensorflow.data
        if question == "TFRecord":
            options = data.Options()
            options.threading.private_threadpool_size = 1
            options.threading.max_intra_op_parallelism = 1
            options.autotune.enabled = False
            records = data.TFRecordDataset(self.records).with_options(options)
            return records.batch(100) if variant == "batches" else records
        if question == "range":
            dataset = data.Dataset.range(self.rows).batch(self.batch)
        else:
            arrays = (self.features, self.labels)
            dataset = data.Dataset.from_tensor_slices(arrays).shuffle(self.rows).batch(self.batch).prefetch(2)
        return self._strategy.experimental_distribute_dataset(dataset) if variant == "distributed" else dataset

    def parts(self, question: str, variant: str, step: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the arrays of each replica in a step."""
        local = self._strategy.experimental_local_results
        components = step if isinstance(step, tuple) else (step,)
        if question == "TFRecord":
            yield ([step.numpy()] if variant == "one by one" else step.numpy(),)
        elif variant == "plain":
            yield tuple(component.numpy() for component in components)
        else:
            for part in zip(*map(local, components), strict=True):
                yield tuple(component.numpy() for component in part)


def main() -> None:
    """Answer questions as all replicas."""
    options = begin()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import tensorflow

    serve(TensorFlowDatasets(tensorflow, options.ranks), options)


if __name__ == "__main__":
    main()
