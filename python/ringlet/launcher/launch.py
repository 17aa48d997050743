"""`ringlet.launch`: runs a function on several worker processes, and returns their results."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ringlet.errors import InvalidArgumentError
from ringlet.errors.exception_notes import with_usage

if TYPE_CHECKING:
    from ringlet.ipc.deadline import Deadline


@with_usage("ringlet.launch(fn, n, args=(value,))")
def launch(
    fn: Callable[..., Any],
    n: int,
    *,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    replicas: int | None = None,
    timeout_seconds: float | None = None,
    environment: Mapping[str, str] | None = None,
    bind: str = "none",
) -> list[Any]:
    """Run a function on several worker processes of this machine, and return their results.

    For notebooks and tests; scripts are run by ``ringlet run``. Every worker is a new interpreter with ``TF_CONFIG``
    and ``RINGLET_JOB_ID`` for a ``MultiWorkerMirroredStrategy`` in `fn`, and an equal share of the cores for BLAS. This
    process prints the workers' output, in whole lines that begin with ``[w0]``, ``[w1]``, and so on; their standard
    input is empty.

    Parameters
    ----------
    fn : callable
        The function, which is sent to the workers by pickle. With the library cloudpickle (``pip install
        'ringlet[cluster]'``), `fn` may be a lambda, or be defined in a notebook, a script or another function.
    n : int
        Number of workers.
    args, kwargs : sequence and mapping, optional
        Arguments of `fn`, the same for all workers.
    replicas : int, optional
        Number of replicas of each worker (``RINGLET_NUM_DEVICES``).
    timeout_seconds : float, optional
        Maximum time until all calls have returned; unlimited by default.
    environment : mapping of str to str, optional
        Variables for the workers, in addition to the environment of this process.
    bind : {"none", "core", "numa"}
        The cores of each worker: all, an equal share, or those of one or more NUMA nodes. A core with several hardware
        threads is not divided.

    Returns
    -------
    list
        The results of the workers, in worker order; arrays in them are received without an extra copy.

    Raises
    ------
    WorkerLostError
        If the process of a worker exited before `fn` had returned.
    DeadlineExceededError
        After `timeout_seconds`; the message names the workers that had not returned.
    TypeError
        If `fn`, its arguments or a result cannot be pickled; the message names the object.
    InvalidArgumentError
        If another argument is invalid, or this machine does not support `bind`.
    Exception
        The exception of `fn` in the worker that failed first. A note names the worker, and the cause shows its
        traceback.

        In each of these cases, and after Ctrl-C, all workers have exited when the exception is raised.

    Examples
    --------
    >>> import ringlet
    >>> def task():
    ...     import json, os
    ...     return json.loads(os.environ["TF_CONFIG"])["task"]["index"] * 10
    >>> ringlet.launch(task, n=2)
    [0, 10]
    """
    # Imported here so that importing the function does not load the launcher.
    from ringlet.ipc.pickle_codec import pack_call
    from ringlet.launcher.core_binding import cores_of_workers
    from ringlet.launcher.launch_job import LaunchJob
    from ringlet.launcher.worker_environment import MOST_RANKS, MOST_WORKERS

    num_workers = _count("n", n, MOST_WORKERS)
    if replicas is not None:
        replicas = _count("replicas", replicas, MOST_RANKS // num_workers)
    deadline = _deadline(timeout_seconds)
    if not callable(fn):
        raise InvalidArgumentError(
            f"fn must be the function that each worker calls, but {fn!r} is not callable: write "
            "ringlet.launch(fn, n, args=(value,)), without calling the function"
        )
    call = pack_call(fn, _positional(args), dict(_mapping("kwargs", kwargs)))
    variables = _mapping("environment", environment)
    for name, value in variables.items():
        if not isinstance(value, str):
            raise InvalidArgumentError(f"environment[{name!r}] must be a string, got {value!r}")
    cores = cores_of_workers(bind, num_workers, replicas, "bind")
    job = LaunchJob(call, num_workers, replicas, {**os.environ, **variables}, cores)
    try:
        job.wait(deadline)
    finally:
        job.close()
    return job.results()


def _count(name: str, value: int, most: int) -> int:
    try:
        count = operator.index(value)
    except TypeError:
        count = 0
    if isinstance(value, bool) or not 1 <= count <= most:
        raise InvalidArgumentError(f"{name} must be an integer from 1 to {most}, got {value!r}")
    return count


def _positional(args: Any) -> tuple[Any, ...]:
    if isinstance(args, str) or not isinstance(args, Iterable):
        raise InvalidArgumentError(f"args must be a sequence of arguments, such as args=({args!r},); got {args!r}")
    return tuple(args)


def _mapping(name: str, value: Any) -> Mapping[str, Any]:
    if value is not None and (not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value)):
        raise InvalidArgumentError(f"{name} must be a dictionary whose keys are strings; got {value!r}")
    return {} if value is None else value


def _deadline(timeout_seconds: float | None) -> Deadline:
    from ringlet.ipc.deadline import Deadline

    if timeout_seconds is None:
        return Deadline.after(math.inf)
    if isinstance(timeout_seconds, (bool, str)) or not timeout_seconds > 0:
        raise InvalidArgumentError(
            f"timeout_seconds must be a positive number, or None for no limit, got {timeout_seconds!r}"
        )
    return Deadline.after(timeout_seconds)
