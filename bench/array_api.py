"""Runs the tests of the array API standard on sharded arrays, and on NumPy, and compares the tests that pass.

``python -m bench.array_api CHECKOUT`` takes the folder of a checkout of data-apis/array-api-tests with its submodule.
Its requirements must be installed. A case that passes with NumPy only is listed, with exit status 1.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

__all__ = ["main", "outcomes", "outcomes_of"]

MESHES = ("1", "2x2", "3")
_LINE = re.compile(r"^(PASSED|FAILED|ERROR|SKIPPED|XFAIL\w*) (.+?)(?: - .*)?$")


def module_of(mesh: str) -> str:
    """Return the import of the tests: NumPy, or a statement that creates the namespace of a mesh such as ``2x2``."""
    if mesh == "numpy":
        return "numpy"
    axes = ", ".join(f'"axis{place}": {size}' for place, size in enumerate(mesh.split("x")))
    return f"exec('from ringlet.sharding import Mesh, namespace; xp = namespace(Mesh({{{axes}}}))')"


def outcomes(checkout: Path, mesh: str, arguments: list[str]) -> dict[str, str]:
    """Run the tests, and return the outcome of each by its name."""
    environment = {**os.environ, "ARRAY_API_TESTS_MODULE": module_of(mesh), "ARRAY_API_TESTS_VERSION": "2025.12"}
    command = [sys.executable, "-m", "pytest", "array_api_tests", "-q", "-rA", "--tb=no", "-p", "no:cacheprovider"]
    made = subprocess.run(
        [*command, *arguments], cwd=checkout, env=environment, capture_output=True, text=True, check=False
    )
    return outcomes_of(made, checkout)


def outcomes_of(made: subprocess.CompletedProcess[str], what: object) -> dict[str, str]:
    """Return the outcome of each test by its name, from the output of ``pytest -rA``."""
    found = {match.group(2): match.group(1) for match in map(_LINE.match, made.stdout.splitlines()) if match}
    if not found:
        raise SystemExit(f"no test ran in {what}:\n{made.stdout[-2000:]}{made.stderr[-2000:]}")
    return found


def main(arguments: list[str] | None = None) -> int:
    """Print the number of tests that pass on each mesh, and those that pass with NumPy only."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--meshes", nargs="+", default=MESHES)
    parser.add_argument("rest", nargs="*", help="arguments of pytest, after --")
    given = parser.parse_args(arguments)
    expected = outcomes(given.checkout, "numpy", given.rest)
    passing = {name for name, outcome in expected.items() if outcome == "PASSED"}
    print(f"numpy: {len(passing)} of {len(expected)} pass")
    status = 0
    for mesh in given.meshes:
        found = outcomes(given.checkout, mesh, given.rest)
        passed = {name for name, outcome in found.items() if outcome == "PASSED"}
        print(f"mesh {mesh}: {len(passed)} of {len(found)} pass")
        for name in sorted(passing - passed):
            status = 1
            print(f"  only with numpy: {name}")
    return status


if __name__ == "__main__":
    raise SystemExit(main())
