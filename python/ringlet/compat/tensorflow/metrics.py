"""``tf.metrics.Mean``: the mean of values over steps and replicas."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringlet.compat.tensorflow.conversion import as_array
from ringlet.compat.tensorflow.dtypes import as_dtype
from ringlet.compat.tensorflow.tensor import Tensor, tensor_of
from ringlet.compat.tensorflow.variable import Variable
from ringlet.errors import InvalidArgumentError
from ringlet.values import VariableAggregation, VariableSynchronization


class Mean:
    """The weighted mean of all values since the last reset, over all replicas (``tf.metrics.Mean``).

    The two variables of a metric belong to the strategy in whose scope the metric is created. Each replica adds to its
    own components; outside of step functions, the result combines all replicas.

    Parameters
    ----------
    name : str
    dtype : dtype-like, default float32

    Examples
    --------
    >>> from ringlet.compat import tf
    >>> mean = tf.metrics.Mean()
    >>> mean.update_state([1.0, 3.0])
    >>> mean.update_state(5.0, sample_weight=2.0)
    >>> mean.result()
    <tf.Tensor: shape=(), dtype=float32, numpy=3.5>
    """

    def __init__(self, name: str = "mean", dtype: Any = None) -> None:
        self.name = name
        self.dtype = as_dtype(dtype or np.float32)
        self.total, self.count = (
            Variable(
                self.dtype.type(0), trainable=False, name=part, synchronization=VariableSynchronization.ON_READ,
                aggregation=VariableAggregation.SUM,
            )
            for part in ("total", "count")
        )  # fmt: skip

    @property
    def variables(self) -> list[Any]:
        """The variables that hold the sum of the values and the sum of the weights."""
        return [self.total, self.count]

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        """Add values, with weights that are broadcast to their shape; by default, each weight is 1."""
        array = as_array(values).astype(self.dtype)
        weights = as_array(1.0 if sample_weight is None else sample_weight).astype(self.dtype)
        try:
            weights = np.broadcast_to(weights, array.shape)
        except ValueError:
            raise InvalidArgumentError(
                f"sample_weight of shape {weights.shape} does not broadcast to values of shape {array.shape}: "
                "pass the values and one weight for each; for an accuracy, pass tf.equal(labels, predictions)"
            ) from None
        self.total.assign_add(np.sum(array * weights, dtype=self.dtype))
        self.count.assign_add(np.sum(weights, dtype=self.dtype))

    def result(self) -> Tensor:
        """Return the mean; 0 if no values were added."""
        total, count = (np.asarray(variable.read_value()) for variable in self.variables)
        return tensor_of(total / count if count else count)

    def reset_state(self) -> None:
        """Reset the sum and the weights to zero."""
        for variable in self.variables:
            variable.assign(self.dtype.type(0))

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        """Add values, and return the mean."""
        self.update_state(*args, **kwargs)
        return self.result()
