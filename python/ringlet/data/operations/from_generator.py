"""Dataset.from_generator: the values of a generator, checked against a signature."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ringlet.collectives.adapters.array_adapters import in_kind_of, kind_of
from ringlet.collectives.buffers import as_ndarray
from ringlet.data.dataset_spec import DatasetSpec
from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.batch_rows import zeros_like_spec
from ringlet.data.graph.cardinality import UNKNOWN_CARDINALITY
from ringlet.data.graph.element_structure import Nest, as_leaf, paths, read_only
from ringlet.data.graph.node import IterationContext, Node, Stream
from ringlet.data.graph.user_iteration import Iteration
from ringlet.data.tensor_spec import NoneTensorSpec, TensorSpec
from ringlet.errors import InvalidArgumentError
from ringlet.nest import flatten, map_structure, map_until, same_structure_leaves, unflatten


def from_generator(  # noqa: PLR0917 - the arguments are TensorFlow's
    cls: type[Dataset],
    generator: Callable[..., Iterable[Any]],
    output_types: Nest = None,
    output_shapes: Nest = None,
    args: Sequence[Any] | None = None,
    output_signature: Nest = None,
    name: str | None = None,
) -> Dataset:
    """Create a dataset of the values that a generator function yields.

    Parameters
    ----------
    generator : callable
        A generator function, or another callable that returns an iterable. Called for every iteration, with `args`.
    output_types : dtype or nest of dtypes, optional
        The dtypes of the components. Pass this or `output_signature`.
    output_shapes : shape or nest of shapes, optional
        Shapes in the structure of `output_types`: sequences of int or None; a shape of None means an unknown number of
        dimensions. By default, all shapes are unknown.
    args : sequence of array_like, optional
        Arguments of `generator`, converted to read-only arrays, NumPy scalars and text.
    output_signature : TensorSpec or nest of TensorSpec, optional
        The specs of elements, instead of `output_types` and `output_shapes`.
    name : str, unused

    Returns
    -------
    Dataset
        Its cardinality is unknown. Elements have the structure and the dtypes of the signature. Yielded numbers are
        converted as by ``astype``, even if digits are lost, and copied, so that a generator may reuse a buffer.

    Raises
    ------
    TypeError
        If `generator` is not callable, `args` is not a sequence, or the types are missing, given twice, or invalid.
    ValueError
        If the structures of `output_shapes` and `output_types` differ.
    InvalidArgumentError
        During iteration, if an element differs from the signature in structure or shape, or cannot be converted.

    Notes
    -----
    An exception of the generator is raised when the element is requested, with the element number in a note. The
    exception ends the iteration. After an element that does not conform to the signature, iteration can continue.

    To restore an iterator (`DatasetIterator.set_state`), the generator is called again and read to the same position.

    Examples
    --------
    >>> from ringlet.data import Dataset, TensorSpec
    >>> def count(stop):
    ...     for number in range(stop):
    ...         yield number, [number] * number
    >>> signature = TensorSpec((), np.int64), TensorSpec((None,), np.float32)
    >>> dataset = Dataset.from_generator(count, args=(3,), output_signature=signature)
    >>> list(dataset)[2]
    (np.int64(2), array([2., 2.], dtype=float32))
    """
    if not callable(generator):
        raise TypeError(f"`generator` must be a Python callable, got {generator!r}")
    signature = _signature(output_types, output_shapes, output_signature)
    if not (args is None or isinstance(args, (tuple, list)) or (isinstance(args, np.ndarray) and args.ndim)):
        raise TypeError(f"args must be a sequence of arguments of the generator, got {args!r}")
    arguments = () if args is None else tuple(_leaf(value) for value in args)
    return cls(GeneratorSource(generator, arguments, signature))


def _leaf(value: Any) -> Any:
    return as_leaf(list(value) if isinstance(value, tuple) else value)


def _signature(output_types: Nest, output_shapes: Nest, output_signature: Nest) -> Nest:
    if output_signature is None:
        if output_types is None:
            raise TypeError("from_generator requires the specs of its elements. Pass output_signature or output_types.")
        return _typed(output_types, output_shapes)
    for given, name in ((output_types, "output_types"), (output_shapes, "output_shapes")):
        if given is not None:
            raise TypeError(f"output_signature and {name} cannot be combined. Pass one of them.")
    for spec in [output_signature] if isinstance(output_signature, list) else flatten(output_signature)[0]:
        if not isinstance(spec, (TensorSpec, DatasetSpec, NoneTensorSpec)):
            raise TypeError(
                "output_signature must consist of TensorSpec, DatasetSpec or NoneTensorSpec, in tuples and "
                f"dictionaries, got {spec!r} of class {type(spec).__name__}"
            )
    return output_signature


def _typed(output_types: Nest, output_shapes: Nest) -> Nest:
    dtypes, shape = flatten(map_until(_dtype, output_types, lambda value: isinstance(value, list)))
    shapes = [None] * len(dtypes) if output_shapes is None else same_structure_leaves(shape, output_shapes)
    return unflatten(shape, [TensorSpec(*pair) for pair in zip(shapes, dtypes, strict=True)])


def _dtype(value: DTypeLike) -> np.dtype[Any]:
    if isinstance(value, list):
        raise TypeError(f"output_types must consist of dtypes, in tuples and dictionaries, got the list {value!r}")
    if value is None:
        raise TypeError(
            "output_types must consist of dtypes, got None. Use output_signature with NoneTensorSpec() instead."
        )
    return np.dtype(value)


@dataclass(frozen=True, eq=False)
class GeneratorSource(Node):
    """Node that yields the values of ``generator(*arguments)``, with the structure and dtypes of a signature."""

    generator: Callable[..., Iterable[Any]]
    arguments: tuple[Any, ...]
    signature: Nest

    @property
    def settings(self) -> dict[str, Any]:
        return {"signature": str(self.signature)}

    cardinality = UNKNOWN_CARDINALITY

    @property
    def element_spec(self) -> Nest:
        return self.signature

    @property
    def example(self) -> Nest:
        """The first element, read by a separate iteration; zeros or empty text if the generator yields no elements."""
        stream = GeneratorElements(self)
        try:
            return next(stream)
        except StopIteration:
            return map_structure(zeros_like_spec, self.signature)
        finally:
            stream.close()

    runs_user_code = True

    def open_elements(self, context: IterationContext) -> Stream:
        return GeneratorElements(self)


class GeneratorElements(Iteration):
    """Stream of the elements of a generator, in one iteration."""

    def __init__(self, source: GeneratorSource) -> None:
        name = f"the generator {getattr(source.generator, '__qualname__', repr(source.generator))}"
        super().__init__(lambda: source.generator(*source.arguments), name)
        self._signature = source.signature
        self._specs, self._shape = flatten(source.signature)
        self._paths = paths(source.signature)

    def _element(self, value: Any, number: int) -> Nest:
        where = f"element {number} of {self._name}"
        try:
            leaves = same_structure_leaves(self._shape, _in_structure(self._signature, value))
        except (ValueError, TypeError):
            types = map_structure(_type_name, self._signature)
            raise InvalidArgumentError(
                f"{where} does not have the expected structure: {types} was expected, but {value!r} was yielded. A "
                "list is one array; yield a tuple for several components."
            ) from None
        parts = zip(leaves, self._specs, self._paths, strict=True)
        return unflatten(self._shape, [_converted(leaf, spec, where + path) for leaf, spec, path in parts])


def _type_name(spec: Any) -> str:
    return spec.dtype.name if isinstance(spec, TensorSpec) else repr(spec)


def _in_structure(signature: Nest, value: Any) -> Nest:
    """Return the value with plain tuples and dictionaries where the signature has them."""
    if type(signature) is tuple and isinstance(value, tuple):
        return tuple([_in_structure(*pair) for pair in zip(signature, value, strict=True)])
    if type(signature) is dict and isinstance(value, Mapping) and signature.keys() == value.keys():
        return {key: _in_structure(signature[key], value[key]) for key in signature}
    return value


def _converted(value: Any, spec: Any, where: str) -> Any:
    if not isinstance(spec, TensorSpec):
        if not spec.is_compatible_with(value):
            raise InvalidArgumentError(f"{where} is incompatible with the expected {spec!r}, got {value!r}")
        return value
    try:
        array = _cast(_leaf(value), spec)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(
            f"{where} cannot be converted to the expected dtype {spec.dtype.name}: {value!r} was yielded ({error})"
        ) from None
    shape = np.shape(array)
    if not spec.is_compatible_with(TensorSpec(shape, spec.dtype)):
        raise InvalidArgumentError(
            f"{where} has shape {shape}, expected shape {spec.shape}. Use None in the signature for sizes that vary."
        )
    return array


def _cast(leaf: Any, spec: TensorSpec) -> Any:
    """Return a copy of a leaf with the dtype of the spec; text for a text dtype is returned unchanged."""
    if kind_of(leaf) is not None:
        return in_kind_of(leaf, np.asarray(_cast(as_ndarray(leaf), spec)), is_own=True)
    kind = getattr(leaf, "dtype", np.dtype(object)).kind
    if spec.dtype.kind in "OUS":
        if kind in "OUS":
            return leaf
        if np.size(leaf):
            raise TypeError("the value is neither text nor bytes")
        return read_only(np.empty(leaf.shape, spec.dtype))  # an empty list has no text to show its dtype
    if isinstance(leaf, (str, bytes)):
        return np.asarray(leaf).astype(spec.dtype)[()]
    if kind == "c" and spec.dtype.kind != "c":
        leaf = leaf.real
    with np.errstate(all="ignore"):  # values out of range wrap around, as in TensorFlow
        array = np.array(leaf, copy=True).astype(spec.dtype, copy=False)
    array.setflags(write=False)
    return array if array.ndim else array[()]
