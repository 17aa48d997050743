"""A table of functions computed by NumPy under TensorFlow's names, with its arguments, dtypes and error classes.

`docs/porting.md` lists the functions. Each entry has the kinds of dtypes that a function accepts, and the function,
which takes arrays; `array_functions` returns functions of tensors.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ringlet.compat.tensorflow.basics import shape_of
from ringlet.compat.tensorflow.conversion import as_array
from ringlet.compat.tensorflow.dtypes import as_dtype
from ringlet.compat.tensorflow.names import TENSORFLOW_NAMES
from ringlet.compat.tensorflow.operators import check_kind
from ringlet.compat.tensorflow.tensor import as_operand as operand_or_refusal
from ringlet.compat.tensorflow.tensor import wrapped
from ringlet.errors import InvalidArgumentError
from ringlet.sharding import ShardedArray
from ringlet.strategy.api.current_strategy import get_strategy, has_strategy, in_cross_replica_context
from ringlet.values import IndexedSlices

_ANY, _NUMBERS, _REAL, _FLOATS, _BOOLS = "biufcOV", "iufcV", "iufV", "fcV", "b"
_F32 = np.float32


class TopKV2(NamedTuple):
    """The largest values and their indices."""

    values: Any
    indices: Any


# Parameters that are tensors. All tensors of a call are converted to one dtype.
_TENSORS = {
    "x", "y", "a", "b", "input", "input_tensor", "tensor", "t", "logits", "features", "value", "params", "matrix"
}  # fmt: skip
# Functions with a list of tensors as their parameter `values` or `inputs`.
_OF_LISTS = {"concat", "stack", "add_n"}


def as_operand(value: Any, dtype: Any) -> Any:
    """Convert a value to an array of `dtype`; mirrored values and arrays of other libraries keep their own dtype."""
    operand = operand_or_refusal(value, dtype)
    return as_array(value) if operand is NotImplemented else operand


def _axes(axis: Any) -> Any:
    if axis is None:
        return None
    axes = np.asarray(axis)
    return tuple(axes.tolist()) if axes.ndim else int(axes)


def _reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda input_tensor, axis=None, keepdims=False, name=None: function(
        input_tensor, axis=_axes(axis), keepdims=bool(keepdims)
    )


def _unary(function: Callable[..., Any]) -> Callable[..., Any]:
    def unary(x: Any, name: Any = None) -> Any:
        with np.errstate(all="ignore"):
            return function(x)

    return unary


def _binary(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y, name=None: function(x, y)


def _sum(x: Any, **how: Any) -> Any:
    return np.sum(x, dtype=x.dtype, **how)


def _mean(x: Any, axis: Any, keepdims: bool) -> Any:
    if x.dtype.kind in "iu":  # as in TensorFlow, the mean of integers is an integer
        total = _sum(x, axis=axis, keepdims=keepdims)
        return (total / (x.size // max(total.size, 1))).astype(x.dtype)
    return np.mean(x, axis=axis, keepdims=keepdims)


def _extreme(function: Callable[..., Any], of_nothing: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda x, **how: function(x, initial=of_nothing(x.dtype), **how) if not x.size else function(x, **how)


def _lowest(dtype: Any) -> Any:
    return -np.inf if dtype.kind in "fV" else np.iinfo(dtype).min


def _highest(dtype: Any) -> Any:
    return np.inf if dtype.kind in "fV" else np.iinfo(dtype).max


def _logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    top = np.max(x, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, np.zeros_like(top))
    with np.errstate(divide="ignore"):
        result = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top
    return result if keepdims else np.squeeze(result, axis)


def _softplus(x: Any) -> Any:
    return np.logaddexp(x, np.zeros_like(x))


def _sigmoid(x: Any) -> Any:
    return np.exp(-_softplus(-x))


def _log_softmax(logits: Any, axis: Any = None, name: Any = None) -> Any:
    return logits - _logsumexp(logits, -1 if axis is None else int(axis), keepdims=True)


def _cumulative(function: Callable[..., Any], identity: int) -> Callable[..., Any]:
    def cumulative(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: Any = None) -> Any:
        line = np.flip(x, axis) if reverse else x
        result = function(line, axis=axis, dtype=x.dtype)
        if exclusive:
            result = np.roll(result, 1, axis)
            result[tuple(0 if at == axis % x.ndim else slice(None) for at in range(x.ndim))] = identity
        return np.flip(result, axis) if reverse else result

    return cumulative


def _split(value: Any, num_or_size_splits: Any, axis: Any = 0, num: Any = None, name: Any = "split") -> Any:
    sizes = np.asarray(num_or_size_splits)
    return np.split(value, np.cumsum(sizes)[:-1] if sizes.ndim else int(sizes), axis)


def _squeeze(input: Any, axis: Any = None, name: Any = None) -> Any:
    return np.squeeze(input, _axes(axis) or None if np.ndim(axis) else _axes(axis))


def _pad(tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0, name: Any = None) -> Any:
    how = {"constant_values": constant_values} if mode.upper() == "CONSTANT" else {}
    return np.pad(tensor, np.asarray(paddings), mode.lower(), **how)  # type: ignore[call-overload]


def _gather(  # noqa: PLR0917  # TensorFlow's signature
    params: Any, indices: Any, validate_indices: Any = None, axis: Any = None, batch_dims: int = 0, name: Any = None
) -> Any:
    if batch_dims:
        raise NotImplementedError("tf.gather does not support batch_dims. Use numpy.take_along_axis.")
    return np.take(params, np.asarray(indices), 0 if axis is None else int(axis))


def _where(condition: Any, x: Any = None, y: Any = None, name: Any = None) -> Any:
    truth = as_array(condition)
    return np.argwhere(truth) if x is None else np.where(truth, x, y)


def _boolean_mask(tensor: Any, mask: Any, axis: Any = None, name: str = "boolean_mask") -> Any:
    kept = np.asarray(mask)
    return tensor[(slice(None),) * (int(axis or 0) % max(tensor.ndim, 1)) + (kept,)]


def _sorted(values: Any, axis: int = -1, direction: str = "ASCENDING", name: Any = None) -> Any:
    ascending = np.sort(values, axis)
    return ascending if direction == "ASCENDING" else np.flip(ascending, axis)


def _argsort(values: Any, axis: int = -1, direction: str = "ASCENDING", stable: bool = False, name: Any = None) -> Any:
    falls = direction != "ASCENDING"
    order = np.argsort(np.flip(values, axis) if falls else values, axis, kind="stable").astype(np.int32)
    return np.int32(values.shape[axis] - 1) - np.flip(order, axis) if falls else order


def _norm(tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: Any = None, name: Any = None) -> Any:
    if axis is None and np.ndim(tensor) > 1:
        flat = np.linalg.norm(np.ravel(tensor), 2 if ord == "euclidean" else ord)
        return np.reshape(flat, (1,) * tensor.ndim) if keepdims else flat
    return np.linalg.norm(tensor, 2 if ord == "euclidean" and np.ndim(axis) == 0 else ord, _axes(axis), bool(keepdims))


def _matmul(  # noqa: PLR0917  # TensorFlow's signature
    a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False, adjoint_a: bool = False,
    adjoint_b: bool = False, a_is_sparse: bool = False, b_is_sparse: bool = False, output_type: Any = None,
    grad_a: bool = False, grad_b: bool = False, name: Any = None,
) -> Any:  # fmt: skip
    if min(np.ndim(a), np.ndim(b)) < 2:
        raise InvalidArgumentError(
            f"tf.matmul requires matrices, got shapes {a.shape} and {b.shape}. Use tf.linalg.matvec for vectors."
        )
    left = np.swapaxes(a, -1, -2) if transpose_a or adjoint_a else a
    right = np.swapaxes(b, -1, -2) if transpose_b or adjoint_b else b
    if left.shape[-1] != right.shape[-2]:
        how = " after transposing" if left is not a or right is not b else ""
        raise InvalidArgumentError(
            f"tf.matmul cannot multiply shapes {left.shape} and {right.shape}{how}: the first has {left.shape[-1]} "
            f"columns, but the second has {right.shape[-2]} rows. Set or omit transpose_a=True or transpose_b=True, or "
            "swap the operands."
        )
    result = np.matmul(np.conj(left) if adjoint_a else left, np.conj(right) if adjoint_b else right)
    return result if output_type is None else result.astype(as_dtype(output_type))


def _matvec(  # noqa: PLR0917  # TensorFlow's signature
    a: Any, b: Any, transpose_a: bool = False, adjoint_a: bool = False, a_is_sparse: bool = False,
    b_is_sparse: bool = False, name: Any = None,
) -> Any:  # fmt: skip
    return _matmul(a, b[..., None], transpose_a, adjoint_a=adjoint_a)[..., 0]


def _adjoint(matrix: Any) -> Any:
    return np.conj(np.swapaxes(matrix, -1, -2))


def _one_hot(  # noqa: PLR0917  # TensorFlow's signature
    indices: Any, depth: Any, on_value: Any = None, off_value: Any = None, axis: Any = None, dtype: Any = None,
    name: Any = None,
) -> Any:  # fmt: skip
    given = [as_array(value).dtype for value in (on_value, off_value) if value is not None]
    wanted = as_dtype(dtype) if dtype is not None else given[0] if given else np.dtype(_F32)
    on, off = 1 if on_value is None else on_value, 0 if off_value is None else off_value
    matches = np.asarray(indices)[..., None] == np.arange(int(depth))
    return np.moveaxis(np.where(matches, on, off).astype(wanted), -1, -1 if axis is None else axis)


def _clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: Any = None) -> Any:
    norm = np.sqrt(np.sum(t * t, axis=_axes(axes), keepdims=True))
    return t * clip_norm / np.maximum(norm, np.asarray(clip_norm, t.dtype))


def _global_norm(t_list: Any, name: Any = None) -> Any:
    parts = [as_array(t.values if isinstance(t, IndexedSlices) else t) for t in t_list if t is not None]
    return np.sqrt(sum(np.sum(part * part) for part in parts))


def _clip_by_global_norm(t_list: Any, clip_norm: Any, use_norm: Any = None, name: Any = None) -> Any:
    norm = np.asarray(_global_norm(t_list) if use_norm is None else as_array(use_norm))
    scale = np.minimum(np.asarray(clip_norm, norm.dtype) / np.maximum(norm, np.finfo(norm.dtype).tiny), 1)
    return [None if t is None else _scaled(t, scale) for t in t_list], norm


def _scaled(t: Any, scale: Any) -> Any:
    if isinstance(t, IndexedSlices):
        return IndexedSlices(wrapped(as_array(t.values) * scale), t.indices, t.dense_shape)
    return as_array(t) * scale


def _top_k(input: Any, k: Any = 1, sorted: bool = True, index_type: Any = np.int32, name: Any = None) -> Any:
    order = _argsort(input, direction="DESCENDING")[..., : int(k)]
    return TopKV2(np.take_along_axis(input, order, -1), order.astype(as_dtype(index_type)))


def _average_loss(per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None) -> Any:
    losses = as_array(per_example_loss)
    if losses.ndim == 0:
        raise ValueError("Invalid value passed for `per_example_loss`. Expected a tensor with at least rank 1.")
    if sample_weight is not None:
        losses = (losses * np.asarray(sample_weight)).astype(losses.dtype)
    if global_batch_size is None:
        if has_strategy() and in_cross_replica_context():
            raise RuntimeError(
                "tf.nn.compute_average_loss without global_batch_size must be called in a step function. Call it in "
                "the function that strategy.run calls, or pass global_batch_size."
            )
        global_batch_size = len(losses) * get_strategy().num_replicas_in_sync
    size = np.asarray(global_batch_size)
    if size.dtype.kind not in "iu":
        raise TypeError(f"global_batch_size must be an integer, got {global_batch_size!r}")
    if size.ndim or size < 0:
        raise InvalidArgumentError(f"global_batch_size must be a non-negative number, got {global_batch_size!r}")
    return _sum(losses) / losses.dtype.type(size) if size else losses.dtype.type(0)


def _scaled_loss(regularization_loss: Any) -> Any:
    loss = as_array(regularization_loss)
    if has_strategy() and in_cross_replica_context():
        raise RuntimeError(
            "tf.nn.scale_regularization_loss must be called in a step function. Call it in the function that "
            "strategy.run calls."
        )
    return _sum(loss) / loss.dtype.type(get_strategy().num_replicas_in_sync)


def _sparse_cross_entropy(labels: Any, logits: Any, name: Any = None) -> Any:
    classes = np.asarray(labels)
    if classes.dtype.kind not in "iu":
        raise InvalidArgumentError(
            f"labels must be integers, got {classes.dtype}. Pass labels as the first argument and logits as the "
            "second, or convert labels with tf.cast(labels, tf.int64)"
        )
    if classes.size and not 0 <= classes.min() <= classes.max() < logits.shape[-1]:
        raise InvalidArgumentError(f"labels must be in [0, {logits.shape[-1]}), got {classes.tolist()}")
    return -np.take_along_axis(_log_softmax(logits), classes[..., None], -1)[..., 0]


def _sigmoid_cross_entropy(labels: Any = None, logits: Any = None, name: Any = None) -> Any:
    truth = as_array(labels)
    return np.maximum(logits, 0) - logits * truth + np.log1p(np.exp(-np.abs(logits)))


def _moments(x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: Any = None) -> Any:
    return tuple(function(x, axis=_axes(axes), keepdims=keepdims) for function in (np.mean, np.var))


def _l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12, name: Any = None, dim: Any = None) -> Any:
    axis = dim if axis is None else axis
    return x / np.sqrt(np.maximum(np.sum(x * x, axis=_axes(axis), keepdims=True), x.dtype.type(epsilon)))


def _quotient(x: Any, y: Any, name: Any = None) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        wide = x.dtype.kind in "iu"
        return np.true_divide(x, y, dtype=np.float64 if wide else x.dtype)


def _no_nan(x: Any, y: Any, name: Any = None) -> Any:
    return np.divide(x, y, out=np.zeros(np.broadcast_shapes(x.shape, y.shape), x.dtype), where=y != 0)


def _entries(kinds: str, make: Callable[..., Any], **functions: Any) -> dict[str, tuple[str, Callable[..., Any]]]:
    return {name: (kinds, make(function)) for name, function in functions.items()}


def _numpys(kinds: str, make: Callable[..., Any], names: str) -> dict[str, tuple[str, Callable[..., Any]]]:
    """Return entries for NumPy's functions, given as names, or as ``tensorflow=numpy`` if the names differ."""
    pairs = [name.partition("=") for name in names.split()]
    return {name: (kinds, make(getattr(np, other or name))) for name, _, other in pairs}


def _own(kinds: str, **functions: Any) -> dict[str, tuple[str, Callable[..., Any]]]:
    return _entries(kinds, lambda function: function, **functions)


_TABLE: dict[str, tuple[str, Callable[..., Any]]] = {
    **_own(
        _ANY,
        zeros=lambda shape, dtype=_F32, name=None, layout=None: _full(shape, 0, dtype),
        ones=lambda shape, dtype=_F32, name=None, layout=None: _full(shape, 1, dtype),
        fill=lambda dims, value, name=None, layout=None: np.full(shape_of(dims), value),
        eye=lambda num_rows, num_columns=None, batch_shape=None, dtype=_F32, name=None: np.broadcast_to(
            np.eye(num_rows, num_columns, dtype=as_dtype(dtype)),
            (*shape_of(() if batch_shape is None else batch_shape), num_rows, num_columns or num_rows),
        ),
        zeros_like=lambda input, dtype=None, name=None, layout=None: _full(input.shape, 0, dtype or input.dtype),
        ones_like=lambda input, dtype=None, name=None, layout=None: _full(input.shape, 1, dtype or input.dtype),
        one_hot=_one_hot,
        shape=lambda input, out_type=np.int32, name=None: np.array(input.shape, as_dtype(out_type or np.int32)),
        size=lambda input, out_type=np.int32, name=None: np.array(input.size, as_dtype(out_type or np.int32)),
        rank=lambda input, name=None: np.int32(input.ndim),
        expand_dims=lambda input, axis, name=None: np.expand_dims(input, int(axis)),
        squeeze=_squeeze,
        transpose=lambda a, perm=None, conjugate=False, name="transpose": np.transpose(
            np.conj(a) if conjugate else a, _axes(perm)
        ),
        concat=lambda values, axis, name="concat": np.concatenate(values, int(axis)),
        stack=lambda values, axis=0, name="stack": np.stack(values, int(axis)),
        unstack=lambda value, num=None, axis=0, name="unstack": list(np.moveaxis(value, axis, 0)),
        split=_split,
        tile=lambda input, multiples, name=None: np.tile(input, shape_of(multiples)),
        pad=_pad,
        reverse=lambda tensor, axis, name=None: np.flip(tensor, _axes(axis)),
        roll=lambda input, shift, axis, name=None: np.roll(input, _axes(shift), _axes(axis)),
        repeat=lambda input, repeats, axis=None, name=None: np.repeat(input, np.asarray(repeats), axis),
        broadcast_to=lambda input, shape, name=None: np.broadcast_to(input, shape_of(shape)),
        gather=_gather,
        where=_where,
        boolean_mask=_boolean_mask,
        global_norm=_global_norm,
        clip_by_global_norm=_clip_by_global_norm,
        compute_average_loss=_average_loss,
        scale_regularization_loss=_scaled_loss,
        einsum=lambda equation, *inputs, **kwargs: np.einsum(equation, *map(as_array, inputs)),
        stop_gradient=lambda input, name=None: input,
        reshape=lambda tensor, shape, name=None: np.reshape(tensor, shape_of(shape)),
    ),
    **_own(
        _REAL,
        linspace=lambda start, stop, num, name=None, axis=0: _linspace(as_array(start), as_array(stop), int(num), axis),
        sort=_sorted,
        argsort=_argsort,
        clip_by_value=lambda t, clip_value_min, clip_value_max, name=None: np.clip(
            t, as_operand(clip_value_min, t.dtype), as_operand(clip_value_max, t.dtype)
        ),
        argmax=lambda input, axis=None, output_type=np.int64, name=None: np.argmax(input, axis or 0).astype(
            as_dtype(output_type)
        ),
        argmin=lambda input, axis=None, output_type=np.int64, name=None: np.argmin(input, axis or 0).astype(
            as_dtype(output_type)
        ),
        top_k=_top_k,
        relu=lambda features, name=None: np.maximum(features, features.dtype.type(0)),
        relu6=lambda features, name=None: np.clip(features, features.dtype.type(0), features.dtype.type(6)),
    ),
    **_own(
        _NUMBERS,
        matmul=_matmul,
        matvec=_matvec,
        tensordot=lambda a, b, axes, name=None: np.tensordot(a, b, axes if np.ndim(axes) else int(axes)),
        add_n=lambda inputs, name=None: functools.reduce(np.add, inputs),
        trace=lambda x, name=None: np.trace(x, axis1=-2, axis2=-1, dtype=x.dtype),
        cumsum=_cumulative(np.cumsum, 0),
        cumprod=_cumulative(np.cumprod, 1),
        divide_no_nan=_no_nan,
        scalar_mul=lambda scalar, x, name=None: as_operand(scalar, x.dtype) * x,
        bias_add=lambda value, bias, data_format=None, name=None: value + as_operand(bias, value.dtype),
        divide=_quotient,
        truediv=_quotient,
        realdiv=_quotient,
    ),
    **_own(
        _FLOATS,
        norm=_norm,
        clip_by_norm=_clip_by_norm,
        inv=lambda input, adjoint=False, name=None: np.linalg.inv(_adjoint(input) if adjoint else input),
        det=lambda input, name=None: np.linalg.det(input),
        solve=lambda matrix, rhs, adjoint=False, name=None: np.linalg.solve(
            _adjoint(matrix) if adjoint else matrix, as_operand(rhs, matrix.dtype)
        ),
        cholesky=lambda input, name=None: np.linalg.cholesky(input),
        softmax=lambda logits, axis=None, name=None: np.exp(_log_softmax(logits, axis)),
        log_softmax=_log_softmax,
        leaky_relu=lambda features, alpha=0.2, name=None: np.where(features > 0, features, features * alpha),
        softplus=lambda features, name=None: _softplus(features),
        elu=lambda features, name=None: np.where(features > 0, features, np.expm1(np.minimum(features, 0))),
        silu=lambda features, beta=1.0, name=None: features * _sigmoid(features * features.dtype.type(beta)),
        l2_loss=lambda t, name=None: np.sum(t * t) / t.dtype.type(2),
        l2_normalize=_l2_normalize,
        moments=_moments,
        sparse_softmax_cross_entropy_with_logits=_sparse_cross_entropy,
        softmax_cross_entropy_with_logits=lambda labels, logits, axis=-1, name=None: (
            -np.sum(as_operand(labels, logits.dtype) * _log_softmax(logits, axis), axis=axis)
        ),
        sigmoid_cross_entropy_with_logits=_sigmoid_cross_entropy,
    ),
    **_entries(_REAL, _reduction, reduce_max=_extreme(np.max, _lowest), reduce_min=_extreme(np.min, _highest)),
    **_entries(
        _NUMBERS,
        _reduction,
        reduce_sum=_sum,
        reduce_mean=_mean,
        reduce_prod=lambda x, **how: np.prod(x, dtype=x.dtype, **how),
    ),
    **_entries(_BOOLS, _reduction, reduce_all=np.all, reduce_any=np.any),
    **_entries(_FLOATS, _reduction, reduce_logsumexp=_logsumexp, reduce_std=np.std, reduce_variance=np.var),
    **_numpys(_NUMBERS, _unary, "abs negative sign round square"),
    **_numpys(_FLOATS, _unary, "exp expm1 log log1p sqrt reciprocal ceil floor tanh sin cos tan sinh cosh asin=arcsin"),
    **_numpys(_FLOATS, _unary, "acos=arccos atan=arctan asinh=arcsinh acosh=arccosh atanh=arctanh is_nan=isnan"),
    **_numpys(_FLOATS, _unary, "is_inf=isinf is_finite=isfinite"),
    **_entries(_FLOATS, _unary, rsqrt=lambda x: np.reciprocal(np.sqrt(x)), sigmoid=_sigmoid),
    **_numpys(_NUMBERS, _binary, "add subtract multiply pow=power"),
    **_entries(_NUMBERS, _binary, squared_difference=lambda x, y: np.square(x - y)),
    **_numpys(
        _REAL, _binary, "maximum minimum less less_equal greater greater_equal floordiv=floor_divide floormod=mod mod"
    ),
    **_numpys(_ANY, _binary, "equal not_equal"),
    **_numpys(_BOOLS, _binary, "logical_and logical_or logical_xor"),
    **_numpys(_BOOLS, _unary, "logical_not"),
    "atan2": (_FLOATS, lambda y, x, name=None: np.arctan2(y, x)),
}


def _full(shape: Any, value: int, dtype: Any) -> Any:
    wanted = as_dtype(dtype)
    if wanted.kind == "O":
        if value:
            raise TypeError("tf.ones does not support tensors of strings")
        return np.full(shape_of(shape), b"", object)
    return np.full(shape_of(shape), value, wanted)


def _linspace(start: Any, stop: Any, num: int, axis: int) -> Any:
    return np.linspace(start, stop, num, axis=axis, dtype=start.dtype if start.dtype.kind == "f" else np.float64)


def _converted(values: list[Any], dtype: Any = None) -> list[Any]:
    """Convert values to the dtype of the first tensor or array; without one, to `dtype` or that of the first value.

    If one of the values is a sharded array, all are returned unchanged.
    """
    if not values or any(isinstance(value, ShardedArray) for value in values):
        return values
    dtype = next((value.dtype for value in values if hasattr(value, "dtype")), dtype or as_array(values[0]).dtype)
    return [as_array(value) if len(values) == 1 else as_operand(value, dtype) for value in values]


def _converted_list(values: Any) -> list[Any]:
    """Convert a list to the dtype of its first tensor or array; without one, to that of its value of widest kind."""
    dtypes = [as_array(value).dtype for value in values if not isinstance(value, ShardedArray)]
    return _converted(list(values), max(dtypes, key=lambda dtype: "biufc".find(dtype.kind), default=None))


def _function(name: str, kinds: str, of_arrays: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(of_arrays)
    tensors = [parameter for parameter in signature.parameters if parameter in _TENSORS]
    optional = {p for p in tensors if signature.parameters[p].default is None}
    of_list = next((p for p in ("values", "inputs") if p in signature.parameters), "")

    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}() {error}") from None
        given = bound.arguments
        names = [p for p in tensors if p in given and (given[p] is not None or p not in optional)]
        if name in _OF_LISTS:
            given[of_list] = arrays = _converted_list(given[of_list])
        else:
            names += ["values"] if of_list == "values" else []
            arrays = _converted([given[parameter] for parameter in names])
            given.update(zip(names, arrays, strict=True))
        for array in arrays:
            if hasattr(array, "dtype"):  # numbers passed with a sharded array have no dtype
                check_kind(f"tf.{name}", kinds, array.dtype)
        try:
            return wrapped(of_arrays(*bound.args, **bound.kwargs))
        except (ValueError, IndexError) as error:
            if isinstance(error, InvalidArgumentError):
                raise
            raise InvalidArgumentError(f"{str(error).rstrip('. ')}, in tf.{name}") from error

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return the result of ``tf.{name}``, computed by NumPy."
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


_FUNCTIONS = {name: _function(name, *entry) for name, entry in _TABLE.items()}


def array_functions(path: str) -> dict[str, Callable[..., Any]]:
    """Return the functions of one of TensorFlow's namespaces, such as ``"tf.math"``, by name."""
    return {name: function for name, function in _FUNCTIONS.items() if name in TENSORFLOW_NAMES[path]}
