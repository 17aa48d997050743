"""The command ``ringlet``: a table of sub-commands, each in a file of the folder ``commands``.

The file of a sub-command has two functions: ``add_arguments(parser)`` and ``execute(options)``, which returns the exit
status, or raises `CommandError`. Only the file of the given sub-command is loaded.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import NoReturn

from ringlet.version import __version__

# Exit status for an invalid command line, as for the shell's builtins.
WRONG_USE = 2
_LONGEST_QUOTE = 40

# Subcommand -> file in the folder `commands`, and description.
_COMMANDS = {
    "run": ("run_command", "run a script on several worker processes, of this machine or of several"),
    "inspect": ("inspect_command", "show what each rank of a running or ended job did last"),
    "top": ("top_command", "show the ranks of a running job, every second"),
    "trace": ("trace_command", "merge the timelines of a job, and show where its time went"),
    "tpu": ("tpu_command", "show a TPU slice, an assignment of replicas and what collectives cost there"),
    "doctor": ("doctor_command", "check whether jobs run on this machine and in this environment"),
    "explain": ("explain_command", "describe an error: its meaning, usual causes and remedies"),
    "bench": ("bench_command", "compare all-reduce with a NumPy pass over the same memory"),
}


# Options of other launchers for the number of processes.
_NUMBERS = ("-N", "--nproc_per_node", "--nproc-per-node", "--ntasks")


class CommandError(Exception):
    """A command cannot be executed, usually because of its arguments; the text has cause and remedy, in one line."""


class _Parser(argparse.ArgumentParser):
    """Parser that prints errors in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        words = message.partition("unrecognized arguments: ")[2].split()
        word = words[0].partition("=")[0] if words else ""
        near = ["-n"] if word in _NUMBERS else get_close_matches(word, self._option_string_actions, n=1)
        if near and words[0].startswith("-"):
            message += f"; did you mean {near[0]}?"
        self.exit(WRONG_USE, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Execute a command line, by default this process's; return the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] not in _COMMANDS:
        return _without_command(given)
    file, summary = _COMMANDS[given[0]]
    # Ctrl-C is deferred, because extension modules raise other errors if they are interrupted while loading.
    signals = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        module = importlib.import_module(f"{__package__}.commands.{file}")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, signals)
    parser = _Parser(
        prog=f"ringlet {given[0]}",
        description=summary[:1].upper() + summary[1:] + ".",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.add_arguments(parser)
    try:
        return int(module.execute(parser.parse_args(given[1:])))
    except CommandError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return WRONG_USE


def whole_number(option: str, text: str, least: int = 1) -> int:
    """Return the text of an option as an integer; raise CommandError if it is not one, or below `least`."""
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < least:
        raise CommandError(f"{option} must be an integer of at least {least}, got {text[:_LONGEST_QUOTE]!r}")
    return number


@contextlib.contextmanager
def closed_output_ignored() -> Iterator[None]:
    """End the block without an error if the reader of the standard output, such as ``head``, has exited.

    Characters that the encoding of the output lacks are escaped.
    """
    try:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        yield
        print(end="", flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _without_command(given: list[str]) -> int:
    width = max(map(len, _COMMANDS))
    commands = "\n".join(f"  {name:<{width}}  {summary}" for name, (_, summary) in _COMMANDS.items())
    parser = _Parser(
        prog="ringlet",
        usage="ringlet [-h] [--version] command ...",
        description="The tf.distribute programming model for NumPy, on processes and threads.",
        epilog=f"commands:\n{commands}\n\n`ringlet command --help` describes one of them.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    parser.add_argument("command", nargs="?", help=argparse.SUPPRESS)
    options, _ = parser.parse_known_args(given)
    if options.version:
        print(f"ringlet {__version__}")
        return 0
    return parser.error(_not_a_command(options.command, given))


def _not_a_command(word: str | None, given: list[str]) -> str:
    if word is None:
        return f"no command given; the commands are {', '.join(_COMMANDS)}"
    if given[0].startswith("-"):
        command = next((other for other in given if other in _COMMANDS), "run")
        words = [other for other in given if other != command]
        return f"the command must be the first word; did you mean ringlet {command} {shlex.join(words)}?"
    if word.endswith(".py"):
        return f"a script is started by ringlet run -n 2 {shlex.join(given)}"
    near = ["run"] if word in ("launch", "start") else get_close_matches(word, _COMMANDS, n=1)
    return f"unknown command {word!r}; " + (
        f"did you mean {near[0]!r}?" if near else f"the commands are {', '.join(_COMMANDS)}"
    )
