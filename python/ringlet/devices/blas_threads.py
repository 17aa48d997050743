"""BLAS threads: limits the threads of BLAS libraries while replicas run, to avoid oversubscribing the cores.

A BLAS library uses as many threads as there are cores; P replicas would use P times as many. The limit, cores divided
by replicas, is set when a run of replicas starts; the previous number is restored when the last run ends. A run calls
the getter of a library once and its setter at most twice, which takes 0.7 us. The loaded libraries are listed once, and
again after further imports.
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

THREADS_VARIABLE = "RINGLET_BLAS_THREADS"

# Kind of library: names of its functions that read and set the number of threads, without the prefixes and suffixes of
# OpenBLAS builds.
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
    """Getter and setter of a library's number of BLAS threads; with `is_per_thread`, for the calling thread only."""

    get_threads: Callable[[], int]
    set_threads: Callable[[int], Any]
    is_per_thread: bool = False


def loaded_libraries() -> list[BlasLibrary]:
    """Return the BLAS libraries of this process whose threads can be limited."""
    # The import takes milliseconds, and programs with one replica do not need it.
    from threadpoolctl import ThreadpoolController

    found = []
    for controller in ThreadpoolController().select(user_api="blas").lib_controllers:
        # PyDLL keeps the GIL: releasing and acquiring it costs more than these functions do.
        library = ctypes.PyDLL(controller.filepath)
        layer = getattr(controller, "threading_layer", "")
        found.append(functions_of(controller.internal_api, layer, library))
    return [library for library in found if library is not None]


def functions_of(kind: str, threading_layer: str, library: Any) -> BlasLibrary | None:
    """Return a library's functions that read and set its threads; None if the library is not supported.

    `kind` is ``"openblas"``, ``"mkl"`` or ``"blis"``.
    """
    # OpenBLAS built with OpenMP uses the calling thread's OpenMP setting.
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
    """Limits the BLAS threads of running replicas to ``RINGLET_BLAS_THREADS`` each (0: no limit) or a fair share.

    When the size of `modules` has changed, another library may have been loaded, so `find` is called again.
    """

    def __init__(
        self, environment: Mapping[str, str], cores: int, find: Callable[[], Sequence[BlasLibrary]], modules: Sized
    ) -> None:
        # With 0 (no limit), libraries are not listed.
        self._asked = _read_variable(environment)
        self._find = find if self._asked != 0 else tuple
        self._cores = cores
        self._modules = modules
        self._num_modules = -1
        self._libraries: Sequence[BlasLibrary] = ()
        self._lock = threading.Lock()
        # Number of replicas of each run; a sum would be wrong after an interrupted enter().
        self._replicas: dict[object, int] = {}
        # Setter and previous value of each change, in order.
        self._changes: list[tuple[Callable[[int], Any], int]] = []

    def enter(self, run: object, num_replicas: int) -> None:
        """Record the start of a run of replicas, identified by any hashable object, and limit the threads."""
        # Called by every run: optimized for speed.
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
        """Record the end of a run; the end of the last run restores the threads. Ignored without :meth:`enter`."""
        with self._lock:
            self._replicas.pop(run, None)
            while self._changes and not self._replicas:
                set_threads, threads = self._changes[-1]
                set_threads(threads)
                self._changes.pop()  # removed last: after an interrupt, the value is restored again

    def limit_this_thread(self, num_replicas: int) -> None:
        """Limit the BLAS threads of this thread permanently, in libraries with a limit per thread."""
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
            f"{THREADS_VARIABLE} must be the number of BLAS threads per replica, or 0 for no limit; got {text!r}. "
            "Correct or unset the variable"
        )
    return int(text)


_limiter: BlasLimiter | None = None


def blas_limiter() -> BlasLimiter:
    """Return the limiter of this process, created at its first use."""
    global _limiter
    if _limiter is None:
        _limiter = BlasLimiter(os.environ, visible_cores().count, loaded_libraries, sys.modules)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_limiter.forget)
    return _limiter
