"""Agreement among the workers of a strategy during saves and restores: an error on one worker is raised on all.

All workers call the functions that take `workers` together, in the same order.
"""

from __future__ import annotations

import builtins
import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ringlet import errors
from ringlet.errors import CollectiveAborted, FailedPreconditionError
from ringlet.ipc.byte_framing import join_frames, split_frames
from ringlet.strategy.multi_worker.ambient_worker_group import current_workers
from ringlet.train.checkpoint_options import CheckpointOptions

if TYPE_CHECKING:
    from ringlet.strategy.multi_worker.worker_group import WorkerGroup

Message = dict[str, Any]
T = TypeVar("T")

# Classes that an error keeps when it is re-raised on the other workers; the first match in its MRO is used. Other
# errors become CollectiveAborted.
_SAME_CLASS = {
    "CheckpointCorruptError", "FailedPreconditionError", "InvalidArgumentError", "ModuleNotFoundError", "NotFoundError",
    "OSError", "PermissionError", "RuntimeError", "TypeError", "ValueError",
}  # fmt: skip


def saving_workers(options: CheckpointOptions | None = None) -> WorkerGroup | None:
    """Return the workers that save together; None for a process that saves alone.

    A process whose options have `is_chief` or `barrier` saves alone.
    """
    if options is not None and (options.is_chief is not None or options.barrier is not None):
        return None
    workers = current_workers()
    return None if workers is None or workers.num_workers == 1 else workers


def folder_of(path: str) -> str:
    """Return the canonical path of a checkpoint's folder."""
    return os.path.realpath(os.path.dirname(path) or os.curdir)


def exchange_messages(
    workers: WorkerGroup, what: str, message: Message, error: BaseException | None = None, data: bytes = b""
) -> list[tuple[Message, bytes]]:
    """Exchange JSON messages and bytes among all workers; an error on one worker is raised on all.

    `what` is the action, as in "save ckpt-3"; a difference between workers raises CollectiveMismatchError. `error` is
    raised here once the other workers have received it. The other workers raise an error that names this worker: of the
    same class if it is a common one, otherwise CollectiveAborted.
    """
    described = message if error is None else {"error": _described(error)}
    head = json.dumps(described).encode("ascii")
    try:
        workers.barrier(what)
        pieces = workers.exchange(join_frames([head, data]))
    except Exception:
        if error is not None:
            raise error from None  # the other workers have left or made a different call: report the first error
        raise
    if error is not None:
        raise error
    answers = []
    for number, piece in enumerate(pieces):
        head, data = split_frames(piece)
        answer = json.loads(head)
        if "error" in answer:
            raise _remote_error(answer["error"], f"worker {number} could not {what}")
        answers.append((answer, data))
    return answers


def restore_together(
    workers: WorkerGroup, path: str, read: Callable[[], tuple[T, int, Callable[[], Any]]]
) -> tuple[T, int]:
    """Call `read` on every worker; if all calls succeed, apply their results.

    `read` returns an object, the time at which the file was written, and the function that changes objects. Raises
    FailedPreconditionError if workers that share a folder read files that were written at different times.
    """
    name, found, error = os.path.basename(path), None, None
    try:
        found = read()
    except Exception as caught:
        error = caught
    mine = {"folder": folder_of(path), "saved": None if found is None else found[1]}
    described = [message for message, _ in exchange_messages(workers, f"restore {name}", mine, error)]
    for number, each in enumerate(described):
        if each["folder"] == described[0]["folder"] and each["saved"] != described[0]["saved"]:
            raise FailedPreconditionError(
                f"workers 0 and {number} have read different files from {path}, so nothing was changed: the file was "
                "overwritten in the meantime, or the workers do not share a file system. Restore again, from a folder "
                "that all workers share"
            )
    assert found is not None  # without a result, exchange_messages() would have raised an error
    try:
        found[2]()
    except Exception as caught:
        error = caught
    exchange_messages(workers, f"restore {name}", {}, error)
    return found[0], found[1]


def chief_choice(workers: WorkerGroup, path: str | None, folder: str) -> str | None:
    """Return this worker's path of the checkpoint that the chief chose, or `path` if the folders differ."""
    mine = {"folder": os.path.realpath(folder), "name": None if path is None else os.path.relpath(path, folder)}
    chief = exchange_messages(workers, "choose a checkpoint", mine)[0][0]
    if chief["folder"] != mine["folder"]:
        return path
    return None if chief["name"] is None else os.path.join(folder, chief["name"])


def _described(error: BaseException) -> dict[str, Any]:
    kind = next(each.__name__ for each in type(error).__mro__ if each.__name__ in {*_SAME_CLASS, "BaseException"})
    described: dict[str, Any] = {"kind": kind, "name": type(error).__name__, "text": str(error)}
    if isinstance(error, OSError) and error.errno is not None:
        file = None if error.filename is None else str(error.filename)
        described |= {"number": error.errno, "text": str(error.strerror), "file": file}
    return described


def _remote_error(described: dict[str, Any], lead: str) -> Exception:
    text = f"{lead}: {described['name']}: {described['text']}"
    if described["kind"] not in _SAME_CLASS:
        return CollectiveAborted(text)
    found: type[Exception] = getattr(errors, described["kind"], None) or getattr(builtins, described["kind"])
    return found(described["number"], text, described["file"]) if "number" in described else found(text)
