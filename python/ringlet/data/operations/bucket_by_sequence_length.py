"""Dataset.bucket_by_sequence_length: batches of elements of similar length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.element_structure import Nest
from ringlet.data.operations.common.padding import per_component
from ringlet.data.operations.common.user_function import check_callable
from ringlet.data.operations.group_by_window import GroupByWindow, WindowGroups, integer
from ringlet.data.tensor_spec import TensorSpec
from ringlet.errors import InvalidArgumentError
from ringlet.nest import PyTreeSpec, flatten, unflatten


def bucket_by_sequence_length(  # noqa: PLR0917 - the arguments are TensorFlow's
    self: Dataset,
    element_length_func: Callable[..., Any],
    bucket_boundaries: Sequence[int],
    bucket_batch_sizes: Sequence[int],
    padded_shapes: Nest = None,
    padding_values: Nest = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: bool = False,
    name: str | None = None,
) -> Dataset:
    """Collect elements of similar length into padded batches.

    Parameters
    ----------
    element_length_func : callable
        Takes an element, unpacked into arguments if it is a tuple. Returns its length, an integer.
    bucket_boundaries : sequence of int
        The lengths that separate the buckets, ascending.
    bucket_batch_sizes : sequence of int
        Number of elements in the batches of each bucket: one more item than `bucket_boundaries`.
    padded_shapes, padding_values : optional
        As in `padded_batch`.
    pad_to_bucket_boundary : bool, default False
        Whether to pad sizes that are unknown in `padded_shapes`, or in the spec if it is omitted, to one less than the
        upper boundary of the bucket, instead of to the longest element of the batch.
    no_padding : bool, default False
        Whether to batch without padding.
    drop_remainder : bool, default False
        Whether to drop short batches at the end.
    name : str, unused

    Returns
    -------
    Dataset
        A batch is yielded when its bucket is full. Short batches follow at the end, in ascending order of element
        length.

    Raises
    ------
    InvalidArgumentError
        If the number of batch sizes is not one more than the number of boundaries. During iteration, if the batch size
        of a bucket is not positive; or, with `pad_to_bucket_boundary`, if the length of an element is not below the
        last boundary.
    ValueError
        During iteration, if `padded_shapes` does not have the structure of the elements; or, with
        `pad_to_bucket_boundary`, if the number of dimensions of a component is unknown.
    TypeError
        If `element_length_func` is not callable.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> dataset = Dataset.from_list([[1], [2, 3, 4], [5, 6]]).bucket_by_sequence_length(len, [3], [2, 2])
    >>> [batch.tolist() for batch in dataset]
    [[[1, 0], [5, 6]], [[2, 3, 4]]]
    """
    check_callable(element_length_func, "bucket_by_sequence_length")
    if len(bucket_batch_sizes) != len(bucket_boundaries) + 1:
        raise InvalidArgumentError(
            f"bucket_batch_sizes must have one entry more than bucket_boundaries, got {len(bucket_batch_sizes)} batch "
            f"sizes and {len(bucket_boundaries)} boundaries."
        )
    buckets = _Buckets(
        self,
        element_length_func,
        tuple(bucket_boundaries),
        tuple(bucket_batch_sizes),
        None if no_padding else (padded_shapes, padding_values),
        bool(pad_to_bucket_boundary),
        bool(drop_remainder),
    )
    keys = tuple(range(len(bucket_batch_sizes) - buckets.pads_to_boundary)) or (0,)
    grouped = WindowGroups(self.node, buckets.key, buckets.size, type(self), keys)
    return type(self)(GroupByWindow(grouped, buckets.reduce))


@dataclass(frozen=True, eq=False)
class _Buckets:
    """Key, window size and reduction function of the underlying `group_by_window`."""

    source: Dataset
    length_func: Callable[..., Any]
    boundaries: tuple[int, ...]
    sizes: tuple[int, ...]
    padding: tuple[Nest, Nest] | None  # arguments of `padded_batch`
    pads_to_boundary: bool
    drop_remainder: bool

    def key(self, *element: Nest) -> int:
        length = integer(self.length_func(*element), "element_length_func")
        lows, highs = (float("-inf"), *self.boundaries), (*self.boundaries, float("inf"))
        return next(at for at, (low, high) in enumerate(zip(lows, highs, strict=True)) if low <= length < high)

    def size(self, key: Any) -> int:
        return self.sizes[int(key)]

    def reduce(self, key: Any, window: Dataset) -> Dataset:
        """Return a dataset of one batch, the window; an empty dataset if it is short and `drop_remainder` is set."""
        if self.padding is None:
            return window.batch(self.sizes[key], self.drop_remainder)
        shapes, values = self.padding
        if self.pads_to_boundary:
            if key == len(self.boundaries):
                raise InvalidArgumentError(
                    "with pad_to_bucket_boundary=True, elements must be shorter than the last of bucket_boundaries "
                    f"{list(self.boundaries)}. Add a boundary, or filter out longer elements."
                )
            known, structure = self._known_shapes
            shapes = unflatten(structure, [_filled(shape, self.boundaries[key] - 1) for shape in known])
        return window.padded_batch(self.sizes[key], shapes, values, self.drop_remainder)

    @cached_property
    def _known_shapes(self) -> tuple[list[Any], PyTreeSpec]:
        """The padded shape of each component, which may have unknown sizes, and the structure of the elements."""
        assert self.padding is not None
        specs, structure = flatten(self.source.element_spec)
        given = self.padding[0]
        shapes = [None] * len(specs) if given is None else per_component(structure, given, "shapes")
        for component, spec in enumerate(specs):
            if shapes[component] is None and isinstance(spec, TensorSpec):
                shapes[component] = spec.shape
                if spec.shape is None:
                    raise ValueError(
                        "pad_to_bucket_boundary=True requires padded_shapes, because the number of dimensions of "
                        f"component {component} is unknown"
                    )
        return shapes, structure


def _filled(shape: Any, size: int) -> Any:
    """Return a shape with `size` for unknown sizes; return what is not a shape, which padded_batch refuses."""
    if not np.iterable(shape) or isinstance(shape, str):
        return shape
    return [size if known is None or known == -1 else known for known in shape]
