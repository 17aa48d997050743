"""once_per_host: work that one process on each machine does for all processes there."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from types import TracebackType
from typing import Any, TypeVar, overload

import numpy as np

from ringlet import context
from ringlet.errors import CollectiveAborted
from ringlet.errors.exception_notes import class_and_text
from ringlet.rank_zero.ad_hoc_group import error_prefix, join_group
from ringlet.rank_zero.process_role import local_replica, process_role

T = TypeVar("T")

# Nesting depth in each thread. A nested call must not wait for other processes, because they do not make that call.
_inside = threading.local()


@overload
def once_per_host(function: Callable[[], T], *, name: str = "", timeout_seconds: float | None = None) -> T: ...
@overload
def once_per_host(
    function: None = None, *, name: str = "", timeout_seconds: float | None = None
) -> AbstractContextManager[bool]: ...


def once_per_host(
    function: Callable[[], T] | None = None, *, name: str = "", timeout_seconds: float | None = None
) -> T | AbstractContextManager[bool]:
    """Run work such as a download on one process of each machine, while the other processes wait.

    All processes must make this call and, if a replica makes it, all replicas. The strategy, ``TF_CONFIG`` or
    ``RINGLET_RANK`` defines the processes; the first process on each machine does the work. A call in a single process,
    or inside such work, does not wait for other processes.

    Parameters
    ----------
    function : callable, optional
        Called without arguments on one process. The other processes receive its return value, which may consist of
        None, numbers, text, bytes, paths, lists, tuples and dictionaries. If omitted, a context manager is returned.
    name : str
        Name of the work in messages; equal on all processes.
    timeout_seconds : float, optional
        Maximum wait of the other processes for the work; 0 for no limit, None for the default of 600 s or
        ``RINGLET_TIMEOUT_SECONDS``. Increase it for long downloads.

    Returns
    -------
    object or context manager
        The return value of the function; or a context manager whose body the first process runs before the others.
        ``with ... as is_first`` sets `is_first` to whether this process is the first.

    Raises
    ------
    Exception
        On the process that did the work, the exception of the function.
    CollectiveAborted
        On the other processes, immediately, with the text of that exception.
    WorkerLostError
        If a process exited during the call.
    CollectiveMismatchError
        On all processes, if the names differ, or one of them calls ``checks.all_equal``.
    DeadlineExceededError
        If processes are missing, or the work took too long; the message names the processes.
    TypeError
        If the return value cannot be sent to other processes.

    Examples
    --------
    >>> import ringlet
    >>> ringlet.once_per_host(lambda: "data/train.bin", name="download")
    'data/train.bin'
    >>> with ringlet.once_per_host(name="unpack") as is_first:
    ...     if is_first:
    ...         print("unpacking")
    unpacking
    """
    once = _Once(name, timeout_seconds)
    if function is None:
        return _OnceInReplica(once) if local_replica() is not None else once
    if local_replica() is None:
        return once.call(function)
    replica: Any = context.current()
    result: T = replica._merge_named(_titled(name), lambda _: _Cell(once.call(function))).content
    return result


def _titled(name: str) -> str:
    return f"once_per_host({name!r})" if name else "once_per_host"


class _Cell:
    """Wraps a result, so that it is not split over the replicas."""

    __slots__ = ("content",)

    def __init__(self, content: Any) -> None:
        self.content = content


class _Once:
    """Context manager whose body one process of a machine runs first; ``as`` receives whether it is this process."""

    def __init__(self, name: str, timeout_seconds: float | None) -> None:
        self._title, self._seconds = _titled(name), timeout_seconds
        self._member: Any = None  # None for a single process
        self._result = "null"

    def call(self, function: Callable[[], T]) -> T:
        """Run the function on the first process of the machine, and return its result on each process there."""
        with self as is_first:
            if is_first:
                result = function()
                self._result = to_text(result)  # even in a single process, to reject unsupported types
                return result
            received: T = from_text(self._result)
            return received

    def __enter__(self) -> bool:
        depth = getattr(_inside, "depth", 0)
        indices = process_role().host_indices
        if depth == 0 and len(indices) > 1:
            self._member = join_group(self._title, indices, self._seconds)
        is_first = self._member is None or self._member.rank == 0
        if not is_first:
            self._receive()
        _inside.depth = depth + 1
        return is_first

    def _receive(self) -> None:
        import json

        with error_prefix(self._title), self._member:
            message = json.loads(self._member.broadcast(root=0).tobytes())
        if "error" in message:
            raise CollectiveAborted(f"{self._title} has failed: {message['error']}")
        self._result = message["result"]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _inside.depth -= 1
        if self._member is None or self._member.rank != 0:
            return
        if error is None:
            with error_prefix(self._title), self._member:
                self._send({"result": self._result})
        else:
            with suppress(ConnectionError, RuntimeError, TimeoutError), self._member:  # the original error is raised
                self._send({"error": f"{process_role().name} (pid {os.getpid()}) raised {class_and_text(error)}"})

    def _send(self, message: dict[str, str]) -> None:
        import json

        self._member.broadcast(np.frombuffer(json.dumps(message).encode("ascii"), np.uint8))


class _OnceInReplica:
    """The context manager inside replicas: the first replica of a process enters `_Once`, and the others wait."""

    def __init__(self, once: _Once) -> None:
        self._once, self._is_first = once, False
        self._replica: Any = context.current()

    def __enter__(self) -> bool:
        if self._replica.local_replica_id == 0:
            self._is_first = self._once.__enter__()
        if not self._is_first:
            self._barrier()
        return self._is_first

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._replica.local_replica_id == 0:
            self._once.__exit__(kind, error, trace)
        if self._is_first and error is None:
            self._barrier()

    def _barrier(self) -> None:
        self._replica._merge_named(self._once._title, lambda _: None)


_PLAIN = (type(None), bool, int, float, str)


def to_text(value: Any) -> str:
    """Encode a value; raise TypeError for unsupported types."""
    import json

    return json.dumps(_node(value))


def from_text(text: str) -> Any:
    """Decode the output of :func:`to_text`; paths become `Path`, subclasses of bytes bytes."""
    import json

    return _value(json.loads(text))


def _node(value: Any) -> Any:
    """Return the JSON form of a value: a plain value itself, any other value as a list of type and content."""
    if type(value) in _PLAIN:
        return value
    from pathlib import PurePath

    if isinstance(value, PurePath):
        return ["path", str(value)]
    if isinstance(value, bytes):
        import base64

        return ["bytes", base64.b64encode(value).decode("ascii")]
    if type(value) in (list, tuple):
        return [type(value).__name__, [_node(each) for each in value]]
    if type(value) is dict and all(type(key) is str for key in value):
        return ["dict", {key: _node(each) for key, each in value.items()}]
    raise TypeError(
        f"{value!r} of type {type(value).__name__} cannot be sent to other processes: return None, numbers, text, "
        "bytes, paths, or lists, tuples and dictionaries of these, such as the path of a file that each process reads"
    )


def _value(node: Any) -> Any:
    if not isinstance(node, list):
        return node
    kind, content = node
    if kind == "path":
        from pathlib import Path

        return Path(content)
    if kind == "bytes":
        import base64

        return base64.b64decode(content)
    if kind == "dict":
        return {key: _value(each) for key, each in content.items()}
    values = [_value(each) for each in content]
    return values if kind == "list" else tuple(values)
