"""A dataset of what a generator yields, checked against a signature."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from ringlet.collectives.adapters.array_adapters import in_kind_of, kind_of
from ringlet.collectives.buffers import as_ndarray
from ringlet.data.graph.batch_rows import zeros_like_spec
from ringlet.data.graph.cardinality import UNKNOWN_CARDINALITY
from ringlet.data.graph.element_structure import Nest, as_leaf, paths
from ringlet.data.graph.node import Node, Run, Stream
from ringlet.data.graph.user_iteration import Iteration
from ringlet.data.tensor_spec import TensorSpec
from ringlet.errors import InvalidArgumentError
from ringlet.nest import flatten, map_structure, map_until, same_structure_leaves, unflatten

if TYPE_CHECKING:
    from ringlet.data.dataset import Dataset

__all__ = ["GeneratorSource", "from_generator"]


def from_generator(  # noqa: PLR0917 - the arguments are TensorFlow's
    cls: type[Dataset],
    generator: Callable[..., Iterable[Any]],
    output_types: Nest = None,
    output_shapes: Nest = None,
    args: Sequence[Any] | None = None,
    output_signature: Nest = None,
    name: str | None = None,
) -> Dataset:
    """Make a dataset of what a generator function yields.

    Parameters
    ----------
    generator : callable
        Gives an iterable; a generator function does. It is called anew for every iteration, with `args`.
    output_types : dtype or nest of dtypes, optional
        What the elements are made of. Give this or `output_signature`.
    output_shapes : shape or nest of shapes, optional
        In the structure of `output_types`: sequences of int or None, None where not even the number of dimensions is
        known. Without, nothing is known of any shape.
    args : sequence of array_like, optional
        Arguments of `generator`: given to it as read-only arrays, NumPy scalars and text.
    output_signature : TensorSpec or nest of TensorSpec, optional
        What every element follows, instead of `output_types` and `output_shapes`.
    name : str, optional
        Accepted as TensorFlow's `name` is, and not used.

    Returns
    -------
    Dataset
        Of unknown cardinality. Elements have the structure and the dtypes of the signature: what is yielded is
        converted as ``astype`` does, also where that loses digits, and copied, so that a generator may fill one buffer
        again and again.

    Raises
    ------
    TypeError
        If `generator` cannot be called, if `args` is no sequence, or if what says the types is missing, given twice, or
        holds something else.
    ValueError
        If `output_shapes` has another structure than `output_types`.
    InvalidArgumentError
        During iteration, if an element has another structure or shape than the signature, or cannot be converted.

    Notes
    -----
    An exception of the generator surfaces where the element is asked for, with the number of the element in a note; the
    iteration is over then. Behind an element that does not follow the signature it can go on.

    To restore an iterator (`DatasetIterator.set_state`), the generator is called again and read to the same place.

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
            raise TypeError("from_generator needs to know what its elements are: give output_signature or output_types")
        return _typed(output_types, output_shapes)
    for given, name in ((output_types, "output_types"), (output_shapes, "output_shapes")):
        if given is not None:
            raise TypeError(f"give output_signature or {name}, and not both: the signature says it all")
    for spec in [output_signature] if isinstance(output_signature, list) else flatten(output_signature)[0]:
        if not isinstance(spec, TensorSpec):
            raise TypeError(
                f"output_signature must hold TensorSpec, in tuples and dictionaries, but found {spec!r} of class "
                f"{type(spec).__name__}"
            )
    return output_signature


def _typed(output_types: Nest, output_shapes: Nest) -> Nest:
    dtypes, shape = flatten(map_until(_dtype, output_types, lambda value: isinstance(value, list)))
    shapes = [None] * len(dtypes) if output_shapes is None else same_structure_leaves(shape, output_shapes)
    return unflatten(shape, [TensorSpec(*pair) for pair in zip(shapes, dtypes, strict=True)])


def _dtype(value: DTypeLike) -> np.dtype[Any]:
    if isinstance(value, list):
        raise TypeError(f"output_types must hold dtypes, in tuples and dictionaries, but found the list {value!r}")
    return np.dtype(value)


@dataclass(frozen=True, eq=False)
class GeneratorSource(Node):
    """What ``generator(*arguments)`` yields, in the structure and the dtypes of a signature."""

    generator: Callable[..., Iterable[Any]]
    arguments: tuple[Any, ...]
    signature: Nest

    @property
    def settings(self) -> dict[str, Any]:
        """The signature."""
        return {"signature": str(self.signature)}

    @property
    def cardinality(self) -> int:
        """Not known."""
        return UNKNOWN_CARDINALITY

    @property
    def element_spec(self) -> Nest:
        """The signature."""
        return self.signature

    @property
    def example(self) -> Nest:
        """The first element of an iteration begun for it alone; zeros where there is none."""
        stream = GeneratorElements(self)
        try:
            return next(stream)
        except StopIteration:
            return map_structure(zeros_like_spec, self.signature)
        finally:
            stream.close()

    @property
    def runs_user_code(self) -> bool:
        """Always."""
        return True

    def open_elements(self, run: Run) -> Stream:
        """Start a run."""
        return GeneratorElements(self)


class GeneratorElements(Iteration):
    """The elements of one iteration."""

    __slots__ = ("_paths", "_shape", "_signature", "_specs")

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
            types = map_structure(lambda spec: spec.dtype.name, self._signature)
            raise InvalidArgumentError(
                f"{where} does not have the expected structure: {types} was expected, and {value!r} was yielded. A "
                "list is one array; yield a tuple for several."
            ) from None
        parts = zip(leaves, self._specs, self._paths, strict=True)
        return unflatten(self._shape, [_converted(leaf, spec, where + path) for leaf, spec, path in parts])


def _in_structure(signature: Nest, value: Any) -> Nest:
    """The value with plain tuples and dictionaries where the signature has them, and the value has classes of them."""
    if type(signature) is tuple and isinstance(value, tuple):
        return tuple([_in_structure(*pair) for pair in zip(signature, value, strict=True)])
    if type(signature) is dict and isinstance(value, Mapping) and signature.keys() == value.keys():
        return {key: _in_structure(signature[key], value[key]) for key in signature}
    return value


def _converted(value: Any, spec: TensorSpec, where: str) -> Any:
    try:
        array = _cast(_leaf(value), spec)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(
            f"{where} cannot be converted to the expected dtype {spec.dtype.name}: {value!r} was yielded ({error})"
        ) from None
    shape = np.shape(array)
    if not spec.is_compatible_with(TensorSpec(shape, spec.dtype)):
        raise InvalidArgumentError(
            f"{where} has shape {shape}, where shape {spec.shape} was expected. Let the signature say None where sizes "
            "differ."
        )
    return array


def _cast(leaf: Any, spec: TensorSpec) -> Any:
    """A fresh read-only array of the dtype of the spec, or the scalar or text itself."""
    if kind_of(leaf) is not None:
        return in_kind_of(leaf, np.asarray(_cast(as_ndarray(leaf), spec)), is_own=True)
    kind = getattr(leaf, "dtype", np.dtype(object)).kind
    if spec.dtype.kind in "OUS":
        if kind not in "OUS":
            raise TypeError("it is neither text nor bytes")
        return leaf
    if isinstance(leaf, (str, bytes)):
        return np.asarray(leaf).astype(spec.dtype)[()]
    if kind == "c" and spec.dtype.kind != "c":
        leaf = leaf.real
    with np.errstate(all="ignore"):  # what does not fit wraps around, as it does in TensorFlow
        array = np.array(leaf, copy=True).astype(spec.dtype, copy=False)
    array.setflags(write=False)
    return array if array.ndim else array[()]
