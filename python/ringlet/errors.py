"""Every exception class that ringlet raises of its own.

Each class derives from the builtin that a caller would guess. Classes that share a name with one of ``tf.errors`` mean
the same thing.
"""

from __future__ import annotations

__all__ = [
    "CancelledError",
    "CheckpointCorruptError",
    "ClosureInputError",
    "ClusterConfigError",
    "CollectiveAborted",
    "CollectiveMismatchError",
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
    "ShardingError",
    "SharedMemoryFullError",
    "UnavailableError",
    "ValuesDifferError",
    "WorkerLostError",
]


class CollectiveMismatchError(RuntimeError):
    """The ranks of a group did not make the same call, so none of them can have an answer.

    Raised on every rank of the group. The message lists who called what.

    Examples
    --------
    >>> import numpy as np
    >>> import ringlet
    >>> def step(member):
    ...     return member.all_reduce(np.ones(2 + member.rank))
    >>> ringlet.testing.run_on_ranks(2, step)
    Traceback (most recent call last):
    ringlet.errors.CollectiveMismatchError: the ranks did not make the same call (their call number 1):
      rank 0: all_reduce(SUM, float64[2])
      rank 1: all_reduce(SUM, float64[3])
    Make the same calls in the same order, with equal shapes and dtypes, on every rank.
    """


class CollectiveAborted(RuntimeError):
    """Another rank failed, so the collective that this rank waited in will never complete.

    The message carries the first cause. This error follows from another one: handle that one.

    Examples
    --------
    >>> import ringlet
    >>> group = ringlet.collectives.Group(2)
    >>> group.abort("rank 1 raised KeyError: 'weights'")
    >>> group.member(0).barrier()
    Traceback (most recent call last):
    ringlet.errors.CollectiveAborted: rank 1 raised KeyError: 'weights'
    """


class UnavailableError(ConnectionError):
    """A process that is needed is gone (``tf.errors.UnavailableError``).

    Examples
    --------
    >>> issubclass(WorkerLostError, UnavailableError), issubclass(PSUnavailableError, UnavailableError)
    (True, True)
    """


class WorkerLostError(UnavailableError):
    """The process of another rank has ended, or has left the group, so this group will never complete a call again.

    Raised on every rank that is left, by the call that waited and by all later ones. Start the job again, from its last
    checkpoint if it has one.

    Attributes
    ----------
    rank : int
        The rank that was lost, in the whole group also where a part of it was at work; the lowest one if its process
        had several.
    host : str
        Name of the machine that it ran on.
    pid : int
        Number of its process there.
    reason : str
        What happened to the process, such as ``"was killed by SIGKILL (signal 9)"`` or ``"exited with status 3"``.

    Examples
    --------
    >>> try:
    ...     raise WorkerLostError("rank 2 (pid 812 on node7) was lost", 2, "node7", 812, "exited with status 3")
    ... except ConnectionError as error:
    ...     error.rank, error.reason
    (2, 'exited with status 3')
    """

    def __init__(self, message: str, rank: int = -1, host: str = "", pid: int = -1, reason: str = "") -> None:
        super().__init__(message)
        self.rank = rank
        self.host = host
        self.pid = pid
        self.reason = reason


class PSUnavailableError(UnavailableError):
    """The process of a parameter server has ended, and with it the job.

    Every later call of the coordinator raises it; what variables hold can still be read and saved. Start the job again.

    Attributes
    ----------
    task_index : int
        Which parameter server was lost.
    reason : str
        What happened to its process, such as ``"was killed by SIGKILL (signal 9)"``.

    Examples
    --------
    >>> try:
    ...     raise PSUnavailableError("parameter server 1 (pid 812) was lost", 1, "exited with status 3")
    ... except ConnectionError as error:
    ...     error.task_index, error.reason
    (1, 'exited with status 3')
    """

    def __init__(self, message: str, task_index: int = -1, reason: str = "") -> None:
        super().__init__(message)
        self.task_index = task_index
        self.reason = reason


class CancelledError(RuntimeError):
    """A scheduled function was not run, or what it made is gone (``tf.errors.CancelledError``).

    It follows from another error, which `schedule`, `join` or `done` of the coordinator raises.

    Examples
    --------
    >>> raise CancelledError("The corresponding function is cancelled. Please reschedule the function.")
    Traceback (most recent call last):
    ringlet.errors.CancelledError: The corresponding function is cancelled. Please reschedule the function.
    """


class ClosureInputError(RuntimeError):
    """What a scheduled function takes as an argument could not be made on its worker, such as a dataset.

    Attributes
    ----------
    original_exception : BaseException
        Why not.

    Examples
    --------
    >>> ClosureInputError(ValueError("no files")).original_exception
    ValueError('no files')
    """

    def __init__(self, original_exception: BaseException) -> None:
        super().__init__(
            f"an argument of the function could not be made on its worker: {type(original_exception).__name__}: "
            f"{original_exception}"
        )
        self.original_exception = original_exception

    def __reduce__(self) -> tuple[type[ClosureInputError], tuple[BaseException]]:
        return type(self), (self.original_exception,)


class SharedMemoryFullError(OSError):
    """The system has no shared memory left to give, or refuses to give any.

    Attributes
    ----------
    need_bytes : int
        How much was asked for.
    free_bytes : int
        How much the system says is left; 0 where it does not tell.
    path : str
        Where it was asked for: ``"memfd"`` for memory without a name in any file system.
    errno : int
        Number of the system's error, such as ``errno.ENOMEM``.

    Examples
    --------
    >>> try:
    ...     raise SharedMemoryFullError("64 MiB are wanted, 3 MiB are left", 2**26, 3 * 2**20, "memfd", 12)
    ... except OSError as error:
    ...     error.need_bytes, error.errno
    (67108864, 12)
    """

    def __init__(
        self, message: str, need_bytes: int = 0, free_bytes: int = 0, path: str = "", errno: int | None = None
    ) -> None:
        super().__init__(message)
        self.need_bytes = need_bytes
        self.free_bytes = free_bytes
        self.path = path
        self.errno = errno


class DeadlineExceededError(TimeoutError):
    """A wait reached its deadline; the message names who was missing and how to allow more time.

    Examples
    --------
    >>> import ringlet
    >>> ringlet.collectives.Group(2, timeout_seconds=0.01).member(0).barrier("epoch 3")
    Traceback (most recent call last):
    ringlet.errors.DeadlineExceededError: barrier('epoch 3'), call 1 of rank 0, waited 0.01 s for rank 1
    (after 0 calls). Find out what they do, or allow more with timeout_seconds= or RINGLET_TIMEOUT_SECONDS.
    """


class DuplicateDeviceError(ValueError, AssertionError):
    """One device was given to two replicas (TensorFlow raises a bare ``AssertionError``).

    Examples
    --------
    >>> import ringlet
    >>> ringlet.MirroredStrategy(["CPU:0", "/cpu:0"])
    Traceback (most recent call last):
    ringlet.errors.DuplicateDeviceError: ...
    """


class InvalidArgumentError(ValueError):
    """An argument has a value that the operation cannot accept (``tf.errors.InvalidArgumentError``).

    Examples
    --------
    >>> import ringlet
    >>> ringlet.collectives.Group(0)
    Traceback (most recent call last):
    ringlet.errors.InvalidArgumentError: a group has 1 to 4096 ranks, not 0.
    """


class FailedPreconditionError(RuntimeError):
    """The object is not in a state in which the operation can run (``tf.errors.FailedPreconditionError``).

    Examples
    --------
    >>> import ringlet
    >>> numbers = iter([1, 2, 3])
    >>> dataset = ringlet.data.DistributedDataset(numbers, 1)
    >>> _ = list(dataset), list(dataset)
    Traceback (most recent call last):
    ringlet.errors.FailedPreconditionError: ...
    """


class NotFoundError(FileNotFoundError):
    """A file, or something else that was named, is not there (``tf.errors.NotFoundError``).

    Examples
    --------
    >>> import ringlet
    >>> next(iter(ringlet.data.TextLineDataset("no-such-file")))
    Traceback (most recent call last):
    ringlet.errors.NotFoundError: no-such-file; No such file or directory
    """


class OutOfRangeError(LookupError):
    """An iterator was asked for more than it has (``tf.errors.OutOfRangeError``).

    Examples
    --------
    >>> import ringlet
    >>> iter(ringlet.data.Dataset.range(0)).get_next()
    Traceback (most recent call last):
    ringlet.errors.OutOfRangeError: end of the dataset: make a new iterator to go through it again
    """


class DataLossError(OSError):
    """A file is damaged: a checksum does not fit, or it ends too early (``tf.errors.DataLossError``).

    Attributes
    ----------
    file : str
        Name of the file.
    offset : int
        Where in it the damage was seen: bytes from its beginning, once decompressed.

    Examples
    --------
    >>> try:
    ...     raise DataLossError("corrupted record at 17 in train-0", "train-0", 17)
    ... except OSError as error:
    ...     error.file, error.offset
    ('train-0', 17)
    """

    def __init__(self, message: str, file: str = "", offset: int = 0) -> None:
        super().__init__(message)
        self.file = file
        self.offset = offset


class ClusterConfigError(ValueError):
    """What describes a cluster, such as the environment variable ``TF_CONFIG``, cannot be meant like this.

    The message says where it is wrong, what was found there, what is allowed, and shows it corrected. Where TensorFlow
    raises ``TypeError`` or ``json.JSONDecodeError``, the error is one of these as well.

    Attributes
    ----------
    path : str
        Where it is wrong, as a JSON path: ``"$"`` is the whole, ``"$.cluster.worker[1]"`` the second worker.

    Examples
    --------
    >>> import ringlet
    >>> try:
    ...     ringlet.train.ClusterSpec({"worker": ["a:1", 2]})
    ... except ValueError as error:
    ...     error.path
    '$.worker[1]'
    """

    def __init__(self, message: str, path: str = "$") -> None:
        super().__init__(message)
        self.path = path


class PartitionError(ValueError):
    """A tensor cannot be cut into the tiles that were asked for.

    Examples
    --------
    >>> import numpy as np
    >>> import ringlet
    >>> ringlet.sharding.tile_views(np.zeros((4, 4)), (3, 1))
    Traceback (most recent call last):
    ringlet.errors.PartitionError: cannot cut dimension 0 of shape (4, 4) into 3 equal tiles: 4 is not a multiple of 3.
    Choose a divisor of 4, or pad the dimension to 6 first.
    """


class ShardingError(ValueError):
    """A sharding, or the shardings of several arrays, do not fit what was asked for.

    Examples
    --------
    >>> raise ShardingError("the arrays are on different device groups: 2 devices, and 4 devices")
    Traceback (most recent call last):
    ringlet.errors.ShardingError: the arrays are on different device groups: 2 devices, and 4 devices
    """


class GatherWarning(UserWarning):
    """An operation on a sharded array does not work tile by tile, so the whole array is gathered for it.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", GatherWarning)  # in a block that may gather
    ...     warnings.warn("np.median gathers 64 B", GatherWarning)
    """


class GatherError(RuntimeError):
    """An operation would gather a sharded array, inside :func:`ringlet.sharding.strict`.

    Examples
    --------
    >>> raise GatherError("np.median gathers 64 B")
    Traceback (most recent call last):
    ringlet.errors.GatherError: np.median gathers 64 B
    """


class ValuesDifferError(ValueError):
    """What should be the same on all replicas is not: :func:`ringlet.checks.all_equal` has found out.

    Raised on all of them. The message names every leaf that differs.

    Attributes
    ----------
    ranks : tuple of int
        Who differs from most of the others.
    path : str
        The first leaf that differs, as an index expression.
    index : tuple of int or None
        Its first element that differs; None where shapes or kinds do.
    values : dict of int to object
        What each of them has there.

    Examples
    --------
    >>> import ringlet
    >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"])
    >>> def step():
    ...     ringlet.checks.all_equal(2.5 if ringlet.get_replica_context().replica_id_in_sync_group == 1 else 3.0)
    >>> try:
    ...     strategy.run(step)
    ... except ValuesDifferError as error:
    ...     error.ranks, error.values[1]
    ((1,), np.float64(2.5))
    """

    def __init__(
        self,
        message: str,
        ranks: tuple[int, ...] = (),
        path: str = "",
        index: tuple[int, ...] | None = None,
        values: dict[int, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.ranks = ranks
        self.path = path
        self.index = index
        self.values = values or {}


class CheckpointCorruptError(ValueError):
    """A file is no checkpoint, or not the one that was written: it was cut off, or some of its bytes have changed.

    Nothing was restored from it.

    Attributes
    ----------
    file : str
        Which file.
    offset : int
        Where in it, in bytes from its start, the part begins that is not what was written.

    Examples
    --------
    >>> try:
    ...     raise CheckpointCorruptError("ckpt-3.safetensors ends after 512 bytes", "ckpt-3.safetensors", 512)
    ... except ValueError as error:
    ...     error.file, error.offset
    ('ckpt-3.safetensors', 512)
    """

    def __init__(self, message: str, file: str = "", offset: int = 0) -> None:
        super().__init__(message)
        self.file = file
        self.offset = offset
