"""Work: the handle of a call that runs while the program continues."""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Concatenate, Generic, ParamSpec, TypeVar, cast

from ringlet.collectives.member_base import MemberBase
from ringlet.collectives.timeouts import resolve_timeout
from ringlet.errors import DeadlineExceededError, FailedPreconditionError
from ringlet.observe.trace_hook import traced

if TYPE_CHECKING:
    from concurrent.futures import Future

    from ringlet.collectives.operation_queue import Finished

Caller = TypeVar("Caller", bound=MemberBase)
P = ParamSpec("P")
T = TypeVar("T")


class Work(Generic[T]):
    """A call that runs while the program continues. Returned by the methods of a member that end in ``_async``.

    Collectives of one member run in the order of the calls, in one thread, which releases the GIL during
    transfers; a blocking call first waits for asynchronous calls. Until a call is done, its inputs must not be
    written to, and its `out` must not be used.

    Examples
    --------
    >>> import numpy as np
    >>> from ringlet.testing import run_on_ranks
    >>> def step(member):
    ...     gradient = np.full(3, member.rank + 1.0)
    ...     work = member.all_reduce_async(gradient, out=gradient)
    ...     loss = sum(range(1000))  # meanwhile
    ...     return work.wait()
    >>> run_on_ranks(2, step)
    [array([3., 3., 3.]), array([3., 3., 3.])]
    """

    __slots__ = ("_future", "_name", "_pid")

    def __init__(self, name: str, future: Future[T] | Finished) -> None:
        self._name = name
        self._future = future
        self._pid = os.getpid()

    def wait(self, timeout_seconds: float | None = None) -> T:
        """Wait until the call is done, and return its result or raise its error.

        Parameters
        ----------
        timeout_seconds : float, optional
            Maximum wait; None and 0 leave only the group's time-out.

        Raises
        ------
        DeadlineExceededError
            If the call is not done in time. The call continues, and `wait` may be called again.
        FailedPreconditionError
            If the group was closed before the call began, or this process was forked after the call.

        Examples
        --------
        >>> from ringlet.collectives import Group
        >>> Group(2, timeout_seconds=5).member(0).barrier_async().wait(0.01)
        Traceback (most recent call last):
        ringlet.errors.DeadlineExceededError: barrier did not complete within 0.01 s, and continues: ...
        """
        self._check_process()
        seconds = math.inf if timeout_seconds is None else resolve_timeout(timeout_seconds)
        if not self._is_done_after(seconds):
            raise DeadlineExceededError(
                f"{self._name} did not complete within {seconds:g} s, and continues: call wait() again, or allow more "
                "time with timeout_seconds=."
            )
        result: T = self._future.result()
        return result

    def is_done(self) -> bool:
        """Return whether the call has returned or raised an error.

        Examples
        --------
        >>> from ringlet.collectives import Group
        >>> work = Group(1).member(0).barrier_async()
        >>> work.wait()
        >>> work.is_done()
        True
        """
        self._check_process()
        return self._future.done()

    @traced("wait", "wait")
    def _is_done_after(self, seconds: float) -> bool:
        from concurrent.futures import TimeoutError as Late  # TimeoutError is the built-in class from Python 3.11 on

        with contextlib.suppress(Late):
            self._future.exception(None if seconds > threading.TIMEOUT_MAX else seconds)
        return self._future.done()

    def _check_process(self) -> None:
        if self._pid != os.getpid():
            raise FailedPreconditionError(
                f"{self._name} runs in process {self._pid}, the parent of this process: call wait() there, or before "
                "the fork."
            )

    def __repr__(self) -> str:
        is_here = self._pid == os.getpid()
        return f"<Work {self._name}, {('done' if self._future.done() else 'running') if is_here else 'of the parent'}>"


_DOCSTRING = """Start :meth:`{name}`, and return while it runs.

        Parameters
        ----------
        *args, **kwargs
            The arguments of :meth:`{name}`.

        Returns
        -------
        Work
            Its :meth:`~ringlet.collectives.Work.wait` returns the result of :meth:`{name}`, or raises its error.
        """


def asynchronous(call: Callable[Concatenate[Caller, P], T]) -> Callable[Concatenate[Caller, P], Work[T]]:
    """Return the asynchronous variant of a method of Member."""
    name = call.__name__

    @functools.wraps(call)
    def start(self: Caller, *args: P.args, **kwargs: P.kwargs) -> Work[T]:
        return Work(name, self._operations().run(functools.partial(call, self, *args, **kwargs), name))

    start.__name__ = f"{name}_async"
    start.__qualname__ = f"Member.{name}_async"
    start.__doc__ = _DOCSTRING.format(name=name)
    signature = inspect.signature(call)
    vars(start)["__signature__"] = signature.replace(return_annotation=f"Work[{signature.return_annotation}]")
    return cast("Callable[Concatenate[Caller, P], Work[T]]", start)
