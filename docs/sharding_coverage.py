"""Tables of `sharding_coverage.md`, from `numpy.testing.overrides`: ``python -m docs.sharding_coverage`` rewrites them.

Every function and ufunc of NumPy that can be overridden has one row: it has a tiled form, or it gathers for a reason
that stands below. A function of a later NumPy without either fails `tests/docs/test_sharding_coverage.py`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.testing.overrides import get_overridable_numpy_array_functions, get_overridable_numpy_ufuncs

from ringlet.sharding.execution.array_function_table import _CREATORS, implementations

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "sharding_coverage.md"
VERSION = ".".join(np.__version__.split(".")[:2])
BEGIN, END = "<!-- tables: python -m docs.sharding_coverage -->", "<!-- end of the tables -->"

# Names, or beginnings of names, of the functions that always gather.
GATHER = {
    "the file holds one array": "save savetxt savez savez_compressed",
    "fields are rearranged in Python": "lib.recfunctions.",
    "the length of the text depends on the values": """strings._join strings._rsplit strings._split strings._splitlines
        strings.decode strings.encode strings.mod strings.partition strings.replace strings.rpartition
        strings.translate""",
    "its arguments are a few numbers": "geomspace linspace logspace poly polydiv polymul polynomial. roots",
    "rows are inserted at places that depend on values": "insert",
    "its result is a view; write `map_halo` for windows": "lib.stride_tricks.sliding_window_view",
    "few programs need it": """busday_count busday_offset datetime_as_string histogram2d histogramdd is_busday packbits
        unpackbits""",
    "it is a deprecated name": "alltrue cumproduct in1d msort product sometrue trapz",
}
# What gathers all the same in some calls of functions and methods with a tiled form.
SOME_CALLS = {
    "argsort, partition, sort": "objects; text with fields along a divided line",
    "block": "lists of unequal depth",
    "qr, svd": "one divided matrix: `qr` of a wide one and in other modes than `reduced` and `r`; `svd` with "
    "`full_matrices=True` unless it is square",
    "eig, eigvals": "one divided matrix, without a stack",
    "histogram": "complex numbers",
    "lstsq": "matrices with more columns than rows",
    "min_scalar_type": "one number",
    "pad": "`linear_ramp`, `reflect_type='odd'`, functions as mode",
    "quantile and similar functions": "weights; several dimensions of `q` for those that skip NaN",
    "unique": "`axis=`, objects, fields",
}
# What sends one argument, or a result, to all devices by an all-gather that reports count, without a warning.
SENDS = {
    "arguments that are the same for each tile": "edges of `histogram` and `digitize`, `xp` and `fp` of `interp`, the "
    "first array of `searchsorted`, test elements of `isin`, coefficients of polynomials",
    "indices and values of an assignment": "unless a divided mask selects divided values",
    "FFT, median and sort along a dimension": "whose tiles fit no other dimension; one line alone is sorted by "
    "samples, and transformed in six steps if its length divides by the square of the number of devices",
    "factors": "the triangle of `qr`, `svd` and `lstsq`; the matrix of `eigh` and `eigvalsh`; blocks of columns "
    "of `solve`, `inv`, `det` and `cholesky`, one after the other",
}


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a function in ``numpy``."""
    return f"{function.__module__}.{function.__name__}".removeprefix("numpy.")


def reason_of(name: str) -> str | None:
    """Return why a function gathers; None if no reason is known."""
    for reason, names in GATHER.items():
        if any(name == each or (each.endswith(".") and name.startswith(each)) for each in names.split()):
            return reason
    return None


def functions() -> list[Callable[..., Any]]:
    """Return all functions that can be overridden, also of modules that are imported on demand."""
    for module in ("char", "fft", "lib.recfunctions", "polynomial", *(["strings"] if hasattr(np, "strings") else [])):
        importlib.import_module(f"numpy.{module}")
    return sorted(get_overridable_numpy_array_functions(), key=name_of)


def kinds_of(function: Callable[..., Any]) -> list[str]:
    """Return what is known of a function: "native", or the reason for which it gathers."""
    name, found = name_of(function), []
    if function in implementations() or name in _CREATORS:
        found.append("native")
    reason = reason_of(name)
    return found + ([reason] if reason else [])


def _lines() -> Iterator[str]:
    by_kind: dict[str, list[str]] = {}
    for function in functions():
        for kind in kinds_of(function):
            by_kind.setdefault(kind, []).append(name_of(function))
    native = by_kind.pop("native")
    ufuncs = sorted(ufunc.__name__ for ufunc in get_overridable_numpy_ufuncs())
    total = len(functions())
    yield f"Of NumPy {VERSION}, {len(native)} of {total} functions and {len(ufuncs)} of {len(ufuncs)} ufuncs work tile"
    yield f"by tile; {total - len(native)} functions gather."
    yield from ("", "### Functions that gather", "", "| function | why |", "| --- | --- |")
    for reason, names in by_kind.items():
        yield f"| {', '.join(f'`{name}`' for name in names)} | {reason} |"
    for title, table in (("Calls that gather", SOME_CALLS), ("Sent to all devices", SENDS)):
        yield from ("", f"### {title}", "", "| what | when |", "| --- | --- |")
        yield from (f"| {name} | {when} |" for name, when in table.items())
    yield from ("", "### Functions with a tiled form", "", ", ".join(f"`{name}`" for name in native) + ".")
    yield from ("", "### Ufuncs", "", ", ".join(f"`{name}`" for name in ufuncs) + ".")


def with_tables(document: str) -> str:
    """Return a document with the current tables."""
    before, rest = document.split(BEGIN)
    tables = "\n".join(_lines())
    return f"{before}{BEGIN}\n\n{tables}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    DOCUMENT.write_text(with_tables(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
