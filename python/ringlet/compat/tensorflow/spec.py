"""``tf.TensorSpec``: :class:`ringlet.data.TensorSpec` with the default dtype float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringlet.compat.tensorflow.dtypes import as_dtype
from ringlet.data import TensorSpec as RingletSpec


class _SpecType(type):
    """Metaclass of ``tf.TensorSpec``: every :class:`ringlet.data.TensorSpec` is an instance of ``tf.TensorSpec``."""

    def __call__(cls, shape: Any, dtype: Any = np.float32, name: str | None = None) -> Any:
        return RingletSpec((shape,) if isinstance(shape, int) else shape, as_dtype(dtype))

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, RingletSpec)


class TensorSpec(RingletSpec, metaclass=_SpecType):
    """Shape and dtype of a tensor (``tf.TensorSpec``); instances are :class:`ringlet.data.TensorSpec`.

    Parameters
    ----------
    shape : sequence of (int or None), int or None
    dtype : dtype-like, default float32
    name : str, unused

    Examples
    --------
    >>> TensorSpec([None, 3])
    TensorSpec(shape=(None, 3), dtype=float32)
    """

    @staticmethod
    def from_tensor(tensor: Any, name: str | None = None) -> RingletSpec:
        """Return the spec of a tensor."""
        return RingletSpec(tensor.shape, tensor.dtype)
