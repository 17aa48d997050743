"""Padding of the components of elements to a common shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import common_kind, in_kind_of
from ringlet.collectives.buffers import as_ndarray
from ringlet.data.graph.element_structure import Array, Nest, paths
from ringlet.data.tensor_spec import Shape, TensorSpec
from ringlet.errors import DataLossError, InvalidArgumentError
from ringlet.nest import PyTreeSpec, flatten, is_nested, same_structure_leaves, unflatten

# Ranks of the kinds of numbers: a dtype accepts numbers of its own or a lower rank.
_PLACES = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


@dataclass(frozen=True)
class ComponentPadding:
    """The padding of one component; a size of None pads to the longest element of the batch."""

    spec: TensorSpec
    shape: Shape
    value: Any = None

    def batch(self, leaves: Sequence[Any], name: str) -> Any:
        """Pad and stack leaves; the result is an array of their library."""
        shapes = [np.shape(leaf) for leaf in leaves]
        wrong = next((shape for shape in shapes if len(shape) != len(self.shape)), None)
        if wrong is not None:
            raise InvalidArgumentError(
                f"all elements of a padded batch must have as many dimensions as the padded shape of {name}, "
                f"{list(self.shape)}, but one has shape {list(wrong)}"
            )
        target = [max(sizes) if size is None else size for size, *sizes in zip(self.shape, *shapes, strict=True)]
        for shape in shapes:
            if any(size > room for size, room in zip(shape, target, strict=True)):
                raise DataLossError(
                    f"cannot pad {name} of shape {list(shape)} to the smaller shape {target}, which would truncate it. "
                    "Use larger padded_shapes, None to pad to the longest element, or slice elements in a map."
                )
        common_kind(leaves, "element")
        return in_kind_of(leaves[0], self._padded(leaves, shapes, target), is_own=True)

    def _padded(self, leaves: Sequence[Any], shapes: list[Any], target: list[int]) -> Array:
        arrays = [_array(leaf) for leaf in leaves]
        dtype, *others = dict.fromkeys(array.dtype for array in arrays)
        kinds = {each.kind for each in (dtype, *others)}
        if len(kinds) == 1 and dtype.kind in "US":  # the longest text, that of the padding included
            value = np.asarray(self.value or "").astype(dtype.kind)
            dtype = np.result_type(dtype, *others, value.dtype)
        elif others and kinds <= set("OUS"):
            dtype = np.dtype(object)
        elif others:
            raise InvalidArgumentError(
                f"cannot batch arrays of different dtypes: {dtype} and {others[0]}. Convert them in a map before the "
                "batch."
            )
        padded = np.full((len(arrays), *target), self._fill_value(arrays), dtype)
        for row, array, shape in zip(padded, arrays, shapes, strict=True) if target else ():
            row[tuple(map(slice, shape))] = array
        if not target:
            padded[:] = [array[()] for array in arrays]
        padded.setflags(write=False)
        return padded

    def _fill_value(self, arrays: list[Array]) -> Any:
        if self.value is not None:
            return self.value
        if all(array.dtype != object for array in arrays):
            return np.zeros((), arrays[0].dtype)[()]
        return next((type(text)() for array in arrays for text in array.flat), b"")  # the empty str or bytes


def _array(leaf: Any) -> Array:
    return np.asarray(leaf, dtype=object) if type(leaf) in (str, bytes) else as_ndarray(leaf)


@dataclass(frozen=True)
class Padding:
    """The padding of all components of an element."""

    structure: PyTreeSpec
    components: tuple[ComponentPadding, ...]

    @classmethod
    def of(cls, specs: Nest, padded_shapes: Nest, padding_values: Nest) -> Padding:
        """Return the padding from the arguments of `padded_batch`, for elements with `specs`."""
        leaves, structure = flatten(specs)
        for path, spec in zip(paths(specs), leaves, strict=True):
            if not isinstance(spec, TensorSpec):
                raise TypeError(
                    f"padded_batch pads arrays, but element{path} is not an array: {spec!r}. Remove it in a "
                    "map, or use batch."
                )
        shapes = [None] * len(leaves) if padded_shapes is None else per_component(structure, padded_shapes, "shapes")
        is_one = padding_values is None or not is_nested(padding_values)
        values = [padding_values] * len(leaves) if is_one else per_component(structure, padding_values, "values")
        parts = [
            ComponentPadding(spec, _shape(shape, spec, at), _value(value, spec))
            for at, (shape, value, spec) in enumerate(zip(shapes, values, leaves, strict=True))
        ]
        return cls(structure, tuple(parts))

    def batch(self, elements: list[Nest]) -> Nest:
        """Pad elements and stack them along a new first dimension; NumPy results are read-only."""
        rows = [_leaves_of(self.structure, element) for element in elements]
        names = [f"component {at}" for at in range(len(self.components))]
        columns = zip(*rows, strict=True)
        return unflatten(
            self.structure, [p.batch(c, name) for p, c, name in zip(self.components, columns, names, strict=True)]
        )


def _leaves_of(structure: PyTreeSpec, element: Nest) -> list[Any]:
    leaves, shape = flatten(element)
    if shape != structure:
        raise InvalidArgumentError(f"cannot batch elements of different structure: {shape} and {structure}")
    return leaves


def per_component(structure: PyTreeSpec, given: Nest, what: str) -> list[Any]:
    """Return the shapes or values given for each component; `what` is their name in the error."""
    try:
        return same_structure_leaves(structure, given)
    except ValueError as error:
        raise ValueError(
            f"the {what} of padded_batch must have the structure of the elements, {structure}, got {given!r}"
        ) from error


def _shape(given: Any, spec: TensorSpec, component: int) -> Shape:
    if given is None:
        if spec.shape is None:
            raise ValueError(
                f"padded_batch requires padded_shapes, because the number of dimensions of component {component} is "
                "unknown"
            )
        return spec.shape
    if not np.iterable(given) or isinstance(given, str) or any(isinstance(size, (list, tuple)) for size in given):
        raise ValueError(f"a padded shape must be a list or tuple whose sizes are integers, None or -1, got {given!r}")
    try:
        sizes = tuple(None if size is None or index(size) == -1 else index(size) for size in given)
    except TypeError:
        raise TypeError(f"the sizes of a padded shape must be integers, None or -1, got {given!r}") from None
    if any(size is not None and size < 0 for size in sizes):
        raise ValueError(f"the sizes of a padded shape must be zero or more, None or -1, got {given!r}")
    if spec.shape is not None and len(spec.shape) != len(sizes):
        raise ValueError(
            f"the padded shape {list(sizes)} does not match component {component} of shape {list(spec.shape)}: the "
            "numbers of dimensions must be equal"
        )
    return sizes


def _value(given: Any, spec: TensorSpec) -> Any:
    if given is None:
        return None
    if np.ndim(given):
        raise ValueError(f"padding values must be scalars, got {given!r}")
    is_text = isinstance(given, (str, bytes))
    if is_text or spec.dtype.kind in "OUS":
        if is_text and spec.dtype.kind in "OUS":
            return given
    elif isinstance(given, (np.generic, np.ndarray)):
        if np.asarray(given).dtype == spec.dtype:
            return given
    elif _holds(spec.dtype, given):
        return spec.dtype.type(given)
    raise TypeError(
        f"the padding value {given!r} must have the dtype {spec.dtype} of its component. Convert it, as in "
        f"np.{spec.dtype}(x)."
    )


def _holds(dtype: np.dtype[Any], number: Any) -> bool:
    """Return whether a dtype accepts a Python number: not a float for an integer dtype; a bool only for bool."""
    kind = np.asarray(number).dtype.kind
    if dtype.kind == "V":
        return kind in "if"  # a dtype of ml_dtypes, such as bfloat16
    if kind == "b" or dtype.kind == "b":
        return kind == dtype.kind
    return _PLACES.get(kind, 9) <= _PLACES.get(dtype.kind, -1)
