"""``tf.nn``: activations, losses, and lookups in embedding tables, which strategies may shard."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringlet import values
from ringlet.compat.tensorflow.absent import absent_getter
from ringlet.compat.tensorflow.array_functions import array_functions
from ringlet.compat.tensorflow.elements import as_tensors
from ringlet.module_names import list_public

__all__ = ["embedding_lookup"]


def embedding_lookup(params: Any, ids: Any, max_norm: float | None = None, name: str | None = None) -> Any:
    """Return rows of a table as a tensor; see :func:`ringlet.values.embedding_lookup`.

    Parameters
    ----------
    params : Variable, ShardedVariable, array-like or list of these
        The table, or a list of its consecutive parts.
    ids : array-like of int
    max_norm : float, optional
    name : str, unused

    Returns
    -------
    tf.Tensor

    Examples
    --------
    >>> from ringlet.compat import tf
    >>> tf.nn.embedding_lookup([tf.Variable([1.0, 2.0]), tf.Variable([3.0])], [2, 0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([3., 1.], dtype=float32)>
    """
    if isinstance(params, (list, tuple)) and params and all(np.ndim(part) for part in params):
        are_variables = all(isinstance(part, values.Variable) for part in params)
        params = values.ShardedVariable(params) if are_variables and len(params) > 1 else np.concatenate(params)
    return as_tensors(np.asarray(values.embedding_lookup(params, ids, max_norm)))


_FUNCTIONS = array_functions("tf.nn")
__all__ += list(_FUNCTIONS)
globals().update(_FUNCTIONS)

__getattr__ = absent_getter("tf.nn", __all__)
__dir__ = list_public(__name__)
