"""The exception classes of Ringlet.

Each class derives from the built-in exception that callers expect. A class with the name of a class of ``tf.errors``
has the same meaning.
"""

from __future__ import annotations

from ringlet.errors.files import CheckpointCorruptError, DataLossError, NotFoundError
from ringlet.errors.processes import (
    CancelledError,
    ClosureInputError,
    CollectiveAborted,
    CollectiveMismatchError,
    DeadlineExceededError,
    PSUnavailableError,
    SharedMemoryFullError,
    UnavailableError,
    WorkerLostError,
)
from ringlet.errors.requests import (
    ClusterConfigError,
    CoordinateError,
    DuplicateDeviceError,
    FailedPreconditionError,
    GatherError,
    GatherWarning,
    InvalidArgumentError,
    OutOfRangeError,
    PartitionError,
    ReplicatedBatchWarning,
    ShardingError,
    ValuesDifferError,
)
from ringlet.errors.short_tracebacks import install
from ringlet.module_names import list_public

__all__ = [
    "CancelledError",
    "CheckpointCorruptError",
    "ClosureInputError",
    "ClusterConfigError",
    "CollectiveAborted",
    "CollectiveMismatchError",
    "CoordinateError",
    "DataLossError",
    "DeadlineExceededError",
    "DuplicateDeviceError",
    "FailedPreconditionError",
    "GatherError",
    "GatherWarning",
    "InvalidArgumentError",
    "NotFoundError",
    "OutOfRangeError",
    "PSUnavailableError",
    "PartitionError",
    "ReplicatedBatchWarning",
    "ShardingError",
    "SharedMemoryFullError",
    "UnavailableError",
    "ValuesDifferError",
    "WorkerLostError",
]

__dir__ = list_public(__name__)

# Users import the classes from this module, so tracebacks and pickles contain its name.
for _name in __all__:
    globals()[_name].__module__ = __name__

install()
