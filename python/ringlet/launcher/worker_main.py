"""Worker main: the main function of a worker of `ringlet.launch`."""

from __future__ import annotations

import contextlib
import mmap
import os
import pickle
import sys
from collections.abc import Callable
from typing import Any

from ringlet.ipc.pickle_codec import pack_result, send
from ringlet.ipc.remote_exception import failure_of


def main(call: int, result: int) -> None:
    """Run one call and send its result.

    `call` is the descriptor of a file with the pickled ``sys.argv`` of the parent and the pickled call. `result` is the
    descriptor of a pipe to the parent, for the pickled pair of whether the call has returned, and its value or Failure.
    """
    for descriptor in (call, result):
        os.set_inheritable(descriptor, False)
    sys.excepthook = lambda *_: None  # prints nothing, because the parent raises the exception
    try:
        arguments, pickled = pickle.loads(_content_of(call))
        sys.argv[:] = arguments
        function, args, kwargs = pickle.loads(pickled)
        parcel = pack_result(True, _in_this_process(function, args, kwargs))
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        parcel = pack_result(False, failure_of(error, {__file__}))
        with contextlib.suppress(Exception):  # a strategy may have installed a hook that aborts other workers
            sys.excepthook(type(error), error, error.__traceback__)
        send(result, parcel)
        sys.exit(1)
    send(result, parcel)


def _in_this_process(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function; if a child that the function has forked also returns from it, end the child."""
    process = os.getpid()
    try:
        return function(*args, **kwargs)
    finally:
        if os.getpid() != process:
            os._exit(0)


def _content_of(descriptor: int) -> bytes:
    # mmap instead of read: the workers share one file position, and a read returns at most 2 GiB.
    with os.fdopen(descriptor, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content[:]
