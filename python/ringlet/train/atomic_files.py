"""Atomic and durable writes of files into a folder: after a crash, a file has either its old or its new contents.

A file is written in a staging folder beside its target, flushed, and renamed over the target; then the folder is
flushed. The staging folder is locked while it is in use, so that the next save can remove the folders left by killed
programs.
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
except ImportError:  # without file locks, staging folders in use cannot be recognized, so none are removed
    fcntl = None  # type: ignore[assignment]

_STAGING = re.compile(r"\.ringlet-[0-9a-f]{16}\.saving")
_FULL = (errno.ENOSPC, errno.EDQUOT)
_LOCK_SECONDS = 60.0
_POLL_SECONDS = 0.005


def write_durably(folder: str, name: str, write: Callable[[str], Any]) -> str:
    """Write a file atomically, with a function that writes to a path; return the file's path once it is on disk.

    The old file stays in place until the new file is complete. Errors of the operating system name the target.
    """
    target = os.path.join(folder, name)
    try:
        with _staging(folder) as staging:
            path = os.path.join(staging, "file")
            # Created here, so that the file gets the default permissions of this process.
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
            permissions = os.stat(path).st_mode & 0o777
            write(path)
            _flush(path, permissions)
            os.replace(path, target)
            _flush(folder)
    except OSError as error:
        if error.errno is None:  # the error is not from the operating system
            raise
        raise _with_target(error, error.errno, folder, target) from error
    return target


def _with_target(error: OSError, number: int, folder: str, target: str) -> OSError:
    remedy = "Earlier files are unchanged"
    if number in _FULL:
        with suppress(OSError, AttributeError):
            free = os.statvfs(folder)
            remedy = f"{free.f_bavail * free.f_frsize} bytes are free there. {remedy}"
    return OSError(number, f"{os.strerror(number)}: {target} was not written. {remedy}", error.filename)


def _flush(path: str, permissions: int | None = None) -> None:
    """Flush a file, or a folder's entries, to disk; set `permissions` before that if they are given."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if permissions is not None:
            os.fchmod(descriptor, permissions)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_to_read(path: str) -> int:
    """Open a regular file for reading and return its descriptor.

    Raises CheckpointCorruptError for a folder, a pipe or a device, because reading a pipe could block forever.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    what = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
    raise CheckpointCorruptError(f"{path} is {what}, expected a regular file", path, 0)


# --- staging folders --------------------------------------------------------------------------------------------------


@contextmanager
def _staging(folder: str) -> Iterator[str]:
    """Create a locked staging folder in `folder`; remove it with its contents at exit."""
    while True:
        path = os.path.join(folder, f".ringlet-{secrets.token_hex(8)}.saving")
        os.mkdir(path, 0o700)
        descriptor = _try_lock(path)
        if descriptor is not None and os.path.exists(path):
            break
        if descriptor is not None:  # another process removed the folder before it was locked
            _unlock(descriptor)
    try:
        yield path
    finally:
        _remove(path)
        _unlock(descriptor)


def _try_lock(path: str) -> int | None:
    """Lock a folder and return its descriptor; -1 if locking is impossible, None if it is locked or does not exist."""
    if fcntl is None:
        return -1
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except PermissionError:  # the folder belongs to another user
        return -1
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        return None if isinstance(error, BlockingIOError) else -1
    return descriptor


def _unlock(descriptor: int) -> None:
    if descriptor >= 0:
        # Unlock before close: a process forked in the meantime has inherited the descriptor and would keep the lock.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _remove(path: str) -> None:
    """Remove a staging folder and its files; if that fails, a later :func:`clean` removes them."""
    with suppress(OSError):
        for name in os.listdir(path):
            os.unlink(os.path.join(path, name))
        os.rmdir(path)


def clean(folder: str) -> None:
    """Remove the staging folders that killed programs left in a folder."""
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


# --- checkpoint folders -----------------------------------------------------------------------------------------------


def make_folder(folder: str) -> None:
    """Create a folder and its parents durably, so that they survive a crash of the machine."""
    missing = []
    path = os.path.abspath(folder)
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for path in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(path)
        _flush(os.path.dirname(path))


class _LockedFolders(threading.local):
    def __init__(self) -> None:
        self.folders: list[str] = []


_held = _LockedFolders()


@contextmanager
def locked(folder: str, timeout_seconds: float = _LOCK_SECONDS) -> Iterator[None]:
    """Hold the lock of a folder, if it can be locked; raise DeadlineExceededError if it is not free in time.

    The lock excludes other threads and processes. It is reentrant within a thread, so that a signal handler that saves
    does not deadlock.
    """
    place = os.path.realpath(folder)
    if place in _held.folders:
        yield
        return
    deadline = time.monotonic() + timeout_seconds
    while (descriptor := _try_lock(folder)) is None:
        if time.monotonic() > deadline:
            raise DeadlineExceededError(
                f"another process or thread has held the lock of the folder {folder} for {timeout_seconds:g} s, but "
                "normally it is held for milliseconds: check whether its process is stopped (Ctrl-Z, or a debugger), "
                "and resume or end it"
            )
        time.sleep(_POLL_SECONDS)
    _held.folders.append(place)
    try:
        yield
    finally:
        _held.folders.remove(place)
        _unlock(descriptor)


def remove_files(paths: list[str]) -> None:
    """Remove files, some of which may be missing."""
    for path in paths:
        with suppress(FileNotFoundError):
            os.unlink(path)
