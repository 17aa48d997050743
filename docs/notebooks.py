"""Notebook runner: ``python -m docs.notebooks examples/pod_on_a_laptop.ipynb`` stores the outputs of its cells.

Cells run as Jupyter runs them, one after another in one namespace: what they print is kept, and the value of a last
line that is an expression is shown, as a picture if it has one. A cell may also be one command of the shell (``!``) or
a file (``%%writefile``), in a folder that is removed afterwards. So nothing needs to be installed, and a test can tell
that a notebook shows what its cells give today.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

Notebook = dict[str, Any]


def read(path: Path) -> Notebook:
    """Return the content of a notebook file."""
    notebook: Notebook = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def as_text(notebook: Notebook) -> str:
    """Return the text of a notebook file as Jupyter writes it."""
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def executed(notebook: Notebook) -> Notebook:
    """Run all code cells, and return the notebook with their outputs.

    What a cell raises ends it.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    cells: list[dict[str, Any]] = []
    # Drawings are as wide as a page, whatever terminal this runs in, and commands are those of this interpreter.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with mock.patch.dict(os.environ, {"COLUMNS": "100", "PATH": path}), _scratch_folder():
        for cell in notebook["cells"]:
            if cell["cell_type"] != "code":
                cells.append(cell)
                continue
            number = 1 + sum(done["cell_type"] == "code" for done in cells)
            outputs = _outputs("".join(cell["source"]), names, number)
            cells.append({**cell, "execution_count": number, "outputs": outputs})
    return {**notebook, "cells": cells}


@contextlib.contextmanager
def _scratch_folder() -> Iterator[None]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def _outputs(source: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Return the outputs of a cell: printed text, and the value of its last line."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        value = _value(source, names, f"Cell In[{number}]")
    texts = {"stdout": out.getvalue(), "stderr": err.getvalue()}
    outputs: list[dict[str, Any]] = [
        {"name": name, "output_type": "stream", "text": _lines(text)} for name, text in texts.items() if text
    ]
    if value is not None:
        data = {"text/plain": _lines(repr(value))}
        if hasattr(value, "_repr_svg_"):
            data["image/svg+xml"] = _lines(value._repr_svg_())
        shown = {"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"}
        outputs.append(shown)
    return outputs


def _value(source: str, names: dict[str, Any], title: str) -> Any:
    """Execute a cell; return the value of a last line that is an expression."""
    head, _, body = source.partition("\n")
    if head.startswith("!"):
        command = f"exec 2>&1; {head[1:]}"
        print(subprocess.run(command, shell=True, stdout=subprocess.PIPE, text=True, check=False).stdout, end="")
        return None
    if head.startswith("%%writefile "):
        Path(head.split()[1]).write_text(body, encoding="utf-8")
        print(f"Writing {head.split()[1]}")
        return None
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, title, "exec"), names)
    return eval(compile(ast.Expression(last.value), title, "eval"), names) if isinstance(last, ast.Expr) else None


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> None:
    """Rewrite notebooks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebooks", nargs="+", type=Path)
    for path in parser.parse_args().notebooks:
        path.write_text(as_text(executed(read(path))), encoding="utf-8")


if __name__ == "__main__":
    main()
