"""What a worker of `ringlet.launch` runs: takes the call, makes it, sends back what came of it."""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ringlet.ipc.call_codec import pack_result, send, unpack
from ringlet.ipc.remote_exception import failure_of

__all__ = ["main"]


def main(call: int, result: int) -> None:
    """Make one call.

    Parameters
    ----------
    call : int
        Descriptor of a file with the pickled arguments of the parent's interpreter and the pickled call.
    result : int
        Descriptor of a pipe to the parent, for a parcel of (has returned, value or Failure).
    """
    for descriptor in (call, result):
        os.set_inheritable(descriptor, False)
    sys.excepthook = _keep_silent
    try:
        arguments, pickled = unpack(_content_of(call))
        sys.argv[:] = arguments
        function, args, kwargs = unpack(pickled)
        parcel = pack_result(True, _in_this_process(function, args, kwargs))
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        parcel = pack_result(False, failure_of(error, {__file__}))
        _tell_hooks(error)
        send(result, parcel)
        sys.exit(1)
    send(result, parcel)


def _in_this_process(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function; what a child returns that it has forked is nobody's result."""
    process = os.getpid()
    try:
        return function(*args, **kwargs)
    finally:
        if os.getpid() != process:
            os._exit(0)


def _content_of(descriptor: int) -> bytes:
    # The workers share one file position, so none uses it. One reading gives 2 GiB at most.
    with os.fdopen(descriptor, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content[:]


def _tell_hooks(error: BaseException) -> None:
    """Tell whoever wants to know of exceptions that end this process, such as strategies that tell other workers."""
    with contextlib.suppress(Exception):
        sys.excepthook(type(error), error, error.__traceback__)


def _keep_silent(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print nothing: the parent raises it."""
