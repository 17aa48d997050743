"""Threads of BLAS libraries while replicas run: cores over replicas, so that both together use each core once.

NumPy's matrix products run on threads of their own, as many as there are cores. P replicas that multiply at the same
time would ask for P times as many. The limit is set when the first run of replicas starts and taken back when the last
one ends, by calling the library's own getter once and its setter twice: together 0.7 us a run, where the general tools
for it search the process for libraries every time. The search is made once, and again after more modules were imported.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any

from ringlet.devices.cores import visible_cores

__all__ = ["BlasLibrary", "BlasLimiter", "blas_limiter", "functions_of", "loaded_libraries"]

THREADS_VARIABLE = "RINGLET_BLAS_THREADS"

# Kind of library: names of its functions that read and set the number of threads, before and after what builds of
# OpenBLAS put around them.
_FUNCTIONS = {
    "openblas": ("openblas_get_num_threads", "openblas_set_num_threads"),
    "mkl": ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"),
    "blis": ("bli_thread_get_num_threads", "bli_thread_set_num_threads"),
}
_OPENMP = ("omp_get_max_threads", "omp_set_num_threads")
_PER_THREAD = (_OPENMP, _FUNCTIONS["blis"])
_PREFIXES = ("", "scipy_")
_SUFFIXES = ("", "64_", "_64")


@dataclass(frozen=True)
class BlasLibrary:
    """A loaded BLAS library, reduced to what is needed here.

    Parameters
    ----------
    get_threads : callable
        Gives the number of threads that it uses.
    set_threads : callable
        Sets it.
    is_per_thread : bool
        Whether both speak of the calling thread only.

    Examples
    --------
    >>> all(library.get_threads() >= 1 for library in loaded_libraries())
    True
    """

    get_threads: Callable[[], int]
    set_threads: Callable[[int], Any]
    is_per_thread: bool = False


def loaded_libraries() -> list[BlasLibrary]:
    """Find the BLAS libraries of this process whose threads can be limited.

    Returns
    -------
    list of BlasLibrary

    Examples
    --------
    >>> isinstance(loaded_libraries(), list)
    True
    """
    from threadpoolctl import ThreadpoolController  # takes milliseconds to import, and many programs have one replica

    found = []
    for controller in ThreadpoolController().select(user_api="blas").lib_controllers:
        # Called with the interpreter in hand: giving it away and waiting for it costs more than these functions do.
        library = ctypes.PyDLL(controller.filepath)
        layer = getattr(controller, "threading_layer", "")
        found.append(functions_of(controller.internal_api, layer, library))
    return [library for library in found if library is not None]


def functions_of(kind: str, threading_layer: str, library: Any) -> BlasLibrary | None:
    """Find the functions of one library that read and set its number of threads.

    Parameters
    ----------
    kind : str
        ``"openblas"``, ``"mkl"`` or ``"blis"``; of others nothing is known.
    threading_layer : str
        What the library's threads are made of.
    library : object
        Has functions of the library as attributes.

    Returns
    -------
    BlasLibrary or None

    Examples
    --------
    >>> functions_of("unknown", "pthreads", object()) is None
    True
    """
    # An OpenBLAS on OpenMP asks OpenMP how many threads the calling thread may have.
    names = _OPENMP if kind == "openblas" and threading_layer == "openmp" else _FUNCTIONS.get(kind)
    if names is None:
        return None
    for prefix in _PREFIXES:
        for suffix in _SUFFIXES:
            getter = getattr(library, f"{prefix}{names[0]}{suffix}", None)
            setter = getattr(library, f"{prefix}{names[1]}{suffix}", None)
            if getter is not None and setter is not None:
                return BlasLibrary(getter, setter, names in _PER_THREAD)
    return None


class BlasLimiter:
    """Keeps the number of BLAS threads down while replicas run.

    Parameters
    ----------
    environment : mapping of str to str
        Where ``RINGLET_BLAS_THREADS`` is looked up: the number of threads for each replica, 0 to change nothing.
    cores : int
        Cores that replicas and BLAS share.
    find : callable
        Gives the libraries.
    modules : sized
        Grows when a further library may have been loaded.

    Examples
    --------
    >>> threads = [8]
    >>> library = BlasLibrary(lambda: threads[0], lambda count: threads.__setitem__(0, count))
    >>> limiter = BlasLimiter({}, cores=8, find=lambda: [library], modules=())
    >>> limiter.enter("a run", 4)
    >>> threads
    [2]
    >>> limiter.leave("a run")
    >>> threads
    [8]
    """

    def __init__(
        self, environment: Mapping[str, str], cores: int, find: Callable[[], Sequence[BlasLibrary]], modules: Sized
    ) -> None:
        # 0 changes nothing: then no library is of interest.
        self._asked = _read_variable(environment)
        self._find = find if self._asked != 0 else tuple
        self._cores = cores
        self._modules = modules
        self._num_modules = -1
        self._libraries: Sequence[BlasLibrary] = ()
        self._lock = threading.Lock()
        # By run, not a sum: so that a run which Ctrl-C interrupts may leave without knowing whether it had entered.
        self._replicas: dict[object, int] = {}
        # What takes each change back, the latest one last.
        self._changes: list[tuple[Callable[[int], Any], int]] = []

    def enter(self, run: object, num_replicas: int) -> None:
        """State that so many more replicas run from now on; `run` is any hashable object that stands for them."""
        # Every run of replicas passes here: written for speed.
        with self._lock:
            num_modules = len(self._modules)
            if num_modules != self._num_modules:
                self._libraries = self._find()
                self._num_modules = num_modules
            self._replicas[run] = num_replicas
            total = num_replicas if len(self._replicas) == 1 else sum(self._replicas.values())
            share = self._cores // total or 1
            for library in self._libraries:
                threads = library.get_threads()
                limit = self._asked or (share if share < threads else threads)
                if limit != threads:
                    self._changes.append((library.set_threads, threads))
                    library.set_threads(limit)

    def leave(self, run: object) -> None:
        """State that they have ended; the last ones restore what was. A run that never entered may leave, too."""
        with self._lock:
            self._replicas.pop(run, None)
            while self._changes and not self._replicas:
                set_threads, threads = self._changes[-1]
                set_threads(threads)
                self._changes.pop()  # after it was done, so that Ctrl-C in between repeats it

    def limit_this_thread(self, num_replicas: int) -> None:
        """Limit the libraries that keep a number for every thread, for good: for threads that only run replicas."""
        for library in self._libraries:
            if library.is_per_thread:
                library.set_threads(self._asked or min(library.get_threads(), max(1, self._cores // num_replicas)))

    def forget(self) -> None:
        """Restore the libraries in a forked child, where no replicas run."""
        self._lock = threading.Lock()
        self._replicas.clear()
        self.leave(None)


def _read_variable(environment: Mapping[str, str]) -> int | None:
    text = environment.get(THREADS_VARIABLE, "").strip()
    if not text:
        return None
    if not text.isdecimal():
        raise ValueError(
            f"{THREADS_VARIABLE} is the number of BLAS threads for each replica, 0 to leave BLAS alone; got {text!r}. "
            "Correct or unset it"
        )
    return int(text)


_limiter: BlasLimiter | None = None


def blas_limiter() -> BlasLimiter:
    """Give the limiter of this process, made at its first use.

    Returns
    -------
    BlasLimiter

    Examples
    --------
    >>> blas_limiter() is blas_limiter()
    True
    """
    global _limiter
    if _limiter is None:
        _limiter = BlasLimiter(os.environ, visible_cores().count, loaded_libraries, sys.modules)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_limiter.forget)
    return _limiter
