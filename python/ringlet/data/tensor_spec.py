"""TensorSpec and PerReplicaSpec: shapes and dtypes of the components of elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ringlet.collectives.buffers import as_ndarray

Shape = tuple[int | None, ...]


@dataclass(frozen=True, init=False)
class TensorSpec:
    """Shape and dtype of one array in every element of a dataset.

    Parameters
    ----------
    shape : sequence of (int or None), or None
        Size of every dimension, None where sizes differ between elements. `shape` itself is None if the number of
        dimensions is unknown.
    dtype : dtype
        The dtype. Byte order and the length of NumPy text (``>i4``, ``<U5``) are omitted, since they may differ between
        elements. Python's ``str`` and ``bytes`` have dtype ``object``.

    See Also
    --------
    PerReplicaSpec : the spec of a value with one component on each replica.

    Examples
    --------
    >>> TensorSpec([None, 3], np.float32)
    TensorSpec(shape=(None, 3), dtype=float32)
    >>> TensorSpec([None, 3], np.float32).is_fully_defined
    False
    """

    shape: Shape | None
    dtype: np.dtype[Any]

    def __init__(self, shape: Sequence[int | None] | None, dtype: DTypeLike) -> None:
        object.__setattr__(self, "shape", None if shape is None else tuple(shape))
        native = np.dtype(dtype).newbyteorder("=")
        object.__setattr__(self, "dtype", np.dtype(native.kind) if native.kind in "US" else native)

    @classmethod
    def from_array(cls, array: Any) -> TensorSpec:
        """Return the spec of one array, scalar or text.

        Examples
        --------
        >>> TensorSpec.from_array(np.zeros((2, 3)))
        TensorSpec(shape=(2, 3), dtype=float64)
        >>> TensorSpec.from_array(b"bytes")
        TensorSpec(shape=(), dtype=object)
        """
        if isinstance(array, (np.ndarray, np.generic)):
            return cls(array.shape, array.dtype)
        if isinstance(array, (str, bytes)):
            return cls((), np.object_)
        array = as_ndarray(array)
        return cls(array.shape, array.dtype)

    @property
    def is_fully_defined(self) -> bool:
        """Whether every dimension is known.

        Examples
        --------
        >>> TensorSpec([2, 3], np.int64).is_fully_defined
        True
        """
        return self.shape is not None and None not in self.shape

    def with_batch(self, size: int | None) -> TensorSpec:
        """Return the spec of `size` stacked arrays of this spec; a `size` of None means unknown.

        Examples
        --------
        >>> TensorSpec([3], np.int64).with_batch(None)
        TensorSpec(shape=(None, 3), dtype=int64)
        """
        return TensorSpec(None if self.shape is None else (size, *self.shape), self.dtype)

    def with_rows(self, size: int | None) -> TensorSpec:
        """Return a copy of this spec with `size` rows; a `size` of None means unknown.

        Examples
        --------
        >>> TensorSpec([8, 3], np.int64).with_rows(2)
        TensorSpec(shape=(2, 3), dtype=int64)
        """
        return TensorSpec(None if self.shape is None else (size, *self.shape[1:]), self.dtype)

    def is_compatible_with(self, value: Any) -> bool:
        """Return whether an array, or another spec, conforms to this spec.

        Examples
        --------
        >>> spec = TensorSpec([None, 3], np.float64)
        >>> spec.is_compatible_with(np.zeros((7, 3))), spec.is_compatible_with(np.zeros((3, 7)))
        (True, False)
        """
        if value is None or isinstance(value, NoneTensorSpec):
            return False
        other = value if isinstance(value, TensorSpec) else TensorSpec.from_array(value)
        if self.dtype != other.dtype:
            return False
        if self.shape is None or other.shape is None:
            return True
        return len(self.shape) == len(other.shape) and all(
            mine is None or theirs is None or mine == theirs
            for mine, theirs in zip(self.shape, other.shape, strict=True)
        )

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype})"


@dataclass(frozen=True)
class NoneTensorSpec:
    """The spec of a component that is None in every element (``tf.NoneTensorSpec``).

    Such a component has no rows: in a batch, or a part of a batch, it is None.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> Dataset.from_tensors((1, None)).element_spec
    (TensorSpec(shape=(), dtype=int64), NoneTensorSpec())
    """

    shape = None  # the component is not an array
    dtype = np.dtype(object)
    is_fully_defined = True

    def with_batch(self, size: int | None) -> NoneTensorSpec:
        """Return the spec itself."""
        return self

    with_rows = with_batch

    def is_compatible_with(self, value: Any) -> bool:
        """Return whether a value is None, or a NoneTensorSpec.

        Examples
        --------
        >>> NoneTensorSpec().is_compatible_with(None), NoneTensorSpec().is_compatible_with(3)
        (True, False)
        """
        return value is None or isinstance(value, NoneTensorSpec)


@dataclass(frozen=True, init=False)
class PerReplicaSpec:
    """Specs of a value that has one component on each replica.

    Parameters
    ----------
    *value_specs : TensorSpec, NoneTensorSpec or DatasetSpec
        One spec for each replica, in the order of the replicas.

    Examples
    --------
    >>> PerReplicaSpec(TensorSpec([2], np.int64), TensorSpec([1], np.int64))
    PerReplicaSpec(TensorSpec(shape=(2,), dtype=int64), TensorSpec(shape=(1,), dtype=int64))
    """

    value_specs: tuple[Any, ...]

    def __init__(self, *value_specs: Any) -> None:
        object.__setattr__(self, "value_specs", value_specs)

    def __repr__(self) -> str:
        return f"PerReplicaSpec({', '.join(map(repr, self.value_specs))})"
