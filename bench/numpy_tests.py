"""Runs eight files of NumPy's own tests with sharded arrays in place of plain ones, and compares what passes.

``python -m bench.numpy_tests`` runs the tests of the installed NumPy twice: as they are, and with functions such as
``np.array`` and ``np.ones`` returning arrays in tiles. A test that passes as it is only is listed. NumPy's test
requirements (pytest, hypothesis) have to be installed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import types
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from bench.array_api import outcomes_of
from ringlet.sharding import Mesh, ShardedArray, shard

__all__ = ["main"]

FILES = (
    "lib.tests.test_arraysetops", "lib.tests.test_function_base", "lib.tests.test_index_tricks",
    "lib.tests.test_nanfunctions", "lib.tests.test_shape_base", "lib.tests.test_twodim_base",
    "_core.tests.test_numeric", "_core.tests.test_shape_base",
)  # fmt: skip
_CONSTRUCTORS = re.findall(
    r"\w+",
    """arange array asanyarray asarray ascontiguousarray asfortranarray empty eye frombuffer fromfunction fromiter full
    identity indices linspace logspace ones tri zeros""",
)
_LARGE = "test_huge_list_error"  # lists 2**31 arrays
_MESH = "RINGLET_NUMPY_TESTS_MESH"


def in_tiles(made: Any, mesh: Mesh) -> Any:
    """Divide a plain array with dimensions, the first along the first axis of a mesh, the second along the second."""
    if type(made) is not np.ndarray or not made.ndim:
        return made
    return shard(made, mesh.sharding(*(list(mesh.shape) + [None] * made.ndim)[: made.ndim]))


def replaced(function: Callable[..., Any], mesh: Mesh) -> Callable[..., Any]:
    """Return a function of NumPy that returns arrays in tiles."""

    def made(*args: Any, **kwargs: Any) -> Any:
        is_kept = function.__name__.startswith("as") and len(args) == 1 and not kwargs
        return args[0] if is_kept and isinstance(args[0], ShardedArray) else in_tiles(function(*args, **kwargs), mesh)

    return made


def plain(value: Any) -> Any:
    """Gather the sharded arrays in a value."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(plain, value)) if type(value) in (list, tuple) else value
    return np.asarray(value) if isinstance(value, ShardedArray) else value


def comparison(function: Callable[..., None]) -> Callable[..., None]:
    """Return a function of ``numpy.testing``, which recognizes only plain arrays, that compares sharded arrays too."""
    return lambda *args, **kwargs: function(*map(plain, args), **kwargs)


def replace_in(modules: Iterable[types.ModuleType], mesh: Mesh) -> None:
    """Replace NumPy and its functions among the names of test modules."""
    functions = {name: replaced(getattr(np, name), mesh) for name in _CONSTRUCTORS}
    comparisons = {name: comparison(getattr(np.testing, name)) for name in ("assert_equal", "assert_almost_equal")}
    others: dict[int, Any] = {}
    for module, replacements in ((np.testing, comparisons), (np, functions)):
        others |= {id(getattr(module, name)): function for name, function in replacements.items()}
        others[id(module)] = namespace = types.ModuleType(module.__name__)
        namespace.__getattr__ = partial(getattr, module)  # type: ignore[method-assign]
        vars(namespace).update(replacements)
    namespace.testing = others[id(np.testing)]  # type: ignore[attr-defined]
    for module in modules:
        vars(module).update({name: others[id(it)] for name, it in vars(module).items() if id(it) in others})


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Replace names in the collected modules; a hook of pytest, which loads this module as a plugin."""
    items[:] = [item for item in items if item.name != _LARGE]
    if os.environ.get(_MESH):
        sizes = map(int, os.environ[_MESH].split("x"))
        mesh = Mesh({f"axis{place}": size for place, size in enumerate(sizes)})
        replace_in({id(item.module): item.module for item in items}.values(), mesh)


def outcomes(file: str, mesh: str, arguments: list[str]) -> dict[str, str]:
    """Run the tests of a file, as they are if `mesh` is empty, and return the outcome of each by its name."""
    command = [sys.executable, "-m", "pytest", "--pyargs", f"numpy.{file}", "-q", "-rA", "--tb=no", "-p", __spec__.name]
    command += ["-p", "no:cacheprovider", "-c", os.devnull, *arguments]
    made = subprocess.run(command, env={**os.environ, _MESH: mesh}, capture_output=True, text=True, check=False)
    return outcomes_of(made, file)


def main(arguments: list[str] | None = None) -> int:
    """Print the number of tests of each file that pass, and those that pass only as they are."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--files", nargs="+", default=FILES, help="modules in the package numpy")
    parser.add_argument("--mesh", default="2x2")
    parser.add_argument("rest", nargs="*", help="arguments of pytest, after --")
    given = parser.parse_args(arguments)
    counts = [0, 0]
    for file in given.files:
        runs = (outcomes(file, mesh, given.rest) for mesh in ("", given.mesh))
        plain, tiled = ({name for name, outcome in run.items() if outcome == "PASSED"} for run in runs)
        counts = [counts[0] + len(plain & tiled), counts[1] + len(plain)]
        print(f"{file}: {len(plain & tiled)} of {len(plain)} pass")
        for name in sorted(plain - tiled):
            print(f"  only with plain arrays: {name.rpartition('/')[2]}")
    print(f"all: {counts[0]} of {counts[1]} pass ({counts[0] / max(1, counts[1]):.1%})")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
