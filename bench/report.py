"""Output as tables, JSON and figures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.harness import format_bytes

__all__ = ["format_seconds", "format_table", "write_figure", "write_json"]

Curves = Mapping[str, Sequence[tuple[float, float]]]


def format_seconds(seconds: float) -> str:
    """Format a duration with three significant digits in a suitable unit.

    Examples
    --------
    >>> format_seconds(1.5e-7), format_seconds(2.344e-5), format_seconds(0.0816)
    ('150 ns', '23.4 us', '81.6 ms')
    """
    if seconds < 0:
        return f"-{format_seconds(-seconds)}"
    for scale, unit in ((1e-9, "ns"), (1e-6, "us"), (1e-3, "ms")):
        if seconds < 999.5 * scale:
            return f"{_digits(seconds / scale)} {unit}"
    return f"{_digits(seconds)} s"


def _digits(value: float) -> str:
    decimals = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:.{decimals}f}"


def format_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Format a table; the first column is left-aligned, numbers and durations are right-aligned.

    Examples
    --------
    >>> print(format_table(["size", "time"], [["8 B", "1 us"], ["64 MiB", "12 ms"]]))
    size     time
    ------  -----
    8 B      1 us
    64 MiB  12 ms
    """
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(line[i]) for line in [list(columns), *cells]) for i in range(len(columns))]

    def line(words: Sequence[str]) -> str:
        rest = [word.rjust(width) for word, width in zip(words[1:], widths[1:], strict=True)]
        return "  ".join([words[0].ljust(widths[0]), *rest]).rstrip()

    return "\n".join([line(columns), "  ".join("-" * width for width in widths), *(line(row) for row in cells)])


def write_json(path: Path, document: Mapping[str, object]) -> None:
    """Write `document` to `path`, and create missing folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def write_figure(path: Path, panels: Mapping[str, Curves], *, columns: int, y_label: str, title: str) -> None:
    """Draw curves over sizes, on logarithmic axes, in a grid of panels, and save them as a picture.

    Parameters
    ----------
    path : Path
        File to write; its suffix chooses the format.
    panels : mapping of str to mapping of str to sequence of (bytes, y)
        Panels by title, curves by label. ``"limit"`` is drawn dashed and grey; the text before a comma determines
        the colour, and curves from C++ are dotted.
    columns : int
        Number of panels per row. The legend is below all of them.
    y_label, title : str

    Raises
    ------
    ModuleNotFoundError
        If matplotlib is missing.
    """
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "--plot needs matplotlib, which is not installed; pip install 'ringlet[plot]', or leave --plot out."
        ) from error
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(1.5 + 4.2 * columns, 1.6 + 3.4 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for axis, (name, curves) in zip(grid.flat, panels.items(), strict=False):
        _draw(axis, curves)
        axis.set_title(name, fontsize="medium")
    for axis in grid[:, 0]:
        axis.set_ylabel(y_label)
    figure.legend(*grid[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize="small")
    figure.suptitle(title, fontsize="medium")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def _draw(axis: Any, curves: Curves) -> None:
    names = list(dict.fromkeys(label.split(",")[0] for label in curves if label != "limit"))
    colors = 10  # that have a name of this kind; beyond them, other marks
    for label, points in curves.items():
        style: dict[str, Any] = {"color": "0.3", "linestyle": "--", "linewidth": 1}
        if label != "limit":
            is_native = label.endswith("C++")
            number = names.index(label.split(",")[0])
            style = {"color": f"C{number % colors}", "marker": "os^v"[number // colors % 4], "markersize": 3}
            style["linestyle"] = ":" if is_native else "-"
        axis.plot([x for x, _ in points], [y for _, y in points], label=label, **style)
    sizes = sorted({x for points in curves.values() for x, _ in points})
    axis.set(xscale="log", yscale="log")
    axis.set_xticks(sizes, [format_bytes(int(size)) for size in sizes], rotation=60, fontsize="x-small")
    axis.minorticks_off()
    axis.grid(visible=True, which="major", alpha=0.3)
