"""Newest checkpoint of a folder, according to its state file or to the checkpoint files themselves."""

from __future__ import annotations

import dataclasses
import logging
import os
from typing import Any

from ringlet.errors import CheckpointCorruptError, InvalidArgumentError
from ringlet.train.checkpoint_reader import open_file
from ringlet.train.state_file import STATE_NAME, FolderState, read_state

_log = logging.getLogger(__name__)

SUFFIX = ".safetensors"


def file_of(path: Any) -> str:
    """Return the file of a checkpoint; the suffix of the path is optional."""
    text = os.fspath(path)
    text = os.fsdecode(text) if isinstance(text, bytes) else text
    return text if text.endswith(SUFFIX) else text + SUFFIX


@dataclasses.dataclass(frozen=True, order=True)
class FolderEntry:
    """A checkpoint in a folder; the newest compares greatest. `number` is the number at the end of its name, or -1."""

    saved_ns: int
    number: int
    path: str


def checkpoints_in(folder: str, prefix: str = "") -> list[FolderEntry]:
    """Return the checkpoints in a folder that begin with `prefix` and have an intact header, oldest first."""
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
                found.append(FolderEntry(file.saved_ns, int(number) if is_number else -1, path.removesuffix(SUFFIX)))
        except (CheckpointCorruptError, InvalidArgumentError, OSError) as error:
            _log.debug("%s is ignored as a checkpoint: %s", path, error)
    return sorted(found)


def newest_intact(folder: str, besides: str, prefix: str = "") -> str | None:
    """Return the newest intact checkpoint of a folder other than `besides`; reads whole files."""
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
    """Return the state of a folder and whether it comes from the state file.

    If that file is missing, damaged or names a missing checkpoint, the state lists the checkpoints whose names begin
    with `prefix`. The state is None if no such checkpoint exists.
    """
    last: FolderState | None = None
    try:
        while (state := read_state(folder, latest_filename)) is not None:
            if os.path.exists(file_of(os.path.join(folder, state.latest))):
                return state, True
            if state == last:
                _log.warning(
                    "the state file of %s names %s, which does not exist: using the checkpoint files instead",
                    folder,
                    state.latest,
                )
                break
            last = state  # another program may have saved in the meantime and removed that checkpoint
    except (CheckpointCorruptError, OSError) as error:
        _log.warning("%s; using the checkpoint files instead", error)
    found = checkpoints_in(folder, prefix)
    if not found:
        return None, False
    names = tuple([os.path.relpath(each.path, folder) for each in found])
    return FolderState(names[-1], names, tuple([each.saved_ns / 1e9 for each in found])), False


def latest_checkpoint(checkpoint_dir: Any, latest_filename: str | None = None) -> str | None:
    """Return the newest checkpoint of a folder (``tf.train.latest_checkpoint``).

    Its path is read from the folder's file ``checkpoint``, which every save writes. If that file is missing, damaged or
    names a file that does not exist, the newest checkpoint with an intact header is returned.

    Parameters
    ----------
    checkpoint_dir : str or path
    latest_filename : str, optional
        Name of the state file; default ``checkpoint``.

    Returns
    -------
    str or None
        A path for :meth:`Checkpoint.restore`; None if there is no checkpoint.

    Raises
    ------
    ModuleNotFoundError
        If checkpoint files must be read and the library safetensors is not installed.

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
