"""Source locations and stacks of threads, without the frames of Ringlet and of the ``threading`` module."""

from __future__ import annotations

import gc
import linecache
import os
import sys
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from types import FrameType

from ringlet import _core
from ringlet.errors.notebook_cells import cell_or_file

_PACKAGE = __file__.rpartition("observe")[0]
_OWN_FILES = (_PACKAGE, threading.__file__)  # prefixes of the files whose frames are left out
_DATASETS = f"{_PACKAGE}data{os.sep}distribution"
_files_without_places: tuple[str, ...] = _OWN_FILES  # prefixes for `place`, extended by skip_files()
_STANDARD_LIBRARY = (os.__file__.removesuffix("os.py"), "<frozen ")
_INSTALLED = f"{_STANDARD_LIBRARY[0]}site-packages"
# Modules that call notebook cells and the functions passed to `launch`.
_CALLERS = {"IPython", "ipykernel", "ringlet.launcher.worker_main"}
_EVENT_LOOPS = {"tornado", "zmq"}
_MOST_FRAMES = 8
_MOST_THREADS = 4


def _current_frames() -> dict[int, FrameType]:
    """Return the current frame of each thread.

    Python 3.10 and 3.11 hold the lock of all thread states meanwhile: a garbage collection whose finalizers start a
    thread would wait for it forever (https://github.com/python/cpython/issues/106883).
    """
    if sys.version_info >= (3, 12) or not gc.isenabled():
        return sys._current_frames()
    try:
        gc.disable()
        return sys._current_frames()
    finally:
        gc.enable()


def place() -> str:
    """Return the location of this thread's innermost frame of the program, such as ``in step (train.py:88)``.

    Empty in a thread without frames of the program, such as the thread of asynchronous calls.
    """
    return _place(_frames(sys._getframe()))


def call_site() -> str:
    """Return the location of this thread or, if it has no frames of the program, the location of the main thread.

    The text begins with ``for a distributed dataset`` if the call is made by the dataset.
    """
    if own := place():
        return _purpose(sys._getframe()) + own
    frame = _current_frames().get(threading.main_thread().ident or 0)
    main = _place(_frames(frame))
    return main and f"{_purpose(frame)}while the main thread is {main}"


def _purpose(frame: FrameType | None) -> str:
    while frame is not None and frame.f_code.co_filename.startswith(_OWN_FILES):
        if frame.f_code.co_filename.startswith(_DATASETS):
            return "for a distributed dataset, "
        frame = frame.f_back
    return ""


def location(thread: int | None) -> str:
    """Describe the line of the program that a thread, given by its ``get_ident()``, is executing."""
    frame = _current_frames().get(thread or 0)
    if frame is None:
        return "in a thread that has ended"
    return _place([each for each in _frames(frame) if _is_of_program(each)]) or described(frame)


def skip_files(*prefixes: str) -> None:
    """Make `place` ignore files whose names start with a prefix, as it ignores the files of Ringlet."""
    global _files_without_places
    _files_without_places += prefixes
    _core.set_places(place, _files_without_places)


def _place(frames: list[FrameType]) -> str:
    for frame in frames:
        if not frame.f_code.co_filename.startswith(_files_without_places):
            return described(frame)
    return ""


def described(frame: FrameType) -> str:
    """Return the location of a frame, in the form of :func:`place`."""
    return f"in {frame.f_code.co_name} ({_file(frame)}:{frame.f_lineno})"


def rank_stacks(ranks: Sequence[tuple[int, int, bool]]) -> list[str]:
    """Describe what the threads of ranks are executing.

    Parameters
    ----------
    ranks : sequence of (int, int, bool)
        For each rank of this process: its number, the thread that made its last call (0 for none), and whether it is in
        a call.

    Returns
    -------
    list of str
        For each rank, its innermost frames, each on a new line. For a rank outside a call, threads in a call of another
        rank are left out. If the thread of a rank is unknown, or has no frames outside Ringlet, the text has the frames
        of up to four threads that are not in a call.
    """
    frames = _current_frames()
    frames.pop(threading.get_ident(), None)  # omits the thread that makes the report
    stacks = {thread: found for thread, frame in frames.items() if (found := _frames(frame))}
    calling = {thread for _, thread, is_in_call in ranks if is_in_call}
    free = {thread: found for thread, found in stacks.items() if thread not in calling}
    return [_text(_of_rank(stacks if is_in_call else free, thread, free)) for _, thread, is_in_call in ranks]


def thread_stacks(threads: Iterable[int | None]) -> str:
    """Return, as text to append to a message, the innermost frames of up to four threads, if they run the program."""
    current = _current_frames()
    stacks = {thread: _frames(current[thread]) for thread in threads if thread in current}
    texts = [f"\n  {_name(thread)}:{_lines(found)}" for thread, found in stacks.items() if found]
    return "".join(texts[:_MOST_THREADS]) or " code of Ringlet"


def _name(thread: int) -> str:
    return next((each.name for each in threading.enumerate() if each.ident == thread), str(thread))


def _of_rank(
    stacks: dict[int, list[FrameType]], thread: int, free: dict[int, list[FrameType]]
) -> dict[int, list[FrameType]]:
    return {thread: stacks[thread]} if thread in stacks else free


def _frames(frame: FrameType | None) -> list[FrameType]:
    """Return the frames of the program, without Ringlet and the code that called the program, innermost first.

    The list is empty if all frames belong to the standard library, or to libraries in which a notebook kernel waits.
    """
    found = []
    while frame is not None and _CALLERS.isdisjoint((_library(frame), frame.f_globals.get("__name__"))):
        if not frame.f_code.co_filename.startswith(_OWN_FILES):
            found.append(frame)
        frame = frame.f_back
    is_of_kernel = frame is not None
    known = (_is_of_program(each) and not (is_of_kernel and _library(each) in _EVENT_LOOPS) for each in found)
    return found if any(known) else []


def _library(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]


def _is_of_program(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    return not name.startswith(_STANDARD_LIBRARY) or name.startswith(_INSTALLED)


def _text(stacks: dict[int, list[FrameType]]) -> str:
    if not stacks:
        return ": idle"
    if len(stacks) == 1:
        return ":" + _lines(*stacks.values())
    texts = [f"\n    in thread {_name(thread)}:{_lines(stacks[thread])}" for thread in sorted(stacks)]
    return ": one of these threads" + "".join(texts[:_MOST_THREADS])


def _lines(frames: list[FrameType]) -> str:
    lines = [_line(frame) for frame in frames[:_MOST_FRAMES]]
    if len(frames) > _MOST_FRAMES:
        lines.append(f"and {len(frames) - _MOST_FRAMES} more frames")
    return "".join(f"\n    {line}" for line in lines)


def _line(frame: FrameType) -> str:
    source = linecache.getline(frame.f_code.co_filename, frame.f_lineno, frame.f_globals).strip()
    return f"{_file(frame)}:{frame.f_lineno} in {frame.f_code.co_name}" + (f": {source}" if source else "")


def _file(frame: FrameType) -> str:
    """Return the file of a frame, relative to the working directory if inside it, or the cell of a notebook."""
    name = cell_or_file(frame.f_code.co_filename)
    with suppress(OSError):  # the working directory was deleted
        return name.removeprefix(os.getcwd() + os.sep)  # noqa: PTH109 - pathlib is slow to load
    return name
