"""``tf.losses``: losses of labels and predictions, with the weights and reductions of Keras 3."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.compat.tensorflow.array_functions import array_functions
from ringlet.compat.tensorflow.conversion import as_array
from ringlet.compat.tensorflow.dtypes import as_dtype
from ringlet.compat.tensorflow.tensor import Tensor, tensor_of
from ringlet.errors import InvalidArgumentError
from ringlet.strategy.api.current_strategy import get_strategy

Array = NDArray[Any]

_NN = array_functions("tf.nn")
_MEANS = ("sum_over_batch_size", "mean", "mean_with_sample_weight")
_REDUCTIONS = (*_MEANS, "sum", "none", None)
# Probabilities are clipped to this distance from 0 and 1.
_EPSILON = 1e-7


class Reduction:
    """Names of reductions (``tf.losses.Reduction``); strings equal to their values are also accepted."""

    NONE = "none"
    SUM = "sum"
    SUM_OVER_BATCH_SIZE = "sum_over_batch_size"


class MeanSquaredError:
    """The mean squared difference of each example, along the last axis (``tf.losses.MeanSquaredError``).

    Parameters
    ----------
    reduction : {"sum_over_batch_size", "mean", "mean_with_sample_weight", "sum", "none"} or None
        ``"none"`` returns the loss of each example. A mean is divided by the number of replicas of the current
        strategy, so that the sum over replicas is the mean of the global batch.
    name : str, optional
    dtype : dtype-like, default float32

    Examples
    --------
    >>> from ringlet.compat import tf
    >>> tf.losses.MeanSquaredError()([[0.0, 1.0]], [[1.0, 1.0]])
    <tf.Tensor: shape=(), dtype=float32, numpy=0.5>
    """

    def __init__(self, reduction: str | None = "sum_over_batch_size", name: str | None = None, dtype: Any = None):
        if reduction not in _REDUCTIONS:
            raise ValueError(f"reduction must be one of {', '.join(map(repr, _REDUCTIONS))}, got {reduction!r}")
        self.reduction = reduction
        self.name = name or snake_case(type(self).__name__)
        self.dtype = as_dtype(dtype or np.float32)

    def call(self, y_true: Array, y_pred: Array) -> Any:
        """Return the loss of each example."""
        return mean_error(y_true, y_pred)

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Tensor:
        """Return the reduced loss of labels and predictions; weights multiply the losses of examples."""
        values = np.asarray(self.call(as_numbers(y_true, self.dtype), as_numbers(y_pred, self.dtype)))
        weights = None
        if sample_weight is not None:
            values, weights = same_rank(values, as_numbers(sample_weight, self.dtype))
            check_broadcast("sample_weight", weights, "losses", values)
            values = values * weights
        if self.reduction in {None, "none"} or values.shape in {(), (0,)}:
            return tensor_of(values)
        total = values.sum(dtype=self.dtype)
        if self.reduction in _MEANS:
            is_weighted = self.reduction == "mean_with_sample_weight" and weights is not None
            divisor = weights.sum() if is_weighted and weights is not None else values.size
            shares = self.dtype.type(divisor * get_strategy().num_replicas_in_sync)
            total = total / shares if divisor else self.dtype.type(0)  # 0 even if the total is NaN, as in Keras
        return tensor_of(total)


class BinaryCrossentropy(MeanSquaredError):
    """The mean cross-entropy of each example, with labels 0 and 1, along an axis (``tf.losses.BinaryCrossentropy``).

    Parameters
    ----------
    from_logits : bool
        Whether predictions are logits; otherwise they are probabilities.
    label_smoothing : float
        Fraction of the label, from 0 to 1, that is spread evenly over the classes.
    axis : int
        The axis of the classes.
    reduction, name, dtype
        As in ``tf.losses.MeanSquaredError``.
    """

    def __init__(  # noqa: PLR0917 - the arguments are Keras'
        self,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(reduction, name, dtype)
        self.from_logits, self.label_smoothing, self.axis = from_logits, label_smoothing, axis

    def _smoothed(self, y_true: Array, y_pred: Array, num_classes: int) -> Array:
        if y_true.shape != y_pred.shape:
            raise InvalidArgumentError(
                f"y_true of shape {y_true.shape} and y_pred of shape {y_pred.shape} must have the same shape: for "
                "labels that are class numbers use SparseCategoricalCrossentropy, or tf.one_hot(labels, depth)"
            )
        return y_true * (1 - self.label_smoothing) + self.label_smoothing / num_classes

    def call(self, y_true: Array, y_pred: Array) -> Any:
        """Return the loss of each example."""
        y_true, y_pred = same_rank(y_true, y_pred)
        labels = self._smoothed(y_true, _with_axis(y_pred), 2)
        if self.from_logits:
            return np.mean(_NN["sigmoid_cross_entropy_with_logits"](labels, y_pred), axis=self.axis)
        shares = np.clip(y_pred, _EPSILON, 1 - _EPSILON)
        return -np.mean(labels * np.log(shares) + (1 - labels) * np.log(1 - shares), axis=self.axis)


class CategoricalCrossentropy(BinaryCrossentropy):
    """The cross-entropy of each example, with a one-hot label (``tf.losses.CategoricalCrossentropy``).

    The parameters are those of ``tf.losses.BinaryCrossentropy``.
    """

    def call(self, y_true: Array, y_pred: Array) -> Any:
        """Return the loss of each example."""
        labels = self._smoothed(y_true, y_pred, _with_axis(y_pred).shape[self.axis])
        if self.from_logits:
            return _NN["softmax_cross_entropy_with_logits"](labels, y_pred, axis=self.axis)
        with np.errstate(invalid="ignore"):
            shares = y_pred / y_pred.sum(axis=self.axis, keepdims=True)
        return -np.sum(labels * np.log(np.clip(shares, _EPSILON, 1 - _EPSILON)), axis=self.axis)


class SparseCategoricalCrossentropy(MeanSquaredError):
    """The cross-entropy of each example, with a class number as label (``tf.losses.SparseCategoricalCrossentropy``).

    Parameters
    ----------
    from_logits : bool
        Whether predictions are logits; otherwise they are probabilities.
    ignore_class : None
        Not supported.
    axis : int
        The axis of the classes, which must be the last.
    reduction, name, dtype
        As in ``tf.losses.MeanSquaredError``.
    """

    def __init__(  # noqa: PLR0917 - the arguments are Keras'
        self,
        from_logits: bool = False,
        ignore_class: None = None,
        reduction: str | None = "sum_over_batch_size",
        axis: int = -1,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        if ignore_class is not None:
            raise NotImplementedError(
                f"ignore_class={ignore_class!r} is not supported: pass sample_weight=tf.cast(labels != "
                f"{ignore_class!r}, tf.float32), and replace these labels with 0"
            )
        super().__init__(reduction, name, dtype)
        self.from_logits, self.axis = from_logits, axis

    def call(self, y_true: Array, y_pred: Array) -> Any:
        """Return the loss of each example."""
        if self.axis not in {-1, y_pred.ndim - 1}:
            raise ValueError(
                f"the classes must be the last axis of y_pred, got axis={self.axis} of {y_pred.ndim} dimensions: pass "
                f"np.moveaxis(y_pred, {self.axis}, -1), and set axis=-1"
            )
        labels = class_numbers(y_true, y_pred, "CategoricalCrossentropy")
        logits = y_pred if self.from_logits else np.log(np.clip(y_pred, _EPSILON, 1 - _EPSILON))
        return _NN["sparse_softmax_cross_entropy_with_logits"](labels.astype(np.int64), logits)


LOSSES = {
    loss.__name__: loss
    for loss in (MeanSquaredError, BinaryCrossentropy, CategoricalCrossentropy, SparseCategoricalCrossentropy)
} | {"Reduction": Reduction}


def snake_case(name: str) -> str:
    """Return the name of a class in lower case, with underscores between its words."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def as_numbers(value: Any, dtype: Any = None) -> Array:
    """Convert a value to an array of numbers, by default of the value's own dtype."""
    array = as_array(value)
    if array.dtype.kind == "O":
        raise InvalidArgumentError(f"labels, predictions and weights must be numbers, got {value!r}")
    return array.astype(dtype or array.dtype, copy=False)


def same_rank(first: Array, second: Array) -> tuple[Array, Array]:
    """Remove or add a last axis of length 1 if the numbers of dimensions differ by one, as Keras does."""
    if first.ndim < second.ndim:
        second, first = same_rank(second, first)
    elif first.ndim == second.ndim + 1 and first.shape[-1] == 1:
        return (first, second[:, None]) if second.ndim == 1 else (first[..., 0], second)
    return first, second


def check_broadcast(name: str, array: Array, of: str, values: Array) -> None:
    """Raise InvalidArgumentError unless an array has the shape of the values, or broadcasts to it."""
    try:
        np.broadcast_to(array, values.shape)
    except ValueError:
        remedy = "pass one weight for each example, which is a row of y_pred"
        if not values.ndim:
            remedy = "y_pred is one example; if each element is an example, pass y_true[:, None] and y_pred[:, None]"
        raise InvalidArgumentError(
            f"{name} of shape {array.shape} does not broadcast to {of} of shape {values.shape}: {remedy}"
        ) from None


def pair(y_true: Any, y_pred: Any, dtype: Any = None) -> tuple[Array, Array]:
    """Convert labels and predictions to arrays of compatible shapes and one dtype, by default that of predictions."""
    predictions = as_numbers(y_pred, dtype)
    labels, predictions = same_rank(as_numbers(y_true, predictions.dtype), predictions)
    try:
        np.broadcast_shapes(labels.shape, predictions.shape)
    except ValueError:
        raise InvalidArgumentError(
            f"y_true of shape {labels.shape} and y_pred of shape {predictions.shape} do not match: the first argument "
            "must be the labels, the second the predictions"
        ) from None
    return labels, predictions


def differences(y_true: Any, y_pred: Any) -> Any:
    """Return labels minus predictions, as floats."""
    predictions = as_numbers(y_pred)
    return np.subtract(*pair(y_true, predictions, np.result_type(predictions, np.float32)))


def mean_error(y_true: Any, y_pred: Any, error: Any = np.square) -> Any:
    """Apply `error` to the differences, and return its mean along the last axis."""
    return np.mean(_with_axis(error(differences(y_true, y_pred))), axis=-1)


def _with_axis(y_pred: Array) -> Array:
    if not y_pred.ndim:
        raise InvalidArgumentError("y_pred has shape (), expected at least one dimension: pass [prediction]")
    return y_pred


def class_numbers(y_true: Array, y_pred: Array, for_one_hot: str) -> Array:
    """Return class-number labels without a last axis of length 1; raise an error if the shapes do not fit."""
    if not y_pred.ndim or (y_pred.ndim == 1 and y_true.ndim):
        raise InvalidArgumentError(
            f"y_pred of shape {y_pred.shape} must have the shape of y_true, {y_true.shape}, and a last axis of classes"
        )
    labels = y_true[..., 0] if y_true.ndim == y_pred.ndim and y_true.shape[-1] == 1 else y_true
    if labels.shape != y_pred.shape[:-1]:
        raise InvalidArgumentError(
            f"y_true must be class numbers of shape {y_pred.shape[:-1]} for y_pred of shape {y_pred.shape}, got shape "
            f"{labels.shape}: for one-hot labels use {for_one_hot}"
        )
    return labels
