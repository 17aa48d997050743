"""Dataset.list_files: the names of files that match patterns."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ringlet.data.dataset_type import Dataset
from ringlet.errors import InvalidArgumentError

_WILD = re.compile(r"[*?\[\\]")


def list_files(
    cls: type[Dataset], file_pattern: Any, shuffle: bool | None = None, seed: int | None = None, name: str | None = None
) -> Dataset:
    r"""Create a dataset of the names of all files and folders that match a pattern.

    Parameters
    ----------
    file_pattern : str, bytes, path, or list of these
        ``*`` matches any characters, ``?`` matches one, and ``[ab]``, ``[a-z]`` and ``[!a]`` match one of a set; none
        of them matches ``/``. A backslash escapes the next character. Names that begin with a dot match too.
    shuffle : bool, default True
        Whether to yield the names in random order, which differs in each iteration. Otherwise, names are sorted.
    seed : int, optional
        Seed of the shuffle.
    name : str, unused

    Returns
    -------
    Dataset
        Names are text, or bytes if the patterns are bytes. They begin with the folder of the pattern, or with ``./`` if
        no ``/`` precedes the first wildcard. A file that matches several patterns is yielded once for each pattern.

    Raises
    ------
    InvalidArgumentError
        If no file matches.
    TypeError
        If a pattern is neither a string nor a path.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ringlet.data import Dataset
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("b.txt", "a.txt", "c.csv"):
    ...         Path(folder, name).touch()
    ...     [Path(name).name for name in Dataset.list_files(f"{folder}/*.txt", shuffle=False)]
    ['a.txt', 'b.txt']
    """
    patterns = _patterns(file_pattern)
    names = sorted(name for pattern in patterns for name in matching_files(os.fsdecode(pattern)))
    if not names:
        raise InvalidArgumentError(
            f"no files matched pattern: {', '.join(map(os.fsdecode, patterns))} (searched in {Path.cwd()})"
        )
    is_bytes = any(isinstance(pattern, bytes) for pattern in patterns)
    found = np.array([os.fsencode(name) if is_bytes else name for name in names], dtype=object)
    dataset = cls.from_tensor_slices(found)
    return dataset if shuffle is False else dataset.shuffle(len(names), seed=seed)


def _patterns(given: Any) -> list[str | bytes]:
    is_one = isinstance(given, (str, bytes, os.PathLike))
    items = [given] if is_one else np.asarray(given, dtype=object)
    if np.ndim(items) != 1:
        raise InvalidArgumentError(f"file_pattern must be one pattern or a list of patterns, got {given!r}")
    try:
        return [os.fspath(item) for item in items]
    except TypeError:
        raise TypeError(f"file_pattern must be a string, a path, or a list of these, got {given!r}") from None


def matching_files(pattern: str) -> list[str]:
    """Return the sorted names of the files and folders that match a pattern."""
    if not _WILD.search(pattern):
        return [pattern] if Path(pattern).exists() else []
    fixed = pattern[: pattern.rfind("/", 0, _first_wild(pattern)) + 1]
    parts = pattern[len(fixed) :].split("/")
    return sorted(_matches(fixed or "./", parts))


def _first_wild(pattern: str) -> int:
    found = _WILD.search(pattern)
    return found.start() if found else len(pattern)


def _matches(folder: str, parts: list[str]) -> Iterator[str]:
    """Yield the paths below `folder` whose components match `parts`, a pattern split at slashes.

    `folder` ends with a slash.
    """
    expression = re.compile(_expression(parts[0]), re.DOTALL)
    try:
        names = os.listdir(folder)  # noqa: PTH208 - names are matched
    except OSError:  # the path is not a folder, or is not readable
        return
    for name in names:
        if expression.fullmatch(name):
            if len(parts) == 1:
                yield folder + name
            else:
                yield from _matches(f"{folder}{name}/", parts[1:])


def _expression(part: str) -> str:
    """Return the regular expression for the part of a pattern between two slashes."""
    out, at = [], 0
    while at < len(part):
        character = part[at]
        at += 1
        if character == "*":
            out.append(".*")
        elif character == "?":
            out.append(".")
        elif character == "\\" and at < len(part):
            out.append(re.escape(part[at]))
            at += 1
        elif character == "[" and (end := part.find("]", at + (2 if part[at : at + 1] in ("!", "^") else 1))) > 0:
            content = part[at:end]
            is_not = content[0] in "!^"
            inside = content[is_not:].replace("\\", r"\\").replace("[", r"\[").replace("]", r"\]").replace("^", r"\^")
            out.append(f"[{'^' if is_not else ''}{inside}]")
            at = end + 1
        else:
            out.append(re.escape(character))
    return "".join(out)
