"""The size of a global batch, as far as the graph of a dataset tells it."""

from __future__ import annotations

from ringlet.data.distribution.empty_part import known_spec
from ringlet.data.graph.element_structure import paths
from ringlet.data.graph.node import Node
from ringlet.errors import InvalidArgumentError
from ringlet.nest import flatten

__all__ = ["batch_size_of"]

# What these operations give are elements of their input, or of all inputs in turn or side by side.
_KEEP_SIZE = frozenset(
    ["Cache", "Concatenate", "Filter", "Prefetch", "Repeat", "Shard", "Shuffle", "Skip", "Take", "WithOptions", "Zip"]
)
_BATCHES = frozenset(["Batch", "PaddedBatch"])


def batch_size_of(node: Node) -> int | None:
    """Give the size of the batches of a dataset, short ones aside; None if its graph does not tell.

    Where the specs know the size of every array, that is it, if it is the same for all. Else it is the size that the
    last `batch` names, if only operations behind it that choose and order whole elements follow.

    Parameters
    ----------
    node : Node

    Raises
    ------
    InvalidArgumentError
        If an element holds a scalar.

    References
    ----------
    tensorflow/tensorflow, ``tensorflow/python/data/experimental/ops/distribute.py``, ``compute_batch_size``.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> batches = Dataset.range(9).batch(4)
    >>> batch_size_of(batches.repeat().node), batch_size_of(batches.map(lambda x: x + 1).node)
    (4, None)
    """
    elements = known_spec(node)
    if elements is None:
        return None
    specs = flatten(elements)[0]
    for path, spec in zip(paths(elements), specs, strict=True):
        if spec.shape == ():
            raise InvalidArgumentError(
                f"cannot cut elements into parts for replicas: element{path} is a scalar, which has no batch "
                "dimension. Call dataset.batch(global_batch_size) before you distribute the dataset."
            )
    sizes = {spec.shape[0] if spec.shape else None for spec in specs}
    if None not in sizes:
        return sizes.pop() if len(sizes) == 1 else None
    return _declared(node)


def _declared(node: Node) -> int | None:
    kind = type(node).__name__
    if kind in _BATCHES:
        # As in TensorFlow, which does not know the batches that are made in parallel.
        is_parallel = getattr(node, "num_parallel_calls", None) is not None
        return None if is_parallel else int(node.batch_size)  # type: ignore[attr-defined]
    if kind not in _KEEP_SIZE:
        return None
    sizes = {_declared(source) for source in node.inputs}
    return sizes.pop() if len(sizes) == 1 else None
