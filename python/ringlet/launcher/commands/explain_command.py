"""``ringlet explain``: describe an error by its name, the first word in the last line of its traceback."""

from __future__ import annotations

import argparse
import builtins
import inspect
from difflib import get_close_matches

import ringlet.errors
from ringlet.launcher.command_line import CommandError, closed_output_ignored

_EPILOG = """\
examples:
  ringlet explain                     all errors and warnings, one line each
  ringlet explain WorkerLostError     what it means, its causes, what to do

The name is the first word of the last line of a traceback; the module in front
of it may be given too.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to `parser`."""
    parser.epilog = _EPILOG
    parser.add_argument("error", metavar="ERROR", nargs="?", help="name of the class")


def execute(options: argparse.Namespace) -> int:
    """Print the description of the error, or a list of all errors; return the exit status."""
    with closed_output_ignored():
        print(_list() if options.error is None else _describe(options.error))
    return 0


def _list() -> str:
    names = ringlet.errors.__all__
    width = max(map(len, names))
    return "\n".join(f"{name:<{width}}  {_text(name).partition(chr(10))[0]}" for name in names)


def _describe(given: str) -> str:
    name = given.rstrip(":").rpartition(".")[2]
    known = {known.lower(): known for known in ringlet.errors.__all__}
    if name.lower() not in known:
        near = get_close_matches(name.lower(), known, n=1)
        remedy = f"did you mean {known[near[0]]}?" if near else "`ringlet explain` lists all errors"
        found = getattr(builtins, name, None)
        if isinstance(found, type) and issubclass(found, BaseException):
            remedy = "it is an exception of Python: see its message, and the last frame of the traceback"
        raise CommandError(f"{name[:40]!r} is not an error of ringlet; {remedy}")
    name = known[name.lower()]
    bases = [base.__name__ for base in getattr(ringlet.errors, name).__bases__]
    return f"ringlet.errors.{name}, a kind of {' and '.join(bases)}\n\n{_text(name)}"


def _text(name: str) -> str:
    text = inspect.getdoc(getattr(ringlet.errors, name)) or ""
    return text.replace(":func:", "").replace("``", "`")
