"""What the workers of a strategy tell each other while they save and restore together: each hears of what went wrong.

All of them call these functions together, in the same order.
"""

from __future__ import annotations

import builtins
import json
import os
from collections.abc import Callable
from typing import Any, TypeVar

from ringlet import errors
from ringlet.errors import CollectiveAborted, FailedPreconditionError
from ringlet.strategy.multi_worker.ambient_worker_group import Workers, current_workers
from ringlet.train.checkpoint_options import CheckpointOptions

__all__ = ["Message", "chosen_by_chief", "exchanged", "folder_of", "joined", "restored_together"]

Message = dict[str, Any]
T = TypeVar("T")

# Errors that others raise as the same class; for all other classes CollectiveAborted stands.
_SAME_CLASS = {
    "CheckpointCorruptError", "FailedPreconditionError", "InvalidArgumentError", "ModuleNotFoundError", "NotFoundError",
    "OSError", "PermissionError", "RuntimeError", "TypeError", "ValueError",
}  # fmt: skip


def joined(options: CheckpointOptions | None = None) -> Workers | None:
    """Give what joins the workers that save together; None for a process that saves by itself.

    Parameters
    ----------
    options : CheckpointOptions, optional
        Who says there who writes, or how to wait, joins nobody.

    Examples
    --------
    >>> joined() is None
    True
    """
    if options is not None and (options.is_chief is not None or options.barrier is not None):
        return None
    workers = current_workers()
    return None if workers is None or workers.num_workers == 1 else workers


def folder_of(path: str) -> str:
    """Give the folder of a path, the same text for the same folder.

    Examples
    --------
    >>> folder_of("/tmp/../tmp/ckpt-3")
    '/tmp'
    """
    return os.path.realpath(os.path.dirname(path) or os.curdir)


def exchanged(
    workers: Workers, what: str, message: Message, error: BaseException | None = None, data: bytes = b""
) -> list[tuple[Message, bytes]]:
    """Give what all workers say, or raise on all of them what went wrong on one.

    Parameters
    ----------
    workers : Workers
    what : str
        What they do, as in "save ckpt-3"; the same on all.
    message : dict
        What JSON can hold.
    error : BaseException, optional
        What went wrong here. It is raised here once the others have heard of it.
    data : bytes
        More than JSON can hold.

    Returns
    -------
    list of (dict, bytes)
        Of each worker.

    Raises
    ------
    BaseException
        `error`; or, of another worker's error, one of the same class if that is a plain one, which names the worker.
    CollectiveAborted
        For errors of other classes.
    CollectiveMismatchError
        If the workers do different things.
    """
    told = message if error is None else {"error": _described(error)}
    head = json.dumps(told).encode("ascii")
    try:
        workers.barrier(what)
        pieces = workers.exchange(len(head).to_bytes(8, "little") + head + data)
    except Exception:
        if error is not None:
            raise error from None  # the others are gone, or do something else: what went wrong first counts
        raise
    if error is not None:
        raise error
    answers = []
    for number, piece in enumerate(pieces):
        end = 8 + int.from_bytes(piece[:8], "little")
        answer = json.loads(piece[8:end])
        if "error" in answer:
            raise _like(answer["error"], f"worker {number} could not {what}")
        answers.append((answer, piece[end:]))
    return answers


def restored_together(
    workers: Workers, path: str, read: Callable[[], tuple[T, int, Callable[[], Any]]]
) -> tuple[T, int]:
    """Have all workers read, then, if every one of them could, change what they restore.

    Parameters
    ----------
    workers : Workers
    path : str
        Of the checkpoint.
    read : callable
        Gives something, the moment at which the file was written, and what changes objects.

    Returns
    -------
    object, int
        The first two of them.

    Raises
    ------
    FailedPreconditionError
        If workers that look into the same folder have found files of different moments.
    BaseException
        As :func:`exchanged` does.
    """
    name, found, error = os.path.basename(path), None, None
    try:
        found = read()
    except Exception as caught:
        error = caught
    mine = {"folder": folder_of(path), "saved": None if found is None else found[1]}
    told = [message for message, _ in exchanged(workers, f"restore {name}", mine, error)]
    for number, each in enumerate(told):
        if each["folder"] == told[0]["folder"] and each["saved"] != told[0]["saved"]:
            raise FailedPreconditionError(
                f"workers 0 and {number} have read different files as {path}, and nothing was changed: one was written "
                "over meanwhile, or their disks differ. Restore again, from a folder that all workers share"
            )
    assert found is not None  # or this has raised
    try:
        found[2]()
    except Exception as caught:
        error = caught
    exchanged(workers, f"take what {name} holds", {}, error)
    return found[0], found[1]


def chosen_by_chief(workers: Workers, path: str | None, folder: str) -> str | None:
    """Give the checkpoint that the chief has chosen, for those workers that look into the same folder.

    Parameters
    ----------
    workers : Workers
    path : str or None
        The choice of this worker.
    folder : str
        Where it looks.

    Returns
    -------
    str or None
        The chief's choice in this worker's words; its own if it looks elsewhere.
    """
    mine = {"folder": os.path.realpath(folder), "name": None if path is None else os.path.relpath(path, folder)}
    chief = exchanged(workers, "choose a checkpoint", mine)[0][0]
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


def _like(told: dict[str, Any], lead: str) -> Exception:
    text = f"{lead}: {told['name']}: {told['text']}"
    if told["kind"] not in _SAME_CLASS:
        return CollectiveAborted(text)
    found: type[Exception] = getattr(errors, told["kind"], None) or getattr(builtins, told["kind"])
    return found(told["number"], text, told["file"]) if "number" in told else found(text)
