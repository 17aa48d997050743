"""``tf.errors``: ringlet's exceptions under TensorFlow's names."""

from __future__ import annotations

from ringlet import errors
from ringlet.compat.tensorflow.absent import namespace_getter
from ringlet.module_names import list_public

# TensorFlow's names -> Ringlet's exceptions.
_NAMES = {
    "AbortedError": errors.CollectiveAborted,
    "CancelledError": errors.CancelledError,
    "DataLossError": errors.DataLossError,
    "DeadlineExceededError": errors.DeadlineExceededError,
    "FailedPreconditionError": errors.FailedPreconditionError,
    "InternalError": errors.CollectiveMismatchError,
    "InvalidArgumentError": errors.InvalidArgumentError,
    "NotFoundError": errors.NotFoundError,
    "OutOfRangeError": errors.OutOfRangeError,
    "UnavailableError": errors.UnavailableError,
    "UnimplementedError": NotImplementedError,
}

__all__ = list(_NAMES)

__getattr__ = namespace_getter("tf.errors", _NAMES)
__dir__ = list_public(__name__)
