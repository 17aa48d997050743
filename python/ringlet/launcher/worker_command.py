"""Worker command: the command that runs the user's script or module."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path

from ringlet.launcher.command_line import CommandError

__all__ = ["module_command", "script_command"]


def script_command(words: Sequence[str], num_workers: int = 4) -> list[str]:
    """Return the command that runs a script with its arguments; `num_workers` is for messages."""
    if not words:
        raise CommandError(
            f"no script given. Write it last, with its arguments: ringlet run -n {num_workers} script.py"
        )
    script = words[0]
    if script.startswith("-"):
        raise CommandError(
            f"{script!r} is not an option of ringlet run. Write the script's own options after its name (see --help)"
        )
    if Path(script).is_dir():
        if not Path(script, "__main__.py").exists():
            raise CommandError(f"{script!r} is a folder without __main__.py. Name a script in it")
    elif not Path(script).exists():
        raise CommandError(_not_found(words, num_workers))
    elif not os.access(script, os.R_OK):
        raise CommandError(f"the script {script!r} cannot be read: permission denied. Try chmod u+r {script}")
    return [sys.executable, *words]


def module_command(words: Sequence[str], num_workers: int = 4) -> list[str]:
    """Return the command that runs a module with its arguments, as ``python -m`` does."""
    if not words:
        raise CommandError(f"no module given after -m. Write its name: ringlet run -n {num_workers} -m package.module")
    top = words[0].partition(".")[0]
    # Only the top-level package, because finding a submodule would import the package here.
    if words[0].endswith(".py") and Path(words[0]).exists():
        raise CommandError(f"{words[0]!r} is a script, not the name of a module. Leave out -m")
    if not all(part.isidentifier() for part in words[0].split(".")):
        raise CommandError(f"{words[0]!r} is not the name of a module. Write it as in Python: package.module")
    if top not in sys.builtin_module_names and PathFinder.find_spec(top, [str(Path.cwd()), *sys.path]) is None:
        raise CommandError(
            f"module {top!r} was not found, neither installed nor in {Path.cwd()}. Install it, or run the command in "
            "its folder"
        )
    return [sys.executable, "-m", *words]


def _not_found(words: Sequence[str], num_workers: int) -> str:
    name = Path(words[0]).name
    if name.startswith("python") and os.sep not in words[0] and len(words) > 1:
        rest = " ".join(words[1:])
        return f"omit {name!r}, which is implied: ringlet run -n {num_workers} {rest}"
    if words[0].isidentifier() and PathFinder.find_spec(words[0], [str(Path.cwd()), *sys.path]) is not None:
        return f"there is no script {words[0]!r}, but a module: ringlet run -n {num_workers} -m {words[0]}"
    return f"there is no script {words[0]!r} in {Path.cwd()}. Check its path"
