"""Puts files into a folder so that they are there whole or not at all, whatever ends the program and whenever.

A file is written in a folder of its own beside its final place, which is named as only this module does, and brought to
the disk; then it takes its name, in one step, and the name is brought to the disk. The folder is locked while it is in
use, so that those which a killed program left behind are known, and removed by whoever saves next.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ringlet.errors import CheckpointCorruptError, DeadlineExceededError

try:
    import fcntl
except ImportError:  # where there are no such locks, folders in use are not known from others, and none are removed
    fcntl = None  # type: ignore[assignment]

__all__ = ["clean", "locked", "make_folder", "open_to_read", "remove_files", "write_durably"]

_STAGING = re.compile(r"\.ringlet-[0-9a-f]{16}\.saving")
_FULL = (errno.ENOSPC, errno.EDQUOT)
_LOCK_SECONDS = 60.0
_POLL_SECONDS = 0.005


def write_durably(folder: str, name: str, write: Callable[[str], Any]) -> str:
    """Write a file that is on the disk, under its name, when this returns; one that had the name is there until then.

    Parameters
    ----------
    folder : str
        There already.
    name : str
        Without a folder.
    write : callable
        Takes a path, and writes a file there.

    Returns
    -------
    str
        The path of the file.

    Raises
    ------
    OSError
        If the system refuses, for example because the disk is full; says what was to be written. What was there before
        is there still.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_durably(folder, "a.txt", lambda path: pathlib.Path(path).write_text("text"))
    ...     pathlib.Path(path).read_text(), os.listdir(folder)
    ('text', ['a.txt'])
    """
    target = os.path.join(folder, name)
    try:
        with _staging(folder) as staging:
            path = os.path.join(staging, "file")
            # Made here, so that it gets the permissions that files of this process have.
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
            permissions = os.stat(path).st_mode & 0o777
            write(path)
            _flush(path, permissions)
            os.replace(path, target)
            _flush(folder)
    except OSError as error:
        if error.errno is None:  # none of the system's
            raise
        raise _explained(error, error.errno, folder, target) from error
    return target


def _explained(error: OSError, number: int, folder: str, target: str) -> OSError:
    """The error of the system with what it means for who saves; of the same class."""
    remedy = "What was saved before is there as it was"
    if number in _FULL:
        with suppress(OSError, AttributeError):
            free = os.statvfs(folder)
            remedy = f"{free.f_bavail * free.f_frsize} bytes are free there. {remedy}"
    return OSError(number, f"{os.strerror(number)}: {target} was not written. {remedy}", error.filename)


def _flush(path: str, permissions: int | None = None) -> None:
    """Bring a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if permissions is not None:
            os.fchmod(descriptor, permissions)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_to_read(path: str) -> int:
    """Give a descriptor of a file.

    Parameters
    ----------
    path : str

    Raises
    ------
    CheckpointCorruptError
        If it is a folder, or a pipe or a device, which might keep who reads it waiting for ever.
    OSError
        If the system refuses.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    what = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
    raise CheckpointCorruptError(f"{path} is {what}, and should be a file", path, 0)


# --- folders for what is being written --------------------------------------------------------------------------------


@contextmanager
def _staging(folder: str) -> Iterator[str]:
    """A new folder in `folder` that is known to be in use, and is removed with what is left in it."""
    while True:
        path = os.path.join(folder, f".ringlet-{secrets.token_hex(8)}.saving")
        os.mkdir(path, 0o700)
        descriptor = _try_lock(path)
        if descriptor is not None and os.path.exists(path):
            break
        if descriptor is not None:  # somebody took it for one that was left behind, before it was locked
            _unlock(descriptor)
    try:
        yield path
    finally:
        _remove(path)
        _unlock(descriptor)


def _try_lock(path: str) -> int | None:
    """An open descriptor of a folder with the lock of it; -1 where it cannot be locked, None if another has it."""
    if fcntl is None:
        return -1
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except PermissionError:  # it belongs to another user
        return -1
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        return None if isinstance(error, BlockingIOError) else -1
    return descriptor


def _unlock(descriptor: int) -> None:
    """Give back what :func:`_try_lock` gave."""
    if descriptor >= 0:
        # Not only closed: a process that was forked meanwhile has the descriptor, too, and would keep the lock.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _remove(path: str) -> None:
    """Remove a folder of ours with the files in it; what cannot be removed now is left to :func:`clean`."""
    with suppress(OSError):
        for name in os.listdir(path):
            os.unlink(os.path.join(path, name))
        os.rmdir(path)


def clean(folder: str) -> None:
    """Remove what programs that were killed while they saved have left in a folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     os.mkdir(os.path.join(folder, ".ringlet-0123456789abcdef.saving"))
    ...     clean(folder)
    ...     os.listdir(folder)
    []
    """
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        path = os.path.join(folder, name)
        if _STAGING.fullmatch(name) and os.path.isdir(path) and not os.path.islink(path):
            descriptor = _try_lock(path)
            if descriptor is not None and descriptor >= 0:
                _remove(path)
                _unlock(descriptor)


# --- folders of checkpoints -------------------------------------------------------------------------------------------


def make_folder(folder: str) -> None:
    """Make a folder, and those above it, that are there after a crash, too."""
    missing = []
    path = os.path.abspath(folder)
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for path in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(path)
        _flush(os.path.dirname(path))


class _Held(threading.local):
    """The folders that this thread has locked."""

    def __init__(self) -> None:
        self.folders: list[str] = []


_held = _Held()


@contextmanager
def locked(folder: str, timeout_seconds: float = _LOCK_SECONDS) -> Iterator[None]:
    """Keep others who call this out of a folder, threads and processes.

    A signal handler that saves while its own thread is in here does not wait for it: it would for ever.

    Parameters
    ----------
    folder : str
    timeout_seconds : float

    Raises
    ------
    DeadlineExceededError
        If another has it for longer.
    """
    place = os.path.realpath(folder)
    if place in _held.folders:
        yield
        return
    deadline = time.monotonic() + timeout_seconds
    while (descriptor := _try_lock(folder)) is None:
        if time.monotonic() > deadline:
            raise DeadlineExceededError(
                f"another program has had the lock of the folder {folder} for {timeout_seconds:g} s: nothing takes "
                "that long there, so look whether it was stopped (Ctrl-Z, or a debugger), and let it go on or end it"
            )
        time.sleep(_POLL_SECONDS)
    _held.folders.append(place)
    try:
        yield
    finally:
        _held.folders.remove(place)
        _unlock(descriptor)


def remove_files(paths: list[str]) -> None:
    """Remove files that may be gone already."""
    for path in paths:
        with suppress(FileNotFoundError):
            os.unlink(path)
