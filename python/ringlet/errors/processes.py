"""Errors about processes, threads and shared memory of a job."""

from __future__ import annotations


class CollectiveMismatchError(RuntimeError):
    """The ranks of a group did not make the same call.

    Raised on every rank of the group. The message lists the call of each rank and its source location.

    Notes
    -----
    Usual causes: one rank left its loop early because it had fewer batches, one rank took a different branch, or an
    array has a different shape or dtype on one rank. Compare the lines that the message names, and give every rank the
    same number of batches.

    Examples
    --------
    >>> import numpy as np
    >>> import ringlet
    >>> def step(member):
    ...     return member.all_reduce(np.ones(2 + member.rank))
    >>> ringlet.testing.run_on_ranks(2, step)
    Traceback (most recent call last):
    ringlet.errors.CollectiveMismatchError: the ranks did not make the same call (their call number 1):
      rank 0: all_reduce(SUM, float64[2]), in step (...)
      rank 1: all_reduce(SUM, float64[3]), in step (...)
    Make the same calls in the same order, with equal shapes and dtypes, on every rank.
    """


class CollectiveAborted(RuntimeError):
    """Another rank failed, so the collective of this rank cannot complete.

    The message describes the first failure.

    Notes
    -----
    Usual causes: an exception or Ctrl-C in another rank, or a call to `abort`. Correct the first failure, then create a
    new strategy or group.

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
    """A required process has exited or does not answer (``tf.errors.UnavailableError``).

    Notes
    -----
    Usually raised as a subclass, which names the process. The class itself is raised if a process does not answer a
    request.

    Examples
    --------
    >>> issubclass(WorkerLostError, UnavailableError), issubclass(PSUnavailableError, UnavailableError)
    (True, True)
    """


class WorkerLostError(UnavailableError):
    """The process of another rank has exited or left the group, so the group is unusable.

    Raised on every other rank, by the pending call and by all later calls. Start the job again, from its last
    checkpoint if it has one.

    Attributes
    ----------
    rank : int
        The lost rank, numbered in the whole group even if the call was made in a subgroup. If the lost process had
        several ranks, the lowest of them.
    host : str
        Name of the machine of the lost process.
    pid : int
        Process id of the lost process on that machine.
    reason : str
        How the process ended, such as ``"was killed by SIGKILL (signal 9)"`` or ``"exited with status 3"``.

    Notes
    -----
    Usual causes: the system killed the process for lack of memory (SIGKILL; see ``dmesg``), compiled code crashed
    (SIGSEGV), a batch system ended the job (SIGTERM), or the worker returned or called `sys.exit` before the other
    workers. ``ringlet run --restarts N`` restarts a failed job automatically; ``ringlet inspect`` shows the last call
    of each rank.

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
    """The process of a parameter server has exited, which ends the job.

    Every later call of the coordinator raises this error. On one machine, variables can still be read and saved. Start
    the job again.

    Attributes
    ----------
    task_index : int
        Index of the parameter server.
    reason : str
        How its process ended, such as ``"was killed by SIGKILL (signal 9)"``.

    Notes
    -----
    Usual causes, as for a lost worker: lack of memory, a crash, a signal.

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
    """A scheduled function was not run, or its result is lost (``tf.errors.CancelledError``).

    Caused by another error, which `schedule`, `join` or `done` of the coordinator raises.

    Notes
    -----
    Correct the other error, then schedule the function again.

    Examples
    --------
    >>> raise CancelledError("The corresponding function is cancelled. Please reschedule the function.")
    Traceback (most recent call last):
    ringlet.errors.CancelledError: The corresponding function is cancelled. Please reschedule the function.
    """


class ClosureInputError(RuntimeError):
    """An argument of a scheduled function, such as a dataset, could not be created on its worker.

    Attributes
    ----------
    original_exception : BaseException
        The cause.

    Notes
    -----
    Usual causes: the function that creates the dataset raises an error on the worker, or captures an object that cannot
    be pickled.

    Examples
    --------
    >>> ClosureInputError(ValueError("no files")).original_exception
    ValueError('no files')
    """

    def __init__(self, original_exception: BaseException) -> None:
        super().__init__(
            f"an argument of the function could not be created on its worker: {type(original_exception).__name__}: "
            f"{original_exception}"
        )
        self.original_exception = original_exception

    def __reduce__(self) -> tuple[type[ClosureInputError], tuple[BaseException]]:
        return type(self), (self.original_exception,)


class SharedMemoryFullError(OSError):
    """The system has too little shared memory, or refuses to allocate it.

    Attributes
    ----------
    need_bytes : int
        The requested size.
    free_bytes : int
        The available size; 0 if unknown.
    path : str
        The file system of the request; ``"memfd"`` for anonymous memory.
    errno : int
        The system's error code, such as ``errno.ENOMEM``.

    Notes
    -----
    Usual causes: a container with a low limit on memory, which includes shared memory (``docker run --shm-size``,
    ``--memory``), or a limit on file sizes (``ulimit -f``). Raise the limit, or use fewer ranks. ``ringlet doctor``
    shows the limits.

    Examples
    --------
    >>> try:
    ...     raise SharedMemoryFullError("64 MiB are required, 3 MiB are available", 2**26, 3 * 2**20, "memfd", 12)
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
    """A wait reached its deadline; in a collective, the message names the missing ranks and shows all ranks' stacks.

    Notes
    -----
    Usual causes: a rank that is still reading data or compiling, a stopped process (SIGSTOP, a debugger), or two
    groups that wait for each other. ``ringlet inspect`` shows the last calls of each rank; a warning with the same
    stacks is logged after ``RINGLET_STALL_SECONDS``, if the deadline is later.

    Examples
    --------
    >>> import ringlet
    >>> ringlet.collectives.Group(2, timeout_seconds=0.01).member(0).barrier("epoch 3")
    Traceback (most recent call last):
    ringlet.errors.DeadlineExceededError: barrier('epoch 3'), call 1 of rank 0, waited 0.01 s for rank 1
    (after 0 calls).
    After 0.01 s, the ranks executed:
      rank 1: ...
      rank 0, waiting in this call:
        ...
    Allow more time with timeout_seconds= or RINGLET_TIMEOUT_SECONDS.
    """
