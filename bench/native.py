"""Builds the C++ benchmarks on demand and runs them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.machine import ROOT

__all__ = ["NativeError", "Programs", "build", "run"]

_FOLDER = ROOT / "build" / "bench"


class NativeError(RuntimeError):
    """A C++ benchmark could not be built, or failed; the message has its output."""


@dataclass(frozen=True)
class Programs:
    """Paths of the built programs.

    Attributes
    ----------
    all_reduce, collectives, limits : Path
    """

    all_reduce: Path
    collectives: Path
    limits: Path


def build() -> Programs:
    """Configure and build the C++ benchmarks in ``build/bench``; fast if nothing has changed.

    Returns
    -------
    Programs

    Raises
    ------
    NativeError
        If CMake or a compiler is missing, or the build fails.
    """
    cmake = _tool("cmake")
    if cmake is None:
        raise NativeError("the C++ benchmarks need CMake, which was not found; pip install cmake ninja.")
    ninja = _tool("ninja")
    generator = ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"] if ninja else []
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DRINGLET_BUILD_BENCH=ON", "-DRINGLET_BUILD_TESTS=OFF"]
    if not (_FOLDER / "CMakeCache.txt").exists():
        _checked([cmake, "-S", str(ROOT), "-B", str(_FOLDER), *generator, *options])
    names = ("all_reduce", "collectives", "limits")
    _checked([cmake, "--build", str(_FOLDER), "--target", *(f"bench_{name}" for name in names), "--parallel"])
    return Programs(**{name: _FOLDER / "bench" / f"bench_{name}" for name in names})


def run(program: Path, arguments: Sequence[str], *, environment: Mapping[str, str] | None = None) -> Any:
    """Run a benchmark program and parse the JSON that it prints.

    Parameters
    ----------
    program : Path
    arguments : sequence of str
    environment : mapping of str to str, optional
        Variables in addition to those of this process.

    Raises
    ------
    NativeError
        If the exit status is not 0; status 3 means a wrong result.
    """
    return json.loads(_checked([str(program), *arguments], environment))


def _tool(name: str) -> str | None:
    # Programs that pip installed lie beside the interpreter, which need not be on PATH.
    beside = Path(sys.executable).parent / name
    return shutil.which(name) or (str(beside) if beside.exists() else None)


def _checked(command: list[str], environment: Mapping[str, str] | None = None) -> str:
    variables = {**os.environ, **(environment or {})}
    finished = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    if finished.returncode != 0:
        said = finished.stdout[-4000:] + finished.stderr[-4000:]
        raise NativeError(f"{' '.join(command)} ended with status {finished.returncode}:\n{said}")
    return finished.stdout
