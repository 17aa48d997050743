"""Creates a virtual environment for each peer of ringlet, because their requirements conflict.

Run as ``python -m bench.environments``, or with names: ``python -m bench.environments openmpi gloo``.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import report
from bench.machine import ROOT

__all__ = ["DEFAULT_FOLDER", "ENVIRONMENTS", "Environment", "Outcome", "make", "ready_version"]

DEFAULT_FOLDER = ROOT / "build" / "environments"

# What a finished environment holds, written last: without it an environment is half made.
_MARKER = "ready.json"

# Seconds for one command; a slow network may need most of it for the larger ones.
_TIME_LIMIT = 1800.0
_LAST_LINES = 6

# How lines of pip begin that tell of its settings, and of nothing that failed.
_SETTINGS = ("Looking in ", "WARNING: Location ")

Runner = Callable[[Sequence[str], float], "subprocess.CompletedProcess[str]"]

# The library must not start MPI: an Open MPI job of one that no launcher started leaves a shared segment behind.
_MPI_VERSION = """
import mpi4py, pathlib, sys
mpi4py.rc.initialize = False
from mpi4py import MPI
if not (pathlib.Path(sys.executable).parent / "mpiexec").exists(): sys.exit("there is no mpiexec")
print(MPI.Get_library_version().strip("\\0").splitlines()[0].split(",")[0], "/ mpi4py", mpi4py.__version__)
"""


@dataclass(frozen=True)
class Environment:
    """One virtual environment.

    Attributes
    ----------
    name : str
        Name of the environment and of its folder.
    packages : tuple of str
        Requirements, as for pip.
    version_program : str
        Imports the requirements of the peer, and prints their versions in one line.
    is_required : bool
        Whether a comparison requires it.
    """

    name: str
    packages: tuple[str, ...]
    version_program: str
    is_required: bool = False


def _of_module(name: str) -> str:
    return f"import {name}; print({name!r}, {name}.__version__)"


# MPICH and Open MPI each bring a `mpiexec` and a `libmpi.so`: never two of them in one environment.
ENVIRONMENTS = {
    environment.name: environment
    for environment in (
        Environment("openmpi", ("numpy", "mpi4py", "openmpi"), _MPI_VERSION, is_required=True),
        Environment("mpich", ("numpy", "mpi4py", "mpich"), _MPI_VERSION, is_required=True),
        Environment("impi", ("numpy", "mpi4py", "impi-rt"), _MPI_VERSION),
        Environment(
            "gloo",
            ("numpy", "torch==2.13.0"),
            "import torch, torch.distributed; print('torch', torch.__version__)",
            is_required=True,
        ),
        Environment("jax", ("numpy", "jax", "jaxlib"), _of_module("jax"), is_required=True),
        Environment("tensorflow", ("numpy", "tensorflow-cpu"), _of_module("tensorflow")),
        Environment("numpy", ("numpy",), _of_module("numpy")),
        Environment("ray", ("numpy", "ray"), _of_module("ray")),
        Environment("dask", ("numpy", "distributed"), _of_module("distributed")),
    )
}


@dataclass(frozen=True)
class Outcome:
    """The outcome of creating one environment.

    Attributes
    ----------
    name : str
    is_ready : bool
    said : str
        Versions, or the last lines of the command that failed.
    seconds : float
        0.0 if it was ready before.
    """

    name: str
    is_ready: bool
    said: str
    seconds: float


def python_of(folder: Path, name: str) -> Path:
    """Return the interpreter of an environment below `folder`."""
    return folder / name / "bin" / "python"


def ready_version(folder: Path, name: str) -> str | None:
    """Return the versions in a finished environment, or None if it is missing, incomplete or has other packages.

    Parameters
    ----------
    folder : Path
        Where the environments lie.
    name : str
        One of `ENVIRONMENTS`.
    """
    marker = folder / name / _MARKER
    try:
        made = json.loads(marker.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    packages = list(ENVIRONMENTS[name].packages)
    is_same = isinstance(made, dict) and made.get("packages") == packages and python_of(folder, name).exists()
    return str(made.get("version")) if is_same else None


def run_command(command: Sequence[str], seconds: float) -> subprocess.CompletedProcess[str]:
    """Run a command for at most `seconds`; a command that takes longer or does not exist has failed."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"no end after {seconds:.0f} s")
    except OSError as error:
        return subprocess.CompletedProcess(command, 127, "", str(error))


def make(
    environment: Environment,
    folder: Path,
    *,
    python: str = sys.executable,
    recreate: bool = False,
    run: Runner = run_command,
) -> Outcome:
    """Create an environment below `folder`; keep a complete one, and create an incomplete one again.

    Parameters
    ----------
    environment : Environment
    folder : Path
        Where the environments lie.
    python : str
        The interpreter of the environment.
    recreate : bool
        Whether to create a complete one again.
    run : callable
        Runs a command for at most a number of seconds.

    Returns
    -------
    Outcome
        A failure is an outcome, not an exception.
    """
    version = ready_version(folder, environment.name)
    if version is not None and not recreate:
        return Outcome(environment.name, True, version, 0.0)
    start = time.perf_counter()
    is_ready, said = _build(environment, folder, python, run)
    return Outcome(environment.name, is_ready, said, time.perf_counter() - start)


def _build(environment: Environment, folder: Path, python: str, run: Runner) -> tuple[bool, str]:
    """Return whether it is ready now, and its version or the output of the failed command."""
    place = folder / environment.name
    shutil.rmtree(place, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    inside = str(python_of(folder, environment.name))
    commands = (
        [python, "-m", "venv", str(place)],
        [inside, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check",
         "--only-binary=:all:", *environment.packages],
        [inside, "-c", environment.version_program],
    )  # fmt: skip
    for command in commands:
        finished = run(command, _TIME_LIMIT)
        if finished.returncode != 0:
            return False, _last_lines(finished.stdout + "\n" + finished.stderr)
    version = " ".join(finished.stdout.split())
    made = {"packages": list(environment.packages), "version": version}
    (place / _MARKER).write_text(json.dumps(made) + "\n", encoding="utf-8")
    return True, version


def _last_lines(text: str) -> str:
    """Return the last lines of a command's output, without URLs, which pip's settings may contain."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip() and not line.startswith(_SETTINGS)]
    return "\n".join(re.sub(r"\w+://\S+", "(address)", line) for line in lines[-_LAST_LINES:])


def table(outcomes: Sequence[Outcome]) -> str:
    """Return the outcomes as a table, followed by the output of failed commands."""
    rows = [
        (outcome.name, "ok" if outcome.is_ready else "FAILED", "-" if not outcome.is_ready else outcome.said,
         f"{outcome.seconds:.0f}")
        for outcome in outcomes
    ]  # fmt: skip
    failures = [f"\n{outcome.name}:\n{outcome.said}" for outcome in outcomes if not outcome.is_ready]
    return "\n".join([report.format_table(("name", "state", "version", "seconds"), rows), *failures])


def main(arguments: Sequence[str] | None = None, *, run: Runner = run_command) -> int:
    """Create the requested environments, and print the outcomes.

    Returns
    -------
    int
        1 if a requested and required environment failed.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.environments", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"{', '.join(ENVIRONMENTS)}; all of them by default")
    parser.add_argument("--into", type=Path, default=DEFAULT_FOLDER, help="folder that they lie in")
    parser.add_argument("--recreate", action="store_true", help="make those anew that are ready, too")
    parser.add_argument("--python", default=sys.executable, help="interpreter that they are made of")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(ENVIRONMENTS))
    if unknown:
        parser.error(f"there is no environment {', '.join(unknown)}: choose from {', '.join(ENVIRONMENTS)}.")
    outcomes = []
    for name in options.names or ENVIRONMENTS:
        print(f"{name} ...", file=sys.stderr, flush=True)
        # Relative paths would be wrong in the scripts that pip writes.
        folder = options.into.resolve()
        outcomes.append(make(ENVIRONMENTS[name], folder, python=options.python, recreate=options.recreate, run=run))
    print(table(outcomes))
    return int(any(not outcome.is_ready and ENVIRONMENTS[outcome.name].is_required for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
