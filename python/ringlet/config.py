"""Configuration of this installation: version, compiler, CPU, cores, and environment."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypedDict, overload

from ringlet import _core
from ringlet.collectives import Algorithm, Op
from ringlet.devices import visible_cores
from ringlet.errors import InvalidArgumentError
from ringlet.module_names import list_public
from ringlet.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Config", "__version__", "cmake_dir", "show_config"]

__dir__ = list_public(__name__)

CPU_VARIABLE = "RINGLET_CPU"


class CpuConfig(TypedDict):
    """The instruction set used by the kernels."""

    target: str
    runnable: list[str]
    reason: str


class CoresConfig(TypedDict):
    """The cores available to this process."""

    count: int
    reason: str


class BlasConfig(TypedDict):
    """A loaded BLAS library."""

    library: str
    version: str
    threads: int


class Config(TypedDict):
    """The dictionary returned by :func:`show_config`."""

    version: str
    python: str
    compiler: str
    cpu: CpuConfig
    cores: CoresConfig
    blas: list[BlasConfig]
    algorithms: list[str]
    operations: list[str]
    recorder: str
    environment: dict[str, str]


@overload
def show_config(mode: Literal["stdout"] = "stdout") -> None: ...
@overload
def show_config(mode: Literal["dicts"]) -> Config: ...


def show_config(mode: Literal["stdout", "dicts"] = "stdout") -> Config | None:
    """Show the build and the detected hardware, for bug reports.

    Parameters
    ----------
    mode : {"stdout", "dicts"}
        Print a table, or return nested dictionaries, as in ``numpy.show_config``.

    Returns
    -------
    dict or None
        With ``"dicts"``: `version`, `python`, `compiler`, `cpu` (the `target` whose kernels run, the targets `runnable`
        here, and the `reason` for the choice), `cores` (`count` and `reason`), `blas` (`library`, `version` and
        `threads` of each loaded library), `algorithms`, `operations`, `recorder` (whether the flight recorder is
        on, and the reason if it is off), and `environment`: the ``RINGLET_`` variables that are set, without the value
        of ``RINGLET_SECRET``.

    Raises
    ------
    InvalidArgumentError
        If `mode` is invalid.

    Examples
    --------
    >>> import ringlet
    >>> config = ringlet.show_config("dicts")
    >>> config["cpu"]["target"] in config["cpu"]["runnable"]
    True
    >>> ringlet.show_config()
    ringlet     ...
    python      ...
    compiler    ...
    cpu         ...
    """
    if mode not in ("stdout", "dicts"):
        raise InvalidArgumentError(
            f'mode is {mode!r}: expected "stdout", which prints the configuration, or "dicts", which returns it'
        )
    config = _collect(os.environ)
    if mode == "dicts":
        return config
    print("\n".join(f"{name:<12}{value}" for name, value in _rows(config)))
    return None


def cmake_dir() -> str:
    """Return the folder in which CMake finds the package ``ringlet``, for C++ programs that use the core.

    Returns
    -------
    str
        The folder of ``ringletConfig.cmake``; pass it to CMake as ``-Dringlet_DIR=...``. The headers and the library
        belong to the same installation, even if the Python sources are used in place.

    Raises
    ------
    FileNotFoundError
        If the installation does not contain this file.

    Examples
    --------
    >>> import pathlib, ringlet.config
    >>> (pathlib.Path(ringlet.config.cmake_dir()) / "ringletConfig.cmake").exists()
    True
    """
    from pathlib import Path

    return str(_cmake_dir_beside(Path(_core.__file__)))


def _cmake_dir_beside(extension: Path) -> Path:
    # The extension is always installed with the rest of the build; the Python files may be elsewhere.
    found = extension.parent / "lib" / "cmake" / "ringlet"
    if not (found / "ringletConfig.cmake").exists():
        raise FileNotFoundError(
            f"this installation of ringlet has no CMake package: {found} has no ringletConfig.cmake. Install ringlet "
            "with pip, from its sources or a wheel, or set ringlet_DIR to the folder of the package that `cmake "
            "--install` created."
        )
    return found


def _collect(environment: Mapping[str, str]) -> Config:
    from ringlet.observe import recorder_memory

    cores = visible_cores()
    forced = environment.get(CPU_VARIABLE)
    return {
        "version": __version__,
        "python": f"{platform.python_implementation()} {platform.python_version()} on {platform.platform(terse=True)}",
        "compiler": _core.compiler(),
        "cpu": {
            "target": _core.cpu_target(),
            "runnable": _core.cpu_targets(),
            "reason": f"{CPU_VARIABLE}={forced}" if forced else "the best target of this CPU",
        },
        "cores": {"count": cores.count, "reason": cores.reason},
        "blas": _loaded_blas(),
        "algorithms": [algorithm.name for algorithm in Algorithm],
        "operations": [op.name for op in Op],
        "recorder": recorder_memory.state(),
        "environment": {
            name: "***" if name == "RINGLET_SECRET" else value
            for name, value in sorted(environment.items())
            if name.startswith("RINGLET_")
        },
    }


def _loaded_blas() -> list[BlasConfig]:
    from threadpoolctl import threadpool_info

    return [
        {"library": info["internal_api"], "version": info["version"] or "unknown", "threads": info["num_threads"]}
        for info in threadpool_info()
        if info["user_api"] == "blas"
    ]


def _rows(config: Config) -> list[tuple[str, str]]:
    cpu, cores = config["cpu"], config["cores"]
    blas = [f"{b['library']} {b['version']}, {b['threads']} threads" for b in config["blas"]]
    return [
        ("ringlet", config["version"]),
        ("python", config["python"]),
        ("compiler", config["compiler"]),
        ("cpu", f"{cpu['target']}: {cpu['reason']} (runnable: {', '.join(cpu['runnable'])})"),
        ("cores", f"{cores['count']}: {cores['reason']}"),
        ("blas", "; ".join(blas) or "none loaded"),
        ("algorithms", ", ".join(config["algorithms"])),
        ("operations", ", ".join(config["operations"])),
        ("recorder", config["recorder"]),
        ("environment", ", ".join(f"{k}={v}" for k, v in config["environment"].items()) or "no RINGLET_ variable set"),
    ]
