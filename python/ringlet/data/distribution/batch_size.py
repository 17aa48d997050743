"""Inference of the global batch size from the graph of a dataset."""

from __future__ import annotations

from ringlet.data.graph.element_structure import paths
from ringlet.data.graph.node import Node
from ringlet.data.graph.spec_inference import known_spec
from ringlet.data.tensor_spec import NoneTensorSpec
from ringlet.errors import InvalidArgumentError
from ringlet.nest import flatten

# Operations that select, reorder, concatenate or zip whole elements, so that the batch size stays the same.
_KEEP_SIZE = frozenset(
    ["Cache", "Concatenate", "Filter", "Prefetch", "Repeat", "Shard", "Shuffle", "Skip", "Take", "WithOptions", "Zip"]
)
_BATCHES = frozenset(["Batch", "PaddedBatch"])


def batch_size_of(node: Node) -> int | None:
    """Return the size of a full batch of a dataset, or None if its graph does not determine it.

    It is the number of rows of all arrays if the specs determine it. Otherwise, it is the size of the last `batch` that
    is followed only by operations that select or reorder whole elements.
    """
    elements = known_spec(node)
    if elements is None:
        return None
    specs = [spec for spec in flatten(elements)[0] if not isinstance(spec, NoneTensorSpec)]
    for path, spec in zip(paths(elements), flatten(elements)[0], strict=True):
        if spec.shape == ():
            raise InvalidArgumentError(
                f"cannot split elements among replicas: element{path} is a scalar, which has no batch "
                "dimension. Call dataset.batch(global_batch_size) before distributing the dataset."
            )
    sizes = {spec.shape[0] if spec.shape else None for spec in specs}
    if None not in sizes:
        return sizes.pop() if len(sizes) == 1 else None
    return _declared(node)


def _declared(node: Node) -> int | None:
    kind = type(node).__name__
    if kind in _BATCHES:
        # As in TensorFlow, which does not recognize parallel batches.
        is_parallel = getattr(node, "num_parallel_calls", None) is not None
        return None if is_parallel else int(node.batch_size)  # type: ignore[attr-defined]
    if kind not in _KEEP_SIZE:
        return None
    sizes = {_declared(source) for source in node.inputs}
    return sizes.pop() if len(sizes) == 1 else None
