"""Which checkpoint of a folder is the newest: what its state file tells, or else what is there."""

from __future__ import annotations

import dataclasses
import logging
import os
from typing import Any

from ringlet.errors import CheckpointCorruptError, InvalidArgumentError
from ringlet.train.checkpoint_reader import open_file
from ringlet.train.state_file import STATE_NAME, FolderState, read_state

__all__ = ["SUFFIX", "Found", "checkpoints_in", "file_of", "known_state", "last_good", "latest_checkpoint"]

_log = logging.getLogger(__name__)

SUFFIX = ".safetensors"


def file_of(path: Any) -> str:
    """Give the file of a checkpoint, which may be named with or without its suffix.

    Examples
    --------
    >>> file_of("runs/ckpt-3")
    'runs/ckpt-3.safetensors'
    """
    text = os.fspath(path)
    text = os.fsdecode(text) if isinstance(text, bytes) else text
    return text if text.endswith(SUFFIX) else text + SUFFIX


@dataclasses.dataclass(frozen=True, order=True)
class Found:
    """A checkpoint that is in a folder; the newest one is the greatest.

    Attributes
    ----------
    saved_ns : int
        When, in nanoseconds since the epoch.
    number : int
        At the end of its name; -1 if there is none.
    path : str
        Without the suffix.
    """

    saved_ns: int
    number: int
    path: str


def checkpoints_in(folder: str, prefix: str = "") -> list[Found]:
    """Find the checkpoints of a folder whose header is whole, from the oldest to the newest.

    Parameters
    ----------
    folder : str
    prefix : str
        Of their names.

    Examples
    --------
    >>> checkpoints_in("no/such/folder")
    []
    """
    try:
        names = [name for name in os.listdir(folder) if name.endswith(SUFFIX) and name.startswith(prefix)]
    except OSError:
        return []
    found = []
    for name in names:
        path = os.path.join(folder, name)
        try:
            with open_file(path) as file:
                number = name.removesuffix(SUFFIX).rpartition("-")[2]
                is_number = number.isascii() and number.isdigit() and len(number) < 20
                found.append(Found(file.saved_ns, int(number) if is_number else -1, path.removesuffix(SUFFIX)))
        except (CheckpointCorruptError, InvalidArgumentError, OSError) as error:
            _log.debug("%s is not among the checkpoints: %s", path, error)
    return sorted(found)


def last_good(folder: str, besides: str, prefix: str = "") -> str | None:
    """Give the newest checkpoint of a folder, other than one, of which every byte is what was written.

    Parameters
    ----------
    folder : str
    besides : str
        The file that does not count.
    prefix : str
        Of the names.

    Returns
    -------
    str or None
    """
    for found in reversed(checkpoints_in(folder, prefix)):
        file = file_of(found.path)
        try:
            if os.path.abspath(file) != os.path.abspath(besides):
                with open_file(file) as opened:
                    opened.verify()
                return found.path
        except (CheckpointCorruptError, InvalidArgumentError, OSError):
            continue
    return None


def known_state(folder: str, prefix: str = "", latest_filename: str = STATE_NAME) -> tuple[FolderState | None, bool]:
    """Give the state of a folder: what its state file tells, or else what the checkpoints that are there tell.

    Parameters
    ----------
    folder : str
    prefix : str
        Of the names of checkpoints that count if the state file is missing or damaged.
    latest_filename : str
        Of the state file.

    Returns
    -------
    state : FolderState or None
        None if there is no checkpoint.
    is_told : bool
        Whether it is the state file that tells.
    """
    last: FolderState | None = None
    try:
        while (state := read_state(folder, latest_filename)) is not None:
            if os.path.exists(file_of(os.path.join(folder, state.latest))):
                return state, True
            if state == last:
                _log.warning("%s names %s, which is not there: looking at the files", folder, state.latest)
                break
            last = state  # another program may have saved, and removed that one, since the file was read
    except (CheckpointCorruptError, OSError) as error:
        _log.warning("%s; looking at the checkpoints that are there instead", error)
    found = checkpoints_in(folder, prefix)
    if not found:
        return None, False
    names = tuple([os.path.relpath(each.path, folder) for each in found])
    return FolderState(names[-1], names, tuple([each.saved_ns / 1e9 for each in found])), False


def latest_checkpoint(checkpoint_dir: Any, latest_filename: str | None = None) -> str | None:
    """Give the newest checkpoint of a folder (``tf.train.latest_checkpoint``).

    What the folder's file ``checkpoint`` tells, which every save writes; if it is missing, damaged or names what is not
    there, the newest of the checkpoints that are, of those whose header is whole.

    Parameters
    ----------
    checkpoint_dir : str or path
    latest_filename : str, optional
        Name of the file that tells, if it is another one.

    Returns
    -------
    str or None
        A path for :meth:`Checkpoint.restore`; None if there is no checkpoint.

    Raises
    ------
    ModuleNotFoundError
        If checkpoints must be looked at, and the library safetensors is not installed.

    Examples
    --------
    >>> import os, tempfile, ringlet
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(ringlet.train.latest_checkpoint(folder))
    ...     _ = ringlet.train.Checkpoint(step=3).save(f"{folder}/ckpt")
    ...     print(os.path.basename(ringlet.train.latest_checkpoint(folder)))
    None
    ckpt-1
    """
    folder = os.fsdecode(checkpoint_dir)
    state, _ = known_state(folder, latest_filename=latest_filename or STATE_NAME)
    return None if state is None else os.path.join(folder, state.latest)
