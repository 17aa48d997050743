"""Feature specifications of examples: dtypes, shapes and defaults."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ringlet.data.graph.element_structure import Array
from ringlet.errors import InvalidArgumentError

# Field numbers of the lists in a Feature message, and TensorFlow's names of the kinds.
NONE, BYTES, FLOAT, INT64 = 0, 1, 2, 3
KIND_NAMES = {BYTES: "string", FLOAT: "float", INT64: "int64"}
KIND_DTYPES: dict[int, np.dtype[Any]] = {
    BYTES: np.dtype(object),
    FLOAT: np.dtype(np.float32),
    INT64: np.dtype(np.int64),
}


def feature_kind(dtype: DTypeLike) -> int:
    """Return the kind of values for a dtype: int64, float32, or ``bytes`` (also written ``object`` or ``"string"``)."""
    if dtype in (bytes, object, "string", "bytes"):
        return BYTES
    found = np.dtype(dtype)
    for kind, known in KIND_DTYPES.items():
        if found == known or (kind == BYTES and found.kind == "S"):
            return kind
    raise InvalidArgumentError(
        f"the values of an example must be int64, float32 or bytes, got {found}. Use one of these dtypes and convert "
        "the result."
    )


@dataclass(frozen=True, init=False)
class FixedLenFeature:
    """A feature with the same number of values in every example (``tf.io.FixedLenFeature``).

    Parameters
    ----------
    shape : sequence of int
        Shape of the array of values; ``[]`` for a single value.
    dtype : dtype
        int64, float32 or ``bytes``.
    default_value : array or scalar, optional
        The value for examples without the feature. By default, such an example is an error.

    Raises
    ------
    InvalidArgumentError
        If the dtype is not supported, a size is unknown or negative, or the default value has the wrong size.

    Examples
    --------
    >>> FixedLenFeature([2], np.float32, default_value=[0, 1])
    FixedLenFeature(shape=(2,), dtype=dtype('float32'), default_value=array([0., 1.], dtype=float32))
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    default_value: Array | None

    def __init__(self, shape: Sequence[int], dtype: DTypeLike, default_value: Any = None) -> None:
        kind = feature_kind(dtype)
        object.__setattr__(self, "shape", fixed_shape(shape))
        object.__setattr__(self, "dtype", KIND_DTYPES[kind])
        default = None if default_value is None else default_of(default_value, self.shape, self.dtype)
        object.__setattr__(self, "default_value", default)

    @property
    def size(self) -> int:
        """Number of values in every example."""
        return math.prod(self.shape)


@dataclass(frozen=True, init=False)
class VarLenFeature:
    """A feature with any number of values; a missing feature has no values (``tf.io.VarLenFeature``).

    `parse_single_example` returns a vector, `parse_example` a `VarLenRows`; TensorFlow returns sparse tensors.

    Parameters
    ----------
    dtype : dtype
        int64, float32 or ``bytes``.

    Raises
    ------
    InvalidArgumentError
        If the dtype is not supported.

    Examples
    --------
    >>> VarLenFeature(bytes)
    VarLenFeature(dtype=dtype('O'))
    """

    dtype: np.dtype[Any]

    def __init__(self, dtype: DTypeLike) -> None:
        object.__setattr__(self, "dtype", KIND_DTYPES[feature_kind(dtype)])


@dataclass(frozen=True, init=False)
class FixedLenSequenceFeature:
    """A feature with any number of arrays of one shape (``tf.io.FixedLenSequenceFeature``).

    `parse_single_example` stacks these arrays in one array; `parse_example` pads the stacked arrays to the length of
    the longest in the batch.

    Parameters
    ----------
    shape : sequence of int
        Shape of each array; ``[]`` for single values.
    dtype : dtype
        int64, float32 or ``bytes``.
    allow_missing : bool, default False
        Must be True, as in TensorFlow: an example without the feature has no arrays.
    default_value : scalar, optional
        The padding of shorter sequences. By default, zero or empty bytes.

    Raises
    ------
    InvalidArgumentError
        If the dtype is not supported, or a size is unknown, zero or negative.

    Examples
    --------
    >>> FixedLenSequenceFeature([], np.int64, allow_missing=True).dtype
    dtype('int64')
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    allow_missing: bool
    default_value: Any

    def __init__(
        self, shape: Sequence[int], dtype: DTypeLike, allow_missing: bool = False, default_value: Any = None
    ) -> None:
        kind = feature_kind(dtype)
        found = fixed_shape(shape)
        if 0 in found:
            raise InvalidArgumentError(
                f"the arrays of a FixedLenSequenceFeature must not be empty, got shape {list(found)}"
            )
        padding = (b"" if kind == BYTES else 0) if default_value is None else default_value
        object.__setattr__(self, "shape", found)
        object.__setattr__(self, "dtype", KIND_DTYPES[kind])
        object.__setattr__(self, "allow_missing", bool(allow_missing))
        object.__setattr__(self, "default_value", padding)


class VarLenRows(NamedTuple):
    """The values of a `VarLenFeature` in a batch of examples. Returned by `parse_example`.

    Attributes
    ----------
    values : ndarray, shape (examples, most values)
        Rows of values, padded with zeros or empty bytes.
    lengths : ndarray of int64, shape (examples,)
        Number of values in each row.

    Examples
    --------
    >>> VarLenRows(np.array([[1, 2], [3, 0]]), np.array([2, 1])).lengths
    array([2, 1])
    """

    values: Array
    lengths: Array


def fixed_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Check that all sizes of a shape are known, and return it."""
    sizes: tuple[int | None, ...] = (shape,) if isinstance(shape, int) else tuple(shape)
    known = [int(size) for size in sizes if size is not None and size >= 0]
    if len(known) < len(sizes):
        raise InvalidArgumentError(
            f"all sizes of a feature's shape must be known, got {list(sizes)}. For any number of "
            "values, use VarLenFeature, or FixedLenSequenceFeature with the shape of one of them, such as []."
        )
    return tuple(known)


def default_of(value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Convert a default value to a read-only array of the given shape; raise an error if its size differs."""
    given = np.array(value.encode() if isinstance(value, str) else value, dtype)
    if given.size != math.prod(shape):
        raise InvalidArgumentError(
            f"default_value has {given.size} values, but the feature has shape {list(shape)}. Pass one value for each "
            f"element, as in np.full({list(shape)}, value)."
        )
    default: Array = given.reshape(shape)
    default.setflags(write=False)
    return default
