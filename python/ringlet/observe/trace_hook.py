"""The open trace of this process, if any, and the functions that open one."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ringlet.errors import FailedPreconditionError

if TYPE_CHECKING:
    from ringlet.observe.trace_file import Trace

F = TypeVar("F", bound=Callable[..., Any])

# None without a trace; the modules that write traces are loaded when a trace is opened.
current: Trace | None = None


@contextmanager
def trace(folder: str | os.PathLike[str]) -> Iterator[str]:
    """Write a timeline of this process while the context is open.

    The file has the JSON trace format of https://ui.perfetto.dev and ``chrome://tracing``. It contains the calls of all
    ranks of this process, the functions of replicas, the stages of datasets whose iteration begins in the context, and
    checkpoints. ``RINGLET_TRACE=DIR`` in the environment traces all processes of a job from their start.

    Parameters
    ----------
    folder : str or path
        Folder for the files, one for each process; created if missing.

    Yields
    ------
    str
        Path of the file.

    Raises
    ------
    FailedPreconditionError
        If this process is already being traced.
    OSError
        If the file cannot be created. If it cannot be written later, for example because the disk is full, the trace
        ends with a warning, and the program continues.

    Examples
    --------
    >>> import ringlet, tempfile
    >>> strategy = ringlet.MirroredStrategy(2)
    >>> with tempfile.TemporaryDirectory() as folder, ringlet.observe.trace(folder) as file:
    ...     _ = strategy.run(lambda: ringlet.replica_context().all_reduce("SUM", 1.0))
    >>> file.endswith(".trace.json")
    True
    """
    from ringlet.observe.trace_file import Trace, close

    global current
    if current is not None:
        raise FailedPreconditionError(
            f"this process is already being traced to {current.folder}: close that trace first, or unset RINGLET_TRACE"
        )
    opened = Trace(os.fspath(folder))
    opened.begin()
    current = opened
    try:
        yield opened.path
    finally:
        close()


def traced(name: str, category: str) -> Callable[[F], F]:
    """Return a decorator that traces the calls of a function."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            found = current
            return (function if found is None else found.timed(name, category, function))(*args, **kwargs)

        return cast(F, call)

    return decorate


def _open_if_asked() -> None:
    folder = os.environ.get("RINGLET_TRACE")
    if folder:
        from ringlet.observe.trace_file import Trace

        global current
        current = Trace(folder)


_open_if_asked()
