"""Draws docstrings, messages and comments at random, for a reader to judge their style.

    python -m tests.text_sample --seed 1 --count 40

A message is the text of a ``raise``, of a warning or of a log line; a comment is a whole block of lines.
"""

from __future__ import annotations

import argparse
import ast
import io
import random
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_SPEAKS = {"warn", "debug", "info", "warning", "error", "exception", "critical"}


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of every docstring."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text


def messages(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and source of every message: the call that a ``raise`` makes, or that logs or warns."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            call = node.exc
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SPEAKS:
            call = node
        else:
            continue
        if any(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in ast.walk(call)):
            yield call.lineno, ast.unparse(call)


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of every block of comments."""
    block: list[str] = []
    start = end = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or token.string.startswith(("# type:", "# noqa")):
            continue
        if block and token.start[0] == end + 1:
            block.append(token.string)
        else:
            if block:
                yield start, "\n".join(block)
            block, start = [token.string], token.start[0]
        end = token.start[0]
    if block:
        yield start, "\n".join(block)


def texts(kind: str) -> Iterator[str]:
    """Every text of one kind in the package, with its place."""
    for path in sorted((ROOT / "python").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if kind == "comments":
            found = comments(source)
        else:
            found = (docstrings if kind == "docstrings" else messages)(ast.parse(source))
        yield from (f"--- {path.relative_to(ROOT)}:{line}\n{text}" for line, text in found)


def main() -> None:
    """Print the sample."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=40)
    arguments = parser.parse_args()
    for kind in ("docstrings", "messages", "comments"):
        print(f"\n=== {kind}")
        for text in random.Random(f"{arguments.seed} {kind}").sample(list(texts(kind)), arguments.count):
            print(text)


if __name__ == "__main__":
    main()
