"""Every exception class that ringlet raises of its own.

Each class derives from the builtin that a caller would guess, and carries its facts as attributes. Classes that share a
name with one of ``tf.errors`` mean the same thing.
"""

from __future__ import annotations

__all__ = [
    "CollectiveAborted",
    "CollectiveMismatchError",
    "DeadlineExceededError",
    "DuplicateDeviceError",
    "FailedPreconditionError",
    "InvalidArgumentError",
    "NotFoundError",
    "OutOfRangeError",
    "PartitionError",
]


class CollectiveMismatchError(RuntimeError):
    """The ranks of a group did not make the same call, so none of them can have an answer.

    Raised on every rank of the group. The message lists who called what.
    """


class CollectiveAborted(RuntimeError):
    """Another rank failed, so the collective that this rank waited in will never complete.

    The message carries the first cause. This error follows from another one: handle that one.
    """


class DeadlineExceededError(TimeoutError):
    """A wait reached its deadline; the message names who was missing and how to allow more time."""


class DuplicateDeviceError(ValueError, AssertionError):
    """One device was given to two replicas (TensorFlow raises a bare ``AssertionError``)."""


class InvalidArgumentError(ValueError):
    """An argument has a value that the operation cannot accept (``tf.errors.InvalidArgumentError``)."""


class FailedPreconditionError(RuntimeError):
    """The object is not in a state in which the operation can run (``tf.errors.FailedPreconditionError``)."""


class NotFoundError(LookupError):
    """Something that the operation needs does not exist (``tf.errors.NotFoundError``)."""


class OutOfRangeError(LookupError):
    """An iterator was asked for more than it has (``tf.errors.OutOfRangeError``)."""


class PartitionError(ValueError):
    """A tensor cannot be cut into the tiles that were asked for."""
