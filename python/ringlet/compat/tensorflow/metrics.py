"""``tf.metrics``: means and sums of values over steps and replicas, as in Keras 3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ringlet import context
from ringlet.compat.tensorflow.dtypes import as_dtype
from ringlet.compat.tensorflow.losses import (
    Array,
    as_numbers,
    check_broadcast,
    class_numbers,
    differences,
    mean_error,
    pair,
    same_rank,
    snake_case,
)
from ringlet.compat.tensorflow.tensor import Tensor, tensor_of
from ringlet.compat.tensorflow.variable import Variable
from ringlet.errors import InvalidArgumentError
from ringlet.values import SyncOnReadVariable, VariableAggregation, VariableSynchronization


class Sum:
    """The weighted sum of all values since the last reset, over all replicas (``tf.metrics.Sum``).

    The variables of a metric belong to the strategy in whose scope the metric is created. Each replica adds to its own
    component of each variable. Outside step functions, values are added to the components of the first replica, and
    results combine the components of all replicas.

    Parameters
    ----------
    name : str, optional
    dtype : dtype-like, default float32

    Examples
    --------
    >>> from ringlet.compat import tf
    >>> tf.metrics.Sum()([1, 3, 5, 7], sample_weight=[1, 1, 0, 0])
    <tf.Tensor: shape=(), dtype=float32, numpy=4.0>
    """

    _reduce: ClassVar[Callable[..., Any]] = np.sum

    def __init__(self, name: str | None = None, dtype: Any = None) -> None:
        self.name = name or snake_case(type(self).__name__)
        self.dtype = as_dtype(dtype or np.float32)
        self.total = self._zero("total")

    def _zero(self, name: str) -> Any:
        return Variable(
            self.dtype.type(0), trainable=False, name=name, synchronization=VariableSynchronization.ON_READ,
            aggregation=VariableAggregation.SUM,
        )  # fmt: skip

    @property
    def variables(self) -> list[Any]:
        """The variable that holds the sum, in a list."""
        return [self.total]

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        """Add values; `sample_weight` has one weight for each value or for each example."""
        self._add(*self._weighted(as_numbers(values, self.dtype), sample_weight))

    def _weighted(self, values: Array, sample_weight: Any) -> tuple[Array, Array | None]:
        """Return the weighted value and the weight of each example; weights are None without `sample_weight`."""
        weights = None
        if sample_weight is not None:
            values, weights = same_rank(values, as_numbers(sample_weight, self.dtype))
            values = self._over_axes(values, weights.ndim)
            check_broadcast("sample_weight", weights, "values", values)
            values = values * weights
            weights = self._over_axes(np.broadcast_to(weights, values.shape), 1)
        return self._over_axes(values, 1), weights

    def _over_axes(self, array: Array, first: int) -> Array:
        return np.asarray(type(self)._reduce(array, axis=tuple(range(first, array.ndim))), self.dtype)

    def _add(self, values: Array, weights: Array | None) -> None:
        _component(self.total).assign_add(np.sum(values, dtype=self.dtype))

    def result(self) -> Tensor:
        """Return the sum."""
        return tensor_of(np.asarray(self.total.read_value()))

    def reset_state(self) -> None:
        """Reset the variables to zero."""
        for variable in self.variables:
            variable.assign(self.dtype.type(0))

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        """Call ``update_state``, and return the result."""
        self.update_state(*args, **kwargs)
        return self.result()


class Mean(Sum):
    """The weighted mean of all values since the last reset, over all replicas (``tf.metrics.Mean``).

    Two variables hold the sum and the weights; see ``tf.metrics.Sum``. The values of each example are
    averaged first, so that examples have equal weight.

    Parameters
    ----------
    name : str, optional
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

    _reduce = np.mean

    def __init__(self, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(name, dtype)
        self.count = self._zero("count")

    @property
    def variables(self) -> list[Any]:
        """The variables that hold the sum of the values and the sum of the weights."""
        return [self.total, self.count]

    def _add(self, values: Array, weights: Array | None) -> None:
        super()._add(values, weights)
        _component(self.count).assign_add(self.dtype.type(values.size if weights is None else np.sum(weights)))

    def result(self) -> Tensor:
        """Return the weighted mean; 0 if the sum of the weights is 0."""
        total, count = (np.asarray(variable.read_value()) for variable in self.variables)
        return tensor_of(total / count if count else count)


def _component(variable: Any) -> Any:
    mode = context.current()
    is_outside = mode is None or mode.is_cross_replica
    return variable.values[0] if is_outside and isinstance(variable, SyncOnReadVariable) else variable


def _equal(y_true: Any, y_pred: Any, threshold: float | None = None) -> Any:
    labels, predictions = pair(y_true, y_pred)
    return np.equal(labels, predictions if threshold is None else predictions > threshold)


def _same_class(y_true: Any, y_pred: Any) -> Any:
    labels, predictions = as_numbers(y_true), as_numbers(y_pred)
    if labels.shape != predictions.shape or not labels.ndim:
        raise InvalidArgumentError(
            f"y_true of shape {labels.shape} and y_pred of shape {predictions.shape} must both have a value for each "
            "class: for labels that are class numbers use SparseCategoricalAccuracy"
        )
    return np.equal(labels.argmax(-1), predictions.argmax(-1))


def _is_class(y_true: Any, y_pred: Any) -> Any:
    predictions = as_numbers(y_pred)
    return np.equal(class_numbers(as_numbers(y_true), predictions, "CategoricalAccuracy"), predictions.argmax(-1))


class _Compared(Mean):
    """Base class of metrics that average a function of labels and predictions."""

    _values: ClassVar[Callable[..., Any]]
    _options: Mapping[str, Any] = {}

    def update_state(  # type: ignore[override]  # as in Keras
        self, y_true: Any, y_pred: Any, sample_weight: Any = None
    ) -> None:
        """Add labels and predictions, with a weight for each example."""
        super().update_state(type(self)._values(y_true, y_pred, **self._options), sample_weight)


class Accuracy(_Compared):
    """Fraction of predictions that equal labels (``tf.metrics.Accuracy``); parameters as for ``tf.metrics.Mean``."""

    _values = staticmethod(_equal)


class BinaryAccuracy(_Compared):
    """Fraction of labels, 0 or 1, that equal ``prediction > threshold`` (``tf.metrics.BinaryAccuracy``).

    Parameters
    ----------
    name : str, optional
    dtype : dtype-like, default float32
    threshold : float
        Between 0 and 1.
    """

    _values = staticmethod(_equal)

    def __init__(self, name: str | None = None, dtype: Any = None, threshold: float = 0.5) -> None:
        if not 0 < threshold < 1:
            raise ValueError(f"threshold must be between 0 and 1, got {threshold!r}: write threshold=0.5")
        super().__init__(name, dtype)
        self._options = {"threshold": threshold}


class CategoricalAccuracy(_Compared):
    """Fraction of one-hot labels whose class has the largest prediction (``tf.metrics.CategoricalAccuracy``)."""

    _values = staticmethod(_same_class)


class SparseCategoricalAccuracy(_Compared):
    """Fraction of labels whose class has the largest prediction (``tf.metrics.SparseCategoricalAccuracy``)."""

    _values = staticmethod(_is_class)


class MeanSquaredError(_Compared):
    """The mean of squared differences (``tf.metrics.MeanSquaredError``)."""

    _values = staticmethod(mean_error)


class MeanAbsoluteError(_Compared):
    """The mean of absolute differences (``tf.metrics.MeanAbsoluteError``)."""

    _values = staticmethod(partial(mean_error, error=np.abs))


class RootMeanSquaredError(_Compared):
    """The square root of the mean squared difference (``tf.metrics.RootMeanSquaredError``)."""

    _values = staticmethod(lambda y_true, y_pred: np.square(differences(y_true, y_pred)))

    def result(self) -> Tensor:
        """Return the root; 0 if no values were added."""
        return tensor_of(np.sqrt(np.asarray(super().result())))


_ALL: tuple[type[Sum], ...] = (Sum, Mean, *_Compared.__subclasses__())
METRICS = {metric.__name__: metric for metric in _ALL}
